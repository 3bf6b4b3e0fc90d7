"""Ask the engine: one connection, one request, its progress and its answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codeanatomy.errors import CodeAnatomyError, MachineError
from codeanatomy.service.place import IS_SUPPORTED, engine_place
from codeanatomy.service.protocol import Channel, Message, ProtocolError
from codeanatomy.service.version import code_version

if TYPE_CHECKING:
    from codeanatomy.pipeline.progress import Listener

SECONDS_TO_GREET = 5.0
SECONDS_TO_CANCEL = 10.0


class UnavailableError(Exception):
    """The engine does not do it; `note` says whether the user should know why."""

    def __init__(self, reason: str, *, note: bool = False) -> None:
        super().__init__(reason)
        self.note = note


class NotRunningError(UnavailableError):
    """There is no engine of this version."""


@dataclass(frozen=True)
class Question:
    """A verb and its arguments, as the engine takes them; `wait` for one that is just starting."""

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    listener: Listener | None = None
    wait: bool = False


def ask(question: Question) -> Any:
    """The engine's answer; UnavailableError if it gives none, the error of the verb if that fails."""
    answer = stream(question)
    while True:
        try:
            next(answer)
        except StopIteration as end:
            return end.value


def stream(question: Question) -> Generator[str, None, Any]:
    """The parts of a long answer, as they come; who stops reading cancels the rest."""
    with connected() as (channel, greeting):
        if greeting["code"] != code_version():
            raise NotRunningError("the one that runs is of another version")
        try:
            channel.send(
                {
                    "verb": question.verb,
                    "arguments": question.arguments,
                    "progress": question.listener is not None,
                    "wait": question.wait,
                }
            )
            return (yield from _answer(channel, question, greeting))
        except ProtocolError as error:
            raise _lost(greeting, str(error)) from error


@contextmanager
def connected() -> Iterator[tuple[Channel, Message]]:
    """A connection to the engine, and its greeting; UnavailableError if there is no engine to talk to."""
    if not IS_SUPPORTED:
        raise UnavailableError("this system does not tell who is at the other end of a socket")
    try:
        connection = engine_place().connect(SECONDS_TO_GREET)
    except MachineError as error:
        raise UnavailableError(str(error), note=True) from error
    except OSError as error:
        raise UnavailableError(f"it does not answer ({error})", note=True) from error
    if connection is None:
        raise NotRunningError("none is running")
    channel = Channel(connection)
    try:
        yield channel, _greeting(channel)
    finally:
        channel.close()


def _greeting(channel: Channel) -> Message:
    try:
        greeting = channel.receive()
    except ProtocolError as error:
        raise UnavailableError("the engine does not answer", note=True) from error
    if greeting is None:  # it was just ending
        raise NotRunningError("none is running")
    channel.wait(None)
    return greeting


def _answer(channel: Channel, question: Question, greeting: Message) -> Generator[str, None, Any]:
    """Follow the progress to the answer. Ctrl-C cancels the request, and waits a while for the engine to say so."""
    try:
        return (yield from _follow(channel, question, greeting))
    except KeyboardInterrupt:
        channel.finish_sending()
        channel.wait(SECONDS_TO_CANCEL)
        try:
            return (yield from _follow(channel, Question(question.verb), greeting))
        except (ProtocolError, UnavailableError):
            raise KeyboardInterrupt from None


def _follow(channel: Channel, question: Question, greeting: Message) -> Generator[str, None, Any]:
    while (message := channel.receive()) is not None:
        match message:
            case {"stage": name}:
                if question.listener:
                    question.listener.stage(name)
            case {"advance": [done, total, unit]}:
                if question.listener:
                    question.listener.advance(done, total, unit)
            case {"texts": texts}:
                yield from texts
            case {"result": result}:
                return result
            case {"error": {"error": text, "hint": hint, "exit_code": code}}:
                raise _error(text, hint, code)
            case {"declined": reason, "note": note}:
                raise UnavailableError(reason, note=note)
            case {"cancelled": True}:
                raise KeyboardInterrupt
            case _:
                raise ProtocolError("the answer is no message")
    raise _lost(greeting, "it ended")


def _lost(greeting: Message, how: str) -> UnavailableError:
    return UnavailableError(f"the engine (pid {greeting['pid']}) failed: {how} (log: {greeting['log']})", note=True)


def _error(message: str, hint: str | None, exit_code: int) -> CodeAnatomyError:
    error = CodeAnatomyError(message, hint=hint)
    error.exit_code = exit_code
    return error
