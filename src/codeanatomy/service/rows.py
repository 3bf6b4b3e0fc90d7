"""Rows of a query as JSON, from which a table is printed as from the rows themselves.

JSON has neither decimals nor numbers that are not finite; everything else that it does not have is printed as text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any


def plain_row(row: Iterable[object]) -> list[object]:
    """A row in values that JSON has."""
    return [_plain(value) for value in row]


def row_from(text: str) -> Sequence[Any]:
    """The row that was sent as this text."""
    return [_value(value) for value in json.loads(text)]


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    return str(value)


def _value(value: object) -> object:
    match value:
        case {"decimal": str(text)}:
            return Decimal(text)
        case {"float": str(text)}:
            return float(text)
        case _:
            return value
