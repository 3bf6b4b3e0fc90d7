"""How a dataset is described: a name, a purpose, and typed, documented columns.

Glossary
    dataset   a named set of rows; a stored table or a view, users see no difference.
    fact      a dataset read off one content; stored nested in the `facts` table.
    layer     a part of extraction with a version of its own (`layers`).
    owner     the file a row belongs to (`file_id`), or `__global__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

GLOBAL_OWNER = "__global__"
"""Owner of the few rows that belong to no file."""


@dataclass(frozen=True)
class Column:
    """One column: its name, its Arrow type and what it means.

    `layer` names the layer of extraction that fills it in, if that is another than the layer of its dataset.
    """

    name: str
    type: pa.DataType
    doc: str
    required: bool = False
    layer: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A named set of rows with a fixed, documented schema."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    identity: tuple[str, ...] = ()
    """Columns that determine the rest of a row: a digest of the rows reads only these. All columns if empty."""
    sort_by: tuple[str, ...] = ()
    """Order of an owner's rows in a data file: similar neighbours compress well."""

    def schema(self) -> pa.Schema:
        """The Arrow schema of a row."""
        return pa.schema(pa.field(c.name, c.type, nullable=not c.required) for c in self.columns)

    def table(self, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
        """Rows as an Arrow table."""
        return table_of(self.schema(), rows)

    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    def column(self, name: str) -> Column:
        """The column called `name`."""
        for candidate in self.columns:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{self.name} has no column {name}")


def table_of(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Rows as an Arrow table of this schema, which holds where there are no rows or no values to tell a type from."""
    listed = list(rows)
    columns = zip(*listed, strict=True) if listed else ((),) * len(schema)
    return pa.table([list(column) for column in columns], schema=schema)


def text(name: str, doc: str, *, required: bool = False) -> Column:
    """A string column."""
    return Column(name, pa.string(), doc, required)


def number(name: str, doc: str, *, required: bool = False) -> Column:
    """A 32-bit integer column: ordinals, offsets, counts inside one file."""
    return Column(name, pa.int32(), doc, required)


def long(name: str, doc: str, *, required: bool = False) -> Column:
    """A 64-bit integer column."""
    return Column(name, pa.int64(), doc, required)


def flag(name: str, doc: str, *, required: bool = True) -> Column:
    """A boolean column; a fact that is either so or not, hence required by default.

    Not required in a table whose rules do not all give it.
    """
    return Column(name, pa.bool_(), doc, required)


def real(name: str, doc: str, *, required: bool = False) -> Column:
    """A floating point column."""
    return Column(name, pa.float64(), doc, required)


def texts(name: str, doc: str) -> Column:
    """A list of strings."""
    return Column(name, pa.list_(pa.string()), doc)


def span(what: str = "", *, prefix: str = "", required: bool = True) -> tuple[Column, Column]:
    """Start and end of `what`, as UTF-8 byte offsets, end-exclusive."""
    of = f" of {what}" if what else ""
    return (
        number(f"{prefix}bstart", f"first byte{of}", required=required),
        number(f"{prefix}bend", f"byte after the last{of}", required=required),
    )


def lines() -> tuple[Column, Column, Column]:
    """Where a span is for people: first line, last line, column of the first byte."""
    return (
        number("line_start", "first line, from 1", required=True),
        number("line_end", "last line, from 1", required=True),
        number("col_start", "byte column of the start, from 0", required=True),
    )
