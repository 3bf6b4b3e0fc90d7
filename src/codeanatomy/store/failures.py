"""What Spark, delta-rs and the disk refuse, told as the errors of this program: one line, and what to do.

Failures nobody can act on (a bug, a wrong query) pass through unchanged, with their traceback.
"""

from __future__ import annotations

import errno
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

_OUT_OF_FILES = ("too many open files", "too many files open")

# What Spark says of a file that is cut short, is no Parquet file, or has a page that its checksum does not match.
_DAMAGE = (
    "crc checksum verification failed",
    "is not a parquet file",
    "failed_read_file",
    "could not read footer",
)

_OF_THE_STATE = {None, errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENAMETOOLONG}
"""Numbers of errors that what is on disk explains; any other is the machine's."""


def machine_failure(error: BaseException, place: str) -> MachineError | None:
    """The error as a failure of the machine that has `place`, if it is one: nothing is wrong with what is stored."""
    words = str(error).lower()
    if any(phrase in words for phrase in _OUT_OF_FILES):
        return MachineError(f"too many open files while using {place}: raise the limit with `ulimit -n 4096`")
    for phrase, told in _REFUSALS.items():
        if phrase in words:
            return MachineError(f"{told} {place}: make room or choose another place with --state")
    return None


@contextmanager
def writing(location: StateLocation) -> Iterator[None]:
    """Tell a full disk, missing rights, a damaged file and a lost race as such."""
    try:
        yield
    except CodeAnatomyError:
        raise
    except Exception as error:
        if isinstance(error, CommitFailedError) or "table already exists" in str(error):
            raise StateError(f"another build wrote to {location.uri} at the same time: run again") from error
        if isinstance(error, DeltaError) or any(phrase in str(error).lower() for phrase in _DAMAGE):
            raise _unreadable(error, location) from error
        refusal = machine_failure(error, location.uri)
        if refusal is None:
            raise
        raise refusal from error


@contextmanager
def reading(location: StateLocation) -> Iterator[None]:
    """Tell an unreadable state as damaged."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(error, location) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of delta-rs, about a log it did not expect
            raise
        raise _unreadable(error, location) from error


def _unreadable(error: BaseException, location: StateLocation) -> CodeAnatomyError:
    if failure := machine_failure(error, location.uri):
        return failure
    if isinstance(error, OSError) and error.errno not in _OF_THE_STATE:
        return MachineError(f"cannot read {location.uri}: {error.strerror or error}")
    return damaged(location, str(error).splitlines()[0] if str(error) else type(error).__name__)


def damaged(location: StateLocation, how: str) -> StateError:
    """The error of a state that cannot be used as it is."""
    return StateError(f"the state at {location.uri} is damaged ({how}): delete it and build again")
