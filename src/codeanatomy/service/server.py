"""The engine process: one Spark session and what builds on it share, for every command of a user.

Builds run one after the other, in one thread, whichever state they are of. What only reads runs beside them. The
process ends when it was idle for long, when its code is no longer what is installed, or when it needs too much memory
although it dropped all that it can. It holds nothing that is not in a state, so it may be killed at any moment.

Run as a program, with its options as JSON on stdin.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import codeanatomy
from codeanatomy.api import building, history, reading
from codeanatomy.api.json_output import error_json, json_text, write_json
from codeanatomy.api.requests import BuildRequest, Repository
from codeanatomy.engine.memory import machine_memory_mb, tree_memory_mb
from codeanatomy.engine.session import cancel_jobs, log_of, open_engine
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.pipeline.inputs import warm_settings
from codeanatomy.pipeline.warm import Warm
from codeanatomy.query.interrupts import Interrupts, interrupted_by
from codeanatomy.service.engine import EngineOptions
from codeanatomy.service.place import Place, check_peer, engine_place
from codeanatomy.service.protocol import MAX_REQUEST_BYTES, Channel, Message, ProtocolError
from codeanatomy.service.rehearsal import rehearse
from codeanatomy.service.rows import plain_row
from codeanatomy.service.runner import ENGINE_FIELDS
from codeanatomy.service.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_TO_ASK = 30.0
"""How long a client may take to send its request."""

_SECONDS_BETWEEN_CHECKS = 1.0
_SECONDS_BETWEEN_CANCELS = 0.1
_SECONDS_TO_LOCK = 2.0
_TEXT_SIZE = 1 << 16
_ABOUT_ENGINE = ("engine_status", "fits", "stop")
"""Verbs that are no use of the engine: who only looks at it does not keep it."""

_IN_TURN = ("build", "plan")
_LOOKUPS = ("callers", "callees", "refs", "definition", "why")


class Cancelled(BaseException):  # like KeyboardInterrupt, it is no error
    """The client no longer wants an answer."""


class Declined(Exception):  # noqa: N818
    """The client should do it without the engine."""

    def __init__(self, reason: str, *, note: bool = False) -> None:
        super().__init__(reason)
        self.note = note


class Call:
    """One request under way; it hears of the stages of a build, and stops it at the next one if it is cancelled."""

    def __init__(self, channel: Channel, request: Message) -> None:
        self.verb = str(request.get("verb"))
        self.arguments: Mapping[str, Any] = request.get("arguments") or {}
        self.waits = bool(request.get("wait"))
        self.cancelled = threading.Event()
        self.queries = Interrupts()
        self._done = threading.Event()
        self._channel = channel
        self._progress = bool(request.get("progress"))

    def stage(self, name: str) -> None:
        """A stage begins."""
        if self._progress:
            with contextlib.suppress(ProtocolError):
                self._channel.send({"stage": name})
        self.check()

    def advance(self, done: int, total: int, unit: str) -> None:
        """The current stage has done `done` of `total`."""
        if self._progress:
            with contextlib.suppress(ProtocolError):
                self._channel.send({"advance": [done, total, unit]})

    def texts(self, texts: Sequence[str]) -> None:
        """Send parts of a long answer."""
        self.check()
        self._channel.send({"texts": texts})

    def check(self) -> None:
        """Stop here if the client is gone."""
        if self.cancelled.is_set():
            raise Cancelled

    @contextmanager
    def watched(self, interrupt: Callable[[Call], None]) -> Iterator[None]:
        """Cancel the request if the client closes its end while the block runs; `interrupt` what it waits for."""

        def watch() -> None:
            with contextlib.suppress(ProtocolError):
                self._channel.receive(MAX_REQUEST_BYTES)
            self.cancelled.set()
            while not self._done.wait(_SECONDS_BETWEEN_CANCELS):
                interrupt(self)

        threading.Thread(target=watch, name="client", daemon=True).start()
        try:
            with interrupted_by(self.queries):
                yield
        finally:
            self._done.set()


class _Rehearsing:
    """Hears of the stages of a rehearsal, and ends it at the next one if there is something to do."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        self.is_under_way = False

    def stage(self, name: str) -> None:
        """A stage begins."""
        if self._is_wanted():
            raise Cancelled

    def advance(self, done: int, total: int, unit: str) -> None:
        """The current stage has done `done` of `total`."""


class Server:
    """The engine: what it has, and what it does for whom."""

    def __init__(self, place: Place, options: EngineOptions) -> None:
        self._place = place
        self._options = options
        self._max_memory_mb = options.max_memory_mb or machine_memory_mb() // 2
        self._code = code_version()
        self._started_at = datetime.now(UTC)
        self._spark: SparkSession | None = None
        self._warm: Warm | None = None
        self._failure: CodeAnatomyError | None = None
        self._decided = threading.Event()
        self._stopping = threading.Event()
        self._builder = ThreadPoolExecutor(1, "builds")
        self._grew = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._building: Call | None = None
        self._rehearsing = _Rehearsing(self._is_wanted)
        self._requests = 0
        self._used_at = time.monotonic()
        self._verbs: dict[str, Callable[[Call], Any]] = {
            "build": self._build,
            "plan": self._plan,
            "status": lambda call: building.status(_build_request(call)).as_json(),
            "builds": lambda call: [each.as_json() for each in history.builds(_repository(call))],
            **dict.fromkeys(_LOOKUPS, _look_up),
            "sql": _sql,
            "engine_status": lambda _: self._status(),
            "fits": self._fits,
            "keep": lambda _: True,
            "stop": lambda _: self._stopping.set(),
        }

    def run(self, listener: socket.socket) -> None:
        """Serve until there is a reason to end."""
        threading.Thread(target=self._accept, args=(listener,), name="accept", daemon=True).start()
        options = self._options
        settings = warm_settings(BuildRequest(profile=options.profile, master=options.master, spark_conf=options.conf))
        try:
            with open_engine(settings) as spark:
                self._spark = spark
                _log(f"ready, Spark's log is {log_of(spark)}")
                with Warm(spark) as self._warm:
                    self._decided.set()
                    if options.rehearsals:
                        self._builder.submit(self._rehearse, self._warm)
                    self._wait_for_end()
                    self._stopping.set()
                    self._let_calls_end()
        except CodeAnatomyError as error:
            _log(f"failed: {error}")
            self._failure = error
            self._decided.set()
        finally:
            self._stopping.set()
            self._let_calls_end()

    def _is_wanted(self) -> bool:
        """Whether something waits for the thread that builds, or the engine ends."""
        with self._lock:
            return self._stopping.is_set() or any(call.verb in _IN_TURN for call in self._calls)

    def _rehearse(self, warm: Warm) -> None:
        """Make updates quick before the first is asked for; a request ends this."""
        began = time.monotonic()
        self._rehearsing.is_under_way = True
        try:
            rehearse(warm, self._options.rehearsals, self._rehearsing)
            outcome = "rehearsed"
        except Cancelled:
            outcome = "rehearsed in part"
        except Exception as error:  # nothing depends on it
            outcome = f"not rehearsed: {error}"
        self._rehearsing.is_under_way = False
        _log(f"{outcome} ({time.monotonic() - began:.1f} s)")

    def _wait_for_end(self) -> None:
        while not self._stopping.wait(_SECONDS_BETWEEN_CHECKS):
            with self._lock:
                idle = 0.0 if self._calls else time.monotonic() - self._used_at
            if idle >= self._options.idle_minutes * 60:
                _log("ends: idle")
                return
            if idle and code_version() != self._code:
                _log("ends: its code is no longer what is installed")
                return
            if idle and self._grew.is_set() and not self._fits_memory():
                _log("ends: it needs too much memory")
                return

    def _let_calls_end(self) -> None:
        """Cancel what is under way; who asked for it goes on without the engine."""
        deadline = time.monotonic() + SECONDS_TO_ASK
        while time.monotonic() < deadline:
            with self._lock:
                calls = list(self._calls)
            if not calls:
                return
            for call in calls:
                call.cancelled.set()
                self._interrupt(call)
            time.sleep(_SECONDS_BETWEEN_CANCELS)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._serve, args=(connection,), name="connection", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Greet, read one request, answer it."""
        channel = Channel(connection)
        try:
            check_peer(connection)
            channel.wait(SECONDS_TO_ASK)
            channel.send(self._greeting())
            request = channel.receive(MAX_REQUEST_BYTES)
            if request is None:
                return
            channel.wait(None)
            call = Call(channel, request)
            with self._admitted(call), call.watched(self._interrupt):
                channel.send(self._answer(call))
        except ProtocolError as error:
            with contextlib.suppress(ProtocolError):
                channel.send({"error": error_json(f"bad request: {error}", None, 2)})
                channel.finish_sending()
                channel.discard(MAX_REQUEST_BYTES)
        except CodeAnatomyError as error:  # another user
            _log(str(error))
        finally:
            channel.close()

    def _greeting(self) -> Message:
        return {
            "version": codeanatomy.__version__,
            "code": self._code,
            "pid": os.getpid(),
            "ready": self._warm is not None,
            "log": str(self._place.log),
        }

    @contextmanager
    def _admitted(self, call: Call) -> Iterator[None]:
        with self._lock:
            self._calls.append(call)
            self._requests += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)
                if call.verb not in _ABOUT_ENGINE:
                    self._used_at = time.monotonic()

    def _answer(self, call: Call) -> Message:
        began = time.monotonic()
        try:
            answer, outcome = {"result": self._result(call)}, "done"
        except Cancelled:
            answer, outcome = {"cancelled": True}, "cancelled"
        except Declined as reason:
            answer, outcome = {"declined": str(reason), "note": reason.note}, f"declined: {reason}"
        except ProtocolError:
            raise
        except CodeAnatomyError as error:
            answer, outcome = {"error": error_json(error.message, error.hint, error.exit_code)}, f"refused: {error}"
        except Exception as error:  # the client does it again, and tells
            answer, outcome = {"declined": f"the engine failed ({type(error).__name__})", "note": True}, "failed"
            if not call.cancelled.is_set():
                _log(traceback.format_exc())
                self._end_if_spark_is_dead()
        if call.cancelled.is_set() and "result" not in answer:
            answer = (
                {"declined": "the engine was stopped", "note": True} if self._stopping.is_set() else {"cancelled": True}
            )
        _log(f"{call.verb} {call.arguments.get('repo', '')}: {outcome} ({time.monotonic() - began:.2f} s)")
        return answer

    def _result(self, call: Call) -> Any:
        if not isinstance(call.arguments, Mapping):
            raise ProtocolError("arguments are an object")
        verb = self._verbs.get(call.verb)
        if verb is None:
            raise Declined(f"the engine has no verb {call.verb!r}", note=True)
        return verb(call)

    def _fits(self, call: Call) -> bool:
        self._ready(call)
        return bool(asdict(self._options) == call.arguments.get("options"))

    def _ready(self, call: Call) -> Warm:
        """What builds share, once it is there."""
        while not self._decided.is_set():
            call.check()
            if not call.waits:
                raise Declined("it is starting")
            self._decided.wait(_SECONDS_BETWEEN_CANCELS)
        if self._failure is not None:
            raise self._failure
        if self._warm is None or self._stopping.is_set():
            raise Declined("it is ending")
        return self._warm

    def _build(self, call: Call) -> Any:
        request = _build_request(call)
        mine = asdict(self._options)
        if any(mine[option] != call.arguments[field] for option, field in ENGINE_FIELDS.items()):
            raise Declined("the engine runs with another profile, master or configuration", note=True)
        warm = self._ready(call)
        return self._in_turn(call, lambda: warm.build(request, call).as_json())

    def _plan(self, call: Call) -> Any:
        request = _build_request(call)
        return self._in_turn(call, lambda: building.plan(request, listener=call).as_json())

    def _in_turn(self, call: Call, work: Callable[[], Any]) -> Any:
        """Do the work after what others asked for before; end its Spark jobs if the client goes away."""

        def run() -> Any:
            call.check()
            with self._lock:
                self._building = call
            try:
                return work()
            finally:
                with self._lock:
                    self._building = None

        try:
            return self._builder.submit(run).result()
        finally:
            self._grew.set()

    def _interrupt(self, call: Call) -> None:
        """End what a cancelled request waits for, and nothing of another."""
        call.queries.interrupt()
        with self._lock:
            if self._building is call and self._spark is not None:
                with contextlib.suppress(Exception):  # Spark may be ending too
                    cancel_jobs(self._spark)

    def _fits_memory(self) -> bool:
        """Drop what is known of states, least recently used first, until the process is as small as it should be."""
        self._grew.clear()
        warm, used = self._warm, tree_memory_mb()
        for state in warm.states() if warm else ():
            if warm is None or used <= self._max_memory_mb:
                break
            warm.evict(state)
            gc.collect()
            _log(f"dropped what is known of {state}: {used:,} MB in use")
            used = tree_memory_mb()
        return used <= self._max_memory_mb

    def _end_if_spark_is_dead(self) -> None:
        try:
            if self._spark is not None:
                log_of(self._spark)
        except Exception:  # whatever it is, nothing works any more
            _log("ends: Spark is dead")
            self._stopping.set()

    def _status(self) -> dict[str, Any]:
        with self._lock:
            under_way = [f"{call.verb} {call.arguments.get('repo', '')}".strip() for call in self._calls]
        return {
            **{name: value for name, value in self._greeting().items() if name != "code"},
            "started_at": self._started_at.isoformat(timespec="seconds"),
            "memory_mb": tree_memory_mb(),
            "max_memory_mb": self._max_memory_mb,
            "idle_minutes": self._options.idle_minutes,
            "profile": self._options.profile,
            "master": self._options.master,
            "requests": self._requests,
            "under_way": [each for each in under_way if each != "engine_status"],
            "states": self._warm.states() if self._warm else [],
            "rehearsing": self._rehearsing.is_under_way,
        }


def _build_request(call: Call) -> BuildRequest:
    known = {each.name for each in fields(BuildRequest)}
    if call.arguments.keys() != known:
        raise ProtocolError("a build request has other fields")
    arguments: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in call.arguments.items()
    }
    return BuildRequest(**arguments)


def _repository(call: Call) -> Repository:
    return Repository(**{name: _argument(call, name) for name in ("repo", "state", "storage_options")})


def _look_up(call: Call) -> Any:
    verb = getattr(reading, call.verb)
    return verb(_argument(call, "subject"), _repository(call), build=_argument(call, "build")).as_json()


def _sql(call: Call) -> Any:
    result = reading.sql(
        _argument(call, "subject"),
        _repository(call),
        **{name: _argument(call, name) for name in ("build", "timeout", "max_memory_mb")},
    )
    texts, form = _Texts(call), _argument(call, "form")
    if form == "csv":
        result.write_csv(texts)
    elif form == "json":
        if error := write_json({"columns": result.columns, "rows": result.rows()}, texts):
            texts.flush()
            raise error
    else:
        texts.write(json_text(result.columns))
        for row in result.rows():
            texts.write(json_text(plain_row(row)))
    texts.flush()
    return True


class _Texts:
    """A stream whose reader is the client; what is written together may be sent together."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._texts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Send the text, now or with what follows."""
        self._texts.append(text)
        self._size += len(text)
        if self._size > _TEXT_SIZE:
            self.flush()

    def flush(self) -> None:
        """Send all that was written."""
        self._call.texts(self._texts)
        self._texts, self._size = [], 0


def _argument(call: Call, name: str) -> Any:
    if name not in call.arguments:
        raise ProtocolError(f"{call.verb} needs {name}")
    return call.arguments[name]


def _log(text: str) -> None:
    """One entry of the log, which stderr is; never what a request has but its verb and its repository."""
    sys.stderr.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}\n")
    sys.stderr.flush()


def main() -> None:
    """Serve, unless there is an engine."""
    options = EngineOptions(**json.load(sys.stdin))
    os.environ.pop("PYTHONPATH", None)
    place = engine_place()
    with _held(place) as is_ours:
        if not is_ours:
            return
        _log(f"starts: pid {os.getpid()}, version {codeanatomy.__version__}, {sys.executable}")
        with place.listening() as listener:
            Server(place, options).run(listener)
    _log("ended")
    sys.stderr.flush()
    os._exit(0)  # threads may wait for clients


@contextmanager
def _held(place: Place) -> Iterator[bool]:
    """Hold the lock of the engine; somebody may hold it for a moment to find out whether an engine does."""
    deadline = time.monotonic() + _SECONDS_TO_LOCK
    while True:
        with place.held() as is_ours:
            if is_ours or time.monotonic() > deadline:
                yield is_ours
                return
        time.sleep(_SECONDS_BETWEEN_CANCELS)


if __name__ == "__main__":
    main()
