"""What became of each module and definition from one build to another, told in dotted names.

A symbol is what is said of it: its kind, its parameters, how long it is; what it calls, reads, imports and so on. All
of this hangs on ids that are made from names. Calls and name references take no part: their ids are their places in
the file, so that one more call renumbers all that follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb

from codeanatomy.query.comparison import AFTER, BEFORE, statement

_DESCRIPTION = ("parameters", "definitions", "symbols", "names", "ties", "said")
"""Relations that describe the symbols of one build, each made from those before it."""

_PROPERTIES = ("kind", "async", "parameters", "returns", "source")
"""Aspects that a symbol has one value of."""


@dataclass(frozen=True)
class SymbolDiff:
    """What became of one symbol: it was added, removed or changed, and in what."""

    name: str
    path: str
    kind: str
    change: str
    details: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The symbol as commands print it."""
        return vars(self) | {"details": list(self.details)}


def compare_symbols(connection: duckdb.DuckDBPyConnection) -> Iterator[SymbolDiff]:
    """Symbols that differ between the sides of the connection, by name."""
    for side in (BEFORE, AFTER):
        connection.execute(f"USE {side}")
        for relation in _DESCRIPTION:
            connection.execute(f"CREATE TABLE {relation} AS {statement(relation)}")
    differences = connection.execute(statement("differences")).fetchall()
    for (name, path, kind, change), aspects in groupby(differences, itemgetter(0, 1, 2, 3)):
        details = [detail for *_, aspect, lost, gained in aspects for detail in _details(aspect, lost, gained)]
        yield SymbolDiff(name, path, kind, change, tuple(details) if change == "changed" else ())


def _details(aspect: str, lost: Sequence[str] | None, gained: Sequence[str] | None) -> list[str]:
    if aspect in _PROPERTIES:
        return [f"{aspect}: {(lost or '-')[0]} → {(gained or '-')[0]}"]
    return [f"- {aspect} {value}" for value in lost or ()] + [f"+ {aspect} {value}" for value in gained or ()]
