"""What a build would do now: the same analysis that a build makes, on the same inputs, written nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codeanatomy.impact.reasons import ImpactedFile
from codeanatomy.pipeline.inputs import BuildInputs, gather
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest, Mode
from codeanatomy.pipeline.run import plan, strategy_of
from codeanatomy.pipeline.stages import SCAN, analysis_stages, full_stages, update_stages
from codeanatomy.store.builds import BuildRecord, check_whole, latest_build
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import State, open_state, state_exists


@dataclass(frozen=True)
class Preview:
    """What a build would do."""

    plan: Plan
    files: tuple[ImpactedFile, ...]
    total: int
    stages: tuple[str, ...]

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
            "stages": list(self.stages),
        }


def preview(request: BuildRequest, *, listener: Listener | None = None) -> Preview:
    """What a build of the tree as it is now would rebuild, and why."""
    location = locate_state(request.repo, request.state, request.storage_options)
    state = open_state(location) if state_exists(location) else None
    last = latest_build(state) if state else None
    inputs = gather(request, location, state)
    strategy = strategy_of(request, inputs)
    the_plan = plan(last, inputs, request)
    if state is None or last is None or the_plan.mode is Mode.FULL:
        return _of_everything(the_plan, state, last, inputs, (SCAN,))
    check_whole(state, last)
    if the_plan.mode is Mode.NOOP:
        return Preview(the_plan, (), len(inputs.snapshot.files), (SCAN,))
    from codeanatomy.pipeline.update import analyse, full_plan, scope_of, with_rules  # noqa: PLC0415 - loads the parser

    analysed = (SCAN, *analysis_stages(inputs))

    analysis = analyse(state, last, inputs, strategy, StageClock(listener or Silent()))
    if instead := full_plan(the_plan, last, analysis.impact, request.max_impact_depth):
        return _of_everything(instead, state, last, inputs, analysed)
    scope = scope_of(state, last, analysis.impact, analysis.documents, the_plan)
    return Preview(
        the_plan,
        with_rules(analysis.impact, the_plan).files,
        len(inputs.snapshot.files),
        (*analysed, *update_stages(the_plan, inputs, scope)),
    )


def _of_everything(
    the_plan: Plan, state: State | None, last: BuildRecord | None, inputs: BuildInputs, before: tuple[str, ...]
) -> Preview:
    from codeanatomy.pipeline.publishing import full_impact  # noqa: PLC0415

    files = full_impact(the_plan, state, last, inputs).files
    return Preview(the_plan, files, len(inputs.snapshot.files), (*before, *full_stages(inputs)))
