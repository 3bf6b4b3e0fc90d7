"""Read files of the analysed tree, which nobody has vouched for.

Never follows a link in the last component, never blocks on a fifo, never reads past a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_regular(path: Path | bytes, limit: int) -> tuple[bytes, os.stat_result]:
    """At most `limit` bytes of a regular file, and its stat from before they were read; OSError for anything else."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        return stream.read(min(status.st_size, limit)), status


def read_optional(path: Path | bytes, limit: int) -> bytes | None:
    """The bytes of a small regular file, or None when it is missing, linked, unreadable or larger than `limit`."""
    try:
        content, status = read_regular(path, limit)
    except (OSError, ValueError):  # ValueError: a name with a NUL byte
        return None
    return content if status.st_size <= limit else None
