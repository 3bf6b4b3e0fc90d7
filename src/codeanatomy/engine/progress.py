"""Progress of a running Spark stage, in a local session; Spark Connect does not report it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

SECONDS_BETWEEN_REPORTS = 0.3


@contextlib.contextmanager
def stage_progress(spark: SparkSession, tasks: int, report: Callable[[float], None]) -> Iterator[None]:
    """While the block runs, report the finished share of the active stage that has this many tasks."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SECONDS_BETWEEN_REPORTS):
            # The session may be closing; a failure to read progress must not stop a build.
            with contextlib.suppress(Py4JError, OSError):
                tracker = spark.sparkContext.statusTracker()
                for number in tracker.getActiveStageIds():
                    stage = tracker.getStageInfo(number)
                    if stage and stage.numTasks == tasks and stage.numCompletedTasks:
                        report(stage.numCompletedTasks / tasks)

    if not isinstance(spark, SparkSession) or "connect" in type(spark).__module__:
        yield
        return
    watcher = threading.Thread(target=watch, name="stage-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
