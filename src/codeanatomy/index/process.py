"""Run an indexer with limits: so much time, so much memory, and no descendant left behind.

An indexer reads untrusted code, so it may hang, exhaust memory or start other processes. It runs in a
session of its own, with the environment it is given and nothing of ours; when it ends, is late, or we are interrupted,
its whole process group is killed. On Linux it also dies with us, whatever we die of.

Only private writable memory is counted (`RLIMIT_DATA`). Address space is no measure: JavaScript engines and Rust
allocators reserve far more of it than they ever touch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from codeanatomy.errors import CodeAnatomyError

TAIL_BYTES: Final = 8192
"""Bytes of the end of an indexer's output that are kept."""

_CANNOT_START: Final = 127
_PATIENCE: Final = 0.1

_LIMITED: Final = """\
import os, resource, signal, sys
parent, memory, *command = sys.argv[1:]
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
except Exception:
    pass
if os.getppid() != int(parent):
    sys.exit(1)
def limit(what, most):
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(what, (most, most))
limit(resource.RLIMIT_CORE, 0)
if int(memory):
    limit(resource.RLIMIT_DATA, int(memory))
try:
    os.execv(command[0], command)
except OSError as error:
    print(f"{command[0]}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""
"""Becomes the command after setting limits: safer than code between fork and exec in a process that has threads."""


class IndexerError(CodeAnatomyError):
    """An indexer could not be started, took too long, or failed."""

    exit_code = 3


class IndexerCancelledError(IndexerError):
    """An indexer was stopped because its result is no longer needed."""


@dataclass(frozen=True)
class Finished:
    """How a command ended: its exit code (below zero, the signal that ended it) and the end of its stderr."""

    returncode: int
    stderr: str
    seconds: float

    def reason(self) -> str:
        """Why it failed, in one line: the last line that mentions an error, or else the last one."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()]
        ended = f"signal {-self.returncode}" if self.returncode < 0 else f"exit code {self.returncode}"
        return f"{ended}: {(telling or lines)[-1][:300]}" if lines else ended


@dataclass(frozen=True)
class ProcessLimits:
    """When a command is stopped: after so many seconds, or when `cancelled` is set; and how much memory it may use."""

    seconds: float
    memory_bytes: int | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)


def run_limited(command: Sequence[str], limits: ProcessLimits, *, cwd: Path, env: Mapping[str, str]) -> Finished:
    """Run `command`, whose first word is an absolute path, and return how it ended; raise if it was late or cancelled.

    It reads nothing on stdin, and what it writes on stdout is lost: let it write its result to a file.
    """
    name = Path(command[0]).name
    if not Path(command[0]).is_absolute():
        raise ValueError(f"not an absolute path: {command[0]}")
    started = time.monotonic()
    if limits.cancelled.is_set():
        raise IndexerCancelledError(f"{name} was cancelled")
    with _started(_limited(command, limits.memory_bytes), cwd, env) as child:
        tail = _Tail(child.stderr)
        try:
            code = _wait(child, name, limits)
        finally:
            _kill_group(child)
            printed = tail.read()
    if code == _CANNOT_START:
        raise IndexerError(f"cannot start {name}: {printed.strip()[-300:]}")
    return Finished(code, printed, time.monotonic() - started)


class StayingProcess:
    """A command that runs until it is ended, with a limit on its memory; it dies with us as other commands do.

    A thread of its own starts it and waits for it: Linux takes the end of the thread that started a process for the end
    of its parent.
    """

    def __init__(self, command: Sequence[str], memory_bytes: int, *, cwd: Path, env: Mapping[str, str]) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._error: IndexerError | None = None
        self._printed = ""
        self._is_started = threading.Event()
        limited = _limited(command, memory_bytes)
        self._thread = threading.Thread(target=self._run, args=(limited, cwd, env), name="staying", daemon=True)
        self._thread.start()
        self._is_started.wait()
        if self._error is not None:
            raise self._error

    def _run(self, command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        try:
            with _started(command, cwd, env) as child:
                self._child = child
                tail = _Tail(child.stderr)
                self._is_started.set()
                child.wait()
                _kill_group(child)
                self._printed = tail.read()
        except IndexerError as error:
            self._error = error
            self._is_started.set()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._child is not None
        return self._child.pid

    def reason(self) -> str:
        """Why it ended, in one line."""
        self._thread.join()
        assert self._child is not None
        return Finished(self._child.returncode, self._printed, 0).reason()

    def memory_bytes(self) -> int:
        """The memory that it occupies; 0 if it has ended."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def pause(self) -> None:
        """Let it do nothing until it is told to go on."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def end(self) -> None:
        """Kill it, and what it started."""
        self._send(signal.SIGKILL)
        self._thread.join()

    def _send(self, number: signal.Signals) -> None:
        if self.is_alive:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def _limited(command: Sequence[str], memory_bytes: int | None) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _LIMITED, str(os.getpid()), str(memory_bytes or 0), *command]


@contextmanager
def _started(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child process with its own process group, which is killed when the block ends."""
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise IndexerError(f"cannot start a process in {cwd}: {error.strerror}") from error
    try:
        yield child
    finally:
        _kill_group(child)
        child.wait()


def _wait(child: subprocess.Popen[bytes], name: str, limits: ProcessLimits) -> int:
    """The exit code of `child`, if it ends in time and is not cancelled."""
    ends = time.monotonic() + limits.seconds
    while not limits.cancelled.is_set():
        left = ends - time.monotonic()
        if left <= 0:
            raise IndexerError(f"{name} was stopped after {limits.seconds:g} s")
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=min(_PATIENCE, left))
    raise IndexerCancelledError(f"{name} was cancelled")


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group; its number is not reused while a process of it lives."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


class _Tail:
    """The end of a stream, which is read continuously so that its writer never blocks."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._kept = b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65536):
            self._kept = (self._kept + chunk)[-TAIL_BYTES:]

    def read(self) -> str:
        """The end of the stream. Does not wait for a descendant that left the group and holds the stream open."""
        self._thread.join(timeout=2)
        if not self._thread.is_alive():
            self._stream.close()
        return self._kept.decode(errors="replace")
