"""The run bundle of a build: what it did and why, as files that people and SQL can read, and that let it run again.

`manifest.json` and `rules.json` are what `replay` reads; the datasets are described in `catalogue.runs`.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, astuple
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from codeanatomy.catalogue import runs
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.memory import machine_memory_mb
from codeanatomy.impact.reasons import IMPORT_REASONS
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.pipeline.context import Build, fits_driver
from codeanatomy.pipeline.journal import Journal
from codeanatomy.pipeline.plan import Plan, changed_rules
from codeanatomy.pipeline.request import FinishedStage
from codeanatomy.pipeline.work import Outcome
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.store.builds import BuildRecord, find_build, list_builds
from codeanatomy.store.bundles import read_bundle_text
from codeanatomy.store.state import State

if TYPE_CHECKING:
    from codeanatomy.rules.differences import RuleChange

RULES = "rules.json"
MANIFEST = "manifest.json"


def bundle_texts(build: Build, outcome: Outcome, build_id: str, index: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a bundle, by file name."""
    last, inputs, plan = build.last, build.inputs, build.plan
    manifest = {
        "build_id": build_id,
        "parent_build_id": last.build_id if last else None,
        "mode": plan.mode,
        "strategy": build.strategy,
        "determinism": build.state.determinism,
        "profile": inputs.settings.profile.name,
        "reasons": plan.reasons,
        "git_commit": inputs.git_commit,
        "snapshot_id": inputs.snapshot.snapshot_id,
        "repo_id": inputs.repo_id,
        "roots": inputs.roots,
        "settings": inputs.settings.sql_conf(),
        "fingerprints": inputs.fingerprints,
        "tables": {name: {"version": pin.version, "rows": pin.rows} for name, pin in outcome.pins.items()},
        "index": index,
        "problems": [asdict(problem) for problem in outcome.problems],
        "stages": [asdict(stage) for stage in build.clock.stages],
    }
    rules = [_rule(each) for each in inputs.rules]
    return {MANIFEST: json.dumps(manifest, indent=1), RULES: json.dumps(rules, indent=1)}


def bundle_rows(build: Build, outcome: Outcome) -> dict[str, pa.Table]:
    """The datasets of a bundle, by name."""
    datasets: dict[Dataset, Iterable[tuple[Any, ...]]] = {
        **_impact_rows(build.plan, outcome),
        runs.RUN_STAGES: _stages(build.clock.stages, build.journal),
        runs.RUN_PLANS: [(each.stage, list(each.rules), each.text) for each in build.journal.plans],
        runs.RUN_TABLE_READS: [astuple(each) for each in build.state.location.opened.reads()],
        runs.RUN_FALLBACKS: [astuple(each) for each in build.journal.fallbacks],
        runs.RUN_FEATURES: sorted(_features(build, None if build.is_full else outcome.impact.rebuilt()).items()),
        runs.RUN_RULE_LINEAGE: [row for rule in build.inputs.rules for row in _lineage(rule)],
        runs.RUN_RULE_CHANGES: [astuple(each) for each in _rule_changes(build)],
    }
    return {dataset.name: dataset.table(rows) for dataset, rows in datasets.items()}


def recorded_rules(state: State, build: BuildRecord) -> tuple[Mapping[str, Any], Mapping[str, str]] | None:
    """The manifest and the SQL of each rule in the bundle of a build, or of the one it went back to.

    None if there is no bundle; a ValueError, KeyError or TypeError if it is damaged.
    """
    origin = build
    for _ in list_builds(state):
        if origin.rolled_back_to is None:
            break
        origin = find_build(state, origin.rolled_back_to)
    manifest, rules = (read_bundle_text(state, origin.build_id, name) for name in (MANIFEST, RULES))
    if manifest is None or rules is None:
        return None
    return json.loads(manifest), {rule["name"]: rule["sql"] for rule in json.loads(rules)}


def _rule_changes(build: Build) -> list[RuleChange]:
    """How the rules differ from those of the last build; nothing is read if they do not."""
    if build.last is None or not (changed := changed_rules(build.last.fingerprints, build.inputs.fingerprints)):
        return []
    from codeanatomy.rules.differences import rule_changes  # noqa: PLC0415 - loads SQLGlot

    try:
        recorded = recorded_rules(build.state, build.last)
    except (ValueError, KeyError, TypeError):  # the last build is damaged; this one is not
        recorded = None
    before = recorded[1] if recorded else {}
    after = {each.rule.name: each.rule.sql for each in build.inputs.rules}
    return rule_changes(*({name: sql for name, sql in side.items() if name in changed} for side in (before, after)))


def _stages(stages: Iterable[FinishedStage], journal: Journal) -> Iterable[tuple[Any, ...]]:
    for position, stage in enumerate(stages):
        plans = [plan for plan in journal.plans if plan.stage == stage.name]
        counts = (len(plans), *(sum(plan.count(kind) for plan in plans) for kind in ("Scan", "Join", "Exchange")))
        yield position, stage.name, stage.seconds, stage.rows, *(counts if plans else (None,) * len(counts))


def _features(build: Build, rebuilt: Collection[str] | None) -> dict[str, str]:
    """What is switched on, and the versions of what can make a difference."""
    inputs, settings, profile = build.inputs, build.inputs.settings, build.inputs.settings.profile
    conf = settings.sql_conf()
    return {
        **{f"layer {name}": revision for name, revision in inputs.layers.items()},
        "adaptive execution": conf["spark.sql.adaptive.enabled"],
        "determinism": build.state.determinism,
        "engine": "connect" if settings.remote else "local" if settings.is_local else "cluster",
        "generated code": conf.get("spark.sql.codegen.wholeStage", "true"),
        "heap_mb": str(profile.heap_for(machine_memory_mb())),
        "index": inputs.provider.fingerprint if inputs.provider else "none",
        "physical plans": str(profile.records_plans).lower(),
        "profile": profile.name,
        "python": platform.python_version(),
        "rows computed by": "driver" if fits_driver(inputs.source_bytes(rebuilt)) else "workers",
        "spark": version("pyspark"),
        "strategy": build.strategy,
        "value flow": str(inputs.follows_values).lower(),
    }


def _lineage(compiled: CompiledRule) -> Iterable[tuple[Any, ...]]:
    """One row for each column and source of it."""
    name, output = compiled.rule.name, compiled.rule.output.name
    for column, sources in compiled.lineage.items():
        for source in sources or (None,):
            yield name, output, column, *(source.rsplit(".", 1) if source else (None, None))
    for column in compiled.rule.constants().keys() - set(compiled.columns):
        yield name, output, column, None, None


def _rule(compiled: CompiledRule) -> dict[str, Any]:
    return {
        "name": compiled.rule.name,
        "output": compiled.rule.output.name,
        "identity": compiled.identity,
        "inputs": list(compiled.inputs),
        "sql": compiled.rule.sql,
    }


def _impact_rows(plan: Plan, outcome: Outcome) -> dict[Dataset, Iterable[tuple[Any, ...]]]:
    """What changed, what that affects, and why."""
    impact = outcome.impact
    ids = {path: file.file_id for side in (impact.changes.before, impact.changes.after) for path, file in side.items()}
    answers = [(ids[each.path], *each) for each in impact.answers_changed]
    reasons = {
        (each.path, each.reason_kind, each.reason_ref, each.caused_by): each.reason_kind in IMPORT_REASONS
        for each in impact.answers_changed
    }
    return {
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
