"""Run a build: scan, plan, extract, index, find what is affected, compute the tables, publish.

There is one way to build: a full build is an update on top of nothing. Until `publish` a reader sees the build before
this one, whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, STORED_TABLES
from codeanatomy.engine.memory import PeakMemory, peak_memory
from codeanatomy.errors import InputError, StateError
from codeanatomy.impact.affected import Impact, with_rule_changes
from codeanatomy.pipeline.context import Build, Engine, fits_one_task
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.inputs import BuildInputs, OvertakenError, TreeChangedError, gather
from codeanatomy.pipeline.plan import Plan, plan_build
from codeanatomy.pipeline.problems import find_limits, find_problems
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.publishing import Outcome, index_figures, publish_build, result_of
from codeanatomy.pipeline.request import BuildRequest, BuildResult, Mode, Strategy
from codeanatomy.pipeline.scope import ALL, Scope
from codeanatomy.pipeline.stages import SCAN, START, analysis_stages, full_stages, update_stages
from codeanatomy.store.builds import check_whole, latest_build
from codeanatomy.store.digests import NO_ROWS, SetDigest
from codeanatomy.store.failures import writing
from codeanatomy.store.layout import bucket_count_for
from codeanatomy.store.lease import hold_lease
from codeanatomy.store.location import locate_state
from codeanatomy.store.owners import OWNER_DIGESTS, replace_owner_digests
from codeanatomy.store.state import State, create_state, open_state, remember_repository, state_exists
from codeanatomy.store.tables import Replaced, TablePin, WrittenTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.pipeline.analysis import Analysis

ATTEMPTS = 3
"""How often a build starts over when files change under it."""


def build(request: BuildRequest, *, listener: Listener | None = None, spark: SparkSession | None = None) -> BuildResult:
    """Bring the graph of a repository up to date, on `spark` if given, else on a session started for this build."""
    clock = StageClock(listener or Silent())
    with peak_memory() as peak:
        for _ in range(ATTEMPTS):
            try:
                return _build_once(request, clock, peak, spark)
            except TreeChangedError as error:
                changed = error
                clock.restart()
    times = f"{ATTEMPTS} times in a row"
    if isinstance(changed, OvertakenError):
        raise StateError(f"another process published a build to {changed} meanwhile, {times}", hint="try again")
    raise InputError(f"{changed} changed while it was read, {times}", hint="try again when it is quiet")


def _build_once(request: BuildRequest, clock: StageClock, peak: PeakMemory, spark: SparkSession | None) -> BuildResult:
    location = locate_state(request.repo, request.state, request.storage_options)
    with clock.stage(SCAN) as stage:
        state = open_state(location) if state_exists(location) else None
        inputs = gather(request, location, state)
        strategy = strategy_of(request, inputs)
        stage.rows = len(inputs.snapshot.files)
    last = latest_build(state) if state else None
    plan = plan_build(last, inputs, full=request.full)
    if state and last and plan.mode is not Mode.FULL:
        check_whole(state, last)
    if state and last and plan.mode is Mode.NOOP:
        if request.moved and state.repository != inputs.repository:
            with hold_lease(location):
                remember_repository(state, inputs.repository)
        return result_of(Build(state, last, inputs, plan, strategy, clock), last, {}, peak)
    with hold_lease(location), writing(location):
        state = state or (open_state(location) if state_exists(location) else _new_state(inputs))
        latest = latest_build(state)
        if (latest and latest.build_id) != (last and last.build_id):
            raise OvertakenError(location.uri)
        if state.repository != inputs.repository:
            state = remember_repository(state, inputs.repository)
        finished, outcome = _run(Build(state, last, inputs, plan, strategy, clock), request, spark)
        return publish_build(finished, outcome, peak)


def strategy_of(request: BuildRequest, inputs: BuildInputs) -> Strategy:
    """The strategy that is asked for; an index sees more than answers do, so with one, `symbol_closure` is `hybrid`."""
    try:
        strategy = Strategy(request.strategy)
    except ValueError:
        raise InputError(
            f"no strategy is called {request.strategy!r}", hint=f"choose one of {', '.join(Strategy)}"
        ) from None
    return Strategy.HYBRID if strategy is Strategy.SYMBOL_CLOSURE and inputs.provider else strategy


def _new_state(inputs: BuildInputs) -> State:
    buckets = bucket_count_for(len(inputs.snapshot.files))
    return create_state(inputs.location, buckets, inputs.repo_id, inputs.repository)


def _run(build: Build, request: BuildRequest, spark: SparkSession | None) -> tuple[Build, Outcome]:
    """Analyse, compute, write; an update that turns out to cost more than a full build becomes one."""
    from codeanatomy.pipeline.analysis import analyse, cheaper_in_full, scope_of  # noqa: PLC0415 - loads the parser
    from codeanatomy.pipeline.indexing import indexing  # noqa: PLC0415

    inputs, clock = build.inputs, build.clock
    settings = inputs.settings if build.is_full else replace(inputs.settings, short_run=True)
    with ExitStack() as stack:
        started = stack.enter_context(indexing(inputs)) if build.is_full and inputs.provider else None
        build = replace(build, engine=stack.enter_context(Engine(settings, clock, spark)))
        clock.plan(full_stages(inputs) if build.is_full else (*analysis_stages(inputs), START))
        analysis = analyse(build, started)
        if build.is_full:
            return build, _compute(build, analysis, ALL)
        instead = cheaper_in_full(build, analysis.impact, request.max_impact_depth)
        if instead is None:
            scope = scope_of(build, analysis)
            clock.plan(update_stages(build.plan, inputs, scope))
            return build, _compute(build, analysis, scope)
    return _run(replace(build, plan=instead, engine=None), request, spark)


def _compute(build: Build, analysis: Analysis, scope: Scope) -> Outcome:
    """Compute the rows of the scope, and of tables whose rules changed; write them."""
    from codeanatomy.pipeline.rule_inputs import Sources  # noqa: PLC0415 - loads Spark
    from codeanatomy.pipeline.tables import compute_tables, write_documents  # noqa: PLC0415

    began = build.clock.seconds()
    written = dict(analysis.written)
    if (documents := analysis.documents) is not None:
        replaced = Replaced(documents.replaced, scope.before.get(DOCUMENTS.name, {}))
        written[DOCUMENTS.name] = write_documents(build, documents.rows, replaced)
    whole = frozenset() if build.is_full else build.plan.whole
    sources = Sources(build, scope, analysis.facts, _documents(build, build.pins() | _pins(written)))
    if scope.owners is None or scope.owners:
        scoped = [table.name for table in STORED_TABLES if table.name not in whole]
        answers = None if build.is_full else analysis.impact.answers
        written |= compute_tables(sources, build.pins(), scoped, answers)
    if whole:
        written |= compute_tables(replace(sources, scope=ALL), build.pins() | _pins(written), whole)
    digests = {name: table.owners for name, table in written.items()}
    written[OWNER_DIGESTS.name], changed = _write_digests(build, scope, digests, whole)
    kept = {} if build.is_full else build.pins()
    pins = {**kept, FACTS.name: analysis.facts.pinned, **_pins(written)}
    problems = find_problems(build, analysis, sources.documents)
    return Outcome(
        impact=with_rules(analysis.impact, build.plan),
        changed=changed,
        pins=pins,
        written={FACTS.name: analysis.facts.extracted > 0} | {name: each.written for name, each in written.items()},
        problems=problems,
        limits=find_limits(build, analysis.impact, pins[ANSWERS.name]),
        index=index_figures(build, pins, problems, analysis.indexing_seconds),
        costs=_costs(build, scope, build.clock.seconds() - began),
    )


def _pins(written: Mapping[str, WrittenTable]) -> dict[str, TablePin]:
    return {name: table.pin for name, table in written.items()}


def _documents(build: Build, pins: Mapping[str, TablePin]) -> Documents | None:
    return Documents(build.state, pins[DOCUMENTS.name].version) if build.inputs.provider else None


def with_rules(impact: Impact, plan: Plan) -> Impact:
    """The impact, with the files that are rebuilt in some tables because a rule changed."""
    changed = ", ".join(sorted(each.name for each in plan.invalidations if each.tables))
    return with_rule_changes(impact, changed) if changed and plan.mode is not Mode.FULL else impact


def _costs(build: Build, scope: Scope, seconds: float) -> dict[str, float]:
    """What computing every table took, and what that took per file of an update that was not small."""
    if scope.rebuilt is None:
        return {"full_seconds": seconds, "full_files": len(build.inputs.snapshot.files)}
    costs = dict(build.last.figures.get("costs", {})) if build.last else {}
    if not fits_one_task(build.inputs.source_bytes(scope.rebuilt)):
        costs["update_seconds_per_file"] = seconds / len(scope.rebuilt)
    return costs


def _write_digests(
    build: Build, scope: Scope, written: Mapping[str, Mapping[str, SetDigest]], whole: Collection[str]
) -> tuple[WrittenTable, dict[str, tuple[str, ...]]]:
    """Store what each owner has now; the tables in which the rows of each changed (not told of a full build)."""
    base = build.pin(OWNER_DIGESTS.name)
    if scope.owners is None:
        return replace_owner_digests(build.state, written, base, None, {}), {}
    tables = scope.before.keys() | written.keys()
    owners = set(scope.owners)
    if whole:
        owners |= {owner for name in tables for owner in (*scope.before.get(name, ()), *written.get(name, ()))}
    before = {name: {each: scope.before.get(name, {}).get(each, NO_ROWS) for each in owners} for name in tables}
    now = {
        name: {each: written.get(name, {}).get(each, NO_ROWS if name in whole else had) for each, had in was.items()}
        for name, was in before.items()
    }
    stored = replace_owner_digests(build.state, now, base, None if whole else owners, before)
    changed = {each: tuple(sorted(name for name in tables if now[name][each] != before[name][each])) for each in owners}
    return stored, changed
