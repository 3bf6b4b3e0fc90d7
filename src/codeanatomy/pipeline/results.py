"""The result of a build, from what it recorded. A build that has nothing to do loads no more than this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.request import BuildResult, Mode, Problem
from codeanatomy.repo.snapshot import Skipped
from codeanatomy.store.builds import BuildRecord


def result_of(build: Build, record: BuildRecord, written: Mapping[str, bool]) -> BuildResult:
    """The result of a build; of one that had nothing to do, `record` is the last build."""
    inputs, mode = build.inputs, build.plan.mode
    figures: Mapping[str, Any] = record.figures
    files = dict(figures["files"])
    if mode is Mode.NOOP:
        counts = ("added", "modified", "deleted", "renamed", "impacted", "rebuilt", "unchanged_rows")
        files |= dict.fromkeys(counts, 0)
    return BuildResult(
        build_id=record.build_id,
        parent_build_id=record.parent_build_id,
        mode=mode,
        strategy=figures.get("strategy"),
        repo=str(inputs.root),
        git_commit=inputs.git_commit,
        snapshot_id=record.snapshot_id,
        files=files,
        tables={
            name: {
                "rows": pin.rows,
                "digest": pin.digest.hash,
                "version": pin.version,
                "written": written.get(name, False),
            }
            for name, pin in record.tables.items()
        },
        stages=tuple(build.clock.stages),
        seconds=build.clock.seconds(),
        peak_memory_mb=build.peak.mb,
        index=figures.get("index"),
        problems=(
            *(Problem(**problem) for problem in figures["problems"]),
            *_not_looked_into(inputs.snapshot.skipped),
        ),
        limits=figures.get("limits", {}),
        reasons=() if mode is Mode.NOOP else tuple(figures.get("reasons", ())),
    )


def _not_looked_into(skipped: Iterable[Skipped]) -> Iterable[Problem]:
    """What would be part of the snapshot if it could be."""
    wanted = ("name_not_utf8", "unreadable")
    return (Problem(each.path, each.reason, each.detail) for each in skipped if each.reason in wanted)
