"""Replay: run a build again from what it pins, beside the state, and compare every table with what the build has.

The inputs are the build's own: its facts, its semantic documents, its snapshot as `repo_files` has it, and the rules of
its run bundle. The tree is not read, and nothing is parsed or indexed again. Only the program that ran a build
can replay it: with another extractor, resolver or schema there is nothing to compare, and the replay is refused.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeanatomy.catalogue.tables import (
    DOCUMENTS,
    ENTRY_POINT_PATTERNS,
    FACTS,
    GIVEN_PATTERNS,
    REPO_FILES,
    STORED_TABLES,
)
from codeanatomy.engine.directories import scratch_directory
from codeanatomy.errors import InputError, StateError
from codeanatomy.index.documents import INDEX_REVISION
from codeanatomy.pipeline.bundle import recorded_rules
from codeanatomy.pipeline.context import Build, Engine
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.entry_points import Rows
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.inputs import BuildInputs, engine_settings
from codeanatomy.pipeline.plan import Plan, fingerprints
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest, Mode, Strategy
from codeanatomy.pipeline.scope import ALL
from codeanatomy.pipeline.verify import TableComparison, _compare_table, _Side
from codeanatomy.repo.snapshot import ScannedFile, Snapshot, snapshot_id
from codeanatomy.rules.recorded import compile_recorded
from codeanatomy.store.audit import digests_on_disk
from codeanatomy.store.builds import BuildRecord, check_whole, find_build
from codeanatomy.store.linked import link_table
from codeanatomy.store.location import StateLocation, locate_state
from codeanatomy.store.state import State, create_state, open_state
from codeanatomy.store.tables import TablePin, read_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Replay:
    """The answer of `replay`."""

    build_id: str
    tables: Mapping[str, TableComparison]
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether no table differs."""
        return all(table.equal for table in self.tables.values())

    def as_json(self) -> dict[str, Any]:
        """The answer of `replay --json`."""
        return {
            "equal": self.equal,
            "build_id": self.build_id,
            "tables": {
                name: {
                    "equal": table.equal,
                    "as_pinned": table.as_pinned,
                    "rows": table.rows,
                    "rows_replayed": table.rows_full,
                    "only_build": table.only_incremental,
                    "only_replayed": table.only_full,
                    "examples": list(table.examples),
                }
                for name, table in self.tables.items()
            },
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class _Bundle:
    """What a build's run bundle says of its inputs."""

    repo_id: str
    roots: tuple[str, ...]
    rules: Mapping[str, str]


def replay(
    request: BuildRequest, build: str, *, listener: Listener | None = None, spark: SparkSession | None = None
) -> Replay:
    """Run the build whose id starts with `build` again, and compare."""
    from codeanatomy.pipeline.rule_inputs import Sources  # noqa: PLC0415 - loads Spark
    from codeanatomy.pipeline.tables import compute_tables  # noqa: PLC0415

    began = time.monotonic()
    clock = StageClock(listener or Silent())
    state = open_state(locate_state(request.repo, request.state, request.storage_options))
    found = find_build(state, build)
    check_whole(state, found)
    with scratch_directory(request.scratch) as scratch:
        inputs = _pinned_inputs(request, state, found, StateLocation.at(str(scratch.path)))
        beside = create_state(inputs.location, state.buckets, inputs.repo_id)
        for name in (FACTS.name, DOCUMENTS.name):
            if name in found.tables:
                beside = link_table(state, name, found.tables[name].version, beside)
        documents = found.tables.get(DOCUMENTS.name)
        with Engine(inputs.settings, clock, spark) as engine:
            build_again = Build(beside, None, inputs, Plan(Mode.FULL, ("replay",)), Strategy.HYBRID, clock, engine)
            sources = Sources(
                build_again,
                ALL,
                Facts(beside, found.tables[FACTS.name]),
                Documents(beside, documents.version) if documents else None,
            )
            written = compute_tables(sources, {}, [table.name for table in STORED_TABLES])
            pins = {name: table.pin for name, table in written.items()}
            with clock.stage("compare"):
                tables = _compare(engine.session(), _Side(state, found), _Side(beside, replace(found, tables=pins)))
    return Replay(found.build_id, tables, time.monotonic() - began)


def _compare(spark: SparkSession, ours: _Side, theirs: _Side) -> dict[str, TableComparison]:
    """Compare what the tables of the build really hold; what it remembers of them must be the same."""
    pins = {table: ours.build.tables[table.name] for table in STORED_TABLES}
    held = digests_on_disk(spark, ours.state, {table: pin.version for table, pin in pins.items()})
    really = {table.name: TablePin(pin.version, held[table.name]) for table, pin in pins.items()}
    ours = replace(ours, build=replace(ours.build, tables=really))
    return {
        table.name: replace(_compare_table(table, ours, theirs), as_pinned=pin.buckets == held[table.name])
        for table, pin in pins.items()
    }


def _pinned_inputs(request: BuildRequest, state: State, build: BuildRecord, location: StateLocation) -> BuildInputs:
    """The inputs of the build; refused if this program would compute other rows from them."""
    bundle = _bundle_of(state, build)
    snapshot = _snapshot_of(state, build, bundle.repo_id)
    settings = engine_settings(request, snapshot)
    _refuse_differences(build, fingerprints((), settings, bundle.roots, bundle.repo_id, None))
    rules = compile_recorded(bundle.rules)
    _refuse_differences(build, fingerprints(rules, settings, bundle.roots, bundle.repo_id, None))
    return BuildInputs(
        root=Path(request.repo),
        location=location,
        snapshot=snapshot,
        roots=bundle.roots,
        repo_id=bundle.repo_id,
        git_commit=build.git_commit,
        settings=settings,
        rules=rules,
        fingerprints=build.fingerprints,
        provider=None,
        scratch=None,
        patterns=_patterns_of(state, build),
    )


def _bundle_of(state: State, build: BuildRecord) -> _Bundle:
    """What the run bundle of the build says."""
    try:
        if (recorded := recorded_rules(state, build)) is None:
            raise InputError(f"build {build.build_id} has no run bundle to replay it from: only later builds have one")
        manifest, rules = recorded
        return _Bundle(manifest["repo_id"], tuple(manifest["roots"]), rules)
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"the run bundle of build {build.build_id} is damaged: it cannot be replayed") from error


def _snapshot_of(state: State, build: BuildRecord, repo_id: str) -> Snapshot:
    """The snapshot as the scan found it."""
    columns = ["path", "file_id", "content_id", "size", "status", "detail"]
    rows = read_arrow(state, REPO_FILES, build.tables[REPO_FILES.name].version, columns).to_pylist()
    read = {"undecodable": "ok"}  # the scan does not decode
    files = tuple(
        ScannedFile(**{**row, "status": read.get(row["status"], row["status"]), "detail": row["detail"] or ""})
        for row in sorted(rows, key=lambda row: str(row["path"]))
    )
    if snapshot_id(files, repo_id) != build.snapshot_id:
        raise StateError(
            f"the state at {state.location.uri} is damaged: its files are not those build {build.build_id} saw"
        )
    return Snapshot(files, (), build.snapshot_id)


def _patterns_of(state: State, build: BuildRecord) -> Rows:
    """The patterns that the build has stored."""
    version = build.tables[ENTRY_POINT_PATTERNS.name].version
    columns = read_arrow(state, ENTRY_POINT_PATTERNS, version, GIVEN_PATTERNS.names()).columns
    return tuple(zip(*(column.to_pylist() for column in columns), strict=True))


def _refuse_differences(build: BuildRecord, now: Mapping[str, str]) -> None:
    """Refuse a build that another program made, or one with other settings; the indexer itself is not run again."""
    then = {**build.fingerprints, "index": build.fingerprints.get("index", "").rpartition(" ")[2]}
    now = {**now, "index": str(INDEX_REVISION) if DOCUMENTS.name in build.tables else then["index"]}
    if differing := [name for name, value in now.items() if then.get(name) != value]:
        settings = " (Spark's version or --conf)" if "settings" in differing else ""
        raise InputError(
            f"build {build.build_id} was made by another version of codeanatomy, or with other settings, and cannot be "
            f"replayed: {', '.join(differing)} changed{settings}"
        )
