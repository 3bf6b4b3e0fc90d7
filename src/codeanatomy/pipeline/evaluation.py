"""Evaluate the rules and write what they make: for every file, or for those that an update rebuilds.

The rules are the same. What differs is how much of a dataset they see: in an update, what files say is narrowed to the
rebuilt ones. A row of a file is made from what belongs to that file alone, so it comes out as it does in a full build.
Rows that belong to no file are made from what all files say, and only if that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial, reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.catalogue.columns import GLOBAL_OWNER, Dataset
from codeanatomy.catalogue.tables import (
    ANSWERS,
    DOCUMENTS,
    FACTS,
    SCAN_REPO,
    SCIP_DOCUMENTS,
    SHARED_VIEWS,
    STORED_TABLES,
)
from codeanatomy.pipeline.answering import answer_questions
from codeanatomy.pipeline.datasets import (
    collected,
    few,
    offer_documents,
    offer_few_documents,
    offer_few_inputs,
    offer_inputs,
    repository,
    scan_table,
)
from codeanatomy.pipeline.facts import KnownFacts
from codeanatomy.pipeline.indexing import Indexing, read_documents
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.made import Made, Scope
from codeanatomy.pipeline.progress import StageClock
from codeanatomy.pipeline.stages import INDEX, needs_of, sorter_of
from codeanatomy.rules.compiler import CompiledRule, by_output, needed_rules
from codeanatomy.rules.evaluator import evaluate, offer
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.datafiles import collect_rows
from codeanatomy.store.digests import NO_ROWS, SetDigest
from codeanatomy.store.shared import keep, shared_rows
from codeanatomy.store.state import State
from codeanatomy.store.tables import (
    read_table,
    replace_collected,
    replace_rows,
    write_table,
)

MADE_AT_ONCE = 4
"""Datasets that are planned at a time."""

RULES_PLANNED_TOGETHER = 8
"""In an update of few files, planning takes longer than running: the rules of one table are planned in groups."""

_SORT_WITHIN_FILE = {"cpg_nodes": ("node_kind", "bstart"), "cpg_edges": ("edge_kind", "bstart")}
"""Neighbours that look alike compress well."""


def make_whole(
    spark: SparkSession,
    state: State,
    last: BuildRecord | None,
    inputs: BuildInputs,
    started: Indexing | None,
    made: Made,
    clock: StageClock,
    only: Collection[str] | None = None,
) -> None:
    """Compute tables for every file (`only` some, the others are made already) and write those that came out anew."""
    files = scan_table(inputs)
    facts_version = made.pins[FACTS.name].version
    has_documents = started is not None or DOCUMENTS.name in made.pins
    needed = needed_rules(inputs.rules, documents=has_documents)
    offer_inputs(spark, inputs, needed, files, state, facts_version)
    rules = by_output(needed)
    previous = last.tables if last else {}

    def is_made(table: Dataset) -> bool:
        return only is not None and table.name not in only and table.name in made.pins

    def make_documents() -> None:
        if started is not None and not is_made(DOCUMENTS):
            with clock.stage(INDEX) as stage:
                frame = read_documents(spark, state, files, facts_version, started)
                outcome = write_table(
                    frame, DOCUMENTS, state, previous=previous.get(DOCUMENTS.name), identity=SCIP_DOCUMENTS.names()
                )
                stage.rows = outcome.pin.rows
            made.add(outcome)
        offer_documents(spark, needed, state, made.version(DOCUMENTS))

    def make(name: str) -> None:
        """Compute a dataset: write it if it is stored, and let rules read it."""
        if name == DOCUMENTS.name:
            make_documents()
            return
        table = ANSWERS if name == ANSWERS.name else rules[name][0].rule.output
        if is_made(table):
            offer(name, read_table(spark, state, table, made.pins[name].version))
            return
        if table is ANSWERS:
            frame = answer_questions(spark, state, files, facts_version, made.version(DOCUMENTS))
        else:
            frame = evaluate(spark, rules[name])
        if table in STORED_TABLES:
            with clock.stage(table.name) as stage:
                sort_by = _SORT_WITHIN_FILE.get(table.name, ())
                outcome = write_table(frame, table, state, sort_by=sort_by, previous=previous.get(table.name))
                stage.rows = outcome.pin.rows
            made.add(outcome)
            frame = read_table(spark, state, table, outcome.pin.version)
        elif table in SHARED_VIEWS:
            frame = keep(frame, name, state, by=SHARED_VIEWS[table])
        offer(name, frame)

    with shared_rows(state):
        _make_in_order(needs_of(needed), make)


def make_scoped(
    spark: SparkSession,
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    scope: Scope,
    facts: KnownFacts,
    made: Made,
    clock: StageClock,
    left_out: Collection[str] = (),
) -> None:
    """Compute the rows of the owners in `scope` and replace theirs, in every table but those that are `left_out`."""
    every_file = scan_table(inputs)
    files = every_file.filter(pc.is_in(every_file["file_id"], pa.array(sorted(scope.rebuilt), pa.string())))
    needed = needed_rules(inputs.rules, documents=DOCUMENTS.name in made.pins)
    of_no_file = _rows_of_no_file(spark, state, last, inputs, scope, needed) if GLOBAL_OWNER in scope.rebuilt else {}
    of_files = [rule for rule in needed if not rule.is_global]
    rules = by_output(of_files)

    def offer_all() -> None:
        offer(ANSWERS.name, collected(spark, scope.answers, ANSWERS.name, state))
        if scope.is_small:
            offer_few_inputs(spark, inputs, of_files, files, state, facts)
            offer_few_documents(spark, needed, state, made.version(DOCUMENTS), scope.rebuilt)
        else:
            offer_inputs(spark, inputs, of_files, files, state, made.pins[FACTS.name].version)
            offer_documents(spark, needed, state, made.version(DOCUMENTS), owners=scope.rebuilt)

    read = {name for rule in of_files for name in rule.inputs} - {ANSWERS.name}
    needs = {name: needed - {ANSWERS.name} for name, needed in needs_of(of_files).items()}

    def parts(name: str) -> list[Callable[[], DataFrame]]:
        """The frames whose union a dataset is; of few files, those of some rules at a time."""
        if name == ANSWERS.name:
            return [partial(spark.table, name)]
        together = RULES_PLANNED_TOGETHER if scope.is_small else len(rules[name])
        groups = [rules[name][start : start + together] for start in range(0, len(rules[name]), together)]
        of_all = [partial(few, spark, of_no_file[name])] if name in of_no_file else []
        return [*(partial(evaluate, spark, group) for group in groups), *of_all]

    def whole(name: str) -> DataFrame:
        return reduce(DataFrame.unionByName, (part() for part in parts(name)))

    def replaced(name: str, table: Dataset) -> DataFrame | None:
        """Replace the rows of a table; those that were written, if a rule reads them."""
        base, before, owners = last.tables[name], scope.before.get(name, {}), scope.owners(table)
        sort_by = _SORT_WITHIN_FILE.get(name, ())
        with clock.stage(name) as stage:
            if not scope.is_collected(table):
                outcome = replace_rows(
                    whole(name), table, state, owners=owners, base=base, before=before, sort_by=sort_by
                )
                made.add(outcome)
                return read_table(spark, state, table, outcome.pin.version, keys=owners)
            rows, after = _collected(parts(name), table, owners)
            stage.rows = rows.num_rows
            made.add(
                replace_collected(
                    rows, table, state, owners=owners, base=base, before=before, after=after, sort_by=sort_by
                )
            )
            return collected(spark, rows, name, state) if name in read else None

    def make(name: str) -> None:
        if name == DOCUMENTS.name:
            return
        table = ANSWERS if name == ANSWERS.name else rules[name][0].rule.output
        frame: DataFrame | None
        if table in STORED_TABLES and name not in left_out:
            frame = replaced(name, table)
        elif table in SHARED_VIEWS:
            frame = whole(name)
            if scope.is_small:
                frame = collected(spark, frame.coalesce(1).toArrow(), name, state)
            else:
                frame = keep(frame, name, state, by=SHARED_VIEWS[table])
        else:
            frame = whole(name)
        if frame is not None:
            offer(name, frame)

    with shared_rows(state):
        offer_all()
        _make_in_order(needs, make)


def _collected(
    parts: Sequence[Callable[[], DataFrame]], table: Dataset, owners: Collection[str]
) -> tuple[pa.Table, dict[str, SetDigest]]:
    """The rows of all parts, planned side by side, and the digest of each owner's."""
    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(pool.map(lambda part: collect_rows(part(), table, owners), parts))
    digests: dict[str, SetDigest] = {}
    for _, of_part in found:
        for owner, digest in of_part.items():
            digests[owner] = digests.get(owner, NO_ROWS) + digest
    return pa.concat_tables([rows for rows, _ in found]), digests


def _rows_of_no_file(
    spark: SparkSession,
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    scope: Scope,
    rules: Sequence[CompiledRule],
) -> dict[str, pa.Table]:
    """The rows that belong to no file, by table, from the answers of all files."""
    old = read_table(spark, state, ANSWERS, last.tables[ANSWERS.name].version)
    replaced = few(spark, pa.table({"file_id": pa.array(sorted(scope.asked | scope.gone), pa.string())}))
    answers = old.join(F.broadcast(replaced), "file_id", "left_anti").unionByName(few(spark, scope.answers))
    offer(ANSWERS.name, answers)
    offer(SCAN_REPO.name, repository(spark, inputs))
    groups = by_output([rule for rule in rules if rule.is_global])
    return {name: evaluate(spark, each).toArrow() for name, each in groups.items()}


def _make_in_order(needs: Mapping[str, set[str]], make: Callable[[str], None]) -> None:
    """Make every dataset as soon as what it needs is made; one's planning hides behind another's work."""
    sorter = sorter_of(needs)
    sorter.prepare()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(MADE_AT_ONCE) as pool:
        while sorter.is_active():
            running |= {pool.submit(make, name): name for name in sorted(sorter.get_ready())}
            for finished in wait(running, return_when=FIRST_COMPLETED).done:
                finished.result()
                sorter.done(running.pop(finished))
