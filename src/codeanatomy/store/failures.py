"""Translate failures of Spark, delta-rs and the operating system into errors of this program, with a hint what to do.

Failures that a user cannot act on (a bug, a wrong query) pass through unchanged, with their traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from codeanatomy.engine.causes import cause_of
from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
from codeanatomy.store.location import StateLocation

# Spark and delta-rs pass on the message of the operating system, not the error number.
_REFUSALS = {
    "no space left on device": "no space left on",
    "disk quota exceeded": "disk quota exceeded on",
    "permission denied": "no permission to use",
    "read-only file system": "read-only file system at",
    "not a directory": "not a directory:",
    "file exists": "a file is in the way at",
}

REBUILD = "delete it and build again"
"""Hint for a damaged state: everything in it is derived from the repository."""

REACH = "check its address, and the credentials given with --storage-option"
"""What to do about an object store that does not answer."""

_OUT_OF_FILES = ("too many open files", "too many files open")

# Messages of Spark for a file that is truncated, not Parquet, or has a page with a wrong checksum.
_DAMAGE = (
    "crc checksum verification failed",
    "is not a parquet file",
    "failed_read_file",
    "could not read footer",
)

_OF_THE_STATE = {None, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENAMETOOLONG}
"""Error numbers that the content of a state can cause; others are failures of the machine."""


def machine_failure(error: BaseException, place: str) -> MachineError | None:
    """The error as a failure of the machine at `place`, if it is one: the stored data is intact."""
    words = str(error).lower()
    if any(phrase in words for phrase in _OUT_OF_FILES):
        return MachineError(f"too many open files while using {place}", hint="raise the limit with `ulimit -n 4096`")
    for phrase, message in _REFUSALS.items():
        if phrase in words:
            return MachineError(f"{message} {place}", hint="make room or choose another place with --state")
    return None


@contextmanager
def writing(location: StateLocation) -> Iterator[None]:
    """Translate a full disk, missing permissions, a damaged file and a concurrent write."""
    try:
        yield
    except CodeAnatomyError:
        raise
    except Exception as error:
        if isinstance(error, CommitFailedError) or "table already exists" in str(error):
            raise StateError(f"another build wrote to {location.uri} at the same time", hint="run again") from error
        is_damage = isinstance(error, DeltaError) or any(phrase in str(error).lower() for phrase in _DAMAGE)
        if is_damage or _is_out_of_reach(error, location):
            raise _unreadable(error, location) from error
        refusal = machine_failure(error, location.uri)
        if refusal is None:
            raise
        raise refusal from error


@contextmanager
def reading(location: StateLocation) -> Iterator[None]:
    """Translate failures to read a state: it is damaged, or the machine failed."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(error, location) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of delta-rs, on an unexpected log
            raise
        raise _unreadable(error, location) from error


def _unreadable(error: BaseException, location: StateLocation) -> CodeAnatomyError:
    if failure := machine_failure(error, location.uri):
        return failure
    if "unknown scheme" in str(error).lower():
        return InputError(f"{location.uri} is on no kind of store that is known", hint="choose another with --state")
    if _is_out_of_reach(error, location):
        return MachineError(f"cannot reach {location.uri} ({cause_of(error)})", hint=REACH)
    if isinstance(error, OSError) and error.errno not in _OF_THE_STATE:
        return MachineError(f"cannot read {location.uri}: {error.strerror or error}")
    return damaged(location, cause_of(error))


def _is_out_of_reach(error: BaseException, location: StateLocation) -> bool:
    """Whether an object store refused or did not answer: that says nothing of what it stores."""
    return not location.is_local and isinstance(error, OSError) and not isinstance(error, FileNotFoundError)


def damaged(location: StateLocation, how: str) -> StateError:
    """The error of a state that cannot be used as it is."""
    return StateError(f"the state at {location.uri} is damaged ({how})", hint=REBUILD)
