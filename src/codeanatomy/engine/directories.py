"""Directories of the engine: a private scratch directory per session, the user's cache, the place of sockets.

A scratch directory is locked while its process lives, so that one that a killed process left is recognized and removed.
Nothing may be written to the current directory, which can be the repository under analysis.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codeanatomy.errors import MachineError

LOGS_KEPT = 10

_SCRATCH = "codeanatomy-run-"
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's cache directory of this tool; created if needed."""
    base = Path(environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".cache"
    directory = base / "codeanatomy"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"cannot create {directory}: {error.strerror}", hint="set XDG_CACHE_HOME elsewhere"
        ) from error
    return directory


def runtime_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where sockets of this tool are: in the user's runtime directory if the system has one, else in the cache.

    It is created, for this user alone, by whoever needs it.
    """
    base = Path(environ.get("XDG_RUNTIME_DIR", ""))
    return base / "codeanatomy" if base.is_absolute() and base.is_dir() else cache_directory(environ) / "run"


class Scratch(NamedTuple):
    """A private directory and its lock; a child process that inherits the lock keeps the directory too."""

    path: Path
    lock: int


@contextlib.contextmanager
def scratch_directory(parent: str | Path | None = None) -> Iterator[Scratch]:
    """A directory for this process, removed on exit. Directories that killed processes of this user left are removed.

    It is in `parent`, else in the system's temporary directory. The abandoned ones are looked for on exit as well: the
    child of a killed process, which keeps its directory, may notice its death only after a while.
    """
    directory = Path(parent or tempfile.gettempdir())
    _remove_abandoned(directory)
    scratch = _new_scratch(directory)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch.path, ignore_errors=True)
        os.close(scratch.lock)
        _remove_abandoned(directory)


def _new_scratch(parent: Path) -> Scratch:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=parent))
        lock = os.open(directory, _OPEN_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process considers it abandoned, and removes it
            os.close(lock)
            continue
        except OSError:  # a file system without locks: no process considers it abandoned
            return Scratch(directory, lock)
        if _is_at(directory, lock):
            return Scratch(directory, lock)
        os.close(lock)


def _remove_abandoned(parent: Path) -> None:
    """Remove the scratch directories of this user that no living process holds. Links are not followed."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        found = [Path(each) for each in entries if each.name.startswith(_SCRATCH)]
        for directory in found:
            with contextlib.suppress(OSError):
                _remove_if_abandoned(directory)


def _remove_if_abandoned(directory: Path) -> None:
    lock = os.open(directory, _OPEN_DIRECTORY)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(directory, lock):
                shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(lock)


def _is_at(directory: Path, opened: int) -> bool:
    """Whether the opened directory still has this path."""
    try:
        return os.path.samestat(os.fstat(opened), directory.lstat())
    except OSError:
        return False


def new_log(cache: Path) -> Path:
    """A log file for one session; only the latest ones are kept."""
    logs = cache / "logs"
    logs.mkdir(exist_ok=True)
    for old in sorted(logs.glob("[0-9]*.log"))[: -LOGS_KEPT + 1]:
        old.unlink(missing_ok=True)
    handle, log = tempfile.mkstemp(".log", time.strftime("%Y%m%d-%H%M%S-"), logs)
    os.close(handle)
    return Path(log)
