"""The cause of an error in one line: of a chain of causes, the innermost that has a message.

Spark wraps errors several times, each time with a less specific message. Errors of py4j and Spark have the whole chain
in their text; those of Spark Connect have it beside their message. delta-rs puts an arrow before each cause. Reading it
needs no Spark.
"""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile

_CAUSED_BY = re.compile(r"^\s*Caused by: ", re.MULTILINE)
_LOST_TASK = re.compile(r"most recent failure: Lost task [^\n]*?\(TID \d+\) \([^\n)]*\): ")
_OF_PY4J = re.compile(r"^An error occurred while calling [^\n]*\.\n: ")
_CLASS = re.compile(r"^(?:\(?(?:[a-z_$][\w$]*\.)+[A-Z][\w$.]*(?:: |\) |:?$))+")
_ARROW = re.compile(r"↳(?:\x1b\[\d*m)*")
_TRACEBACK = "Traceback (most recent call last):"


def cause_of(error: BaseException) -> str:
    """The innermost cause of `error` in one line; the first line of an error without a stack trace."""
    links = _links(text_of(error).strip())
    found = ""
    for link in reversed(links):
        message = _message(link)
        # Java repeats the message of a cause in a longer one ("Cannot run program …: error=2"): use the longer one.
        if found and not message.endswith(found):
            break
        found = message
    return found or (links[-1].partition("\n")[0] if links else type(error).__name__)


def text_of(error: BaseException) -> str:
    """The text of an error with its stack trace, which Spark keeps beside the text."""
    trace = getattr(error, "_stacktrace", None) or getattr(error, "_stackTrace", None)
    return f"{error}\n{trace}" if isinstance(trace, str) else str(error)


def _links(text: str) -> list[str]:
    """The chain of causes, outermost first; each begins with its message."""
    parts = [part for link in _CAUSED_BY.split(_OF_PY4J.sub("", text)) for part in _LOST_TASK.split(link)]
    return [part.strip() for part in parts if part.strip()]


def _message(link: str) -> str:
    """The message of one link: its first line without the class, or the last line of a Python traceback."""
    _, is_python, traceback = link.rpartition(_TRACEBACK)
    lines = (traceback if is_python else link).splitlines()
    if is_python:
        lines = list(dropwhile(_is_indented, lines))
    if not lines:
        return ""
    within = [_ARROW.split(line)[-1] for line in takewhile(_is_indented, lines[1:]) if _ARROW.search(line)]
    if within:
        return within[-1].strip()
    return lines[0].strip() if is_python else _CLASS.sub("", lines[0]).strip()


def _is_indented(line: str) -> bool:
    return not line or line.startswith(" ")
