"""Run a build: scan, plan, extract, evaluate the rules, publish. One commit at the end makes it visible.

The order of the stages and nothing else; what a stage does is said in its own module. Until `publish` a reader sees the
build before this one, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, REPO_FILES
from codeanatomy.engine.memory import PeakMemory, peak_memory
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError, StateError
from codeanatomy.pipeline.indexing import Indexing, indexing
from codeanatomy.pipeline.inputs import BuildInputs, OvertakenError, TreeChangedError, gather
from codeanatomy.pipeline.made import Made
from codeanatomy.pipeline.plan import Plan, plan_build
from codeanatomy.pipeline.problems import find_limits, find_problems
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.publishing import Outcome, full_impact, index_figures, publish_build, result_of
from codeanatomy.pipeline.request import BuildRequest, BuildResult, Mode, Problem, Strategy
from codeanatomy.pipeline.stages import EXTRACT, INDEX, SCAN, START, analysis_stages, full_stages
from codeanatomy.rules.compiler import needed_rules
from codeanatomy.store.builds import BuildRecord, check_whole, latest_build
from codeanatomy.store.failures import writing
from codeanatomy.store.layout import bucket_count_for
from codeanatomy.store.lease import hold_lease
from codeanatomy.store.location import locate_state
from codeanatomy.store.owners import OWNER_DIGESTS, write_owner_digests
from codeanatomy.store.state import State, create_state, open_state, remember_repository, state_exists
from codeanatomy.store.tables import read_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 3
"""How often a build starts over when files change under it."""


def build(request: BuildRequest, *, listener: Listener | None = None, spark: SparkSession | None = None) -> BuildResult:
    """Bring the graph of a repository up to date, on `spark` if given, else on a session made for this build."""
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
    the_plan = plan(last, inputs, request)
    if state and last and the_plan.mode is not Mode.FULL:
        check_whole(state, last)
    if state and last and the_plan.mode is Mode.NOOP:
        if request.moved and state.repository != inputs.repository:
            with hold_lease(location):
                remember_repository(state, inputs.repository)
        return result_of(last, Mode.NOOP, inputs, {}, clock, peak)
    with hold_lease(location), writing(location):
        state = state or (open_state(location) if state_exists(location) else _new_state(inputs))
        latest = latest_build(state)
        if (latest and latest.build_id) != (last and last.build_id):
            raise OvertakenError(location.uri)
        if state.repository != inputs.repository:
            state = remember_repository(state, inputs.repository)
        if last and the_plan.mode is Mode.INCREMENTAL:
            outcome = _update(state, last, inputs, request, the_plan, strategy, clock, spark)
            if isinstance(outcome, Plan):  # a full build is cheaper
                the_plan = outcome
            else:
                return publish_build(state, last, inputs, outcome, clock, peak)
        outcome = _build_all(state, last, inputs, the_plan, strategy, clock, spark)
        return publish_build(state, last, inputs, outcome, clock, peak)


def plan(last: BuildRecord | None, inputs: BuildInputs, request: BuildRequest) -> Plan:
    """What a build of `inputs` on top of `last` has to do."""
    rules = needed_rules(inputs.rules, documents=inputs.provider is not None)
    found = plan_build(last, inputs.snapshot, inputs.fingerprints, rules, full=request.full)
    if found.mode is Mode.INCREMENTAL and inputs.provider is not None and not inputs.provider.can_index_some:
        return replace(found, mode=Mode.FULL, reasons=(*found.reasons, "its indexer cannot index some files only"))
    return found


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


def _update(
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    request: BuildRequest,
    the_plan: Plan,
    strategy: Strategy,
    clock: StageClock,
    spark: SparkSession | None,
) -> Outcome | Plan:
    """Rebuild what the changes reach; or the plan of a full build, if that is cheaper."""
    from codeanatomy.pipeline.update import analyse, full_plan, rebuild  # noqa: PLC0415 - loads Spark

    with ExitStack() as stack:

        @cache
        def engine() -> SparkSession:
            return stack.enter_context(engine_for(replace(inputs.settings, short_run=True), spark, clock))

        made = Made(dict(last.tables))
        clock.plan((*analysis_stages(inputs), START))  # the analysis of a large change needs the engine
        analysis = analyse(state, last, inputs, strategy, clock, made, engine)
        if instead := full_plan(the_plan, last, analysis.impact, request.max_impact_depth):
            return instead
        return rebuild(engine(), state, last, inputs, the_plan, strategy, analysis, made, clock)


def _build_all(
    state: State,
    last: BuildRecord | None,
    inputs: BuildInputs,
    the_plan: Plan,
    strategy: Strategy,
    clock: StageClock,
    spark: SparkSession | None,
) -> Outcome:
    """Compute every table from facts."""
    from codeanatomy.pipeline.evaluation import make_whole  # noqa: PLC0415 - a no-op build never loads Spark
    from codeanatomy.pipeline.extraction import extract_new_contents  # noqa: PLC0415

    made = Made()
    clock.plan(full_stages(inputs))
    with indexing(inputs) as started, engine_for(inputs.settings, spark, clock) as session:
        with clock.stage(EXTRACT) as stage:
            known = last.tables.get(FACTS.name) if last else None
            made.pins[FACTS.name] = extract_new_contents(session, state, inputs, known, clock.listener, stage)
            made.written[FACTS.name] = stage.rows != 0
        make_whole(session, state, last, inputs, started, made, clock)
        made.add(
            write_owner_digests(state, made.owners, previous=last.tables.get(OWNER_DIGESTS.name) if last else None)
        )
    problems = find_problems(state, inputs, made.pins[FACTS.name].version, made.version(DOCUMENTS))
    return Outcome(
        plan=the_plan,
        strategy=strategy,
        impact=full_impact(the_plan, state, last, inputs),
        changed={},
        pins=made.pins,
        written=made.written,
        problems=problems,
        limits=find_limits(state, made.pins[ANSWERS.name].version),
        index=_index_figures(started, made, problems),
        costs=_costs(clock, len(inputs.snapshot.files)),
    )


def _costs(clock: StageClock, files: int) -> dict[str, float]:
    """What computing every table took, without what is not done twice for the same contents."""
    once = (SCAN, START, EXTRACT, INDEX)
    return {
        "full_seconds": clock.seconds() - sum(s.seconds for s in clock.stages if s.name in once),
        "full_files": files,
    }


def _index_figures(started: Indexing | None, made: Made, problems: tuple[Problem, ...]) -> dict[str, Any]:
    if started is None:
        return index_figures(None, None, made.pins, problems, 0.0)
    provider = started.provider
    return index_figures(provider.choice(), provider.fingerprint, made.pins, problems, started.seconds)


@contextmanager
def engine_for(settings: EngineSettings, spark: SparkSession | None, clock: StageClock) -> Iterator[SparkSession]:
    """The session that is given, or one that is made and ended here."""
    if spark is not None:
        yield spark
        return
    from codeanatomy.engine.session import open_engine  # noqa: PLC0415 - a no-op build never loads Spark

    with ExitStack() as stack:
        with clock.stage(START):
            session = stack.enter_context(open_engine(settings))
        yield session


def paths_of(state: State, build: BuildRecord | None) -> dict[str, str | None]:
    """The content of each file of a build, by path."""
    if build is None:
        return {}
    rows = read_arrow(state, REPO_FILES, build.tables[REPO_FILES.name].version, ["path", "content_id"])
    return dict(zip(rows["path"].to_pylist(), rows["content_id"].to_pylist(), strict=True))
