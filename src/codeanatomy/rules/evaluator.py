"""Evaluate compiled rules on Spark: each output as a frame whose schema is checked against the contract.

Frames are plans until the store writes them or `collect` runs them. The rules of one output become one statement,
because analysing a statement takes Spark far longer than parsing it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.engine.frames import spark_schema
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.rules.definition import RuleError
from codeanatomy.store.state import State
from codeanatomy.store.temporary import small_frame

Form = Callable[[DataFrame], DataFrame]
"""Another form of the same rows."""


def as_they_are(frame: DataFrame) -> DataFrame:
    """The form that rows have."""
    return frame


@dataclass(frozen=True)
class Statement:
    """A frame over `inputs` that `plan` makes; equal keys mean equal plans. It reads the datasets `reads` of them."""

    inputs: RuleInputs
    key: Hashable
    reads: Collection[str]
    plan: Callable[[], DataFrame]

    def collect(self, form: Form) -> pa.Table:
        """Its rows, in some form."""
        return self.inputs.collect(self, form)


class RuleInputs:
    """The frames that rules read, by dataset name. Other evaluations on the same session do not see them."""

    def __init__(self, spark: SparkSession, state: State | None = None) -> None:
        """Rows of the driver that are too many for a plan are stored with the temporary rows of `state`."""
        self._spark = spark
        self._state = state
        self._prefix = f"codeanatomy_{secrets.token_hex(8)}_"
        self._views: dict[str, str] = {}

    def offer(self, name: str, frame: DataFrame) -> None:
        """Let rules read `frame` as this dataset."""
        frame.createOrReplaceTempView(f"{self._prefix}{name}")
        self._views[name] = f"{self._prefix}{name}"

    def offer_rows(self, name: str, rows: pa.Table, form: Form = as_they_are) -> None:
        """Let rules read rows of the driver, in some form, as this dataset."""
        self.offer(name, form(small_frame(self._spark, rows, name, self._state)))

    def offer_rules(self, name: str, rules: Sequence[CompiledRule]) -> None:
        """Let other rules read what `rules` make, as this dataset."""
        self.offer(name, self.evaluate(rules))

    def collect(self, statement: Statement, form: Form) -> pa.Table:
        """The rows of a statement, in some form, which is always the same for a statement."""
        return form(statement.plan()).toArrow()

    def frame(self, name: str) -> DataFrame:
        """What is offered as this dataset."""
        return self._spark.table(self._views[name])

    def evaluate(self, rules: Sequence[CompiledRule]) -> DataFrame:
        """The union of `rules`, which share one output, with every column of it."""
        frame = self._spark.sql(self._statement(rules))
        expected = {f.name: f.dataType for f in spark_schema(rules[0].rule.output)}
        for field in frame.schema:
            if expected[field.name] != field.dataType:
                want, got = expected[field.name].simpleString(), field.dataType.simpleString()
                names = ", ".join(each.rule.name for each in rules)
                raise RuleError(f"rule {names}: column {field.name} is {got}, the contract says {want}")
        return frame

    def physical_plan(self, rules: Sequence[CompiledRule]) -> str:
        """How Spark would run `rules`, as text."""
        explained = self._spark.sql(f"EXPLAIN FORMATTED {self._statement(rules)}").collect()
        return str(explained[0]["plan"])

    def _statement(self, rules: Sequence[CompiledRule]) -> str:
        return "\nUNION ALL\n".join(each.sql_over(self._views) for each in rules)

    def __enter__(self) -> RuleInputs:
        """Enter; no input is registered yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Drop the views of the inputs."""
        for view in self._views.values():
            self._spark.catalog.dropTempView(view)
