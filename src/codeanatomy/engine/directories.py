"""Where the engine keeps files: a private scratch directory per session, and the user's cache.

A scratch directory is locked as long as a process owns it, so that what a killed one leaves can be told and removed.
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
    """The user's cache for this tool; created on the way."""
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


class Scratch(NamedTuple):
    """A directory of our own, and the lock that says so: a child that is given it owns the directory as well."""

    path: Path
    lock: int


@contextlib.contextmanager
def scratch_directory(parent: str | Path | None = None) -> Iterator[Scratch]:
    """A directory only this process uses; gone afterwards. What killed processes of this user left is removed first.

    It is in `parent`, else in the system's temporary directory.
    """
    place = Path(parent or tempfile.gettempdir())
    _remove_abandoned(place)
    scratch = _new_scratch(place)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch.path, ignore_errors=True)
        os.close(scratch.lock)


def _new_scratch(parent: Path) -> Scratch:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=parent))
        lock = os.open(directory, _OPEN_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process took it for abandoned, and removes it
            os.close(lock)
            continue
        except OSError:  # no locks here, so nobody will take it for abandoned either
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
    """Whether the directory that was opened is still where it was."""
    try:
        return os.path.samestat(os.fstat(opened), directory.lstat())
    except OSError:
        return False


def new_log(cache: Path) -> Path:
    """A log file for one session; only the latest ones are kept."""
    logs = cache / "logs"
    logs.mkdir(exist_ok=True)
    for old in sorted(logs.glob("*.log"))[: -LOGS_KEPT + 1]:
        old.unlink(missing_ok=True)
    handle, log = tempfile.mkstemp(".log", time.strftime("%Y%m%d-%H%M%S-"), logs)
    os.close(handle)
    return Path(log)
