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
from codeanatomy.engine.rows import as_frame, in_driver
from codeanatomy.engine.session import session_options
from codeanatomy.engine.settings import job_conf
from codeanatomy.pipeline.answering import Knowledge, answer
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.journal import StatementPlan
from codeanatomy.pipeline.rule_inputs import Sources, offer_repository, offer_sources
from codeanatomy.rules.compiled import CompiledRule, by_output, needed_rules
from codeanatomy.rules.evaluator import RuleInputs, Statement
from codeanatomy.rules.order import needs_of, sorter_of
from codeanatomy.store.datafiles import CollectedRows, collected, digest_rows, with_row_hashes
from codeanatomy.store.digests import NO_ROWS, SetDigest
from codeanatomy.store.tables import Replaced, TablePin, WrittenTable, read_arrow, read_table, replace_rows
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
    prepared = None if sources.workers or build.warm is None else build.warm.prepared(rules, build.inputs.settings)
    with (
        temporary_rows(build.state),
        session_options(build.spark, conf),
        prepared or RuleInputs(build.spark, build.state) as inputs,
        RuleInputs(build.spark, build.state) as of_all,
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
        if table in STORED_TABLES and name not in self.tables and self.sources.scope.rebuilt is None:
            self._offer_stored(table)
        elif name in self.tables:
            self._write(table)
        elif table in SHARED_VIEWS:
            self._share(table)
        else:
            self.inputs.offer_rules(name, self._rules_of[name])
        if table is ANSWERS and self.sources.scope.is_rebuilt(GLOBAL_OWNER):
            build = self.sources.build
            self.of_all.offer(name, read_table(build.spark, build.state, table, self._version(table)))

    @cached_property
    def _rules_of(self) -> Mapping[str, Sequence[CompiledRule]]:
        return by_output(self.rules)

    @cached_property
    def _read(self) -> set[str]:
        """The datasets that rules read."""
        return {name for rule in self.rules for name in rule.inputs}

    def _version(self, table: Dataset) -> int:
        """The version of a table that was written, or the one it has."""
        pin = self.written[table.name].pin if table.name in self.written else self.pins[table.name]
        return pin.version

    def _offer_stored(self, table: Dataset) -> None:
        """Let rules read a table that is not computed."""
        build = self.sources.build
        if self.sources.workers:
            self.inputs.offer(table.name, read_table(build.spark, build.state, table, self._version(table)))
        else:
            self.inputs.offer_rows(table.name, read_arrow(build.state, table, self._version(table)))

    def _write(self, table: Dataset) -> None:
        """Write the rows of the scope; let rules read them."""
        statements = self._statements(table)
        if not statements:  # all its rows belong to no file, and these are not of the scope
            return
        build, replaced = self.sources.build, self.sources.scope.replaced(table)
        base = self.pins.get(table.name)
        owners = None if replaced is None else replaced.owners
        with build.clock.stage(table.name) as stage:
            if self.sources.workers:
                frame = reduce(DataFrame.unionByName, (each.plan() for each in statements))
                written = replace_rows(frame, table, build.state, base, replaced)
                stage.rows = written.pin.rows if replaced is None else None
                if table.name in self._read:
                    stored = read_table(build.spark, build.state, table, written.pin.version, owners=owners)
                    self.inputs.offer(table.name, stored)
            else:
                rows = _collected(statements, table, owners)
                written = replace_rows(rows, table, build.state, base, replaced)
                stage.rows = rows.table.num_rows
                if table.name in self._read:
                    self.inputs.offer_rows(table.name, rows.table)
        self.written[table.name] = written

    def _share(self, table: Dataset) -> None:
        """Compute rows that many rules read, once."""
        rules, state = self._rules_of[table.name], self.sources.build.state
        statement = self._statement(self.inputs, rules)
        if self.sources.workers:
            self.inputs.offer(table.name, materialize(statement.plan(), table.name, state, by=SHARED_VIEWS[table]))
        else:
            self.inputs.offer_rows(table.name, statement.collect(lambda frame: frame.coalesce(1)))

    def _statements(self, table: Dataset) -> list[Statement]:
        """The statements whose union a table is; in the driver, each of some rules."""
        if table is ANSWERS:
            return [self._answers()]
        rules = self._rules_of[table.name]
        of_files = [rule for rule in rules if not rule.is_global]
        together = max(1, len(of_files)) if self.sources.workers else RULES_PLANNED_TOGETHER
        groups = [of_files[start : start + together] for start in range(0, len(of_files), together)]
        statements = [self._statement(self.inputs, group) for group in groups]
        of_no_file = [rule for rule in rules if rule.is_global]
        if of_no_file and self.sources.scope.is_rebuilt(GLOBAL_OWNER):
            statements.append(self._statement(self.of_all, of_no_file))
        return statements

    def _answers(self) -> Statement:
        """The answers of the scope."""
        sources, name = self.sources, ANSWERS.name
        rows: Rows | None = self.answers
        if rows is None:
            rows = answer(sources.build, Knowledge.of(sources.build, sources.facts, sources.documents))
        if sources.workers:
            return Statement(self.inputs, name, (), partial(as_frame, sources.workers, rows))
        self.inputs.offer_rows(name, in_driver(rows))
        return Statement(self.inputs, name, (name,), partial(self.inputs.frame, name))

    def _statement(self, inputs: RuleInputs, rules: Sequence[CompiledRule]) -> Statement:
        """The union of rules that share one output."""
        key = tuple((each.rule.name, each.identity) for each in rules)
        reads = {name for each in rules for name in each.inputs}
        return Statement(inputs, key, reads, partial(self._evaluate, inputs, rules))

    def _evaluate(self, inputs: RuleInputs, rules: Sequence[CompiledRule]) -> DataFrame:
        build = self.sources.build
        if build.inputs.settings.profile.records_plans:
            names = [each.rule.name for each in rules]
            build.journal.plans.append(StatementPlan(rules[0].rule.output.name, names, inputs.physical_plan(rules)))
        return inputs.evaluate(rules)


def _collected(statements: Sequence[Statement], table: Dataset, owners: Collection[str] | None) -> CollectedRows:
    """The rows of all statements, planned and run side by side."""

    def collect(statement: Statement) -> CollectedRows:
        return collected(statement.collect(lambda frame: with_row_hashes(frame, table)), table, owners)

    with ThreadPoolExecutor(len(statements)) as pool:
        found = list(pool.map(collect, statements))
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
