"""Output directories: filled beside their place and moved there when whole. What is not ours is never replaced."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from codeanatomy.errors import InputError, MachineError


@contextmanager
def whole_directory(out: str, manifest: str) -> Iterator[Path]:
    """A directory to fill, which becomes `out` if all goes well; one with a `manifest` is an earlier publication."""
    target = Path(out).absolute()
    ours = (target / manifest).is_file() and not target.is_symlink()
    if target.exists() and not ours and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{out} exists and is not an earlier publication", hint="choose another --out or empty it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            place = Path(scratch) / "whole"
            place.mkdir()
            yield place
            if target.exists():
                target.rename(Path(scratch) / "before")
            place.rename(target)
    except (OSError, duckdb.IOException) as error:
        raise MachineError(f"cannot publish to {out}: {error}") from error
