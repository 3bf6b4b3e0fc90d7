"""Ctrl-C while DuckDB works.

Python runs its signal handlers between instructions of its own, so one that waits for DuckDB may never come to them;
and where DuckDB looks for itself, it turns the interrupt into some error. A thread that sleeps until a signal arrives
tells the connection to give up, and the interrupt goes on as what it is.
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
    """Let an interrupt of this process end what `connection` does; outside of the main thread, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = threading.Event()

    def watch() -> None:
        while signals := listens.recv(64):
            if signal.SIGINT in signals:
                interrupted.set()
                connection.interrupt()

    tells, listens = socket.socketpair()
    tells.setblocking(False)
    watcher = threading.Thread(target=watch, name="interrupts", daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    try:
        yield
    except Exception as error:
        if interrupted.is_set():
            raise KeyboardInterrupt from error
        raise
    finally:
        with suppress(ValueError):  # an answer that nobody read to its end may be dropped by another thread
            signal.set_wakeup_fd(before)
        tells.close()
        watcher.join()
        listens.close()
