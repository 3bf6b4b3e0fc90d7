"""The writer's lease: one process at a time writes a local state.

It is a lock of the kernel, so it ends with the process that holds it. An object store has no such lock: there the
commit to `builds` decides between two writers. Readers need no lease.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from codeanatomy.errors import StateError
from codeanatomy.store.delta import table_exists
from codeanatomy.store.failures import writing
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import check_everything, open_own_file
from codeanatomy.store.state import BUILDS


@dataclass(frozen=True)
class Lease:
    """Proof that the holder may write the state at `location`."""

    location: StateLocation


@contextmanager
def hold_lease(location: StateLocation) -> Iterator[Lease]:
    """Become the only writer of the state; an error that names the other writer if there is one."""
    if not location.is_local:
        yield Lease(location)
        return
    with writing(location):
        location.local_path.mkdir(parents=True, exist_ok=True)
        descriptor = open_own_file(location, "lease", os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"another build is writing this state{_holder(descriptor)}", hint="wait for it or stop it"
            ) from error
        with writing(location):
            if table_exists(location, BUILDS):  # otherwise it must be empty, which `create_state` checks
                check_everything(location)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _claim(), 0)
        yield Lease(location)
    finally:
        os.close(descriptor)


def _claim() -> bytes:
    claim = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        # In containers a user id often has no name.
        "user": os.environ.get("USER") or str(os.getuid()),
        "started_at": datetime.now(UTC).isoformat(),
    }
    return json.dumps(claim).encode()


def _holder(descriptor: int) -> str:
    try:
        claim = json.loads(os.pread(descriptor, 4096, 0))
        seconds = (datetime.now(UTC) - datetime.fromisoformat(claim["started_at"])).total_seconds()
        return f" (pid {int(claim['pid'])} of {claim['user']} on {claim['host']}, for {seconds:.0f} s)"
    except (ValueError, KeyError, TypeError, RecursionError):
        # The holder may not have written its claim yet.
        return ""
