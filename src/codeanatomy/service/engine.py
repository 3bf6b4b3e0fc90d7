"""Verbs about the engine process itself: start, stop, status.

The process that is started outlives the one that starts it, and has nothing of it: another session, no terminal,
another current directory. Its options go through a pipe: they may include credentials, and command lines are public.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import codeanatomy
from codeanatomy.engine.directories import cache_directory
from codeanatomy.errors import MachineError
from codeanatomy.service.client import NotRunningError, Question, UnavailableError, ask, connected
from codeanatomy.service.place import IS_SUPPORTED, engine_place
from codeanatomy.service.protocol import ProtocolError

if TYPE_CHECKING:
    from codeanatomy.api.diagnosis import Check

SECONDS_TO_START = 120.0
SECONDS_TO_STOP = 60.0
_MAX_LOG_BYTES = 1 << 20
_SECONDS_BETWEEN_TRIES = 0.1
_SECONDS_BETWEEN_LAUNCHES = 5.0


@dataclass(frozen=True)
class EngineOptions:
    """How an engine runs: its Spark, when it ends, how much memory it may keep (None: half of the machine's).

    It begins with `rehearsals` of an update, unless it is asked for something.
    """

    profile: str = "prod_fast"
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    idle_minutes: float = 30.0
    max_memory_mb: int | None = None
    rehearsals: int = 8


@dataclass(frozen=True)
class EngineStatus:
    """What is running: since when, with how much memory, how busy, and where its log is."""

    running: bool
    detail: str = ""
    """Why it cannot be used, if that is known."""
    log: str = ""
    pid: int | None = None
    version: str = ""
    started_at: str = ""
    ready: bool = False
    memory_mb: int = 0
    max_memory_mb: int = 0
    idle_minutes: float = 0.0
    profile: str = ""
    master: str | None = None
    requests: int = 0
    under_way: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    rehearsing: bool = False
    """What it knows more of than is on disk, least recently used first."""

    def as_json(self) -> dict[str, Any]:
        """The object that `engine status --json` prints."""
        return {**vars(self), "under_way": list(self.under_way), "states": list(self.states)}


def engine_status() -> EngineStatus:
    """Whether an engine runs, and what it does."""
    try:
        found = ask(Question("engine_status", wait=True))
    except UnavailableError as error:
        return EngineStatus(running=engine_place().is_held(), detail=str(error), log=str(engine_place().log))
    lists = {name: tuple(found[name]) for name in ("under_way", "states")}
    return EngineStatus(running=True, **{**found, **lists})


def check_engine() -> Check:
    """What `doctor` says of the engine; that none runs is no fault."""
    from codeanatomy.api.diagnosis import FAILED, OK, Check  # noqa: PLC0415 - imports what it checks

    found = engine_status()
    if found.pid is not None:
        began = f"since {found.started_at}, {found.memory_mb:,} MB, {found.requests:,} requests"
        return Check("engine", OK, f"pid {found.pid} {began}, log {found.log}")
    if found.running:
        return Check("engine", FAILED, f"cannot be used: {found.detail}", "run `codeanatomy engine stop`")
    return Check("engine", OK, "none runs")


def start_engine(options: EngineOptions = EngineOptions()) -> EngineStatus:  # noqa: B008 - frozen
    """Start an engine and wait until it is ready; one that runs with other options or other code is replaced."""
    if not IS_SUPPORTED:
        raise MachineError("this system does not tell who is at the other end of a socket, so there is no engine")
    deadline = time.monotonic() + SECONDS_TO_START
    launched_at = 0.0
    while time.monotonic() < deadline:
        try:
            if ask(Question("fits", {"options": asdict(options)}, wait=True)):
                return engine_status()
            stop_engine()
        except UnavailableError as error:
            if error.note:
                raise MachineError(f"the engine does not start: {error}") from None
            if isinstance(error, NotRunningError):
                stop_engine()  # one of other code
        if not engine_place().is_held() and time.monotonic() - launched_at > _SECONDS_BETWEEN_LAUNCHES:
            launch_engine(options)
            launched_at = time.monotonic()
        time.sleep(_SECONDS_BETWEEN_TRIES)
    raise MachineError("the engine does not start", hint=f"see {engine_place().log}")


def stop_engine() -> EngineStatus:
    """End the engine, if one runs: what it does for others goes on without it, in their processes."""
    deadline = time.monotonic() + SECONDS_TO_STOP
    pid = None
    try:
        with connected() as (channel, greeting):
            pid = greeting["pid"]
            channel.send({"verb": "stop", "arguments": {}, "progress": False, "wait": False})
            channel.wait(SECONDS_TO_STOP)
            while channel.receive() is not None:
                pass
    except (UnavailableError, ProtocolError):
        pass
    while pid and engine_place().is_held() and time.monotonic() < deadline:
        time.sleep(_SECONDS_BETWEEN_TRIES)
    return EngineStatus(running=engine_place().is_held(), log=str(engine_place().log), pid=pid)


def launch_engine(options: EngineOptions) -> None:
    """Start an engine, and do not wait for it. It ends at once if there is one."""
    place = engine_place()
    place.log.parent.mkdir(exist_ok=True)
    if place.log.exists() and place.log.stat().st_size > _MAX_LOG_BYTES:
        place.log.unlink()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CODEANATOMY_")}
    with place.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "codeanatomy.service.server"],
            cwd=cache_directory(),
            env={**environment, "PYTHONPATH": str(Path(codeanatomy.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin as settings:
        settings.write(json.dumps(asdict(options)).encode())
    process.returncode = 0  # it is not ours to wait for
