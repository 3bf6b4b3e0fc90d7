"""The context of a build under way: one value, passed first to every stage.

Where rows are made is decided here, by one rule for all stages: what is little is done in the driver, more is spread
over the engine's workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

from codeanatomy.engine.memory import PeakMemory
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.journal import Journal
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import START, StageClock
from codeanatomy.pipeline.request import Mode, Strategy
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.state import State
from codeanatomy.store.tables import TablePin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.engine.session import Connect
    from codeanatomy.index.warm import WarmPyrefly
    from codeanatomy.pipeline.warm import Warm

TASK_BYTES = 2 << 20
"""Source bytes per task: few files to open again, yet no core waits long for the last task."""

TASKS_OF_TABLES = 4
"""Up to so many tasks, tables are computed in the driver: planning statements for workers would cost more."""


class Engine:
    """The Spark session of a build, which can start while other work is done."""

    def __init__(self, settings: EngineSettings, clock: StageClock, spark: SparkSession | None = None) -> None:
        """A session that is given is used as it is, and left running."""
        self._settings = settings
        self._clock = clock
        self._session = spark
        self._connect: Connect | None = None
        self._started = ExitStack()

    def start(self) -> Connect:
        """Let Spark start, and do not wait for it."""
        if self._connect is None:
            from codeanatomy.engine.session import start_engine  # noqa: PLC0415 - a build without work loads no Spark

            self._connect = self._started.enter_context(start_engine(self._settings))
        return self._connect

    def session(self) -> SparkSession:
        """The session, once it is there."""
        if self._session is None:
            with self._clock.stage(START):
                self._session = self.start()()
        return self._session

    def __enter__(self) -> Engine:
        """Nothing is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session, if it was started here."""
        self._started.__exit__(kind, error, trace)


@dataclass(frozen=True)
class Build:
    """A build under way. Without an engine it only finds out what it would do: everything in the driver, no writes."""

    state: State
    last: BuildRecord | None
    inputs: BuildInputs
    plan: Plan
    strategy: Strategy
    clock: StageClock
    engine: Engine | None = None
    journal: Journal = field(default_factory=Journal)
    peak: PeakMemory = field(default_factory=PeakMemory)
    warm: Warm | None = None

    @property
    def is_full(self) -> bool:
        """Whether every file is rebuilt: the build is an update on top of nothing."""
        return self.plan.mode is Mode.FULL

    @property
    def indexer(self) -> WarmPyrefly | None:
        """The indexer that stays, if this process does."""
        return self.warm.indexer(self.state.location) if self.warm else None

    @property
    def spark(self) -> SparkSession:
        """The engine's session."""
        if self.engine is None:
            raise AssertionError("a build that only plans has no engine")
        return self.engine.session()

    def pin(self, table: str) -> TablePin | None:
        """The version of a table that the last build published."""
        return self.last.tables.get(table) if self.last else None

    def pins(self) -> dict[str, TablePin]:
        """The versions of all tables that the last build published."""
        return dict(self.last.tables) if self.last else {}

    def workers(self, source_bytes: float, tasks_in_driver: int = 1) -> SparkSession | None:
        """The session whose workers should do work on so much source; None if it is done in the driver."""
        return None if self.engine is None or fits_driver(source_bytes, tasks_in_driver) else self.spark


def fits_driver(source_bytes: float, tasks_in_driver: int = TASKS_OF_TABLES) -> bool:
    """Whether work on so much source is better done in one place: if it is that of few tasks."""
    return source_bytes <= tasks_in_driver * TASK_BYTES


def task_count(source_bytes: float) -> int:
    """How many tasks work on so much source."""
    return max(1, -(-int(source_bytes) // TASK_BYTES))


@contextmanager
def engine_for(settings: EngineSettings, clock: StageClock, spark: SparkSession | None) -> Iterator[SparkSession]:
    """The session that is given, or one that is started and ended here."""
    with Engine(settings, clock, spark) as engine:
        yield engine.session()
