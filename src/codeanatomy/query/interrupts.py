"""Ctrl-C while DuckDB runs a query.

Python runs signal handlers between its own instructions, so a thread that waits for DuckDB may never run them; where
DuckDB itself notices the signal, it raises an error of its own instead. So a second thread waits for the signal and
interrupts the connection, and the error that follows becomes a KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let Ctrl-C end what `connection` does; outside of the main thread, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
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
