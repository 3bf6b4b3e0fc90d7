"""What Spark, delta-rs and the disk refuse, told as the errors of this program: one line, and what to do.

Failures nobody can act on (a bug, a wrong query) pass through unchanged, with their traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from codeanatomy.errors import CodeAnatomyError, MachineError, StateError
from codeanatomy.store.location import StateLocation

# Spark and delta-rs hand on the operating system's words, not its error numbers.
_REFUSALS = {
    "no space left on device": "no space left on",
    "disk quota exceeded": "disk quota exceeded on",
    "permission denied": "no permission to use",
    "read-only file system": "read-only file system at",
    "not a directory": "not a directory:",
    "file exists": "a file is in the way at",
}


def _refusal(error: BaseException, location: StateLocation) -> MachineError | None:
    words = str(error).lower()
    for phrase, told in _REFUSALS.items():
        if phrase in words:
            return MachineError(f"{told} {location.uri}: make room or choose another place with --state")
    return None


@contextmanager
def writing(location: StateLocation) -> Iterator[None]:
    """Tell a full disk, missing rights and a lost race as such."""
    try:
        yield
    except CodeAnatomyError:
        raise
    except Exception as error:
        if isinstance(error, CommitFailedError) or "table already exists" in str(error):
            raise StateError(f"another build wrote to {location.uri} at the same time: run again") from error
        refusal = _refusal(error, location)
        if refusal is None:
            raise
        raise refusal from error


@contextmanager
def reading(location: StateLocation) -> Iterator[None]:
    """Tell an unreadable state as damaged."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError, ValueError, KeyError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise _refusal(error, location) or StateError(
            f"the state at {location.uri} is damaged ({first_line}): delete it and build again"
        ) from error
