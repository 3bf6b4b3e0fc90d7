"""A pyrefly that stays: `check --watch` over a mirror of copies, which reports again only what an edit changed.

Nobody but us writes to the mirror, and only between two rounds. So what pyrefly has read is known, byte for byte; it
follows no link, and does not see a file that is half written.

It is an economy, not another source: wherever it could say something else than a run from scratch, or takes long, it
has no answer, and the caller runs pyrefly from scratch. That is so
    when files came, went or moved: modules get other numbers, which reports that are not written again do not have, and
    pyrefly does not always find a module that is new. It starts again, in the background;
    when a report mentions a module whose classes or functions got other numbers after it was written;
    when a round takes longer than a run from scratch, because an edit reaches half of the repository. It goes on.

Glossary
    round      pyrefly reads what changed in the mirror and reports on that; the list of modules is written last.
    marker     a file of ours beside the mirror, changed after all others: a round that reports it has seen them all.
    numbers    by which reports identify modules, classes and functions.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from codeanatomy.index.mirror import Mirror
from codeanatomy.index.process import IndexerError, StayingProcess
from codeanatomy.index.provider import IndexTask
from codeanatomy.index.pyrefly import LISTING, SHARD_BYTES, Pyrefly, check_command, empty_config, files_in, seconds_for
from codeanatomy.index.report import numbering

PATIENCE: Final = 3.0
"""Seconds that an update waits for a round; a run from scratch on one file takes about as long."""

MEMORY_BYTES: Final = 4 << 30
"""Of the process; it ends if it needs more."""

_PARTS: Final = ("definitions", "call_graphs", "type_of_expressions")
_ERRORS: Final = "errors.json"
_MARKER: Final = "marker.py"
_MENTION: Final = re.compile(
    rb'"module_id":(\d+)(?:,"module_name":"[^"]*","(?:class_id":|function_id":")([^",}]+))?',
)
"""A module in a report, and which of its classes or functions."""
_POLL: Final = 0.01

_Entry = Mapping[str, Any]
_Mention = tuple[int, str]
"""The number of a module, and that of a class or a function in it; empty for the module itself."""


class _OutOfDateError(Exception):
    """A file is no longer what the snapshot says."""


@dataclass(frozen=True)
class _Purpose:
    """What a process was started for; for anything else, another one is."""

    fingerprint: str
    root: Path
    modules: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, pyrefly: Pyrefly, task: IndexTask) -> _Purpose:
        readable = {file.path for file in task.files}
        modules = sorted((each.path, each.root, each.module_fqn) for each in task.modules if each.path in readable)
        return cls(pyrefly.fingerprint, task.root, tuple(modules))


@dataclass(frozen=True)
class Answer:
    """A report that has what is asked about: its folder, the names of its modules, what its list says of each file."""

    folder: Path
    names: Path
    mirror: Mirror
    files: Mapping[Path, _Entry]


class WarmPyrefly:
    """Keeps a process, its mirror and its reports, for one repository, in a folder that nobody else uses."""

    def __init__(self, place: Path) -> None:
        """Nothing is started until something is asked."""
        self._place = place
        self._running: _Running | None = None
        self._hopeless: _Purpose | None = None

    @property
    def rounds(self) -> int:
        """Rounds of the process that runs; 0 until it has reported."""
        return self._running.rounds if self._running else 0

    @property
    def pid(self) -> int | None:
        """The number of the process, if there is one."""
        return self._running.process.pid if self._running else None

    @property
    def memory_bytes(self) -> int:
        """Memory of the process, without its mirror and its reports."""
        return self._running.process.memory_bytes() if self._running else 0

    def close(self) -> None:
        """End the process and remove its files."""
        if self._running is not None:
            self._running.process.end()
            self._running = None
        shutil.rmtree(self._place, ignore_errors=True)

    def answer(self, pyrefly: Pyrefly, task: IndexTask) -> Answer | None:
        """What it says of the files that `task` asks about; None if a run from scratch has to."""
        purpose = _Purpose.of(pyrefly, task)
        if purpose == self._hopeless or sum(file.size for file in task.files) > SHARD_BYTES:
            return None
        if self._running is not None and self._running.purpose != purpose:
            self.close()
        try:
            if self._running is None:
                self._running = _Running.start(pyrefly, purpose, task, self._place)
                if task.only is not None:  # for a few files, a run from scratch is quicker than the first round
                    return None
            return self._running.answer(task)
        except _OutOfDateError:
            return None
        except (IndexerError, OSError, ValueError, KeyError):
            if not self.rounds:
                self._hopeless = purpose
            self.close()
            return None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let it not compete with a run from scratch."""
        process = self._running.process if self._running else None
        if process is not None:
            process.pause()
        try:
            yield
        finally:
            if process is not None:
                process.resume()


@dataclass
class _Running:
    """A process that was started, what it was given to read, and what it reported."""

    purpose: _Purpose
    mirror: Mirror
    process: StayingProcess
    place: Path
    held: dict[str, str]
    rounds: int = 0
    is_busy: bool = True
    modules: dict[int, _Entry] = field(default_factory=dict)
    files: dict[Path, _Entry] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    upset: dict[_Mention, int] = field(default_factory=dict)
    """Numbers that stand for something else, or nothing, since that round."""

    @classmethod
    def start(cls, pyrefly: Pyrefly, purpose: _Purpose, task: IndexTask, place: Path) -> _Running:
        """Copy the tree and start; the first round takes as long as a run on all files."""
        shutil.rmtree(place, ignore_errors=True)
        for folder in (place, place / "marker", place / "report"):
            folder.mkdir(mode=0o700)
        wanted = _contents(task)
        mirror = Mirror(task.root, place / "mirror", lambda path, link: _write(link, _read(task.root, path, wanted)))
        mirror.add(module for module in task.modules if module.path in wanted)
        (place / "modules.json").write_text(json.dumps(mirror.names(task.modules)), encoding="utf-8")
        config = empty_config(place)
        _write(place / "marker" / _MARKER, _mark(0))
        process = StayingProcess(
            [
                *check_command(pyrefly, config, mirror.trees, place / "out"),
                "--watch",
                *(str(tree) for tree in (*mirror.trees, place / "marker")),
            ],
            MEMORY_BYTES,
            cwd=place,
            env={"HOME": str(place), "TMPDIR": str(place)},
        )
        return cls(purpose, mirror, process, place, {path: wanted[path] for path in mirror.links})

    def answer(self, task: IndexTask) -> Answer | None:
        """Let it read what changed, and wait for its report."""
        ends = time.monotonic() + (PATIENCE if task.only is not None else seconds_for(task.files))
        if not self._settled(task, ends):
            return None
        wanted = _contents(task)
        changed = {path: _read(task.root, path, wanted) for path, held in self.held.items() if wanted[path] != held}
        if changed:
            self.is_busy = True
            for path, content in changed.items():
                self._replace(self.mirror.links[path], content)
                self.held[path] = wanted[path]
            self._replace(self.place / "marker" / _MARKER, _mark(self.rounds))
            if not self._settled(task, ends):
                return None
        asked = [link for path, link in self.mirror.links.items() if task.includes(path)]
        if not all(link in self.files and self._is_current(self.files[link]) for link in asked):
            return None
        return Answer(self.place, self.place / "modules.json", self.mirror, self.files)

    def _replace(self, link: Path, content: bytes) -> None:
        """Put a file into the mirror in one step, which is one event for the one who watches."""
        incoming = self.place / "incoming"
        incoming.write_bytes(content)
        incoming.replace(link)

    def _settled(self, task: IndexTask, ends: float) -> bool:
        """Wait until everything is reported, and take the reports; False if that takes too long."""
        while self.is_busy:
            if (listing := self._finished()) is not None:
                self._take(listing)
            elif not self.process.is_alive:
                break
            elif time.monotonic() > ends or task.cancelled.is_set():
                return False
            else:
                time.sleep(_POLL)
        if not self.process.is_alive:
            raise IndexerError(f"pyrefly ended: {self.process.reason()}")
        return True

    def _finished(self) -> Mapping[str, Any] | None:
        """The list of modules of the round that saw the marker, if it is over."""
        listed = self.place / "out" / LISTING
        try:
            written = listed.stat().st_mtime_ns
            listing: Mapping[str, Any] = json.loads(listed.read_bytes())
        except (OSError, ValueError):  # not there yet, or not all of it
            return None
        marker = files_in(listing)[self.place / "marker" / _MARKER]["info_filename"]
        try:
            reported = self.place / "out" / "definitions" / marker
            is_seen = b'"%s"' % _name(self.rounds) in reported.read_bytes() and reported.stat().st_mtime_ns < written
        except OSError:
            return None
        return listing if is_seen else None

    def _take(self, listing: Mapping[str, Any]) -> None:
        """Put what a round reported over what there is."""
        modules = {entry["module_id"]: entry for entry in listing["modules"].values()}
        if any(_identity(modules.get(number, entry)) != _identity(entry) for number, entry in self.modules.items()):
            raise IndexerError("modules have other numbers")
        self.rounds += 1
        out, report = self.place / "out", self.place / "report"
        number_of = {entry["info_filename"]: number for number, entry in modules.items()}
        self.upset.update({(number, ""): self.rounds for number in self.modules.keys() - modules})
        for new in (out / "definitions").iterdir():
            old = report / "definitions" / new.name
            if old.exists():
                others = _other_numbers(old.read_bytes(), new.read_bytes())
                self.upset.update({(number_of[new.name], number): self.rounds for number in others})
            self.written[new.name] = self.rounds
        for part in _PARTS:
            if self.rounds == 1:
                (out / part).rename(report / part)
            else:
                for new in (out / part).iterdir():
                    new.replace(report / part / new.name)
        for name in (_ERRORS, LISTING):
            (out / name).replace(report / name)
        self.modules |= modules
        self.files = files_in(listing)
        self.is_busy = False

    def _is_current(self, entry: _Entry) -> bool:
        """Whether the numbers in a module's report still are those of the modules that it mentions."""
        if "failed_to_load" in entry:
            return True
        name = entry["info_filename"]
        upset = {mention for mention, since in self.upset.items() if since > self.written[name]}
        if not upset:
            return True
        parts = ((self.place / "report" / part / name).read_bytes() for part in _PARTS)
        found = {mention for part in parts for mention in set(_MENTION.findall(part))}
        mentions = {(int(module), each) for module, number in found for each in ("", number.decode())}
        return upset.isdisjoint(mentions)


def _contents(task: IndexTask) -> dict[str, str]:
    """The files that have a content, and what it is."""
    return {file.path: file.content_id for file in task.files if file.content_id}


def _read(root: Path, path: str, wanted: Mapping[str, str]) -> bytes:
    """The content of a file, which must be that of the snapshot."""
    try:
        content = (root / path).read_bytes()
    except OSError as error:
        raise _OutOfDateError(path) from error
    if hashlib.sha256(content).hexdigest() != wanted[path]:
        raise _OutOfDateError(path)
    return content


def _write(link: Path, content: bytes) -> None:
    link.write_bytes(content)


def _name(number: int) -> bytes:
    return b"round_%d" % number


def _mark(number: int) -> bytes:
    """The marker of a round: a module with a variable of that name."""
    return _name(number) + b" = 0\n"


def _identity(entry: _Entry) -> tuple[Any, ...]:
    return entry["source_path"], entry["module_name"], entry["info_filename"]


def _other_numbers(old: bytes, new: bytes) -> set[str]:
    """The numbers of classes and functions of a module that stand for something else than before."""
    if old == new:
        return set()
    before, after = numbering(json.loads(old)), numbering(json.loads(new))
    return {number for number, meaning in before.items() if after.get(number) != meaning}
