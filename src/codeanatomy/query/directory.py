"""Output directories: filled beside their place and moved there when whole. What is not ours is never replaced."""

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

_HERE: Final = -100
_EXCHANGE: Final = 2
"""Constants of Linux's `renameat2`: paths start from the current directory; two names change places."""


@contextmanager
def whole_directory(out: str, manifest: str) -> Iterator[Path]:
    """A directory to fill, which becomes `out` if all goes well; one with a `manifest` is an earlier publication."""
    target = Path(out).absolute()
    ours = (target / manifest).is_file() and not target.is_symlink()
    if target.exists() and not ours and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{out} exists and is not an earlier publication", hint="choose another --out or empty it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory(target.parent) as scratch:
            place = scratch.path / "whole"
            place.mkdir()
            yield place
            if not target.exists():
                place.rename(target)
            elif not _exchange(place, target):
                target.rename(scratch.path / "before")
                place.rename(target)
    except (OSError, duckdb.IOException) as error:
        raise MachineError(f"cannot publish to {out}: {error}") from error


def _exchange(one: Path, other: Path) -> bool:
    """Let two directories change places in one step, so that there is no moment without either, where that can be."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)
