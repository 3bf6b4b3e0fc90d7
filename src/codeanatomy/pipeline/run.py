"""Run a build: scan, plan, extract, evaluate the rules, publish. One commit at the end makes it visible.

The order of the stages and nothing else; what a stage does is said in its own room. Until `publish` a reader sees the
build before this one, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from codeanatomy.catalogue.tables import (
    ANSWERS,
    DOCUMENT_VIEWS,
    DOCUMENTS,
    FACTS,
    REPO_FILES,
    SCIP_DOCUMENTS,
    SHARED_VIEWS,
    STORED_TABLES,
)
from codeanatomy.engine.memory import PeakMemory, peak_memory
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError
from codeanatomy.pipeline.indexing import Indexing, indexing, read_documents
from codeanatomy.pipeline.inputs import BuildInputs, TreeChangedError, gather
from codeanatomy.pipeline.plan import Plan, plan_build
from codeanatomy.pipeline.problems import NOT_INDEXED, SYNTAX_ERROR, find_problems
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest, BuildResult, Mode, Problem
from codeanatomy.repo.diff import diff_files
from codeanatomy.rules.compiler import by_output, dependencies, needed_rules
from codeanatomy.store.builds import Build, latest_build, new_build_id, publish
from codeanatomy.store.layout import bucket_count_for
from codeanatomy.store.lease import hold_lease
from codeanatomy.store.location import locate_state
from codeanatomy.store.shared import keep, shared_rows
from codeanatomy.store.state import State, create_state, open_state, state_exists
from codeanatomy.store.tables import TablePin, open_arrow, read_table, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3
"""How often a build starts over when files change under it."""

MADE_AT_ONCE = 4
"""Datasets that are planned at a time."""

_SORT_WITHIN_FILE = {"cpg_nodes": ("node_kind", "bstart"), "cpg_edges": ("edge_kind", "bstart")}
"""Neighbours that look alike compress well."""


def build(request: BuildRequest, *, listener: Listener | None = None, spark: SparkSession | None = None) -> BuildResult:
    """Bring the graph of a repository up to date, on `spark` if given, else on a session made for this build."""
    clock = StageClock(listener or Silent())
    with peak_memory() as peak:
        for _ in range(ATTEMPTS):
            try:
                return _build_once(request, clock, peak, spark)
            except TreeChangedError as error:
                changed = error
                clock.stages.clear()
    raise InputError(f"{changed} changed while it was read, {ATTEMPTS} times in a row: try again when it is quiet")


def _build_once(request: BuildRequest, clock: StageClock, peak: PeakMemory, spark: SparkSession | None) -> BuildResult:
    location = locate_state(request.repo, request.state, request.storage_options)
    with clock.stage("scan") as stage:
        state = open_state(location) if state_exists(location) else None
        inputs = gather(request, location, state)
        stage.rows = len(inputs.snapshot.files)
    last = latest_build(state) if state else None
    if last and plan(last, inputs, request).mode is Mode.NOOP:
        return _unchanged(last, inputs, clock, peak)
    with hold_lease(location):
        state = open_state(location) if state_exists(location) else _new_state(inputs)
        latest = latest_build(state)
        if (latest and latest.build_id) != (last and last.build_id):  # another process was faster
            raise TreeChangedError(location.uri)
        with indexing(inputs) as started, _engine(inputs.settings, spark, clock) as session:
            return _execute(session, state, latest, inputs, started, clock, peak)


def plan(last: Build | None, inputs: BuildInputs, request: BuildRequest) -> Plan:
    """What a build of `inputs` on top of `last` has to do."""
    return plan_build(last, inputs.snapshot, inputs.fingerprints, full=request.full)


def _new_state(inputs: BuildInputs) -> State:
    return create_state(inputs.location, bucket_count_for(len(inputs.snapshot.files)), inputs.repo_id)


@contextmanager
def _engine(settings: EngineSettings, spark: SparkSession | None, clock: StageClock) -> Iterator[SparkSession]:
    if spark is not None:
        yield spark
        return
    from codeanatomy.engine.session import open_engine  # noqa: PLC0415 - a no-op build never loads Spark

    with ExitStack() as stack:
        with clock.stage("start"):
            session = stack.enter_context(open_engine(settings))
        yield session


def _execute(
    spark: SparkSession,
    state: State,
    last: Build | None,
    inputs: BuildInputs,
    started: Indexing | None,
    clock: StageClock,
    peak: PeakMemory,
) -> BuildResult:
    from codeanatomy.pipeline.answering import answer_questions  # noqa: PLC0415 - a no-op build never loads Spark
    from codeanatomy.pipeline.datasets import offer_documents, offer_inputs, scan_table  # noqa: PLC0415
    from codeanatomy.pipeline.extraction import extract_new_contents  # noqa: PLC0415
    from codeanatomy.rules.evaluator import evaluate, offer  # noqa: PLC0415

    pins: dict[str, TablePin] = {}
    written: dict[str, bool] = {}
    with clock.stage("extract") as stage:
        known = last.tables.get(FACTS.name) if last else None
        pins[FACTS.name] = extract_new_contents(spark, state, inputs, known, clock.listener, stage)
        written[FACTS.name] = stage.rows != 0
    files = scan_table(inputs)
    facts_version = pins[FACTS.name].version
    needed = needed_rules(inputs.rules, documents=started is not None)
    offer_inputs(spark, inputs, needed, files, state, facts_version)
    rules = by_output(needed)

    def make_documents() -> None:
        """Compute the semantic documents, if there is an index, and let rules read them."""
        if started is not None:
            with clock.stage("index") as stage:
                outcome = write_table(
                    read_documents(spark, state, files, facts_version, started),
                    DOCUMENTS,
                    state,
                    previous=last.tables.get(DOCUMENTS.name) if last else None,
                    identity=SCIP_DOCUMENTS.names(),
                )
                stage.rows = outcome.pin.rows
            pins[DOCUMENTS.name], written[DOCUMENTS.name] = outcome.pin, outcome.written
        offer_documents(spark, needed, state, documents_version())

    def documents_version() -> int | None:
        return pins[DOCUMENTS.name].version if started is not None else None

    def make(name: str) -> None:
        """Compute a dataset: write it if it is stored, and let rules read it."""
        if name == DOCUMENTS.name:
            make_documents()
            return
        if name == ANSWERS.name:
            table, frame = ANSWERS, answer_questions(spark, state, files, facts_version, documents_version())
        else:
            table, frame = rules[name][0].rule.output, evaluate(spark, rules[name])
        if table in STORED_TABLES:
            with clock.stage(table.name) as stage:
                outcome = write_table(
                    frame,
                    table,
                    state,
                    sort_by=_SORT_WITHIN_FILE.get(table.name, ()),
                    previous=last.tables.get(table.name) if last else None,
                )
                stage.rows = outcome.pin.rows
            pins[table.name], written[table.name] = outcome.pin, outcome.written
            frame = read_table(spark, state, table, outcome.pin.version)
        elif table in SHARED_VIEWS:
            frame = keep(frame, name, state, by=SHARED_VIEWS[table])
        offer(name, frame)

    with shared_rows(state):
        _make_in_order(_order(dependencies(rules)), make)
    problems = find_problems(state, inputs, facts_version, documents_version())
    with clock.stage("publish"):
        made = _publish(state, last, inputs, pins, problems, _index_figures(started, pins, problems), clock, peak)
    return _result(made, Mode.FULL, inputs, written, clock, peak)


def _order(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What each dataset needs, the answers and the documents among them."""
    said = {dataset.name for dataset in (SCIP_DOCUMENTS, *DOCUMENT_VIEWS)}
    made = {name: {DOCUMENTS.name if each in said else each for each in needed} for name, needed in needs.items()}
    return {DOCUMENTS.name: set(), ANSWERS.name: {DOCUMENTS.name}, **made}


def _make_in_order(needs: Mapping[str, set[str]], make: Callable[[str], None]) -> None:
    """Make every dataset as soon as what it needs is made; one's planning hides behind another's work."""
    sorter = TopologicalSorter({name: needed & needs.keys() for name, needed in needs.items()})
    sorter.prepare()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(MADE_AT_ONCE) as pool:
        while sorter.is_active():
            running |= {pool.submit(make, name): name for name in sorted(sorter.get_ready())}
            for finished in wait(running, return_when=FIRST_COMPLETED).done:
                finished.result()
                sorter.done(running.pop(finished))


def _publish(
    state: State,
    last: Build | None,
    inputs: BuildInputs,
    pins: Mapping[str, TablePin],
    problems: tuple[Problem, ...],
    index: Mapping[str, Any],
    clock: StageClock,
    peak: PeakMemory,
) -> Build:
    now = datetime.now(UTC)
    made = Build(
        build_id=new_build_id(now),
        parent_build_id=last.build_id if last else None,
        created_at=now,
        mode=Mode.FULL,
        snapshot_id=inputs.snapshot.snapshot_id,
        tables=pins,
        git_commit=inputs.git_commit,
        fingerprints=inputs.fingerprints,
        figures={
            "files": _file_counts(state, last, inputs, problems),
            "problems": [asdict(problem) for problem in problems],
            "index": dict(index),
            "stages": [asdict(stage) for stage in clock.stages],
            "seconds": clock.seconds(),
            "peak_memory_mb": peak.mb,
        },
    )
    publish(state, made)
    return made


def _index_figures(
    started: Indexing | None, pins: Mapping[str, TablePin], problems: tuple[Problem, ...]
) -> dict[str, Any]:
    """What the index is, so that the build can be looked at, and built again, with the same."""
    if started is None:
        return {"choice": "none", "scip": None, "provider": None, "documents": 0, "failed": 0}
    failed = sum(problem.reason == NOT_INDEXED for problem in problems)
    return {
        **started.provider.choice(),
        "provider": started.provider.fingerprint,
        "documents": pins[DOCUMENTS.name].rows - failed,
        "failed": failed,
        "seconds": round(started.seconds, 3),
    }


def _file_counts(
    state: State, last: Build | None, inputs: BuildInputs, problems: tuple[Problem, ...]
) -> dict[str, int]:
    changes = diff_files(paths_of(state, last), {file.path: file.content_id for file in inputs.snapshot.files})
    total = len(inputs.snapshot.files)
    unparsed = sum(problem.reason == SYNTAX_ERROR for problem in problems)
    not_indexed = sum(problem.reason == NOT_INDEXED for problem in problems)
    return {
        "total": total,
        "added": len(changes.added),
        "modified": len(changes.modified),
        "deleted": len(changes.deleted),
        "renamed": len(changes.renamed),
        "impacted": total,
        "rebuilt": total,
        "failed": len(problems) - unparsed - not_indexed,
        "with_errors": unparsed,
        "not_indexed": not_indexed,
    }


def paths_of(state: State, build: Build | None) -> dict[str, str | None]:
    """The content of each file of a build, by path."""
    if build is None:
        return {}
    rows = open_arrow(state, REPO_FILES, build.tables[REPO_FILES.name].version).to_table(["path", "content_id"])
    return dict(zip(rows["path"].to_pylist(), rows["content_id"].to_pylist(), strict=True))


def _unchanged(last: Build, inputs: BuildInputs, clock: StageClock, peak: PeakMemory) -> BuildResult:
    return _result(last, Mode.NOOP, inputs, {}, clock, peak)


def _result(
    made: Build, mode: Mode, inputs: BuildInputs, written: Mapping[str, bool], clock: StageClock, peak: PeakMemory
) -> BuildResult:
    figures: Mapping[str, Any] = made.figures
    files = dict(figures["files"])
    if mode is Mode.NOOP:
        files |= dict.fromkeys(("added", "modified", "deleted", "renamed", "impacted", "rebuilt"), 0)
    return BuildResult(
        build_id=made.build_id,
        parent_build_id=made.parent_build_id,
        mode=mode,
        repo=str(inputs.root),
        git_commit=inputs.git_commit,
        snapshot_id=made.snapshot_id,
        files=files,
        tables={
            name: {
                "rows": pin.rows,
                "digest": pin.digest.hash,
                "version": pin.version,
                "written": written.get(name, False),
            }
            for name, pin in made.tables.items()
        },
        stages=tuple(clock.stages),
        seconds=clock.seconds(),
        peak_memory_mb=peak.mb,
        index=figures.get("index"),
        problems=tuple(Problem(**problem) for problem in figures["problems"]),
    )
