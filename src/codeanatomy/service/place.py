"""Where the engine of this user, version and Python is found: a socket in a directory that is the user's alone.

The directory is opened once and checked as it was opened. The socket is reached through the descriptor, which also
makes its address short: the system allows some hundred characters. The engine holds a lock for as long as it lives, so
a socket without a holder of the lock was left by a dead one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import codeanatomy
from codeanatomy.engine.directories import cache_directory, runtime_directory
from codeanatomy.errors import MachineError

IS_SUPPORTED = hasattr(socket, "SO_PEERCRED") and Path("/proc/self/fd").is_dir()
"""Whether this system tells who is at the other end of a socket."""

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class Place:
    """The files of one engine."""

    directory: Path
    name: str

    @property
    def socket_name(self) -> str:
        """The socket that it listens on."""
        return f"{self.name}.socket"

    @property
    def log(self) -> Path:
        """What it did, and what went wrong."""
        return cache_directory() / "logs" / f"{self.name}.log"

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """The directory, which must be private; FileNotFoundError if there is none."""
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise MachineError(
                    f"the directory of the engine, {self.directory}, is open to others",
                    hint=f"chmod 700 {self.directory}",
                )
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Hold the lock of the engine, if nobody does: whether it is held."""
        with contextlib.suppress(FileExistsError):
            self.directory.mkdir(mode=0o700)
        with self.opened() as directory:
            lock = os.open(f"{self.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
            try:
                yield _is_locked(lock)
            finally:
                os.close(lock)

    def is_held(self) -> bool:
        """Whether an engine lives."""
        try:
            with self.opened() as directory:
                lock = os.open(f"{self.name}.lock", os.O_RDWR | os.O_CLOEXEC, dir_fd=directory)
        except (OSError, MachineError):  # nobody can be there, or we may not know
            return False
        try:
            return not _is_locked(lock)
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def listening(self) -> Iterator[socket.socket]:
        """A socket that clients find, in place of the one that a dead engine left; only for who holds the lock."""
        name = self.socket_name
        with self.opened() as directory, socket.socket(socket.AF_UNIX) as listener:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
            listener.bind(_address(directory, name))
            listener.listen()
            try:
                yield listener
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)

    def connect(self, seconds: float) -> socket.socket | None:
        """A connection to the engine, if one is there; it waits no longer than this for each answer."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(seconds)
        try:
            with self.opened() as directory:
                connection.connect(_address(directory, self.socket_name))
            check_peer(connection)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except BaseException:
            connection.close()
            raise
        return connection


def engine_place() -> Place:
    """The place of the engine of this user, this version of the package and this Python."""
    directory = runtime_directory()
    identity = "\0".join((str(directory), codeanatomy.__file__, sys.executable))
    name = f"engine-{codeanatomy.__version__}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    return Place(directory, name)


def check_peer(connection: socket.socket) -> None:
    """Refuse another user at the other end."""
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if user != os.getuid():
        raise MachineError(f"the other end of the engine's socket belongs to user {user}")


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _address(directory: int, name: str) -> str:
    return f"/proc/self/fd/{directory}/{name}"
