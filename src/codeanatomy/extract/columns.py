"""Facts of a batch as columns, and the Arrow record batch made of them.

Glossary
    cell     an integer. A text is its number in the `Pool`, a flag is 0 or 1, a missing value is -1, a list is its
             length (its elements are laid end to end in an array of their own).
    stored   a column the walk writes cells for. What follows from other cells (ordinals, lines, the enclosing
             definition) is not stored; it is computed here, for the whole batch at once.

This module knows how datasets are laid out, and nothing of Python's syntax.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from codeanatomy.catalogue import facts
from codeanatomy.catalogue.columns import Column, Dataset
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract.source import Source, Undecodable

Numbers = npt.NDArray[np.integer[Any]]

BINDING_FLAGS: Final = tuple(c.name for c in facts.SYM_BINDINGS.columns if pa.types.is_boolean(c.type))
"""Flags of a binding, in the order of their bits in its `flags` cell."""

_ORDINALS: Final = {
    "cst_defs": "def_no",
    "cst_params": "param_no",
    "cst_callsites": "call_no",
    "cst_name_refs": "ref_no",
    "cst_imports": "import_no",
    "cst_type_exprs": "type_no",
    "cst_assigns": "assign_no",
    "sym_scopes": "scope_no",
    "sym_bindings": "binding_no",
    "all_names": "position",
}
_DEF_OF_SCOPE: Final = {
    "cst_defs": "container_no",
    "cst_callsites": "def_no",
    "cst_name_refs": "def_no",
    "cst_imports": "def_no",
    "cst_type_exprs": "def_no",
    "cst_assigns": "def_no",
}
_LINES: Final = ("line_start", "line_end", "col_start")


def _stored(dataset: Dataset) -> tuple[str, ...]:
    """Names of the cells of one row, in order."""
    computed = {*_LINES, _ORDINALS.get(dataset.name), _DEF_OF_SCOPE.get(dataset.name)}
    names = [name for name in dataset.names() if name not in computed]
    if dataset is facts.SYM_BINDINGS:
        names = ["flags" if name == BINDING_FLAGS[0] else name for name in names if name not in BINDING_FLAGS[1:]]
    return tuple(names)


STORED: Final = {dataset.name: _stored(dataset) for dataset in facts.FACT_DATASETS}


class Pool(dict[bytes, int]):
    """Distinct texts of a batch, numbered as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[bytes] = []
        # Names whose meaning may have another spelling: `__private` ones and those outside ASCII.
        self.odd_names: set[int] = set()

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self.texts)
        self.texts.append(text)
        if text.startswith(b"__") or not text.isascii():
            self.odd_names.add(number)
        return number


class FactCells:
    """Cells of every fact dataset of a batch, while it is being extracted."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.rows: dict[str, array[int]] = {name: array("i") for name in STORED}
        self.keywords = array("i")
        self.unpacks = array("i")
        self.def_of_scope = array("i")
        self.binding_of_symbol = array("i")
        self.counts: list[list[int]] = []

    def close_content(self) -> None:
        """Everything emitted since the last call belongs to one content."""
        self.counts.append([len(self.rows[name]) // len(stored) for name, stored in STORED.items()])


@dataclass(frozen=True)
class _Lines:
    """Line starts of all contents of a batch, as if their texts were one."""

    bases: Numbers
    starts: Numbers
    first_line: Numbers

    def locate(self, content: Numbers, offset: Numbers) -> tuple[Numbers, Numbers]:
        """Line, from 1, and column, from 0, of a byte of a content."""
        position = self.bases[content] + offset
        line = np.searchsorted(self.starts, position, side="right") - 1
        return line - self.first_line[content] + 1, position - self.starts[line]


def record_batch(
    content_ids: Sequence[str], sources: Sequence[Source | Undecodable], cells: FactCells
) -> pa.RecordBatch:
    """The batch in the schema of `facts`, one row per content."""
    texts = pa.array(cells.pool.texts, pa.binary()).cast(pa.string())
    starts = [s.line_starts if isinstance(s, Source) else np.zeros(1, np.int32) for s in sources]
    lines = _lines(starts, [len(s.text) if isinstance(s, Source) else 0 for s in sources])
    offsets = np.zeros((len(cells.counts) + 1, len(STORED)), np.int64)
    if cells.counts:
        offsets[1:] = cells.counts
    ends = dict(zip(STORED, offsets.T, strict=True))
    tables = {name: _matrix(cells.rows[name], len(stored)) for name, stored in STORED.items()}
    lists = {
        "keywords": np.frombuffer(cells.keywords, np.int32),
        "unpack": np.frombuffer(cells.unpacks, np.int32),
        "decorators": _cell(tables, "cst_decorators", "text"),
        "bases": _cell(tables, "cst_bases", "text"),
    }
    columns: dict[str, pa.Array] = {
        "content_id": pa.array(content_ids, pa.string()),
        "encoding": pa.array([s.encoding if isinstance(s, Source) else None for s in sources], pa.string()),
        "has_bom": pa.array([s.has_bom for s in sources], pa.bool_()),
        "line_starts": pa.array([s.line_starts if isinstance(s, Source) else None for s in sources], _LINE_STARTS),
    }
    for dataset in facts.FACT_DATASETS:
        name = dataset.name
        content = np.repeat(np.arange(len(content_ids)), np.diff(ends[name]))
        values = dict(zip(STORED[name], tables[name].T, strict=True))
        if name in _ORDINALS:
            values[_ORDINALS[name]] = np.arange(len(content)) - ends[name][content]
        if name in _DEF_OF_SCOPE:
            scope = ends["sym_scopes"][content] + values["scope_no"]
            values[_DEF_OF_SCOPE[name]] = np.frombuffer(cells.def_of_scope, np.int32)[scope]
        if "line_start" in dataset.names():
            values["line_start"], values["col_start"] = lines.locate(content, values["bstart"])
            last_byte = np.maximum(values["bend"] - 1, values["bstart"])
            values["line_end"] = lines.locate(content, last_byte)[0]
        if dataset is facts.CST_NAME_REFS:
            # A plain name's cell is its symbol; which binding that is, is known once its content was resolved.
            bindings = np.append(np.frombuffer(cells.binding_of_symbol, np.int32), np.int32(-1))
            values["binding_no"] = bindings[values["binding_no"]]
        if dataset is facts.SYM_BINDINGS:
            values.update((flag, values["flags"] >> bit & 1) for bit, flag in enumerate(BINDING_FLAGS))
        columns[name] = _lists_of_rows(dataset, ends[name], values, texts, lists)
    return pa.RecordBatch.from_arrays([columns[name] for name in FACTS.names()], schema=FACTS.schema())


_LINE_STARTS: Final = FACTS.column("line_starts").type


def _lines(starts: Sequence[Numbers], sizes: Sequence[int]) -> _Lines:
    """Lay the texts of the batch end to end; each takes at least one byte, so that no two lines start together."""
    bases = np.cumsum([0, *(size + 1 for size in sizes)])[:-1]
    counts = np.array([len(s) for s in starts], np.int64)
    everything = np.concatenate(starts) if starts else np.zeros(0, np.int64)
    return _Lines(bases, everything + np.repeat(bases, counts), np.cumsum(counts) - counts)


def _matrix(cells: array[int], width: int) -> Numbers:
    return np.frombuffer(cells, np.int32).reshape(-1, width)


def _cell(tables: Mapping[str, Numbers], dataset: str, column: str) -> Numbers:
    return tables[dataset][:, STORED[dataset].index(column)]


def _lists_of_rows(
    dataset: Dataset, ends: Numbers, values: Mapping[str, Numbers], texts: pa.Array, lists: Mapping[str, Numbers]
) -> pa.ListArray:
    """One list of structs per content."""
    arrays = [_arrow(column, values[column.name], texts, lists) for column in dataset.columns]
    structs = pa.StructArray.from_arrays(arrays, fields=list(dataset.schema()))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=FACTS.column(dataset.name).type)


def _arrow(column: Column, values: Numbers, texts: pa.Array, lists: Mapping[str, Numbers]) -> pa.Array:
    """Cells of one column as an Arrow array of its type."""
    if pa.types.is_list(column.type):
        offsets = np.concatenate(([0], np.cumsum(values)))
        return pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), texts.take(pa.array(lists[column.name])), type=column.type
        )
    if pa.types.is_boolean(column.type):
        return pa.array(values != 0)
    numbers = pa.array(values, pa.int32(), mask=None if column.required else values < 0)
    return texts.take(numbers) if pa.types.is_string(column.type) else numbers
