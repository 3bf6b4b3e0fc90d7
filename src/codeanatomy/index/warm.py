"""A pyrefly that stays: `check --watch` over a mirror of copies, which reports again only what an edit changed.

Nobody but us writes to the mirror, and only between two rounds. So what pyrefly has read is known, byte for byte; it
follows no link, and does not see a file that is half written.

It is an economy, not another source: wherever it could say something else than a run from scratch, or takes long, it
has no answer, and the caller runs pyrefly from scratch. That is so
    when a report is not current (see `rounds`);
    when a round takes longer than a run from scratch, because an edit reaches half of the repository. It goes on;
    when many files came or went, or folders did. It starts again, in the background.

Glossary
    round      pyrefly reads what changed in the mirror and reports on that; the list of modules is written last.
    step       changes of the mirror that are followed by a round: of contents, or one file that comes or goes.
    marker     a file of ours beside the mirror, changed after all others: a round that reports it has seen them all.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codeanatomy.index.mirror import Mirror
from codeanatomy.index.process import IndexerError, StayingProcess
from codeanatomy.index.provider import IndexTask
from codeanatomy.index.pyrefly import SHARD_BYTES, Pyrefly, check_command, seconds_for
from codeanatomy.index.rounds import Rounds
from codeanatomy.repo.modules import ModuleName

PATIENCE: Final = 3.0
"""Seconds that an update waits for a round; a run from scratch on one file takes about as long."""

MEMORY_BYTES: Final = 4 << 30
"""Of the process; it ends if it needs more."""

MOST_STEPS: Final = 6
"""Files that may come or go until starting again is better."""

MOST_COUNTS: Final = 50
"""Times that files may come or go until starting again is better: each takes memory."""

_MARKER: Final = "marker.py"
_POLL: Final = 0.01

_Entry = Mapping[str, Any]


class _OutOfDateError(Exception):
    """A file is no longer what the snapshot says."""


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
        self._hopeless: Sequence[ModuleName] | None = None

    @property
    def rounds(self) -> int:
        """Rounds of the process that runs; 0 until it has reported."""
        return self._running.rounds.done if self._running else 0

    @property
    def pid(self) -> int | None:
        """The number of the process, if one was started."""
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
        if task.modules == self._hopeless or sum(file.size for file in task.files) > SHARD_BYTES:
            return None
        try:
            if self._running is not None and not self._running.can_become(pyrefly, task):
                self.close()
            if self._running is None:
                self._running = _Running(pyrefly, task, self._place)
                if task.only is not None:  # for a few files, a run from scratch is quicker than the first round
                    return None
            return self._running.answer(task)
        except _OutOfDateError:
            return None
        except (IndexerError, OSError, ValueError, KeyError):
            if not self.rounds:
                self._hopeless = task.modules
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


class _Running:
    """A process that was started, what it was given to read, and what it reported."""

    def __init__(self, pyrefly: Pyrefly, task: IndexTask, place: Path) -> None:
        """Copy the tree and start; the first round takes as long as a run on all files."""
        shutil.rmtree(place, ignore_errors=True)
        for folder in (place, place / "marker", place / "report"):
            folder.mkdir(mode=0o700)
        self._place = place
        self._made_for = (pyrefly.fingerprint, task.root)
        self._shape = _shape(task)
        self._mirror = _laid_out(task, place)
        self._held = _contents(task, self._mirror)
        self._links = dict(self._mirror.links)
        for path, link in self._links.items():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.write_bytes(_read(task.root, path, self._held[path]))
        self._marker = place / "marker" / _MARKER
        self._marker.write_bytes(_mark(0) + b" = 0\n")
        self._is_busy, self._may_renumber = True, False
        self.rounds = Rounds(place / "out", place / "report")
        (place / "pyrefly.toml").write_text("", encoding="utf-8")
        self.process = StayingProcess(
            [
                *check_command(pyrefly, place / "pyrefly.toml", self._mirror.trees, place / "out"),
                "--watch",
                *(str(tree) for tree in (*self._mirror.trees, place / "marker")),
            ],
            MEMORY_BYTES,
            cwd=place,
            env={"HOME": str(place), "TMPDIR": str(place)},
        )

    def can_become(self, pyrefly: Pyrefly, task: IndexTask) -> bool:
        """Whether a few steps lead to the files of `task`; folders that come or go are not watched as they should be."""
        if self._made_for != (pyrefly.fingerprint, task.root):
            return False
        if self._shape == _shape(task):
            return True
        wanted = _laid_out(task, self._place)
        links = wanted.links
        come, gone = links.keys() - self._links.keys(), self._links.keys() - links.keys()
        folders = {folder for link in links.values() for folder in link.parents}
        fits = (
            wanted.trees == self._mirror.trees
            and len(come) + len(gone) <= MOST_STEPS
            and self.rounds.counts <= MOST_COUNTS
            and all(links[path] == link for path, link in self._links.items() if path in links)
            and all(links[path].parent.is_dir() for path in come)
            and all(self._links[path].parent in folders for path in gone)
        )
        if fits:
            self._shape, self._mirror = _shape(task), wanted
        return fits

    def answer(self, task: IndexTask) -> Answer | None:
        """Let it read what changed, step by step, and wait for its reports."""
        ends = time.monotonic() + (PATIENCE if task.only is not None else seconds_for(task.files))
        if not self._is_settled(task, ends):
            return None
        wanted = _contents(task, self._mirror)
        differing = [path for path, content in wanted.items() if self._held.get(path) != content]
        contents = {path: _read(task.root, path, wanted[path]) for path in differing}
        changed, come = ([path for path in differing if (path in self._held) is held] for held in (True, False))
        gone = self._held.keys() - wanted.keys()
        for step in ([changed] if changed else []) + [[path] for path in (*sorted(gone), *come)]:
            self._is_busy, self._may_renumber = True, step != changed
            for path in step:
                self._place_of(path, contents.get(path))
            self._replace(self._marker, _mark(self.rounds.done) + b" = 0\n")
            if not self._is_settled(task, ends):
                return None
        asked = [link for path, link in self._mirror.links.items() if task.includes(path)]
        if not all(self.rounds.is_current(link) for link in asked):
            return None
        names = self._place / "modules.json"
        names.write_text(json.dumps(self._mirror.names(task.modules)), encoding="utf-8")
        return Answer(self._place, names, self._mirror, self.rounds.files)

    def _place_of(self, path: str, content: bytes | None) -> None:
        """Put a file into the mirror, or take it away."""
        if content is None:
            self._links.pop(path).unlink()
            del self._held[path]
        else:
            self._links[path] = self._mirror.links[path]
            self._replace(self._links[path], content)
            self._held[path] = hashlib.sha256(content).hexdigest()

    def _replace(self, link: Path, content: bytes) -> None:
        """Put a file there in one piece, which is one event for the one who watches."""
        incoming = self._place / "incoming"
        incoming.write_bytes(content)
        incoming.replace(link)

    def _is_settled(self, task: IndexTask, ends: float) -> bool:
        """Wait until everything is reported, and take the reports; False if that takes too long."""
        while self._is_busy:
            if (listing := self.rounds.finished(self._marker, _mark(self.rounds.done))) is not None:
                self.rounds.take(listing, may_renumber=self._may_renumber)
                self._is_busy = False
            elif not self.process.is_alive:
                raise IndexerError(f"pyrefly ended: {self.process.reason()}")
            elif time.monotonic() > ends or task.cancelled.is_set():
                return False
            else:
                time.sleep(_POLL)
        if not self.process.is_alive:
            raise IndexerError(f"pyrefly ended: {self.process.reason()}")
        return True


def _shape(task: IndexTask) -> tuple[Sequence[ModuleName], list[str]]:
    """What the mirror is laid out by."""
    return task.modules, [file.path for file in task.files]


def _laid_out(task: IndexTask, place: Path) -> Mirror:
    """Where the files of a task belong; nothing is written."""
    mirror = Mirror(task.root, place / "mirror", lambda path, link: None)
    readable = {file.path for file in task.files if file.content_id}
    mirror.add(module for module in task.modules if module.path in readable)
    return mirror


def _contents(task: IndexTask, mirror: Mirror) -> dict[str, str]:
    """The content of each file of the mirror, in the order of their paths."""
    return {file.path: file.content_id for file in task.files if file.content_id and file.path in mirror.links}


def _read(root: Path, path: str, content_id: str) -> bytes:
    """The content of a file, which must be that of the snapshot."""
    try:
        content = (root / path).read_bytes()
    except OSError as error:
        raise _OutOfDateError(path) from error
    if hashlib.sha256(content).hexdigest() != content_id:
        raise _OutOfDateError(path)
    return content


def _mark(number: int) -> bytes:
    """The variable of the marker that tells what a round has seen."""
    return b"round_%d" % number
