"""Rules that are planned once and run for many updates, over slots (`engine/slots.py`).

An evaluation like any other (`RuleInputs`), but one that stays: what is offered goes into slots, and a frame that was
collected before is run again as it was planned. It is used by one build at a time. A build that reads what it did not
offer itself would read the rows of an earlier one; that is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.engine.settings import EngineSettings
from codeanatomy.engine.slots import Slots, is_repeatable
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.rules.evaluator import Form, RuleInputs, Statement, as_they_are

Identity = tuple[str, Mapping[str, str]]


def identity_of(rules: Sequence[CompiledRule], settings: EngineSettings) -> Identity:
    """Equal identities mean equal plans: the settings that can change rows, and every rule."""
    return settings.fingerprint(), {each.rule.name: each.identity for each in rules}


class PreparedRules(RuleInputs):
    """The rules of an update over slots, each statement planned when it is first collected."""

    def __init__(self, spark: SparkSession) -> None:
        """`spark` must be a session that supports slots."""
        self._slots = Slots(spark)
        super().__init__(self._slots.session)
        self._in_use = threading.Lock()
        self._schemas: dict[str, pa.Schema] = {}
        self._read_by: dict[str, frozenset[str]] = {}
        self._planned: dict[Hashable, DataFrame] = {}
        self._offered: set[str] = set()

    def offer_rows(self, name: str, rows: pa.Table, form: Form = as_they_are) -> None:
        """Replace the rows of a slot."""
        if name not in self._schemas:
            self.offer(name, form(self._slots.frame(name, rows.schema)))
            self._schemas[name] = rows.schema
            self._read_by[name] = frozenset({name})
        elif rows.schema != self._schemas[name]:
            raise AssertionError(f"{name} has other columns than the plans that read it")
        self._slots.put(name, rows)
        self._offered.add(name)

    def offer_rules(self, name: str, rules: Sequence[CompiledRule]) -> None:
        """Let other rules read what `rules` make: a view over slots, which stays."""
        if name not in self._views:
            super().offer_rules(name, rules)
            self._read_by[name] = self._slots_of({each for rule in rules for each in rule.inputs})

    def collect(self, statement: Statement, form: Form) -> pa.Table:
        """The rows of a statement, by the plan that was made when it was first collected, if it can be run again."""
        if stale := self._slots_of(statement.reads) - self._offered:
            raise AssertionError(f"{sorted(stale)[0]} has the rows of an earlier build")
        frame = self._planned.get(statement.key)
        if frame is None:
            frame = form(statement.plan())
            if is_repeatable(frame):
                self._planned[statement.key] = frame
        return frame.toArrow()

    def _slots_of(self, names: Iterable[str]) -> frozenset[str]:
        """The slots that datasets are made from."""
        return frozenset().union(*(self._read_by[name] for name in names))

    def __enter__(self) -> PreparedRules:
        """Wait until no other build uses them; nothing is offered yet."""
        self._in_use.acquire()
        self._offered.clear()
        return self

    def __exit__(self, *failure: object) -> None:
        """Let another build use them."""
        self._in_use.release()
