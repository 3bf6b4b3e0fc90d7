"""Where the engine keeps files: a private scratch directory per session, and the user's cache.

Nothing may be written to the current directory, which can be the repository under analysis.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from codeanatomy.errors import MachineError

LOGS_KEPT = 10


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


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory only this session uses; gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="codeanatomy-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def new_log(cache: Path) -> Path:
    """A log file for one session; only the latest ones are kept."""
    logs = cache / "logs"
    logs.mkdir(exist_ok=True)
    for old in sorted(logs.glob("*.log"))[: -LOGS_KEPT + 1]:
        old.unlink(missing_ok=True)
    handle, log = tempfile.mkstemp(".log", time.strftime("%Y%m%d-%H%M%S-"), logs)
    os.close(handle)
    return Path(log)
