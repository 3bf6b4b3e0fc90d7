"""Read files of git without running git: nothing in the analysed tree may cause execution.

A `.git` file may point anywhere; only small text files are read there, and only a well-formed commit id,
ignore patterns or the address of a remote are returned.
"""

from __future__ import annotations

import re
from pathlib import Path

from codeanatomy.repo.reading import read_optional

_SMALL = 4096
_PACKED_REFS = 64 << 20
_EXCLUDE = 1 << 20
_CONFIG = 1 << 20
_COMMIT = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_REF = re.compile(rb"refs/(?!.*\.\.)[^\0\n]+")
_SECTION = re.compile(r'\s*\[(?:remote\s+"(?P<remote>[^"]*)"|[^\]]*)\]', re.IGNORECASE)
_URL = re.compile(r"\s*url\s*=\s*(\S.*)", re.IGNORECASE)
_MAX_SYMBOLIC_REFS = 5


def head_commit(root: Path) -> str | None:
    """The commit checked out at `root`, or None if that is not a git work tree or has no commit yet."""
    directories = _git_directories(root)
    if directories is None:
        return None
    value = read_optional(directories[0] / "HEAD", _SMALL)
    for _ in range(_MAX_SYMBOLIC_REFS):
        if value is None:
            return None
        value = value.strip()
        if _COMMIT.fullmatch(value):
            return value.decode()
        name = value.removeprefix(b"ref:").strip()
        if name == value or not _REF.fullmatch(name):
            return None
        value = _ref_value(name, directories)
    return None


def info_exclude(root: Path) -> bytes:
    """The text of the repository's own ignore file outside the tree, `info/exclude`."""
    directories = _git_directories(root)
    return (read_optional(directories[1] / "info" / "exclude", _EXCLUDE) or b"") if directories else b""


def git_home(root: Path) -> Path | None:
    """The git directory that all work trees of the repository at `root` share, or None if it is not one."""
    directories = _git_directories(root)
    return directories[1].resolve() if directories else None


def lock_files(root: Path) -> tuple[Path, ...]:
    """The files that exist while git changes the work tree at `root` or what is checked out there."""
    directories = _git_directories(root)
    return (directories[0] / "index.lock", directories[0] / "HEAD.lock") if directories else ()


def remote_url(root: Path) -> str | None:
    """The address of the remote `origin`, or else of the first one, as the repository's configuration has it."""
    directories = _git_directories(root)
    text = read_optional(directories[1] / "config", _CONFIG) if directories else None
    urls: dict[str, str] = {}
    remote = None
    for line in (text or b"").decode("utf-8", "replace").splitlines():
        if section := _SECTION.match(line):
            remote = section["remote"]
        elif remote is not None and (url := _URL.match(line)):
            urls.setdefault(remote, url[1].strip().strip('"'))
    return urls.get("origin") or next(iter(urls.values()), None)


def _git_directories(root: Path) -> tuple[Path, Path] | None:
    """The directory of this work tree, and the one it shares with the repository's other work trees."""
    own = root / ".git"
    pointer = read_optional(own, _SMALL)
    if pointer is not None:
        own = _pointed(root, pointer.removeprefix(b"gitdir:")) if pointer.startswith(b"gitdir:") else own
    if own.is_symlink() or not own.is_dir():
        return None
    common = read_optional(own / "commondir", _SMALL)
    return own, own if common is None else _pointed(own, common)


def _pointed(base: Path, text: bytes) -> Path:
    return base / text.strip().decode("utf-8", "surrogateescape").replace("\0", "")


def _ref_value(name: bytes, directories: tuple[Path, Path]) -> bytes | None:
    """The value of a ref: from its own file, or else from the packed refs."""
    for directory in directories:
        if (value := read_optional(_pointed(directory, name), _SMALL)) is not None:
            return value
    packed = read_optional(directories[1] / "packed-refs", _PACKED_REFS) or b""
    found = re.search(rb"^([0-9a-f]+) %s$" % re.escape(name), packed, re.MULTILINE)
    return found[1] if found else None
