"""An update: find out what the changes since the last build reach, rebuild exactly that, leave all else as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, SCIP_DOCUMENTS
from codeanatomy.impact.reasons import ImpactedFile, ReasonKind
from codeanatomy.impact.snapshots import SnapshotChanges, module_changes, snapshot_changes
from codeanatomy.pipeline.analysis import (
    Impact,
    exports_that_changed,
    find_impact,
    listed,
    snapshot_at,
    snapshot_of,
)
from codeanatomy.pipeline.datasets import scan_table
from codeanatomy.pipeline.extraction import IDENTITY, extract_here, extract_new_contents
from codeanatomy.pipeline.facts import KnownFacts, StoredFacts
from codeanatomy.pipeline.indexing import Indexing, read_documents, read_documents_here
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.lookups import Lookups
from codeanatomy.pipeline.made import Made, Scope
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.problems import update_limits, update_problems
from codeanatomy.pipeline.progress import RunningStage, StageClock
from codeanatomy.pipeline.publishing import Outcome, index_figures
from codeanatomy.pipeline.reindexing import Documents, reindex
from codeanatomy.pipeline.request import Mode, Problem, Strategy
from codeanatomy.pipeline.stages import EXTRACT, IMPACT, INDEX, update_stages
from codeanatomy.resolve import Asked
from codeanatomy.resolve.index import Index
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.datafiles import owner_digests
from codeanatomy.store.digests import NO_ROWS
from codeanatomy.store.owners import OWNER_DIGESTS, read_owner_digests, replace_owner_digests, write_owner_digests
from codeanatomy.store.state import State
from codeanatomy.store.tables import (
    COLLECTED_OWNERS,
    TablePin,
    WrittenTable,
    append_collected,
    pin_latest,
    read_arrow,
    replace_collected,
    replace_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTRACTED_HERE = 64
"""So many new contents are parsed in this process; more are spread over tasks."""

READ_HERE = 64
"""So many documents are read in this process; more are spread over tasks."""

ASKED_HERE = 30_000
"""So many questions are answered in this process; more are spread over tasks."""

QUESTIONS_OF_A_FILE = 100
"""A guess, for files that are asked all of theirs."""

ALWAYS_UPDATED = 64
"""So few files are never worth a full build."""

ASSUMED_RATIO = 2.0
"""What rebuilding a file costs in an update, next to a full build, until that was measured."""


@dataclass(frozen=True)
class Analysis:
    """What an update will do, and what it found out on the way."""

    facts: KnownFacts
    documents: Documents | None
    impact: Impact


def analyse(
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    strategy: Strategy,
    clock: StageClock,
    made: Made | None = None,
    engine: Callable[[], SparkSession] | None = None,
) -> Analysis:
    """Find what the changes reach.

    With `made`, new facts are stored as well; with an `engine`, large work is spread over its tasks.
    """
    changes = snapshot_changes(snapshot_at(state, last, inputs.roots), snapshot_of(inputs))
    with clock.stage(EXTRACT) as stage:
        facts, pin = _facts(state, last, inputs, changes, clock, made, engine, stage)
    modules = module_changes(changes, facts.names)
    exports = tuple(exports_that_changed(changes, facts))
    lookups = Lookups(state, last)
    files = scan_table(inputs)
    documents = None

    def read(started: Indexing, count: int) -> pa.Table:
        if engine is not None and pin is not None and count > READ_HERE:
            return read_documents(engine(), state, files, pin.version, started).toArrow()
        return read_documents_here(files, facts, started)

    if inputs.provider is not None:
        with clock.stage(INDEX) as stage:
            documents = reindex(state, last, inputs, changes, modules, exports, lookups, facts, read)
            stage.rows = documents.asked
    with clock.stage(IMPACT) as stage:
        defined = _defined_symbols(state, last, documents) if documents is not None else None
        index = Index(files, facts.names, defined)

        def ask(asked: Asked) -> pa.Table:
            from codeanatomy.pipeline.answering import answer_here, answer_questions  # noqa: PLC0415

            questions = sum(QUESTIONS_OF_A_FILE if numbers is None else len(numbers) for numbers in asked.values())
            if engine is not None and pin is not None and documents is None and questions > ASKED_HERE:
                return answer_questions(engine(), state, files, pin.version, None, asked).toArrow()
            symbols = _symbol_asks(state, last, documents, asked) if documents is not None else {}
            return answer_here(index, files, facts, symbols, asked)

        impact = find_impact(state, last, changes, modules, exports, lookups, facts, index, ask, strategy, documents)
        stage.rows = len(impact.files)
    return Analysis(facts, documents, impact)


def _defined_symbols(state: State, last: BuildRecord, documents: Documents) -> pa.Table:
    """The symbols that documents define, in the form an index is built from."""
    columns = ["file_id", "scip_symbol_information"]
    is_kept = ~pc.field("file_id").isin(listed(documents.replaced))
    kept = read_arrow(state, DOCUMENTS, last.tables[DOCUMENTS.name].version, columns, only=is_kept)
    return pa.concat_tables([kept, documents.rows.select(columns)])


def _symbol_asks(state: State, last: BuildRecord, documents: Documents, asked: Collection[str]) -> dict[str, Any]:
    """The questions of documents, by file."""
    columns = ["file_id", "symbol_asks"]
    kept = set(asked) - documents.replaced
    stored = read_arrow(state, DOCUMENTS, last.tables[DOCUMENTS.name].version, columns, owners=kept)
    tables = (stored, documents.rows.select(columns))
    return {row["file_id"]: row["symbol_asks"] for table in tables for row in table.to_pylist()}


def _facts(
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    changes: SnapshotChanges,
    clock: StageClock,
    made: Made | None,
    engine: Callable[[], SparkSession] | None,
    stage: RunningStage,
) -> tuple[KnownFacts, TablePin | None]:
    """The facts of every content, those of new ones among them."""
    nothing = FACTS.schema().empty_table()
    pin = pin_latest(state, FACTS, known=last.tables[FACTS.name], identity=IDENTITY)
    known = StoredFacts(state, pin.version if pin else None)
    changed = set(changes.rebuilt())
    missing = {
        file.content_id: file
        for file in inputs.snapshot.files
        if file.path in changed and file.content_id and file.content_id not in known
    }
    if made is not None and engine is not None and len(missing) > EXTRACTED_HERE:
        pin = extract_new_contents(engine(), state, inputs, last.tables[FACTS.name], clock.listener, stage)
        made.pins[FACTS.name], made.written[FACTS.name] = pin, True
        return KnownFacts(StoredFacts(state, pin.version), nothing), pin
    fresh = extract_here(inputs.root, list(missing.values())) if missing else nothing
    stage.rows = fresh.num_rows
    if made is not None and pin is not None:
        written = append_collected(fresh, FACTS, state, base=pin, identity=IDENTITY)
        made.add(written)
        pin = written.pin
    return KnownFacts(known, fresh), pin


def full_plan(plan: Plan, last: BuildRecord, impact: Impact, max_depth: int | None) -> Plan | None:
    """The plan of a full build, if a change is passed on too far, or builds so far say that an update costs more."""
    if max_depth is not None and impact.depth > max_depth:
        reason = f"a change is passed on through {impact.depth} files in a row, more than {max_depth}"
        return replace(plan, mode=Mode.FULL, reasons=(*plan.reasons, reason))
    rebuilt, total = len(impact.rebuilt()), len(impact.changes.after)
    costs = last.figures.get("costs", {})
    if rebuilt <= ALWAYS_UPDATED or "full_seconds" not in costs:
        return None
    full_each = costs["full_seconds"] / max(costs["full_files"], 1)
    update_each = costs.get("update_seconds_per_file", ASSUMED_RATIO * full_each)
    if rebuilt * update_each <= total * full_each:
        return None
    reason = (
        f"{rebuilt} of {total} files are reached: at {update_each:.3f} s each an update costs more than "
        f"a full build at {full_each:.3f} s each"
    )
    return replace(plan, mode=Mode.FULL, reasons=(*plan.reasons, reason))


def rebuild(
    spark: SparkSession,
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    plan: Plan,
    strategy: Strategy,
    analysis: Analysis,
    made: Made,
    clock: StageClock,
) -> Outcome:
    """Make the rows of what is reached, and of tables that a rule's change reaches."""
    from codeanatomy.engine.session import tuned  # noqa: PLC0415
    from codeanatomy.engine.settings import job_conf  # noqa: PLC0415
    from codeanatomy.pipeline.evaluation import make_scoped, make_whole  # noqa: PLC0415

    began = clock.seconds()
    impact = analysis.impact
    documents = analysis.documents
    scope = scope_of(state, last, impact, documents, plan)
    clock.plan(update_stages(plan, inputs, scope))
    if scope:
        with tuned(spark, job_conf(len(scope.rebuilt)) if scope.is_small else {}):
            if documents is not None:
                made.add(_write_documents(spark, state, last, documents, scope))
            make_scoped(spark, state, last, inputs, scope, analysis.facts, made, clock, left_out=plan.whole)
    if plan.whole:
        make_whole(spark, state, last, inputs, None, made, clock, only=plan.whole)
    changed = write_digests(state, last, scope, made, plan.whole)
    problems = update_problems(last, inputs, impact.changes, analysis.facts, documents)
    costs = dict(last.figures.get("costs", {}))
    if len(scope.rebuilt) > ALWAYS_UPDATED:
        costs["update_seconds_per_file"] = (clock.seconds() - began) / len(scope.rebuilt)
    return Outcome(
        plan=plan,
        strategy=strategy,
        impact=with_rules(impact, plan),
        changed=changed,
        pins=made.pins,
        written=made.written,
        problems=problems,
        limits=update_limits(last, impact),
        index=_index_figures(inputs, documents, made, problems),
        costs=costs,
    )


def _index_figures(
    inputs: BuildInputs, documents: Documents | None, made: Made, problems: tuple[Problem, ...]
) -> dict[str, Any]:
    provider = inputs.provider
    if provider is None or documents is None:
        return index_figures(None, None, made.pins, problems, 0.0)
    return index_figures(provider.choice(), provider.fingerprint, made.pins, problems, documents.seconds)


def _write_documents(
    spark: SparkSession, state: State, last: BuildRecord, documents: Documents, scope: Scope
) -> WrittenTable:
    """Replace the documents that came out otherwise."""
    from codeanatomy.pipeline.datasets import few  # noqa: PLC0415

    identity = SCIP_DOCUMENTS.names()
    owners, rows = documents.replaced, documents.rows
    base, before = last.tables[DOCUMENTS.name], scope.before.get(DOCUMENTS.name, {})
    if len(owners) > COLLECTED_OWNERS:
        frame = few(spark, rows)
        return replace_rows(frame, DOCUMENTS, state, owners=owners, base=base, before=before, identity=identity)
    after = owner_digests(few(spark, rows.select(list(identity))), DOCUMENTS, identity)
    return replace_collected(rows, DOCUMENTS, state, owners=owners, base=base, before=before, after=after)


def scope_of(state: State, last: BuildRecord, impact: Impact, documents: Documents | None, plan: Plan) -> Scope:
    """What the impact means for tables."""
    rebuilt, gone, asked = impact.rebuilt(), impact.gone(), impact.asked
    if documents is not None:
        rebuilt |= documents.changed & {GLOBAL_OWNER}
    if _said_of_others(_stored_answers(state, last, asked | gone)) != _said_of_others(impact.answers):
        rebuilt |= {GLOBAL_OWNER}
    owners = None if plan.whole else rebuilt | gone | asked
    before = read_owner_digests(state, last.tables[OWNER_DIGESTS.name], owners)
    return Scope(rebuilt, gone, asked, impact.answers, before)


def _stored_answers(state: State, last: BuildRecord, owners: Collection[str]) -> pa.Table:
    return read_arrow(state, ANSWERS, last.tables[ANSWERS.name].version, SAID_OF_OTHERS, owners=owners)


SAID_OF_OTHERS = ("file_id", "target_id", "target_name", "kind", "status", "question")
"""All that rules whose rows belong to no file may read of answers. How often something is said makes no difference."""


def _said_of_others(answers: pa.Table) -> set[tuple[Any, ...]]:
    """What answers say of things that no file defines; the text of a question says what a symbol is."""
    named = answers.filter(pc.is_valid(answers["target_name"]))
    columns = (named[name].to_pylist() for name in SAID_OF_OTHERS[1:])
    return {
        (target, name, kind, status, question if question.startswith("y:") else None)
        for target, name, kind, status, question in zip(*columns, strict=True)
    }


def write_digests(
    state: State, last: BuildRecord, scope: Scope, made: Made, whole: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Remember what each owner has now; the tables in which the rows of each changed."""
    base = last.tables[OWNER_DIGESTS.name]
    tables = scope.before.keys() | made.owners.keys()
    owners = scope.rebuilt | scope.gone | scope.asked
    if whole:
        owners |= {owner for name in tables for owner in (*scope.before.get(name, ()), *made.owners.get(name, ()))}
    before = {name: {each: scope.before.get(name, {}).get(each, NO_ROWS) for each in owners} for name in tables}
    now = {
        name: {
            each: made.owners.get(name, {}).get(each, NO_ROWS if name in whole else had) for each, had in was.items()
        }
        for name, was in before.items()
    }
    if whole:
        made.add(write_owner_digests(state, now, previous=base))
    else:
        made.add(replace_owner_digests(state, now, owners=owners, base=base, before=before))
    return {
        owner: tuple(sorted(name for name in tables if now[name][owner] != before[name][owner])) for owner in owners
    }


def with_rules(impact: Impact, plan: Plan) -> Impact:
    """The impact, with the files that are rebuilt in some tables because a rule changed."""
    changed = ", ".join(sorted(each.name for each in plan.invalidations if each.tables))
    if not changed:
        return impact
    named = {file.path for file in impact.files}
    others = [
        ImpactedFile(path, file.file_id, ReasonKind.RULE_CHANGED, changed)
        for path, file in impact.changes.after.items()
        if path not in named
    ]
    return replace(impact, files=tuple(sorted((*impact.files, *others), key=lambda file: file.path)))
