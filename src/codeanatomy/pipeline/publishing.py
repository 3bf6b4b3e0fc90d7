"""Publish a build: its figures, its run bundle, then the one commit that makes it visible."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.pipeline.bundle import bundle_rows, bundle_texts
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.problems import NOT_INDEXED, SYNTAX_ERROR
from codeanatomy.pipeline.progress import PUBLISH
from codeanatomy.pipeline.request import BuildResult
from codeanatomy.pipeline.results import result_of
from codeanatomy.pipeline.work import Outcome
from codeanatomy.store.builds import BuildRecord, new_build_id, publish
from codeanatomy.store.bundles import write_bundle


def publish_build(build: Build, outcome: Outcome) -> BuildResult:
    """Write the run bundle, and make the build visible."""
    state, last, inputs, plan, clock = build.state, build.last, build.inputs, build.plan, build.clock
    now = datetime.now(UTC)
    build_id = new_build_id(now)
    with clock.stage(PUBLISH):
        index = _index_figures(build, outcome)
        write_bundle(state, build_id, bundle_texts(build, outcome, build_id, index), bundle_rows(build, outcome))
        record = BuildRecord(
            build_id=build_id,
            parent_build_id=last.build_id if last else None,
            created_at=now,
            mode=plan.mode,
            snapshot_id=inputs.snapshot.snapshot_id,
            tables=outcome.pins,
            git_commit=inputs.git_commit,
            fingerprints=inputs.fingerprints,
            figures={
                "files": _file_counts(outcome, len(inputs.snapshot.files)),
                "problems": [asdict(problem) for problem in outcome.problems],
                "limits": dict(outcome.limits),
                "index": index,
                "strategy": build.strategy,
                "reasons": list(plan.reasons),
                "costs": dict(outcome.costs),
                "stages": [asdict(stage) for stage in clock.stages],
                "seconds": clock.seconds(),
                "peak_memory_mb": build.peak.mb,
            },
        )
        publish(state, record)
    return result_of(build, record, outcome.written)


def _file_counts(outcome: Outcome, total: int) -> dict[str, int]:
    changes, problems = outcome.impact.changes.files, outcome.problems
    rebuilt = outcome.impact.rebuilt()
    unparsed = sum(problem.reason == SYNTAX_ERROR for problem in problems)
    not_indexed = sum(problem.reason == NOT_INDEXED for problem in problems)
    return {
        "total": total,
        "added": len(changes.added),
        "modified": len(changes.modified),
        "deleted": len(changes.deleted),
        "renamed": len(changes.renamed),
        "impacted": len(rebuilt) + len(changes.deleted),
        "rebuilt": len(rebuilt),
        "unchanged_rows": sum(not outcome.changed.get(file_id, ("?",)) for file_id in rebuilt),
        "failed": len(problems) - unparsed - not_indexed,
        "with_errors": unparsed,
        "not_indexed": not_indexed,
    }


def _index_figures(build: Build, outcome: Outcome) -> dict[str, Any]:
    """What the index is, so that the build can be looked at, and built again, with the same."""
    provider = build.inputs.provider
    if provider is None:
        return {"choice": "none", "scip": None, "provider": None, "documents": 0, "failed": 0}
    failed = sum(problem.reason == NOT_INDEXED for problem in outcome.problems)
    return {
        **provider.choice(),
        "provider": " ".join(filter(None, (provider.fingerprint, provider.content))),
        "documents": outcome.pins[DOCUMENTS.name].rows - failed,
        "failed": failed,
        "seconds": round(outcome.indexing_seconds, 3),
    }
