"""What went wrong, in one line, of an error whose text is a chain of causes: the innermost that says something.

Spark wraps what happened several times over, each time with a message that says less. py4j's errors and Spark's own
carry the whole chain in their text; those of Spark Connect keep it beside their message. delta-rs has an arrow before
each cause. No Spark is needed to read it.
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
    """The innermost cause of `error`, in one line; of an error that is no stack trace, its first line."""
    links = _links(text_of(error).strip())
    found = ""
    for link in reversed(links):
        message = _message(link)
        # Java repeats the cause in what it says of it ("Cannot run program …: error=2"): the longer one says more.
        if found and not message.endswith(found):
            break
        found = message
    return found or (links[-1].partition("\n")[0] if links else type(error).__name__)


def text_of(error: BaseException) -> str:
    """All that is known of an error: Spark's keep the stack trace beside their text."""
    trace = getattr(error, "_stacktrace", None) or getattr(error, "_stackTrace", None)
    return f"{error}\n{trace}" if isinstance(trace, str) else str(error)


def _links(text: str) -> list[str]:
    """The chain of causes, outermost first; each begins with its message, and what follows is of no interest."""
    parts = [part for link in _CAUSED_BY.split(_OF_PY4J.sub("", text)) for part in _LOST_TASK.split(link)]
    return [part.strip() for part in parts if part.strip()]


def _message(link: str) -> str:
    """What one link says: its first line without the class, or the line that ends a traceback of Python's."""
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
