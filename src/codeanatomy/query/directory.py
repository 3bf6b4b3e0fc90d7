"""Output directories: written beside the target and moved there when complete. Only our own output is replaced."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from codeanatomy.engine.directories import scratch_directory
from codeanatomy.errors import InputError, MachineError

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
"""Constants of Linux's `renameat2`: paths start from the current directory; swap the two names."""


@contextmanager
def replace_directory(out: str, manifest: str) -> Iterator[Path]:
    """A directory to fill, which becomes `out` on success; a directory with a `manifest` is an earlier publication."""
    target = Path(out).absolute()
    ours = (target / manifest).is_file() and not target.is_symlink()
    if target.exists() and not ours and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{out} exists and is not an earlier publication", hint="choose another --out or empty it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory(target.parent) as scratch:
            complete = scratch.path / "complete"
            complete.mkdir()
            yield complete
            if not target.exists():
                complete.rename(target)
            elif not _exchange(complete, target):
                target.rename(scratch.path / "previous")
                complete.rename(target)
    except (OSError, duckdb.IOException) as error:
        raise MachineError(f"cannot publish to {out}: {error}") from error


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step, so that both names exist at any moment; false where that is not supported."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
