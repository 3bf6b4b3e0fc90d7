"""Retention: drop old builds, and delete the data files and run bundles that no kept build needs.

Rows of `builds` are deleted first, then files: a process that dies in between leaves files that the next run deletes,
never a build without its files. The latest version of a table is kept even if no build pins it, so that other Delta
readers find a complete table and an append-only table keeps the rows of a build that died.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.errors import StateError
from codeanatomy.store.builds import BuildRecord, drop_builds, list_builds
from codeanatomy.store.bundles import bundles_without, drop_bundles
from codeanatomy.store.cursors import list_cursors
from codeanatomy.store.delta import check_files, open_table, stored_files, table_exists
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.lease import Lease
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import (
    TABLES,
    files_below,
    folder_names,
    is_data_file,
    is_table_name,
    is_unfinished_file,
)
from codeanatomy.store.state import State

_GRACE = timedelta(days=1)
"""On an object store, which has no lease, younger files may belong to a build under way."""


@dataclass(frozen=True)
class GcReport:
    """What was dropped and deleted, or would be."""

    builds: tuple[str, ...]
    files: int
    bytes: int
    dry_run: bool

    def as_json(self) -> dict[str, Any]:
        """The object that `gc --json` prints."""
        return vars(self) | {"builds": list(self.builds)}


def collect_garbage(
    state: State, lease: Lease, *, keep: int = 10, older_than: timedelta | None = None, dry_run: bool = False
) -> GcReport:
    """Keep the newest builds, those younger than `older_than` and those of cursors; delete what only others needed."""
    if lease.location != state.location:
        raise ValueError(f"the lease is for {lease.location.uri}, not {state.location.uri}")
    now = datetime.now(UTC)
    builds = list_builds(state)
    acknowledged = {cursor.build_id for cursor in list_cursors(state)}
    kept = _kept(builds, keep, now - older_than if older_than is not None else now, acknowledged)
    kept_ids = {build.build_id for build in kept}
    dropped = tuple(build.build_id for build in builds if build.build_id not in kept_ids)
    with reading(state.location):
        garbage = _garbage(state.location, kept, now)
        bundles = bundles_without(state, kept_ids, now - _GRACE)
    if not dry_run:
        if dropped:
            drop_builds(state, dropped)
            boundary("gc.builds_dropped")
        with writing(state.location):
            _delete(state.location, garbage)
            drop_bundles(state, bundles)
    freed = [*garbage.values(), *(size for bundle in bundles.values() for size in bundle.values())]
    return GcReport(dropped, len(freed), sum(freed), dry_run)


def _delete(location: StateLocation, paths: Iterable[str]) -> None:
    """Delete files of tables; not by delta-rs if they are local, because it denies that unfinished ones exist."""
    if location.is_local:
        for path in paths:
            Path(location.tables_uri, path).unlink()
    else:
        files = _files_of(location)
        for path in paths:
            files.delete_file(path)


def _kept(
    builds: Sequence[BuildRecord], keep: int, younger_than: datetime, acknowledged: Collection[str]
) -> list[BuildRecord]:
    """The `keep` newest builds (at least one), younger or acknowledged ones, and the targets of kept rollbacks."""
    newest = {build.build_id for build in builds[-max(1, keep) :]}
    kept = newest | set(acknowledged) | {build.build_id for build in builds if build.created_at >= younger_than}
    for build in reversed(builds):  # a rollback may have gone back to a rollback
        if build.build_id in kept and build.rolled_back_to:
            kept.add(build.rolled_back_to)
    return [build for build in builds if build.build_id in kept]


def _garbage(location: StateLocation, kept: Iterable[BuildRecord], now: datetime) -> dict[str, int]:
    """Data files that no kept version needs, relative to the folder of the tables, and their sizes.

    Only files with names that the store gives: other files are never deleted.
    """
    pins: dict[str, set[int]] = {}
    for build in kept:
        for name, pin in build.tables.items():
            pins.setdefault(name, set()).add(pin.version)
    garbage: dict[str, int] = {}
    for name in filter(is_table_name, _folders(location)):
        if table_exists(location, name):
            needed = _needed(location, name, pins.get(name, set()))
            found = _found(location, name, now)
            garbage |= {f"{name}/{path}": size for path, size in found.items() if path not in needed}
    return garbage


def _needed(location: StateLocation, name: str, versions: Iterable[int]) -> set[str]:
    """Files of the versions and of the latest one, all of which must be there."""
    tables = [open_table(location, name), *(open_table(location, name, version) for version in versions)]
    files = {file for table in tables for file in stored_files(table)}
    try:
        check_files(location, name, files)
    except StateError as error:
        raise StateError(f"{error}; nothing was deleted") from error
    return {file.path for file in files}


def _found(location: StateLocation, name: str, now: datetime) -> dict[str, int]:
    """Data files in the folder of a table, finished or not; on an object store, those that are old."""
    if location.is_local:
        every = dict(files_below(location, TABLES, name))
    else:
        infos = _files_of(location).get_file_info(pafs.FileSelector(name, recursive=True))
        old = (file for file in infos if file.type == pafs.FileType.File and file.mtime < now - _GRACE)
        every = {file.path.removeprefix(f"{name}/"): file.size for file in old}
    return {path: size for path, size in every.items() if is_data_file(path) or is_unfinished_file(path)}


def _folders(location: StateLocation) -> list[str]:
    if location.is_local:
        return folder_names(location, TABLES)
    return [str(folder.path) for folder in _files_of(location).get_file_info(pafs.FileSelector(""))]


def _files_of(location: StateLocation) -> pafs.FileSystem:
    """The folder of the tables as a file system."""
    return pafs.PyFileSystem(DeltaStorageHandler(location.tables_uri, location.options()))
