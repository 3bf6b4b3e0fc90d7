"""Compute the rows of the affected files and write them; say what became of it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, STORED_TABLES
from codeanatomy.pipeline.analysis import with_rules
from codeanatomy.pipeline.context import Build, fits_driver
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.flow import write_flow
from codeanatomy.pipeline.problems import find_limits, find_problems
from codeanatomy.pipeline.rule_inputs import Sources
from codeanatomy.pipeline.scope import ALL, Scope
from codeanatomy.pipeline.tables import compute_tables, write_documents
from codeanatomy.pipeline.work import Outcome, Work
from codeanatomy.store.digests import NO_ROWS, SetDigest
from codeanatomy.store.owners import OWNER_DIGESTS, replace_owner_digests
from codeanatomy.store.tables import Replaced, TablePin, WrittenTable


def replace_documents(build: Build, work: Work) -> Work:
    """Write the documents that changed."""
    if (documents := work.documents) is None:
        return work
    replaced = Replaced(documents.replaced, work.scope.before.get(DOCUMENTS.name, {}))
    with build.clock.stage(DOCUMENTS.name) as stage:
        written = write_documents(build, documents.rows, replaced)
        stage.rows = documents.rows.num_rows
    return replace(work, written={**work.written, DOCUMENTS.name: written})


def replace_flow(build: Build, work: Work) -> Work:
    """Write what the files pass on that pass something else on."""
    if work.flow is None:
        return work
    written = write_flow(build, work.flow, work.scope.before)
    return replace(work, written={**work.written, **written})


def replace_rows_of_scope(build: Build, work: Work) -> Work:
    """Compute and write the rows of the scope, in all tables whose rules did not change."""
    began = time.monotonic()
    tables = [table.name for table in STORED_TABLES if table.name not in _whole(build)]
    answers = None if build.is_full else work.impact.answers
    written = compute_tables(_sources(build, work), build.pins(), tables, answers)
    return replace(work, written={**work.written, **written}, computing_seconds=time.monotonic() - began)


def replace_whole_tables(build: Build, work: Work) -> Work:
    """Compute and write the rows of every file, in tables whose rules changed."""
    sources = replace(_sources(build, work), scope=ALL)
    written = compute_tables(sources, build.pins() | _pins(work.written), _whole(build))
    return replace(work, written={**work.written, **written})


def outcome_of(build: Build, work: Work) -> Outcome:
    """Store the digests of what each owner has now; what the build did."""
    scope, whole = work.scope, _whole(build)
    written = dict(work.written)
    digests = {name: table.owners for name, table in written.items()}
    written[OWNER_DIGESTS.name], changed = _write_digests(build, scope, digests, whole)
    kept = {} if build.is_full else build.pins()
    pins = {**kept, FACTS.name: work.facts.pinned, **_pins(written)}
    return Outcome(
        impact=with_rules(work.impact, build.plan),
        changed=changed,
        pins=pins,
        written={FACTS.name: work.facts.extracted > 0} | {name: each.written for name, each in written.items()},
        problems=find_problems(build, work, _documents(build, pins)),
        limits=find_limits(build, work.impact, pins[ANSWERS.name]),
        indexing_seconds=work.indexing_seconds,
        costs=_costs(build, scope, work.computing_seconds),
    )


def _whole(build: Build) -> frozenset[str]:
    """The tables that are computed for every file although only some are affected."""
    return frozenset() if build.is_full else build.plan.whole


def _sources(build: Build, work: Work) -> Sources:
    documents = _documents(build, build.pins() | _pins(work.written))
    return Sources(build, work.scope, work.facts, documents, work.passed)


def _pins(written: Mapping[str, WrittenTable]) -> dict[str, TablePin]:
    return {name: table.pin for name, table in written.items()}


def _documents(build: Build, pins: Mapping[str, TablePin]) -> Documents | None:
    return Documents(build.state, pins[DOCUMENTS.name].version) if build.inputs.provider else None


def _costs(build: Build, scope: Scope, seconds: float) -> dict[str, float]:
    """What computing every table took, and what that took per file of an update that was not small."""
    if scope.rebuilt is None:
        return {"full_seconds": seconds, "full_files": len(build.inputs.snapshot.files)}
    costs = dict(build.last.figures.get("costs", {})) if build.last else {}
    if not fits_driver(build.inputs.source_bytes(scope.rebuilt)):
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
