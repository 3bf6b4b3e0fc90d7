"""Modules and definitions that were added, removed or changed from one build to another, by dotted name.

A symbol is compared by its aspects: its kind, its parameters, how long it is; what it calls, reads, imports and so on.
All of these are found through ids that are made from names. Calls and name references are not compared: their ids are
their positions in the file, so that one more call renumbers all that follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import duckdb

from codeanatomy.query.comparison import AFTER, BEFORE
from codeanatomy.query.statements import statement

_DESCRIPTION = ("parameters", "definitions", "symbols", "names", "relationships", "aspects")
"""Relations that describe the symbols of one build, each computed from those before it."""

_SINGLE_VALUED = ("kind", "async", "parameters", "returns", "source")
"""Aspects of which a symbol has one value."""


@dataclass(frozen=True)
class SymbolDiff:
    """A symbol that was added, removed or changed, and in what."""

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
            connection.execute(f"CREATE TABLE {relation} AS {statement(f'diff/{relation}')}")
    differences = connection.execute(statement("diff/differences")).fetchall()
    for (name, path, kind, change), aspects in groupby(differences, itemgetter(0, 1, 2, 3)):
        details = [detail for *_, aspect, lost, gained in aspects for detail in _details(aspect, lost, gained)]
        yield SymbolDiff(name, path, kind, change, tuple(details) if change == "changed" else ())


def _details(aspect: str, lost: Sequence[str] | None, gained: Sequence[str] | None) -> list[str]:
    if aspect in _SINGLE_VALUED:
        return [f"{aspect}: {(lost or '-')[0]} → {(gained or '-')[0]}"]
    return [f"- {aspect} {value}" for value in lost or ()] + [f"+ {aspect} {value}" for value in gained or ()]
