"""Open the one Spark session of a process and close it, leaving no process or file behind.

Callers must not assume that a session is local: it may be one on a Spark Connect server.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from codeanatomy.engine.archive import archive_options, archive_path, train_in_background
from codeanatomy.engine.causes import cause_of, text_of
from codeanatomy.engine.daemon import PRELOAD
from codeanatomy.engine.directories import cache_directory, new_log, scratch_directory
from codeanatomy.engine.java import require_java
from codeanatomy.engine.jvm import (
    Launch,
    cause_of_death,
    gateway_to,
    isolated_environment,
    kill_jvm,
    kill_with_workers,
    request_stop,
    start_error_in,
    start_failure,
    start_jvm,
    wait_for_end,
)
from codeanatomy.engine.memory import machine_memory_mb
from codeanatomy.engine.process import libraries_quiet, signals_unwind, signals_wait, sys_path_kept
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError, MachineError

LOG = "spark.codeanatomy.log"
SECONDS_TO_STOP = 10.0


Connect = Callable[[], SparkSession]
"""Waits for an engine that is starting; returns its session."""


@contextlib.contextmanager
def open_engine(settings: EngineSettings | None = None) -> Iterator[SparkSession]:
    """A Spark session; its JVM, workers and files are removed when the block ends."""
    with start_engine(settings or EngineSettings()) as connect:
        yield connect()


@contextlib.contextmanager
def start_engine(settings: EngineSettings) -> Iterator[Connect]:
    """An engine that starts while the block goes on, and ends with it."""
    if SparkContext._gateway is not None or SparkSession.getActiveSession() is not None:
        raise InputError("this Python process already runs Spark", hint="use a process of its own for CodeAnatomy")
    engine = _remote_engine(settings, settings.remote) if settings.remote else own_engine(settings)
    with libraries_quiet(), engine as connect:
        yield connect


def cancel_jobs(spark: SparkSession) -> None:
    """End every job that runs on Spark, whichever thread and session started it; not over Spark Connect."""
    spark.sparkContext.cancelAllJobs()


def log_of(spark: SparkSession) -> Path | None:
    """The log of Spark's output, if its JVM is a child of this process."""
    log = spark.conf.get(LOG, None)
    return Path(log) if log else None


@contextlib.contextmanager
def session_options(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Temporarily override session options; none may affect results."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@contextlib.contextmanager
def own_engine(settings: EngineSettings, seconds_to_stop: float | None = None) -> Iterator[Connect]:
    """An engine whose JVM is a child of this process.

    At the end a JVM that does everything itself is killed: nothing of it is needed any more, and a regular end takes
    seconds. One that uses a cluster has `seconds_to_stop`, to release what it holds there.
    """
    if seconds_to_stop is None:
        seconds_to_stop = 0.0 if settings.is_local else SECONDS_TO_STOP
    java = require_java()
    cache = cache_directory()
    log = new_log(cache)
    archive = archive_path(java, cache) if settings.archive else None
    with (
        signals_unwind(),
        sys_path_kept(),
        scratch_directory() as scratch,
        contextlib.ExitStack() as ending,
    ):
        launch = Launch(
            java=java,
            conf=_conf(settings, scratch.path, log),
            java_options=_java_options(settings, archive),
            log_level=settings.profile.log_level,
            log=log,
            scratch=scratch,
            config=cache / "conf",
            is_local=settings.is_local,
        )
        with isolated_environment(launch), signals_wait():
            process = start_jvm(launch)
            ending.callback(_disconnect, process, seconds_to_stop)

        @functools.cache
        def connect() -> SparkSession:
            with isolated_environment(launch):
                return _connect(gateway_to(process, launch), launch)

        try:
            yield connect
        except (CapturedException, Py4JJavaError) as error:
            # Its text is in the JVM and would be lost with it.
            raise PySparkException(text_of(error)).with_traceback(error.__traceback__) from None
        except (Py4JError, OSError, EOFError) as error:
            if (death := cause_of_death(process, log)) is None:
                raise
            raise death from error
    if archive:
        train_in_background(archive)


def _conf(settings: EngineSettings, scratch: Path, log: Path) -> dict[str, str]:
    profile = settings.profile
    conf = {
        "spark.app.name": "codeanatomy",
        "spark.master": settings.master or f"local[{profile.threads_for(_processors())}]",
        "spark.driver.memory": f"{profile.heap_for(machine_memory_mb())}m",
        "spark.local.dir": str(scratch),
        "spark.scheduler.mode": "FAIR",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        # The Python call site of a column is not needed, and costs a round trip per column.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # The statements of an update are more than 100, the default: each would be compiled again for every update.
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.ui.enabled": "false",
        # Nobody looks at what ran; of a thousand jobs it would be a gigabyte.
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.ui.showConsoleProgress": "false",
        LOG: str(log),
    }
    if settings.is_local:
        conf |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # One file per task instead of one per task and partition: a small shuffle spends its time on opening files.
            "spark.shuffle.sort.bypassMergeThreshold": "1",
            "spark.python.daemon.module": "codeanatomy.engine.daemon",
            f"spark.executorEnv.{PRELOAD}": ",".join(settings.preload),
        }
    return conf | settings.sql_conf() | dict(settings.conf)


def _java_options(settings: EngineSettings, archive: Path | None) -> list[str]:
    options = archive_options(archive) if archive else []
    if settings.is_local and not settings.long_run:
        # Only the first compiler: a build of a minute or two ends before the second one pays off. By default its code
        # must fit in 48 MB, a fifth of what both have, and a JVM that keeps generating code dies when that is full.
        options += ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
        options.append("-XX:+UseSerialGC" if settings.short_run else "-XX:+UseParallelGC")
    return options


def _connect(gateway: JavaGateway, launch: Launch) -> SparkSession:
    try:
        context = SparkContext(gateway=gateway)
        # It would print a traceback to the terminal when the JVM ends first.
        context._accumulatorServer.handle_error = _ignore_error  # type: ignore[method-assign]
        return SparkSession.builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        has_cause = isinstance(error, PySparkException | Py4JJavaError)
        cause = cause_of(error) if has_cause else start_error_in(launch.log)
        raise start_failure(f" on {launch.conf['spark.master']}", cause, launch.log) from None


def _ignore_error(request: object, client_address: object) -> None:
    pass


def _disconnect(process: subprocess.Popen[bytes], seconds_to_stop: float) -> None:
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is None:
        kill_jvm(process)
    else:
        workers = request_stop(process) if seconds_to_stop else kill_with_workers(process)
        # The JVM is gone, or stopping Spark; this ends the threads of this process, the slowest by itself.
        threading.Thread(target=context._accumulatorServer.shutdown, daemon=True).start()
        context._accumulatorServer = None  # type: ignore[assignment]
        context._jsc = None
        context.stop()
        wait_for_end(process, workers, seconds_to_stop or SECONDS_TO_STOP)
    if gateway is not None:
        with contextlib.suppress(Py4JError, OSError):
            gateway.shutdown()
    # Otherwise pyspark would reuse the dead JVM for the next session of this process.
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _remote_engine(settings: EngineSettings, url: str) -> Iterator[Connect]:
    address = urlsplit(url)
    if address.scheme != "sc" or not address.hostname:
        raise InputError(f"{url} is not the address of a Spark Connect server", hint="it looks like sc://host:15002")
    # The client would retry for minutes before it reports this.
    try:
        socket.create_connection((address.hostname, address.port or 15002), timeout=10).close()
    except OSError as error:
        raise MachineError(f"no Spark Connect server answers at {url}: {error}") from error
    try:
        spark = SparkSession.builder.remote(url).create()
    except ImportError as error:
        raise MachineError("--remote needs more packages", hint="pip install 'codeanatomy[connect]'") from error
    try:
        for key, value in settings.sql_conf().items():
            spark.conf.set(key, value)
        yield lambda: spark
    finally:
        spark.stop()
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # set by pyspark; a later session may be local


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
