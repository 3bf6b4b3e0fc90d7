"""Which code a process runs: the version of the package, and when its files last changed.

An engine that runs other code than what is installed now, after an upgrade or an edit, must not answer.
"""

from __future__ import annotations

import os
from pathlib import Path

import codeanatomy


def code_version() -> str:
    """The version of the package, the number of its files and the time of the newest."""
    times = _times(str(Path(codeanatomy.__file__).parent))
    return f"{codeanatomy.__version__} {len(times)} {max(times)}"


def _times(directory: str) -> list[int]:
    found: list[int] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".sql")):
                found.append(entry.stat().st_mtime_ns)
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                found += _times(entry.path)
    return found
