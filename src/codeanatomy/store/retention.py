"""Retention: forget old builds, and delete the files and run bundles no kept build can need.

First the rows, then the files: a run that dies in between leaves files the next one deletes, never a build without
its files. The latest version of a table is kept even if no build names it, so that other Delta readers always find a
whole table and an append-only one keeps the rows of a run that died.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.errors import StateError
from codeanatomy.store.builds import Build, drop_builds, list_builds
from codeanatomy.store.bundles import bundles_without, drop_bundles
from codeanatomy.store.cursors import list_cursors
from codeanatomy.store.failures import writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.lease import Lease
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import State
from codeanatomy.store.tables import relative_files

_GRACE = timedelta(days=1)
"""On an object store, where no lease keeps writers away, younger files may belong to a build under way."""


@dataclass(frozen=True)
class GcReport:
    """What was dropped and deleted, or would be."""

    builds: tuple[str, ...]
    files: int
    bytes: int


def collect_garbage(
    state: State, lease: Lease, *, keep: int = 10, older_than: timedelta | None = None, dry_run: bool = False
) -> GcReport:
    """Keep the newest builds, those younger than `older_than` and those of cursors; delete what only others needed."""
    if lease.location != state.location:
        raise ValueError(f"the lease is for {lease.location.uri}, not {state.location.uri}")
    now = datetime.now(UTC)
    builds = list_builds(state)
    awaited = {cursor.build_id for cursor in list_cursors(state)}
    kept = _kept(builds, keep, now - older_than if older_than is not None else now, awaited)
    kept_ids = {build.build_id for build in kept}
    dropped = tuple(build.build_id for build in builds if build.build_id not in kept_ids)
    with writing(state.location):
        garbage = _garbage(state.location, kept, now)
        bundles = bundles_without(state, kept_ids, now - _GRACE)
        if not dry_run:
            if dropped:
                drop_builds(state, dropped)
                boundary("gc.builds_dropped")
            files = _files_of(state.location)
            for file in garbage:
                files.delete_file(file.path)
            drop_bundles(state, bundles)
    freed = [*garbage, *(file for bundle in bundles.values() for file in bundle)]
    return GcReport(dropped, len(freed), sum(file.size for file in freed))


def _kept(builds: Sequence[Build], keep: int, younger_than: datetime, awaited: Collection[str]) -> list[Build]:
    """The latest and the other `keep` newest, those younger or awaited, and those a kept rollback went back to."""
    newest = {build.build_id for build in builds[-max(1, keep) :]}
    kept = newest | set(awaited) | {build.build_id for build in builds if build.created_at >= younger_than}
    for build in reversed(builds):  # a rollback may have gone back to a rollback
        if build.build_id in kept and build.rolled_back_to:
            kept.add(build.rolled_back_to)
    return [build for build in builds if build.build_id in kept]


def _garbage(location: StateLocation, kept: Iterable[Build], now: datetime) -> list[pafs.FileInfo]:
    pins: dict[str, set[int]] = {}
    for build in kept:
        for name, pin in build.tables.items():
            pins.setdefault(name, set()).add(pin.version)
    garbage = []
    for folder in _files_of(location).get_file_info(pafs.FileSelector("")):
        name = folder.path
        if not DeltaTable.is_deltatable(location.table_uri(name), location.options()):
            continue
        needed = _needed(location, name, pins.get(name, set()))
        found = {
            file.path: file
            for file in _files_of(location).get_file_info(pafs.FileSelector(name, recursive=True))
            if file.type == pafs.FileType.File and not file.path.startswith(f"{name}/_delta_log/")
        }
        if missing := needed - found.keys():
            raise StateError(f"the state at {location.uri} is damaged ({min(missing)} is missing): nothing was deleted")
        garbage += [
            file
            for path, file in found.items()
            if path not in needed and (location.is_local or file.mtime < now - _GRACE)
        ]
    return garbage


def _needed(location: StateLocation, name: str, versions: Iterable[int]) -> set[str]:
    """Files of the versions and of the latest one, relative to the folder of the tables."""
    uri, options = location.table_uri(name), location.options()
    tables = [DeltaTable(uri, storage_options=options)]
    tables += [DeltaTable(uri, version=version, storage_options=options) for version in versions]
    return {f"{name}/{file}" for table in tables for file in relative_files(table)}


def _files_of(location: StateLocation) -> pafs.FileSystem:
    """The folder of the tables as a file system."""
    return pafs.PyFileSystem(DeltaStorageHandler(location.tables_uri, location.options()))
