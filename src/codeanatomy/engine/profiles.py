"""Runtime profiles: how much of the machine a session may use.

A profile never changes a row, so it is not part of the fingerprint of the settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from codeanatomy.errors import InputError


@dataclass(frozen=True)
class Profile:
    """Limits of a session on this machine, the level of its log, and whether a build records its physical plans."""

    name: str
    heap_mb: int
    heap_share: float
    max_threads: int
    arrow_batch_rows: int
    adaptive: bool
    log_level: str
    records_plans: bool = False

    def heap_for(self, machine_mb: int) -> int:
        """The driver's heap in MB on a machine of this size."""
        return min(self.heap_mb, int(machine_mb * self.heap_share))

    def threads_for(self, cpus: int) -> int:
        """How many tasks run at once on a machine with this many processors."""
        return min(self.max_threads, cpus)


# Every task may have a Python worker of some 250 MB beside it: eight of them, the driver and a full heap fit in 6 GB.
PROD_FAST = Profile("prod_fast", 2560, 0.4, 8, 10_000, adaptive=True, log_level="warn")
DEV_DEBUG = Profile("dev_debug", 2560, 0.4, 8, 10_000, adaptive=True, log_level="info", records_plans=True)
MEMORY_TIGHT = Profile("memory_tight", 1024, 0.4, 2, 1_000, adaptive=True, log_level="warn")

PROFILES = {profile.name: profile for profile in (PROD_FAST, DEV_DEBUG, MEMORY_TIGHT)}


def profile_named(name: str) -> Profile:
    """The profile of this name."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InputError(f"no profile is called {name!r}", hint=f"choose one of {', '.join(PROFILES)}") from None


BYTES_PER_PARTITION = 32 * 1024 * 1024
MAX_PARTITIONS = 256


def shuffle_partitions_for(size_bytes: int) -> int:
    """The number of shuffle partitions for data of this size; small ones cost more to plan than to compute."""
    return max(1, min(MAX_PARTITIONS, -(-size_bytes // BYTES_PER_PARTITION)))
