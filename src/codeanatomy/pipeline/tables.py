"""Compute the tables of a build and write them: for every owner, or for those of a scope.

The rules are the same for any scope. In the scope of some files, what files say is narrowed to those files. A row of a
file is made from what belongs to that file alone, so it comes out as it does in a full build. Rows that belong to no
file are made from the answers of all files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from codeanatomy.catalogue.columns import GLOBAL_OWNER, Dataset
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, SHARED_VIEWS, STORED_TABLES
from codeanatomy.engine.rows import as_frame
from codeanatomy.engine.session import session_options
from codeanatomy.engine.settings import job_conf
from codeanatomy.pipeline.answering import Knowledge, answer
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.journal import StatementPlan
from codeanatomy.pipeline.rule_inputs import Sources, offer_repository, offer_sources, small_frame
from codeanatomy.rules.compiled import CompiledRule, by_output, needed_rules
from codeanatomy.rules.evaluator import RuleInputs
from codeanatomy.rules.order import needs_of, sorter_of
from codeanatomy.store.datafiles import CollectedRows, collect_rows, digest_rows
from codeanatomy.store.digests import NO_ROWS, SetDigest
from codeanatomy.store.tables import Replaced, TablePin, WrittenTable, read_table, replace_rows
from codeanatomy.store.temporary import materialize, temporary_rows

if TYPE_CHECKING:
    from codeanatomy.engine.rows import Rows

COMPUTED_AT_ONCE = 4
"""Datasets that are planned at a time."""

RULES_PLANNED_TOGETHER = 8
"""In an update of few files, planning takes longer than running: the rules of one table are planned in groups."""


def compute_tables(
    sources: Sources, pins: Mapping[str, TablePin], tables: Collection[str], answers: pa.Table | None = None
) -> dict[str, WrittenTable]:
    """Compute and write these tables; `pins` has the others, as they are read.

    Without `answers`, which are those of the scope, its questions are answered as well.
    """
    build = sources.build
    rules = needed_rules(build.inputs.rules, documents=sources.documents is not None)
    conf = {} if sources.workers else job_conf(len(sources.files()))
    with (
        temporary_rows(build.state),
        session_options(build.spark, conf),
        RuleInputs(build.spark) as inputs,
        RuleInputs(build.spark) as of_all,
    ):
        offer_sources(inputs, sources, rules)
        offer_repository(of_all, build)
        computation = _Computation(sources, pins, tables, answers, rules, inputs, of_all)
        _in_order(needs_of(rules), computation.compute)
    return computation.written


def write_documents(build: Build, documents: Rows, replaced: Replaced | None = None) -> WrittenTable:
    """Write the documents of the replaced owners, or of all."""
    rows: CollectedRows | DataFrame
    if isinstance(documents, pa.Table):
        identity = as_frame(build.spark, documents.select(list(DOCUMENTS.identity)))
        rows = CollectedRows(documents, digest_rows(identity, DOCUMENTS))
    else:
        rows = documents
    return replace_rows(rows, DOCUMENTS, build.state, build.pin(DOCUMENTS.name), replaced)


@dataclass(frozen=True)
class _Computation:
    """One evaluation of the rules in a scope; `of_all` is what rules of no file read: the answers of all files."""

    sources: Sources
    pins: Mapping[str, TablePin]
    tables: Collection[str]
    answers: pa.Table | None
    rules: Sequence[CompiledRule]
    inputs: RuleInputs
    of_all: RuleInputs
    written: dict[str, WrittenTable] = field(default_factory=dict)

    def compute(self, name: str) -> None:
        """Compute a dataset: write it if it is one of the tables, and let rules read it."""
        table = ANSWERS if name == ANSWERS.name else self._rules_of[name][0].rule.output
        frame: DataFrame | None
        if table in STORED_TABLES and name not in self.tables and self.sources.scope.rebuilt is None:
            frame = self._stored(table)
        elif name in self.tables:
            frame = self._write(table)
        else:
            frame = self._shared(table) if table in SHARED_VIEWS else self._whole(table)
        if frame is not None:
            self.inputs.offer(name, frame)
        if table is ANSWERS and self.sources.scope.is_rebuilt(GLOBAL_OWNER):
            self.of_all.offer(name, self._stored(table))

    @cached_property
    def _rules_of(self) -> Mapping[str, Sequence[CompiledRule]]:
        return by_output(self.rules)

    @cached_property
    def _read(self) -> set[str]:
        """The datasets that rules read."""
        return {name for rule in self.rules for name in rule.inputs}

    def _stored(self, table: Dataset) -> DataFrame:
        """A table with the rows of all owners, as it was written, or as it is."""
        pin = self.written[table.name].pin if table.name in self.written else self.pins[table.name]
        return read_table(self.sources.build.spark, self.sources.build.state, table, pin.version)

    def _write(self, table: Dataset) -> DataFrame | None:
        """Write the rows of the scope; the same to read, if a rule does."""
        build, replaced = self.sources.build, self.sources.scope.replaced(table)
        base = self.pins.get(table.name)
        with build.clock.stage(table.name) as stage:
            if self.sources.workers:
                written = replace_rows(self._whole(table), table, build.state, base, replaced)
                owners = None if replaced is None else replaced.owners
                frame = read_table(build.spark, build.state, table, written.pin.version, owners=owners)
                stage.rows = written.pin.rows if replaced is None else None
            else:
                rows = _collected(self._parts(table), table, None if replaced is None else replaced.owners)
                written = replace_rows(rows, table, build.state, base, replaced)
                frame = rows.table
                stage.rows = rows.table.num_rows
        self.written[table.name] = written
        if table.name not in self._read:
            return None
        return small_frame(build.spark, frame, table.name, build.state) if isinstance(frame, pa.Table) else frame

    def _parts(self, table: Dataset) -> list[Callable[[], DataFrame]]:
        """The frames whose union a dataset is; in the driver, those of some rules at a time."""
        build, scope = self.sources.build, self.sources.scope
        if table is ANSWERS:
            rows = self.answers
            if rows is None:
                rows = answer(build, Knowledge.of(build, self.sources.facts, self.sources.documents))
            return [partial(as_frame, build.spark, rows)]
        rules = self._rules_of[table.name]
        of_files = [rule for rule in rules if not rule.is_global]
        together = len(of_files) if self.sources.workers else RULES_PLANNED_TOGETHER
        groups = [of_files[start : start + together] for start in range(0, len(of_files), together)]
        parts: list[Callable[[], DataFrame]] = [partial(self._evaluate, self.inputs, group) for group in groups]
        of_no_file = [rule for rule in rules if rule.is_global]
        if of_no_file and scope.is_rebuilt(GLOBAL_OWNER):
            parts.append(partial(self._evaluate, self.of_all, of_no_file))
        return parts

    def _evaluate(self, inputs: RuleInputs, rules: Sequence[CompiledRule]) -> DataFrame:
        """The union of rules that share one output."""
        build = self.sources.build
        if build.inputs.settings.profile.records_plans:
            names = [each.rule.name for each in rules]
            build.journal.plans.append(StatementPlan(rules[0].rule.output.name, names, inputs.physical_plan(rules)))
        return inputs.evaluate(rules)

    def _whole(self, table: Dataset) -> DataFrame:
        return reduce(DataFrame.unionByName, (part() for part in self._parts(table)))

    def _shared(self, table: Dataset) -> DataFrame:
        """Rows that many rules read, computed once."""
        build = self.sources.build
        if self.sources.workers:
            return materialize(self._whole(table), table.name, build.state, by=SHARED_VIEWS[table])
        return small_frame(build.spark, self._whole(table).coalesce(1).toArrow(), table.name, build.state)


def _collected(
    parts: Sequence[Callable[[], DataFrame]], table: Dataset, owners: Collection[str] | None
) -> CollectedRows:
    """The rows of all parts, planned side by side."""
    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(pool.map(lambda part: collect_rows(part(), table, owners), parts))
    digests: dict[str, SetDigest] = {}
    for rows in found:
        for owner, digest in rows.digests.items():
            digests[owner] = digests.get(owner, NO_ROWS) + digest
    return CollectedRows(pa.concat_tables([rows.table for rows in found]), digests)


def _in_order(needs: Mapping[str, set[str]], compute: Callable[[str], None]) -> None:
    """Compute every dataset as soon as what it needs is there; one's planning hides behind another's work."""
    sorter = sorter_of(needs)
    sorter.prepare()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(COMPUTED_AT_ONCE) as pool:
        while sorter.is_active():
            running |= {pool.submit(compute, name): name for name in sorted(sorter.get_ready())}
            for finished in wait(running, return_when=FIRST_COMPLETED).done:
                finished.result()
                sorter.done(running.pop(finished))
