"""The memory of the machine, and the peak memory of this process and its descendants.

On Linux shared pages are counted once; elsewhere the figure is the maximum that the system reports.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MB = 1024 * 1024
SECONDS_BETWEEN_SAMPLES = 1.0
GROWTH_TO_MEASURE = 1.02
"""Growth of resident memory after which it is measured again: finding shared pages takes some 40 ms for 2 GB."""
PROC = Path("/proc")
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass
class PeakMemory:
    """The highest total so far."""

    mb: int = 0


def machine_memory_mb() -> int:
    """The memory this process may use: the machine's, or its container's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in CGROUP_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(path.read_text(encoding="ascii")))
    return total // MB


@contextlib.contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Watch the process tree while the block runs."""
    peak = PeakMemory()
    done = threading.Event()

    def watch() -> None:
        resident = 0
        while True:
            if (now := _resident_pages()) >= resident * GROWTH_TO_MEASURE:
                resident = now
                peak.mb = max(peak.mb, tree_memory_mb())
            if done.wait(SECONDS_BETWEEN_SAMPLES):
                return

    watcher = threading.Thread(target=watch, name="peak-memory", daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def tree_memory_mb() -> int:
    """The memory of this process and its descendants now."""
    if not PROC.is_dir():
        unit = 1 if sys.platform == "darwin" else 1024
        used = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used) * unit // MB
    return sum(_process_kb(pid) for pid in [os.getpid(), *descendants(os.getpid())]) // 1024


def _resident_pages() -> int:
    """The pages of the process tree, shared ones as often as they are mapped; 0 where that is unknown."""
    found = 0
    for pid in [os.getpid(), *descendants(os.getpid())]:
        with contextlib.suppress(OSError):
            found += int((PROC / str(pid) / "statm").read_bytes().split()[1])
    return found


def descendants(pid: int) -> list[int]:
    """The processes this one started, and those they started."""
    children: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The command name may hold spaces and parentheses; what follows its last parenthesis is regular.
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found: list[int] = []
    queue = [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _process_kb(pid: int) -> int:
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with contextlib.suppress(OSError):
            for line in (PROC / str(pid) / name).read_text(encoding="utf-8", errors="replace").splitlines():
                if line.startswith(key):
                    return int(line.split()[1])
    return 0
