"""Paths below a state: the only module that decides what may be opened, listed, written or deleted there.

A repository can ship a `.codeanatomy` directory, so everything below a state is untrusted input. No component of a path
may be a link, and a file must be a regular file: reading a pipe never ends. Names must be ones that this program gives;
other names in a log or a build are refused before they are followed.

Readers check what they open, writers check the entire state when they take the lease. The root and its parents are the
user's choice and not checked. An object store has no links: there only names are checked.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from codeanatomy.errors import StateError
from codeanatomy.store.location import StateLocation

TABLES = "tables"
"""Name of the folder of the tables."""

SCRATCH = "indexing"
"""Name of the folder for an indexer, emptied before use; the only folder in which a build makes links."""

_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_BUILD_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")
_PART = r"part-[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.parquet"
_DATA = rf"(?:bucket=[0-9]{{1,5}}/)?{_PART}"
_DATA_FILE = re.compile(_DATA)
_UNFINISHED_FILE = re.compile(
    rf"_temporary/(?:(?:[A-Za-z0-9_-]|[=.](?=[A-Za-z0-9_-]))+/)*{_PART}"  # by Spark
    rf"|(?:{_DATA}|_delta_log/[0-9]{{20}}(?:\.checkpoint\.parquet|\.json))#[0-9]+"  # by delta-rs
)
_BUNDLE_FILE = re.compile(r"[a-z][a-z0-9_]{0,99}\.(?:json|parquet)")


def is_table_name(name: object) -> bool:
    """Whether a table of ours can have this name."""
    return isinstance(name, str) and _TABLE_NAME.fullmatch(name) is not None


def is_build_id(name: object) -> bool:
    """Whether a build of ours can have this id."""
    return isinstance(name, str) and _BUILD_ID.fullmatch(name) is not None


def is_data_file(path: str) -> bool:
    """Whether a data file of ours can have this path, relative to its table."""
    return _DATA_FILE.fullmatch(path) is not None


def is_unfinished_file(path: str) -> bool:
    """Whether Spark or delta-rs gives this path, relative to the table, to a file that it has not finished."""
    return _UNFINISHED_FILE.fullmatch(path) is not None


def is_bundle_file(name: str) -> bool:
    """Whether a file of a run bundle can have this name."""
    return _BUNDLE_FILE.fullmatch(name) is not None


def checked_folder(location: StateLocation, *names: str) -> Path | None:
    """A folder below a local state, or None if there is none."""
    return location.local_path.joinpath(*names) if _check_folder(location, names) else None


def checked_file(location: StateLocation, *names: str) -> os.stat_result | None:
    """The status of a regular file below a local state, or None if there is none."""
    found = _checked(location, names)
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise _refused(location, location.local_path.joinpath(*names), "is not a regular file")
    return found


def file_names(location: StateLocation, *names: str) -> list[str]:
    """The names of the regular files in a folder, which must hold nothing else."""
    folder = checked_folder(location, *names)
    entries = _checked_entries(location, folder) if folder else []
    if folders := [entry for entry in entries if entry.is_dir(follow_symlinks=False)]:
        raise _refused(location, Path(folders[0].path), "is not a regular file")
    return sorted(entry.name for entry in entries)


def folder_names(location: StateLocation, *names: str) -> list[str]:
    """The names of the folders in a folder."""
    folder = checked_folder(location, *names)
    entries = _checked_entries(location, folder) if folder else []
    return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def sizes_below(location: StateLocation, *names: str, paths: Collection[str]) -> dict[str, int]:
    """The sizes of those regular files below a folder that exist, by their paths relative to it."""
    folder = str(location.local_path.joinpath(*names))
    for inner in {path.rpartition("/")[0] for path in paths}:
        _check_folder(location, (*names, *filter(None, inner.split("/"))))
    sizes = {}
    for path in paths:
        with suppress(FileNotFoundError):
            status = os.lstat(f"{folder}/{path}")
            if not stat.S_ISREG(status.st_mode):
                raise _refused(location, Path(folder, path), _kind(status))
            sizes[path] = status.st_size
    return sizes


def files_below(location: StateLocation, *names: str) -> Iterator[tuple[str, int]]:
    """Every file below a folder, by its path relative to that, and its size."""
    top = checked_folder(location, *names)
    for entry in _walk(location, top) if top else ():
        if not entry.is_dir(follow_symlinks=False):
            size = entry.stat(follow_symlinks=False).st_size
            yield str(Path(entry.path).relative_to(top or "")), size


def check_surface(location: StateLocation) -> None:
    """Refuse a local state with anything but directories and regular files in its upper two levels."""
    if location.is_local:
        for entry in _checked_entries(location, location.local_path):
            if entry.is_dir(follow_symlinks=False):
                _checked_entries(location, entry.path)


def check_everything(location: StateLocation) -> None:
    """Refuse a local state that has anything but directories and regular files in it, wherever that is."""
    if location.is_local:
        for _ in _walk(location, location.local_path):
            pass


def open_own_file(location: StateLocation, name: str, flags: int) -> int:
    """Open a file of the state's root for writing in place; it must be regular and have no other name."""
    path = location.local_path / name
    if checked_file(location, name) is None:
        flags |= os.O_CREAT
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise _refused(location, path, "is a hard link" if status.st_nlink != 1 else "is not a regular file")
    return descriptor


def read_own_file(location: StateLocation, *names: str, limit: int) -> bytes | None:
    """The content of a small regular file below a local state, or None if there is none."""
    status = checked_file(location, *names)
    if status is None:
        return None
    path = location.local_path.joinpath(*names)
    if status.st_size > limit:
        raise _refused(location, path, "is too large")
    return path.read_bytes()


def _check_folder(location: StateLocation, names: tuple[str, ...]) -> bool:
    """Whether there is such a folder; anything else in its place is refused."""
    found = _checked(location, names)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise _refused(location, location.local_path.joinpath(*names), "is not a directory")
    return found is not None


def _checked(location: StateLocation, names: tuple[str, ...]) -> os.stat_result | None:
    """The status of the last component; no component may be a link, and all but the last must be directories."""
    path = str(location.local_path)  # a `Path` for each of thousands of files takes as long as a small query
    status = None
    for place, name in enumerate(names):
        if not name or "/" in name or "\0" in name or name in (".", ".."):
            raise StateError(
                f"the state at {location.uri} is damaged (it names {name!r})", hint="delete it and build again"
            )
        path = f"{path}/{name}"
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):  # the latter: the root is not a directory
            return None
        if stat.S_ISLNK(status.st_mode):
            raise _refused(location, Path(path), "is a link")
        if place < len(names) - 1 and not stat.S_ISDIR(status.st_mode):
            raise _refused(location, Path(path), "is not a directory")
    return status


def _walk(location: StateLocation, top: Path) -> Iterator[os.DirEntry[str]]:
    """Every entry below a folder, which must be a directory or a regular file."""
    pending: list[str | Path] = [top]
    while pending:
        for entry in _checked_entries(location, pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            yield entry


def _checked_entries(location: StateLocation, folder: str | Path) -> list[os.DirEntry[str]]:
    """The entries of a folder, which must be directories and regular files; the scratch folder counts as empty."""
    if str(folder) == str(location.local_path / SCRATCH):
        return []
    entries = _entries(folder)
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
            what = "is a link" if entry.is_symlink() else "is not a regular file"
            raise _refused(location, Path(entry.path), what)
    return entries


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:  # removed by a concurrent build
        return []


def _kind(status: os.stat_result) -> str:
    return "is a link" if stat.S_ISLNK(status.st_mode) else "is not a regular file"


def _refused(location: StateLocation, path: Path, what: str) -> StateError:
    return StateError(
        f"{path} {what}", hint=f"codeanatomy did not make this state; delete {location.uri} and build again"
    )
