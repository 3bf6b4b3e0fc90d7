"""What a session changes in the calling process, undone when it ends: signal handlers, `sys.path`, log filters."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from pyspark.logger import PySparkLogger

QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextlib.contextmanager
def signals_unwind() -> Iterator[None]:
    """Make a termination request unwind the stack like ctrl-C, and restore the handlers that pyspark replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    interrupt, terminate = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    if terminate is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, terminate)


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """Delay interrupts and termination requests until the end of the block, when its effects can be undone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


@contextlib.contextmanager
def sys_path_kept() -> Iterator[None]:
    """Restore `sys.path`, which pyspark changes."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before


@contextlib.contextmanager
def libraries_quiet() -> Iterator[None]:
    """Keep py4j and pyspark from printing the errors they also raise."""

    def foreign(record: logging.LogRecord) -> bool:
        return Path(record.pathname).parent.name != "py4j"

    root = logging.getLogger()  # where py4j reports that the JVM has died
    loggers = [PySparkLogger.getLogger(name) for name in QUERY_LOGGERS]
    root.addFilter(foreign)
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        root.removeFilter(foreign)
        for logger in loggers:
            logger.disabled = False
