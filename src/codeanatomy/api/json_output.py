"""JSON as every command prints it: ASCII, valid, one object or list.

Values that JSON does not have are converted: a number that is not finite to null, a decimal to a number, anything else
to text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Protocol

from codeanatomy.errors import CodeAnatomyError


class TextStream(Protocol):
    """Something that text can be written to."""

    def write(self, text: str, /) -> object:
        """Write it."""


def json_text(value: object) -> str:
    """A value as JSON, in one line."""
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # a number that is not finite; too rare to look for first
        text = _ENCODER.encode(_finite(value))
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON leaves as it is


def error_json(message: str, hint: str | None, exit_code: int) -> dict[str, Any]:
    """The object that commands print for an error."""
    return {"error": message, "hint": hint, "exit_code": exit_code}


def write_json(value: Mapping[str, Any], stream: TextStream) -> CodeAnatomyError | None:
    """Write one object, in which iterators are lists that are written item by item.

    If an iterator fails, the object ends there, as valid JSON with the error in it; the error is returned.
    """
    try:
        for piece in _pieces(value, outermost=True):
            stream.write(piece)
    except CodeAnatomyError as error:
        return error
    return None


def _pieces(value: object, *, outermost: bool = False) -> Iterator[str]:
    if not isinstance(value, Mapping | Iterator):
        yield json_text(value)
        return
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    yield opening
    try:
        if isinstance(value, Mapping):
            for number, (key, member) in enumerate(value.items()):
                yield f"{', ' if number else ''}{json_text(key)}: "
                yield from _pieces(member)
        else:
            for number, item in enumerate(value):
                yield f"{',' if number else ''}\n{json_text(item)}"
    except CodeAnatomyError as error:
        members = json_text(error_json(error.message, error.hint, error.exit_code))
        yield f", {members[1:]}\n" if outermost else closing
        raise
    yield f"{closing}\n" if outermost else closing


def _finite(value: object) -> object:
    """The value with null for each number in it that is not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    """A value that JSON does not have: a decimal, as sums are in DuckDB, as a number, anything else as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


_ENCODER = json.JSONEncoder(default=_plain, allow_nan=False)
