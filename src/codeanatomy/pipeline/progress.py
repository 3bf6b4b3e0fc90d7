"""Progress of a build, reported to a listener: which stage runs, how far it is, how long the finished ones took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from codeanatomy.pipeline.request import FinishedStage

SCAN = "scan"
START = "start"
EXTRACT = "extract"
INDEX = "index"
FLOW = "flow"
IMPACT = "impact"
PUBLISH = "publish"


class Listener(Protocol):
    """Somebody who wants to see how a build goes: a terminal, a log, nobody."""

    def stage(self, name: str) -> None:
        """A stage begins."""

    def advance(self, done: int, total: int, unit: str) -> None:
        """The current stage has done `done` of `total`."""


class Silent:
    """Hears nothing."""

    def stage(self, name: str) -> None:
        """Ignore it."""

    def advance(self, done: int, total: int, unit: str) -> None:
        """Ignore it."""


class StageClock:
    """Times the stages of one build, and holds it to those that are planned, if any are."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.began = time.monotonic()
        self.stages: list[FinishedStage] = []
        self._planned: set[str] = set()

    def restart(self) -> None:
        """The build starts over; its time goes on."""
        self.stages.clear()
        self._planned.clear()

    def plan(self, stages: Iterable[str]) -> None:
        """The build is about to run these stages."""
        self._planned.update(stages)

    @contextmanager
    def stage(self, name: str) -> Iterator[RunningStage]:
        """Time what happens inside; the caller may report how many rows it computed."""
        if self._planned and name not in self._planned:
            raise RuntimeError(f"the build was not planned to run the stage {name}")
        self.listener.stage(name)
        running = RunningStage()
        start = time.monotonic()
        yield running
        self.stages.append(FinishedStage(name, time.monotonic() - start, running.rows))

    def seconds(self) -> float:
        """Since the build began."""
        return time.monotonic() - self.began


class RunningStage:
    """A stage under way; it may report how many rows it computed."""

    rows: int | None = None
