"""Run a build: scan, plan, then the stages (`stages`).

There is one way to build: a full build is an update on top of nothing. Until `publish` a reader sees the build before
this one, whole.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from codeanatomy.engine.memory import PeakMemory, peak_memory
from codeanatomy.engine.profiles import MEMORY_TIGHT
from codeanatomy.errors import InputError, LowMemoryError, StateError
from codeanatomy.pipeline.context import Build, Engine
from codeanatomy.pipeline.inputs import BuildInputs, OvertakenError, TreeChangedError, gather
from codeanatomy.pipeline.journal import FallbackKind, Journal
from codeanatomy.pipeline.plan import plan_build
from codeanatomy.pipeline.progress import SCAN, Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest, BuildResult, Mode, Strategy
from codeanatomy.pipeline.results import result_of
from codeanatomy.store.builds import check_whole, latest_build
from codeanatomy.store.determinism import Determinism
from codeanatomy.store.failures import writing
from codeanatomy.store.layout import bucket_count_for
from codeanatomy.store.lease import hold_lease
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import State, create_state, open_state, remember_repository, state_exists

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.pipeline.warm import Warm

ATTEMPTS = 3
"""How often a build starts over when files change under it."""


def build(
    request: BuildRequest,
    *,
    listener: Listener | None = None,
    spark: SparkSession | None = None,
    warm: Warm | None = None,
) -> BuildResult:
    """Bring the graph of a repository up to date, on `spark` if given, else on a session started for this build.

    `warm` has what earlier builds on `spark` left for it.
    """
    clock, journal = StageClock(listener or Silent()), Journal()
    attempts = 0
    with peak_memory() as peak:
        resources = _Resources(clock, journal, peak, spark, warm)
        while attempts < ATTEMPTS:
            try:
                return replace(_build_once(request, resources), seconds=clock.seconds())
            except TreeChangedError as error:
                attempts += 1
                changed = error
                journal.note(FallbackKind.RESTART, f"{error} changed meanwhile")
            except LowMemoryError as error:
                if request.profile == MEMORY_TIGHT.name:
                    raise
                request = replace(request, profile=MEMORY_TIGHT.name)
                journal.note(FallbackKind.MEMORY, f"built with profile {MEMORY_TIGHT.name}: {error.message}")
            clock.restart()
    times = f"{ATTEMPTS} times in a row"
    if isinstance(changed, OvertakenError):
        raise StateError(f"another process published a build to {changed} meanwhile, {times}", hint="try again")
    raise InputError(f"{changed} changed while it was read, {times}", hint="try again when it is quiet")


class _Resources(NamedTuple):
    """What all attempts at a build use."""

    clock: StageClock
    journal: Journal
    peak: PeakMemory
    spark: SparkSession | None
    warm: Warm | None


def _build_once(request: BuildRequest, resources: _Resources) -> BuildResult:
    clock, journal, peak, spark, warm = resources
    location = locate_state(request.repo, request.state, request.storage_options)
    with clock.stage(SCAN) as stage:
        state = open_state(location) if state_exists(location) else None
        last = latest_build(state) if state else None
        if state and warm:
            location = replace(location, opened=warm.opened_before(location, last))
            state = replace(state, location=location)
        inputs = gather(request, location, state)
        strategy, determinism = strategy_of(request, inputs), _determinism_of(request)
        stage.rows = len(inputs.snapshot.files)
    plan = plan_build(last, inputs, full=request.full)
    if state and last and plan.mode is not Mode.FULL:
        check_whole(state, last)
    if state and last and plan.mode is Mode.NOOP:
        if request.moved and state.repository != inputs.repository:
            with hold_lease(location):
                remember_repository(state, inputs.repository)
        return result_of(Build(state, last, inputs, plan, strategy, clock, peak=peak), last, {})
    with hold_lease(location), writing(location):
        state = state or (open_state(location) if state_exists(location) else _new_state(inputs))
        latest = latest_build(state, last)
        if (latest and latest.build_id) != (last and last.build_id):
            raise OvertakenError(location.uri)
        if state.repository != inputs.repository:
            state = remember_repository(state, inputs.repository)
        state = replace(state, determinism=determinism)
        build = Build(state, last, inputs, plan, strategy, clock, journal=journal, peak=peak, warm=warm)
        result = _run(build, request, spark)
        if warm:
            warm.keep(location, result.build_id)
        return result


def strategy_of(request: BuildRequest, inputs: BuildInputs) -> Strategy:
    """The strategy that is asked for; an index sees more than answers do, so with one, `symbol_closure` is `hybrid`."""
    try:
        strategy = Strategy(request.strategy)
    except ValueError:
        raise InputError(
            f"no strategy is called {request.strategy!r}", hint=f"choose one of {', '.join(Strategy)}"
        ) from None
    return Strategy.HYBRID if strategy is Strategy.SYMBOL_CLOSURE and inputs.provider else strategy


def _determinism_of(request: BuildRequest) -> Determinism:
    try:
        return Determinism(request.determinism)
    except ValueError:
        raise InputError(
            f"no tier of determinism is called {request.determinism!r}", hint=f"choose one of {', '.join(Determinism)}"
        ) from None


def _new_state(inputs: BuildInputs) -> State:
    buckets = bucket_count_for(len(inputs.snapshot.files))
    return create_state(inputs.location, buckets, inputs.repo_id, inputs.repository)


def _run(build: Build, request: BuildRequest, spark: SparkSession | None) -> BuildResult:
    """Run the stages; an update that turns out to cost more than a full build becomes one."""
    from codeanatomy.pipeline.analysis import cheaper_in_full  # noqa: PLC0415 - loads the parser
    from codeanatomy.pipeline.indexing import indexing  # noqa: PLC0415
    from codeanatomy.pipeline.stages import analyse, rebuild_stages  # noqa: PLC0415
    from codeanatomy.pipeline.work import run_stages  # noqa: PLC0415

    inputs, plan = build.inputs, build.plan
    if build.is_full and build.last and not request.full:
        build.journal.note(FallbackKind.FULL_BUILD, "; ".join(plan.reasons))
    settings = inputs.settings if build.is_full else replace(inputs.settings, short_run=True)
    with ExitStack() as stack:
        started = stack.enter_context(indexing(inputs)) if build.is_full and inputs.provider else None
        engine = stack.enter_context(Engine(settings, build.clock, spark))
        if spark is None:
            engine.start()
        build = replace(build, engine=engine)
        work = analyse(build, started)
        instead = None if build.is_full else cheaper_in_full(build, work.impact, request.max_impact_depth)
        if instead is None:
            work = run_stages(build, rebuild_stages(plan, inputs, work.scope), work)
            if work.result is None:
                raise AssertionError("the last stage publishes")
            return work.result
    return _run(replace(build, plan=instead, engine=None), request, spark)
