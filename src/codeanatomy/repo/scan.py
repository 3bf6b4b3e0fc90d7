"""Walk a tree and say which Python files it has and what is in them.

What counts: `.py`, `.pyi`, `.pyw`, and executable files without a dot in their name whose first line
names Python. What does not: what git ignores (every `.gitignore` in the tree and `.git/info/exclude`;
not the user's global file, which would make the result depend on the machine), what the options
exclude, `.git`, `__pycache__`, the state directory, virtual environments.

Links are never followed: a target inside the tree is already seen under its own name, one outside is
none of ours. Devices, sockets and fifos are never opened. A file that cannot be read is part of the
snapshot with a status; nothing in the tree makes a scan fail.

A scan writes nothing and executes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from codeanatomy.errors import InputError
from codeanatomy.repo.git import info_exclude
from codeanatomy.repo.ignore import RulesAt, parse_rules, pattern_rules
from codeanatomy.repo.reading import MAX_FILE_BYTES, read_optional, read_regular
from codeanatomy.repo.snapshot import (
    ScannedFile,
    Skipped,
    SkipReason,
    Snapshot,
    Stamp,
    StatCache,
    file_id,
    snapshot_id,
)

_SUFFIXES = (b".py", b".pyi", b".pyw")
_PYTHON_NAMES = tuple(suffix.decode() for suffix in _SUFFIXES)
_DECIDING_NAMES = frozenset({".gitignore", "pyvenv.cfg", "codeanatomy.toml", "pyproject.toml", "setup.cfg"})
_SHEBANG = re.compile(rb"#![^\n]*\b(?:python|pypy)[0-9.]*(?:\s|$)")
_SHEBANG_BYTES = 256
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_NEVER_WALKED = frozenset({b".git", b"__pycache__"})
_NOT_APPLIED = "its rules are not applied: it is no file that can be read, or over a MiB of rules would apply here"


IGNORE_BYTES = 1 << 20
"""The most that the ignore files which apply to one path may be long together; of one beyond that, no rule applies."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to scan. Patterns are written as in a `.gitignore` at the top of the tree.

    `exclude` has the last word over the ignore files, so `!pattern` brings back what they drop. When
    `include` is given, only files that it, or a directory above them, matches are kept.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    repo_id: str = ""
    state_dir: Path | None = None
    max_file_bytes: int = MAX_FILE_BYTES
    virtual_environments: bool = False


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory still to be walked; `path` is empty for the top, else it ends with a slash.

    Of many directories side by side, all share the rules of the one `above`: what they mean here is known once it is
    this directory's turn.
    """

    path: bytes
    above: _Rules
    included: bool

    def rules(self) -> _Rules:
        """The rules of the ignore files above."""
        name = self.path[self.path.rfind(b"/", 0, -1) + 1 : -1]
        return self.above.below(name) if name else self.above


@dataclass(frozen=True, slots=True)
class _Rules:
    """All rules that apply in a directory; of the ignore files, those of the nearest come first."""

    exclude: RulesAt
    ignore: tuple[RulesAt, ...]
    include: RulesAt

    def below(self, name: bytes) -> _Rules:
        """The same rules in the directory that has this name."""
        return _Rules(
            self.exclude.below(name), tuple(each.below(name) for each in self.ignore), self.include.below(name)
        )

    def room(self) -> int:
        """How long another ignore file may be."""
        return IGNORE_BYTES - sum(each.rule_set.size for each in self.ignore)

    def dropping(self, name: bytes, *, is_directory: bool) -> str | None:
        """The pattern that drops what has this name, with where it stands, or None."""
        for each in (self.exclude, *self.ignore):
            rule = each.decide(name, is_directory=is_directory)
            if rule is not None:
                return None if rule.negated else f"{rule.text} ({each.rule_set.source})"
        return None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A regular file whose name says that it is Python, or, without a suffix, does not say."""

    path: str
    stamp: Stamp
    needs_shebang: bool


def scan(
    root: Path,
    options: ScanOptions,
    previous: StatCache,
    *,
    progress: Callable[[int], None] | None = None,
) -> Snapshot:
    """Scan the tree at `root`; `progress` is told the number of files after each of them."""
    top = checked_root(root)
    started_ns = time.time_ns()
    files: list[ScannedFile] = []
    skipped: list[Skipped] = []
    entries: dict[str, tuple[Stamp, str]] = {}
    for found in _walk(top, options):
        if isinstance(found, Skipped):
            skipped.append(found)
            continue
        known = previous.content_id(found.path, found.stamp)
        if known is None and found.needs_shebang and not _has_shebang(top, found.path):
            continue
        file, stamp = _identify(top, found, known, options)
        files.append(file)
        if file.content_id is not None:
            entries[file.path] = stamp, file.content_id
        if progress is not None:
            progress(len(files))
    files.sort(key=lambda file: file.path)
    skipped.sort(key=lambda skip: skip.path)
    return Snapshot(tuple(files), tuple(skipped), snapshot_id(files, options.repo_id), StatCache(started_ns, entries))


def walked_directories(root: Path, options: ScanOptions) -> list[Path]:
    """The directories that a scan looks into; a change anywhere else does not matter to it."""
    top = checked_root(root)
    entered: list[bytes] = []
    for _ in _walk(top, options, entered.append):
        pass
    return [top / os.fsdecode(path) for path in entered]


def may_matter(name: str) -> bool:
    """Whether a file of this name, in a directory that is walked, can be of the snapshot or decide what is."""
    return "." not in name or name.endswith(_PYTHON_NAMES) or name in _DECIDING_NAMES


def read_contents(root: Path, files: Iterable[ScannedFile]) -> Iterator[tuple[ScannedFile, bytes | None]]:
    """Each distinct content once, with the first file that still has it.

    Bytes are None for a file that vanished or changed since the scan: scan again. Files without a
    content are passed over.
    """
    delivered: set[str] = set()
    for file in files:
        if file.content_id is None or file.content_id in delivered:
            continue
        try:
            content, status = read_regular(_location(root, file.path), file.size)
        except OSError:
            yield file, None
            continue
        if status.st_size != file.size or hashlib.sha256(content).hexdigest() != file.content_id:
            yield file, None
            continue
        delivered.add(file.content_id)
        yield file, content


def _location(root: Path, path: str) -> bytes:
    """Where a file is. Bytes, because a path means the same bytes whatever the locale."""
    return os.path.join(os.fsencode(root), path.encode())  # noqa: PTH118


def checked_root(root: Path) -> Path:
    """The directory of a repository, resolved; refused if there is none that can be read."""
    try:
        is_directory = stat.S_ISDIR(root.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise InputError(f"no such directory: {root}", hint="give the path of the repository to analyse") from error
    except OSError as error:
        raise InputError(f"cannot open {root}: {_reason(error)}", hint="give a directory that can be read") from error
    if not is_directory:
        raise InputError(f"not a directory: {root}", hint="give the directory of the repository, not a file in it")
    if not os.access(root, os.R_OK | os.X_OK):
        raise InputError(f"cannot read the directory {root}", hint="check its permissions")
    return root.resolve()


def _identify(root: Path, found: _Candidate, known: str | None, options: ScanOptions) -> tuple[ScannedFile, Stamp]:
    """The file, read unless its content is known, and the stamp it had before it was read."""
    identity = file_id(found.path, options.repo_id)
    stamp, limit = found.stamp, options.max_file_bytes
    if stamp.size <= limit and known is None:
        try:
            content, status = read_regular(_location(root, found.path), limit)
        except OSError as error:
            return ScannedFile(found.path, identity, None, stamp.size, "unreadable", _reason(error)), stamp
        stamp, known = Stamp.of(status), hashlib.sha256(content).hexdigest()
    if stamp.size > limit:
        return ScannedFile(found.path, identity, None, stamp.size, "too_large", f"larger than {limit} bytes"), stamp
    return ScannedFile(found.path, identity, known, stamp.size, "ok"), stamp


def _has_shebang(root: Path, path: str) -> bool:
    try:
        start, _ = read_regular(_location(root, path), _SHEBANG_BYTES)
    except OSError:
        return False
    return _SHEBANG.match(start) is not None


def _walk(
    root: Path, options: ScanOptions, entered: Callable[[bytes], None] | None = None
) -> Iterator[_Candidate | Skipped]:
    """Every candidate that no rule drops, and what was skipped on the way, in no particular order.

    `entered` is told the path of each directory that is looked into.
    """
    top = _location(root, "")
    state = _inside(root, options.state_dir)
    outermost = _Rules(
        exclude=pattern_rules(options.exclude, "exclude").start(),
        ignore=(parse_rules(info_exclude(root), ".git/info/exclude").start(),),
        include=pattern_rules(options.include, "include").start(),
    )
    pending = [_Directory(b"", outermost, included=not options.include)]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(top + directory.path) as listing:
                entries = {entry.name: entry for entry in listing}
        except OSError as error:
            yield _skip(directory.path, "unreadable", _reason(error))
            continue
        if b"pyvenv.cfg" in entries and directory.path and not options.virtual_environments:
            yield _skip(directory.path, "virtual_environment")
            continue
        if entered is not None:
            entered(directory.path)
        rules = directory.rules()
        if b".gitignore" in entries:
            ignore_file = directory.path + b".gitignore"
            text = read_optional(top + ignore_file, rules.room())
            if text is None:
                yield _skip(ignore_file, "unreadable", _NOT_APPLIED)
            else:
                rules = replace(rules, ignore=(parse_rules(text, ignore_file.decode()).start(), *rules.ignore))
        for name, entry in entries.items():
            path = directory.path + name
            kind = _kind(entry)
            if name in _NEVER_WALKED or path == state or (kind == "file" and not _may_be_python(entry)):
                continue
            is_directory = kind == "directory"
            if dropped := rules.dropping(name, is_directory=is_directory):
                yield _skip(path, "ignored", dropped)
                continue
            rule = rules.include.decide(name, is_directory=is_directory)
            included = directory.included if rule is None else not rule.negated
            if not included and not is_directory:
                continue
            if not _is_utf8(name):
                yield _skip(path, "name_not_utf8", "rename it to have it analysed")
            elif kind == "directory":
                pending.append(_Directory(path + b"/", rules, included))
            elif kind == "file":
                yield _candidate(path, entry)
            else:
                yield _skip(path, kind)


def _kind(entry: os.DirEntry[bytes]) -> Literal["directory", "file"] | SkipReason:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_file(follow_symlinks=False):
            return "file"
        return "directory" if entry.is_dir(follow_symlinks=False) else "special"
    except OSError:
        return "unreadable"


def _may_be_python(entry: os.DirEntry[bytes]) -> bool:
    """Whether a file's name says Python, or says nothing and the file can be run."""
    if entry.name.endswith(_SUFFIXES) and entry.name not in _SUFFIXES:
        return True
    if b"." in entry.name:
        return False
    try:
        return bool(entry.stat(follow_symlinks=False).st_mode & _EXECUTABLE)
    except OSError:
        return False


def _candidate(path: bytes, entry: os.DirEntry[bytes]) -> _Candidate | Skipped:
    try:
        stamp = Stamp.of(entry.stat(follow_symlinks=False))
    except OSError as error:
        return _skip(path, "unreadable", _reason(error))
    return _Candidate(path.decode(), stamp, needs_shebang=b"." not in entry.name)


def _inside(root: Path, directory: Path | None) -> bytes | None:
    """The path of a directory relative to the root, or None if it is not inside."""
    if directory is None or not (resolved := directory.resolve()).is_relative_to(root):
        return None
    return os.fsencode(resolved.relative_to(root))


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _skip(path: bytes, reason: SkipReason, detail: str = "") -> Skipped:
    return Skipped(path.removesuffix(b"/").decode("utf-8", "backslashreplace"), reason, detail)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
