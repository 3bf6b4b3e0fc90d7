"""Versions of real trees, in order: releases from the package index, commits from a git repository.

Between two releases lie many commits that nobody here can fetch; `in_small_steps` makes up some that lead from one to
the other, each a few of the places that differ.

Nothing of a tree is executed. Releases are wheels, which are unpacked and neither built nor installed; commits are read
object by object, without a checkout. Links are left out, as builds never follow them.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path, PurePosixPath
from random import Random
from zipfile import ZipFile

from bench.builds import CORPORA

RELEASES = Path(__file__).with_name("releases.txt")

_PINNED = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")
_WHEEL_FOR_ANY = ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--abi", "none"]
_NO_FILES = frozenset({"120000", "160000"})
"""Modes of links and of other repositories inside a tree."""


@dataclass(frozen=True)
class Blob:
    """A file of a version: what names its content, and how to get it."""

    content: str
    executable: bool
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Version:
    """A whole tree, by path."""

    name: str
    files: Mapping[str, Blob]
    commit: str | None = None


@dataclass(frozen=True)
class Release:
    """A line of the list: a wheel, pinned by its hash."""

    name: str
    version: str
    requirement: str


def put(root: Path, before: Version | None, after: Version) -> None:
    """Turn the tree of `before` at `root` into that of `after`; what is the same is not touched."""
    known = before.files if before else {}
    for path in known.keys() - after.files.keys():
        place = root / path
        place.unlink()
        for directory in place.parents:
            if directory == root or any(directory.iterdir()):
                break
            directory.rmdir()
    for path, blob in after.files.items():
        old = known.get(path)
        place = root / path
        if old is None or old.content != blob.content:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(blob.read())
        if blob.executable != (old is not None and old.executable):
            place.chmod(0o755 if blob.executable else 0o644)
    if after.commit:
        (root / ".git").mkdir(exist_ok=True)
        (root / ".git" / "HEAD").write_text(f"{after.commit}\n", encoding="ascii")


def releases() -> dict[str, list[Release]]:
    """The releases of each package, in order."""
    packages: dict[str, list[Release]] = {}
    for line in RELEASES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            pinned = _PINNED.fullmatch(line)
            if pinned is None:
                raise ValueError(f"{RELEASES.name}: {line!r} is not a pinned release")
            packages.setdefault(pinned["name"], []).append(Release(pinned["name"], pinned["version"], line))
    return packages


def fetch(release: Release) -> Path:
    """The unpacked release, which is kept; pip checks the hash of what it fetched."""
    home = CORPORA / "releases"
    root = home / f"{release.name}-{release.version}"
    if not root.exists():
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as scratch:
            wanted = Path(scratch, "requirements.txt")
            wanted.write_text(release.requirement + "\n", encoding="utf-8")
            options = ["--no-deps", *_WHEEL_FOR_ANY, "--ignore-requires-python", "--require-hashes"]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *options]
            subprocess.run(
                [*command, "-r", str(wanted), "--dest", scratch], check=True, stderr=subprocess.PIPE, text=True
            )
            (wheel,) = Path(scratch).glob("*.whl")
            unpack(wheel, Path(scratch, "tree"))
            Path(scratch, "tree").rename(root)
    return root


def unpack(wheel: Path, root: Path) -> None:
    """Write the files of a wheel below `root`; a name that leads elsewhere, or a link, is refused."""
    with ZipFile(wheel) as archive:
        for member in archive.infolist():
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ValueError(f"{wheel.name}: {member.filename} is not a regular file")
            place = root / _inside(member.filename)
            if not member.is_dir():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read(member))


def unpacked(name: str, root: Path) -> Version:
    """An unpacked release."""
    files = {}
    for place in sorted(root.rglob("*")):
        if place.is_file() and not place.is_symlink():
            digest = hashlib.sha256(place.read_bytes()).hexdigest()
            files[place.relative_to(root).as_posix()] = Blob(digest, executable=False, read=place.read_bytes)
    return Version(name, files)


def commits(repository: Path, count: int) -> Iterator[Version]:
    """The last `count` commits along first parents, oldest first, after the one they start from."""
    arguments = ["rev-list", "--first-parent", "--reverse", f"--max-count={count + 1}", "HEAD"]
    with _objects(repository) as read:
        for commit in _git(repository, *arguments).decode().split():
            files = {}
            for entry in _git(repository, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
                mode, _, content = entry[: entry.index(b"\t")].decode().split()
                if mode not in _NO_FILES:
                    path = _inside(os.fsdecode(entry[entry.index(b"\t") + 1 :]))
                    files[path] = Blob(content, mode == "100755", partial(read, content))
            yield Version(commit[:12], files, commit)


def in_small_steps(versions: Iterable[Version], count: int) -> Iterator[Version]:
    """The versions, each reached in `count` steps: all but the last change a few places in modules, by chance."""
    before: Version | None = None
    for version in versions:
        if before is not None:
            yield from _small_steps(before, version, count - 1)
        yield version
        before = version


def _small_steps(before: Version, after: Version, count: int) -> Iterator[Version]:
    chance = Random(f"{before.name} {after.name}")  # the same steps every time
    modules = {path for path in before.files.keys() | after.files.keys() if path.endswith((".py", ".pyi"))}
    hunks = {path: _hunks(before.files.get(path), after.files.get(path)) for path in sorted(modules)}
    places = [(path, number) for path, of_path in hunks.items() for number in range(len(of_path))]
    chance.shuffle(places)
    done: dict[str, set[int]] = {}
    files = dict(before.files)
    for step in range(1, count + 1):
        for path, number in [places.pop() for _ in range(min(chance.randint(1, 4), len(places)))]:
            done.setdefault(path, set()).add(number)
            new = _with_some(before.files.get(path), after.files.get(path), hunks[path], done[path])
            files = {other: blob for other, blob in files.items() if other != path} | ({path: new} if new else {})
        yield Version(f"{after.name} step {step}", files)


Hunk = tuple[int, int, list[bytes]]
"""Lines of a file that are replaced: from, to, and what by."""


def _hunks(before: Blob | None, after: Blob | None) -> list[Hunk]:
    """What differs between two contents; a file that comes or goes is one place."""
    if before is None or after is None:
        return [(0, 0, [])]
    if before.content == after.content:
        return []
    old, new = (blob.read().splitlines(keepends=True) for blob in (before, after))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(start, end, new[first:last]) for tag, start, end, first, last in codes if tag != "equal"]


def _with_some(before: Blob | None, after: Blob | None, hunks: Sequence[Hunk], numbers: Collection[int]) -> Blob | None:
    """A file with some of its changes; of one that comes or goes, all."""
    if before is None or after is None:
        return after
    lines = before.read().splitlines(keepends=True)
    for start, end, new in (hunks[number] for number in sorted(numbers, reverse=True)):
        lines[start:end] = new
    text = b"".join(lines)
    return Blob(hashlib.sha256(text).hexdigest(), before.executable, lambda: text)


def _inside(path: str) -> str:
    """The path, if it stays below the directory it is relative to and is none of git's own."""
    parts = PurePosixPath(path).parts
    if not parts or parts[0] == "/" or ".." in parts or ".git" in map(str.lower, parts):
        raise ValueError(f"{path!r} does not belong into a tree")
    return path


@contextmanager
def _objects(repository: Path) -> Iterator[Callable[[str], bytes]]:
    """A function from the name of an object to its bytes."""
    command = ["git", "-C", str(repository), "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()) as process:
        assert process.stdin
        assert process.stdout
        asked, answered = process.stdin, process.stdout

        def read(name: str) -> bytes:
            asked.write(f"{name}\n".encode())
            asked.flush()
            header = answered.readline().split()
            if len(header) != 3:
                raise ValueError(f"{repository} has no object {name}")
            return answered.read(int(header[2]) + 1)[:-1]

        yield read


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=_environment()).stdout


def _environment() -> dict[str, str]:
    """No other repository than the one named, and nothing fetched or locked on its behalf."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**own, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
