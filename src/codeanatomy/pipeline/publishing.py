"""Publish a build: its figures, its run bundle, then the one commit that makes it visible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from codeanatomy.catalogue import runs
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.engine.memory import PeakMemory
from codeanatomy.impact.affected import Impact
from codeanatomy.impact.reasons import ReasonKind
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.problems import NOT_INDEXED, SYNTAX_ERROR, not_looked_into
from codeanatomy.pipeline.request import BuildResult, Mode, Problem
from codeanatomy.pipeline.stages import PUBLISH
from codeanatomy.rules.compiler import CompiledRule
from codeanatomy.store.builds import BuildRecord, new_build_id, publish
from codeanatomy.store.bundles import write_bundle
from codeanatomy.store.tables import TablePin

RULES = "rules.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Outcome:
    """What a build did, and why: all that is reported. `changed` has the tables in which a file's rows changed."""

    impact: Impact
    changed: Mapping[str, Sequence[str]]
    pins: Mapping[str, TablePin]
    written: Mapping[str, bool]
    problems: tuple[Problem, ...]
    limits: Mapping[str, int]
    index: Mapping[str, Any]
    costs: Mapping[str, float]


def publish_build(build: Build, outcome: Outcome, peak: PeakMemory) -> BuildResult:
    """Make the build visible."""
    state, last, inputs, plan, clock = build.state, build.last, build.inputs, build.plan, build.clock
    now = datetime.now(UTC)
    build_id = new_build_id(now)
    with clock.stage(PUBLISH):
        rows = _bundle_rows(plan, outcome)
        rules = [_rule(each) for each in inputs.rules]
        manifest = {
            "build_id": build_id,
            "parent_build_id": last.build_id if last else None,
            "mode": plan.mode,
            "strategy": build.strategy,
            "reasons": plan.reasons,
            "git_commit": inputs.git_commit,
            "snapshot_id": inputs.snapshot.snapshot_id,
            "repo_id": inputs.repo_id,
            "roots": inputs.roots,
            "settings": inputs.settings.sql_conf(),
            "fingerprints": inputs.fingerprints,
            "tables": {name: {"version": pin.version, "rows": pin.rows} for name, pin in outcome.pins.items()},
            "index": outcome.index,
            "problems": [asdict(problem) for problem in outcome.problems],
            "stages": [asdict(stage) for stage in clock.stages],
        }
        texts = {MANIFEST: json.dumps(manifest, indent=1), RULES: json.dumps(rules, indent=1)}
        write_bundle(state, build_id, texts, rows)
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
                "index": dict(outcome.index),
                "strategy": build.strategy,
                "reasons": list(plan.reasons),
                "costs": dict(outcome.costs),
                "stages": [asdict(stage) for stage in clock.stages],
                "seconds": clock.seconds(),
                "peak_memory_mb": peak.mb,
            },
        )
        publish(state, record)
    return result_of(build, record, outcome.written, peak)


def result_of(build: Build, record: BuildRecord, written: Mapping[str, bool], peak: PeakMemory) -> BuildResult:
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
        peak_memory_mb=peak.mb,
        index=figures.get("index"),
        problems=(
            *(Problem(**problem) for problem in figures["problems"]),
            *not_looked_into(inputs.snapshot.skipped),
        ),
        limits=figures.get("limits", {}),
        reasons=() if mode is Mode.NOOP else tuple(figures.get("reasons", ())),
    )


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


def index_figures(
    build: Build, pins: Mapping[str, TablePin], problems: tuple[Problem, ...], seconds: float
) -> dict[str, Any]:
    """What the index is, so that the build can be looked at, and built again, with the same."""
    provider = build.inputs.provider
    if provider is None:
        return {"choice": "none", "scip": None, "provider": None, "documents": 0, "failed": 0}
    failed = sum(problem.reason == NOT_INDEXED for problem in problems)
    return {
        **provider.choice(),
        "provider": " ".join(filter(None, (provider.fingerprint, provider.content))),
        "documents": pins[DOCUMENTS.name].rows - failed,
        "failed": failed,
        "seconds": round(seconds, 3),
    }


def _rule(compiled: CompiledRule) -> dict[str, Any]:
    return {
        "name": compiled.rule.name,
        "output": compiled.rule.output.name,
        "identity": compiled.identity,
        "inputs": list(compiled.inputs),
        "sql": compiled.rule.sql,
    }


def _bundle_rows(plan: Plan, outcome: Outcome) -> dict[str, pa.Table]:
    impact = outcome.impact
    ids = {path: file.file_id for side in (impact.changes.before, impact.changes.after) for path, file in side.items()}
    answers = [(ids[each.path], *each) for each in impact.answers_changed]
    imports = (ReasonKind.IMPORT_MODULE, ReasonKind.IMPORT_NAME, ReasonKind.IMPORT_STAR)
    reasons = {
        (each.path, each.reason_kind, each.reason_ref, each.caused_by): each.reason_kind in imports
        for each in impact.answers_changed
    }
    datasets: dict[Dataset, Iterable[tuple[Any, ...]]] = {
        runs.DIFF_REPORT: _diff_report(impact.changes),
        runs.INC_INVALIDATIONS: [(each.kind, each.name, list(each.tables)) for each in plan.invalidations],
        runs.INC_CHANGED_EXPORTS: [(ids[each.path], *each) for each in impact.exports],
        runs.INC_CHANGED_ANSWERS: answers,
        runs.INC_IMPACTED_FILES: [
            (
                each.file_id,
                each.path,
                each.reason_kind,
                each.reason_ref,
                each.caused_by,
                ids.get(each.caused_by or ""),
                list(outcome.changed.get(each.file_id, ())),
                each.file_id not in outcome.changed or bool(outcome.changed[each.file_id]),
            )
            for each in impact.files
        ],
        runs.INC_IMPACTED_CALLERS: [(ids[row[0]], *row) for row, is_import in reasons.items() if not is_import],
        runs.INC_IMPACTED_IMPORTERS: [(ids[row[0]], *row) for row, is_import in reasons.items() if is_import],
        runs.INC_RECONSIDERED_FILES: [
            (ids[each.path], each.path, each.looked_at, each.caused_by, each.impacted) for each in impact.reconsidered
        ],
    }
    return {dataset.name: dataset.table(rows) for dataset, rows in datasets.items()}


def _diff_report(changes: SnapshotChanges) -> Iterable[tuple[Any, ...]]:
    before, after, files = changes.before, changes.after, changes.files
    rows: list[tuple[Any, ...]] = []
    rows += [(after[path].file_id, path, "added", None, after[path].content_id) for path in files.added]
    rows += [
        (after[path].file_id, path, "modified", before[path].content_id, after[path].content_id)
        for path in files.modified
    ]
    rows += [(before[path].file_id, path, "deleted", before[path].content_id, None) for path in files.deleted]
    rows += [(after[path].file_id, path, "renamed", old, after[path].content_id) for path, old in files.renamed.items()]
    rows += [
        (
            after[path].file_id,
            path,
            "module_renamed",
            before[path].module.module_fqn,
            after[path].module.module_fqn,
        )
        for path in changes.moved_modules
    ]
    return sorted(rows, key=lambda row: row[1])
