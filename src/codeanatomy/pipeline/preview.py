"""What a build would do now: the same analysis that a build makes, on the same inputs, written nowhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from codeanatomy.impact.affected import impact_of_everything
from codeanatomy.impact.reasons import ImpactedFile, ReasonKind
from codeanatomy.impact.snapshots import snapshot_changes
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.inputs import gather
from codeanatomy.pipeline.plan import Plan, plan_build
from codeanatomy.pipeline.progress import SCAN, Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest, Mode
from codeanatomy.pipeline.run import strategy_of
from codeanatomy.pipeline.work import Stage
from codeanatomy.store.builds import check_whole, latest_build
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import open_state, state_exists


@dataclass(frozen=True)
class Preview:
    """What a build would do."""

    plan: Plan
    files: tuple[ImpactedFile, ...]
    total: int
    stages: tuple[Stage, ...] = ()

    def described(self) -> list[dict[str, Any]]:
        """What each stage does, for how many files, and why."""
        scan = {"name": SCAN, "does": "find out what changed", "files": self.total, "why": ""}
        return [scan, *(each for stage in self.stages for each in stage.described())]

    def as_json(self) -> dict[str, Any]:
        """The answer of `plan --json`."""
        return {
            "mode": self.plan.mode,
            "reasons": list(self.plan.reasons),
            "files": [
                {
                    "path": file.path,
                    "reason_kind": file.reason_kind,
                    "reason_ref": file.reason_ref,
                    "caused_by": file.caused_by,
                }
                for file in self.files
            ],
            "invalidations": [
                {"kind": each.kind, "name": each.name, "tables": list(each.tables)} for each in self.plan.invalidations
            ],
            "stages": self.described(),
        }


def preview(request: BuildRequest, *, listener: Listener | None = None) -> Preview:
    """What a build of the tree as it is now would rebuild, and why."""
    location = locate_state(request.repo, request.state, request.storage_options)
    state = open_state(location) if state_exists(location) else None
    last = latest_build(state) if state else None
    inputs = gather(request, location, state)
    plan = plan_build(last, inputs, full=request.full)
    total = len(inputs.snapshot.files)
    from codeanatomy.pipeline.analysis import affects_everything, cheaper_in_full, with_rules  # noqa: PLC0415 - loads the parser
    from codeanatomy.pipeline.stages import analyse, analysis_stages, rebuild_stages  # noqa: PLC0415

    stages = analysis_stages(plan, inputs)
    if state is None:
        files = impact_of_everything(snapshot_changes({}, inputs.files), ReasonKind.FULL_REFRESH, "first build").files
        return Preview(plan, files, total, (*stages, *rebuild_stages(plan, inputs)))
    build = Build(state, last, inputs, plan, strategy_of(request, inputs), StageClock(listener or Silent()))
    if build.is_full or last is None:
        return Preview(plan, affects_everything(build).files, total, (*stages, *rebuild_stages(plan, inputs)))
    check_whole(state, last)
    if plan.mode is Mode.NOOP:
        return Preview(plan, (), total)
    work = analyse(build)
    if instead := cheaper_in_full(build, work.impact, request.max_impact_depth):
        files = affects_everything(replace(build, plan=instead)).files
        again = (*analysis_stages(instead, inputs), *rebuild_stages(instead, inputs))
        return Preview(instead, files, total, (*stages, *again))
    files = with_rules(work.impact, plan).files
    return Preview(plan, files, total, (*stages, *rebuild_stages(plan, inputs, work.scope)))
