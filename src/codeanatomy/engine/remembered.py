"""Values that are kept in the user's cache, each under a hash of everything it is made from.

A file that is missing, damaged or unreadable is no error: the value is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from codeanatomy import __version__
from codeanatomy.engine.directories import cache_directory

T = TypeVar("T")

_KEPT = 4
"""Versions of a value: more than one of this program can be installed."""

_DIGEST_BYTES = 32


def remembered(name: str, key: str, make: Callable[[], Any], read: Callable[[Any], T]) -> T:
    """What `read` makes of the JSON value that `make` gives, or gave to an earlier process under the same key."""
    path = cache_directory() / name / key
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = path.read_bytes()
        body = content[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() == content[:_DIGEST_BYTES]:
            return read(json.loads(body))
    body = json.dumps(make()).encode()
    with suppress(OSError):  # the next process makes it again, that is all
        _keep(path, hashlib.sha256(body).digest() + body)
    return read(json.loads(body))


def key_of(*packages: str, made_by: str) -> str:
    """A hash of the files of packages, and of the versions of this program, of Python and of the package `made_by`."""
    digest = hashlib.sha256(repr((__version__, platform.python_version(), made_by, version(made_by))).encode())
    for package in packages:
        for path, content in sorted(_files(resources.files(package), package)):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:32]


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{path}/{entry.name}")
        elif entry.name.endswith((".py", ".sql")):
            yield f"{path}/{entry.name}", entry.read_bytes()


def _keep(path: Path, content: bytes) -> None:
    """Write a file for this user alone, whole or not at all, and drop the oldest beside it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    by_age = sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in by_age[_KEPT:]:
        old.unlink(missing_ok=True)
