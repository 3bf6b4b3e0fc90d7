"""Read files of the analysed tree, which are untrusted, and files that the user names.

Never blocks on a fifo, never reads past a limit. A link in the last component is followed only if the user named it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

MAX_FILE_BYTES = 10 << 20
"""Larger files are listed, not read: they are data, or generated."""

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(path: Path | bytes, *, follow_link: bool = False) -> io.BufferedReader:
    """Open a regular file; OSError for anything else."""
    stream = os.fdopen(os.open(path, _FLAGS | (0 if follow_link else os.O_NOFOLLOW)), "rb")
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "Not a regular file")


def read_regular(path: Path | bytes, limit: int) -> tuple[bytes, os.stat_result]:
    """At most `limit` bytes of a regular file, and its stat from before they were read; OSError for anything else."""
    with open_regular(path) as stream:
        status = os.fstat(stream.fileno())
        return stream.read(min(status.st_size, limit)), status


def read_named(path: Path, limit: int) -> bytes:
    """A regular file that the user named, or a link to one; OSError for anything else, and for one that is larger."""
    with open_regular(path, follow_link=True) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"Larger than {limit:,} bytes")
    return content


def read_optional(path: Path | bytes, limit: int) -> bytes | None:
    """The bytes of a small regular file, or None when it is missing, linked, unreadable or larger than `limit`."""
    try:
        content, status = read_regular(path, limit)
    except (OSError, ValueError):  # ValueError: a name with a NUL byte
        return None
    return content if status.st_size <= limit else None
