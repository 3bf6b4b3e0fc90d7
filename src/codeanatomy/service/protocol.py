"""What a client and the engine say to each other: JSON objects, one per line.

    engine   {"version", "code", "pid", "ready", "log"}          the greeting, to everybody who connects
    client   {"verb", "arguments", "progress", "wait"}           the one request of a connection
    engine   {"stage": name}, {"advance": [done, total, unit]}   any number of these, if `progress`
             {"texts": [some, …]}                                parts of a long answer
             {"result": value}                                   and one of these at the end
             {"error": {"error", "hint", "exit_code"}}
             {"declined": reason, "note": bool}                  nothing was done: do it without the engine
             {"cancelled": true}

A client that closes its end, or the sending half of it, cancels its request. Paths in requests are absolute: the engine
has no current directory to speak of, and reads no variable of the client.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any

from codeanatomy.api.json_output import json_text

MAX_REQUEST_BYTES = 1 << 20

Message = dict[str, Any]


class ProtocolError(Exception):
    """The other end said something that is no message, or nothing."""


class Channel:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; threads may do so at the same time."""
        line = f"{json_text(message)}\n".encode()
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError as error:
            raise ProtocolError(f"it does not listen ({error})") from error

    def receive(self, most: int = -1) -> Message | None:
        """The next message, of so many bytes at most; None if the other end has closed."""
        try:
            line = self._lines.readline(most)
        except (OSError, ValueError) as error:  # the latter if another thread closed this end
            raise ProtocolError(f"it does not answer ({error})") from error
        if not line:
            return None
        if not line.endswith(b"\n"):
            if 0 <= most <= len(line):
                raise ProtocolError(f"a request has at most {most:,} bytes")
            return None  # it was closed in the middle
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise ProtocolError("a message is one line of JSON") from None
        if not isinstance(message, dict):
            raise ProtocolError("a message is a JSON object")
        return message

    def discard(self, most: int) -> None:
        """Read so much of what the other end still sends: closed before that, it would lose what it was told."""
        with contextlib.suppress(OSError, ValueError):
            self._lines.read(most)

    def wait(self, seconds: float | None) -> None:
        """How long to wait for a message from now on; None: for ever."""
        self._connection.settimeout(seconds)

    def finish_sending(self) -> None:
        """Tell the other end that nothing more comes."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the connection; a thread that waits for a message wakes up."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._lines.close()
        self._connection.close()
