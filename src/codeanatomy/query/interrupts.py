"""Ctrl-C while DuckDB runs a query.

Python runs signal handlers between its own instructions, so a thread that waits for DuckDB may never run them; where
DuckDB itself notices the signal, it raises an error of its own instead. So a second thread waits for the signal and
interrupts the connection, and the error that follows becomes a KeyboardInterrupt.

Other threads get no signals: what they do for somebody is ended through `Interrupts`.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

import duckdb


class Interrupts:
    """The connections that work for somebody, so that another thread can end what they do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: list[duckdb.DuckDBPyConnection] = []

    def interrupt(self) -> None:
        """End the queries that run now."""
        with self._lock:
            for connection in self._connections:
                connection.interrupt()

    @contextmanager
    def including(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """While the block runs, `connection` is one of them."""
        with self._lock:
            self._connections.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.remove(connection)


_INTERRUPTS: ContextVar[Interrupts | None] = ContextVar("interrupts", default=None)


@contextmanager
def interrupted_by(interrupts: Interrupts) -> Iterator[None]:
    """Let `interrupts` end the queries that this thread runs in the block."""
    token = _INTERRUPTS.set(interrupts)
    try:
        yield
    finally:
        _INTERRUPTS.reset(token)


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let Ctrl-C end what `connection` does; outside of the main thread, what `interrupted_by` names."""
    if threading.current_thread() is not threading.main_thread():
        with (_INTERRUPTS.get() or Interrupts()).including(connection):
            yield
        return
    interrupted = threading.Event()

    def watch() -> None:
        while signals := receiver.recv(64):
            if signal.SIGINT in signals:
                interrupted.set()
                connection.interrupt()

    sender, receiver = socket.socketpair()
    sender.setblocking(False)
    watcher = threading.Thread(target=watch, name="interrupts", daemon=True)
    watcher.start()
    previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        with suppress(ValueError):  # a result that was not read to its end may be dropped by another thread
            signal.set_wakeup_fd(previous)
        sender.close()
        watcher.join()
        receiver.close()
