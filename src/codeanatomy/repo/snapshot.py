"""The result of a scan, as values. No file is read here except the stat cache."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from codeanatomy.catalogue.ids import short_hash

FileStatus = Literal["ok", "too_large", "unreadable"]
SkipReason = Literal["ignored", "link", "special", "name_not_utf8", "virtual_environment", "unreadable"]

# Timestamps of some file systems (FAT, old network ones) have steps of two seconds.
_GRANULARITY_NS = 2_000_000_000
_CACHE_VERSION = 1


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A Python file of the tree; `content_id` is the sha256 of its bytes, None unless the status is `ok`."""

    path: str
    file_id: str
    content_id: str | None
    size: int
    status: FileStatus
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path that was skipped, and why. A directory stands for everything below it."""

    path: str
    reason: SkipReason
    detail: str = ""


class Stamp(NamedTuple):
    """The attributes of a file that show a change without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """The stamp in a stat result."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@dataclass(frozen=True, slots=True)
class StatCache:
    """The stamp and content of every file that an earlier scan read, so that the next one need not read it."""

    scanned_at_ns: int = 0
    entries: Mapping[str, tuple[Stamp, str]] = field(default_factory=dict)

    def content_id(self, path: str, stamp: Stamp) -> str | None:
        """The content of a file that has not changed since, or None if it may have.

        A file that was modified during the scan or shortly before it may change again with the same
        timestamps (git's "racy" entries), so such a file is read again.
        """
        known = self.entries.get(path)
        if known is None or known[0] != stamp:
            return None
        return None if self._is_racy(stamp) else known[1]

    def has_doubts(self) -> bool:
        """Whether some file was modified so shortly before the scan that every scan must read it again."""
        return any(self._is_racy(stamp) for stamp, _ in self.entries.values())

    def _is_racy(self, stamp: Stamp) -> bool:
        return max(stamp.mtime_ns, stamp.ctime_ns) >= self.scanned_at_ns - _GRANULARITY_NS

    def save(self, path: Path) -> None:
        """Replace the file at `path`, atomically."""
        body = json.dumps(
            {
                "version": _CACHE_VERSION,
                "scanned_at_ns": self.scanned_at_ns,
                "paths": list(self.entries),
                "stamps": [stamp for stamp, _ in self.entries.values()],
                "content_ids": [content_id for _, content_id in self.entries.values()],
            },
            separators=(",", ":"),
        ).encode()
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(hashlib.sha256(body).digest() + body)
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    @classmethod
    def load(cls, path: Path) -> StatCache:
        """The cache saved at `path`; an empty one if there is none, or it is damaged or of another version."""
        try:
            content = path.read_bytes()
            digest, body = content[:32], content[32:]
            if hashlib.sha256(body).digest() != digest:
                return cls()
            saved = json.loads(body)
            if saved["version"] != _CACHE_VERSION:
                return cls()
            entries = zip(map(Stamp._make, saved["stamps"]), saved["content_ids"], strict=True)
            return cls(saved["scanned_at_ns"], dict(zip(saved["paths"], entries, strict=True)))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The Python files of a tree at one moment, sorted by path, under an id that depends on nothing else.

    `stat_cache` is what to give to the next scan.
    """

    files: tuple[ScannedFile, ...]
    skipped: tuple[Skipped, ...]
    snapshot_id: str
    stat_cache: StatCache = field(default_factory=StatCache, compare=False, repr=False)


def file_id(path: str, repo_id: str = "") -> str:
    """The id of a path in a repository."""
    name = f"{repo_id}\0{path}" if repo_id else path
    return short_hash(name.encode())


def snapshot_id(files: Iterable[ScannedFile], repo_id: str = "") -> str:
    """The id of a set of files, independent of their order."""
    digest = hashlib.sha256(f"{repo_id}\0".encode())
    for file in sorted(files, key=lambda file: file.path):
        known = (
            file.content_id or f"{file.size} {file.detail}"
        )  # a file that was not read is identified by what is known
        digest.update(f"{file.path}\0{file.status}\0{known}\0".encode())
    return digest.hexdigest()
