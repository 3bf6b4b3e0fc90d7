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
from hashlib import sha256
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
    "cst_implicit_calls": "implicit_no",
    "cst_name_refs": "ref_no",
    "cst_imports": "import_no",
    "cst_type_exprs": "type_no",
    "cst_assigns": "assign_no",
    "sym_scopes": "scope_no",
    "sym_bindings": "binding_no",
    "asks": "ask_no",
    "all_names": "position",
}
_DEF_OF_SCOPE: Final = {
    "cst_defs": "container_no",
    "cst_callsites": "def_no",
    "cst_implicit_calls": "def_no",
    "cst_name_refs": "def_no",
    "cst_imports": "def_no",
    "cst_type_exprs": "def_no",
    "cst_assigns": "def_no",
    "sym_scopes": "def_no",
}
_KEY_OF_NUMBER: Final = {
    "def_key": "def_no",
    "container_key": "container_no",
    "scope_key": "scope_no",
    "parent_key": "parent_no",
    "binding_key": "binding_no",
    "target_key": "target_no",
}
_KEYED: Final = {
    "def_key": "cst_defs",
    "container_key": "cst_defs",
    "owner_key": "cst_defs",
    "caller_key": "cst_defs",
    "scope_key": "sym_scopes",
    "parent_key": "sym_scopes",
    "binding_key": "sym_bindings",
    "target_key": "sym_bindings",
}
_SYMBOLS: Final = {
    "cst_name_refs": ["binding_no"],
    "cst_type_exprs": ["binding_key"],
    "sym_values": ["binding_key"],
}
_CALLER: Final = "caller_key"
_KEY_DIGITS: Final = 24
_LINES: Final = ("line_start", "line_end", "col_start")


def _stored(dataset: Dataset) -> tuple[str, ...]:
    """Names of the cells of one row, in order; a key that no number stands beside has its number as cell."""
    names = dataset.names()
    computed = {*_LINES, _ORDINALS.get(dataset.name), _DEF_OF_SCOPE.get(dataset.name)}
    computed |= {key for key, number in _KEY_OF_NUMBER.items() if number in names} | {_CALLER}
    stored = [name for name in names if name not in computed]
    if dataset is facts.SYM_BINDINGS:
        stored = ["flags" if name == BINDING_FLAGS[0] else name for name in stored if name not in BINDING_FLAGS[1:]]
    return tuple(stored)


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
        self.function_of_scope = array("i")
        self.binding_of_symbol = array("i")
        self.counts: list[list[int]] = []

    def close_content(self) -> None:
        """Everything emitted since the last call belongs to one content."""
        self.counts.append([len(self.rows[name]) // len(stored) for name, stored in STORED.items()])


@dataclass(frozen=True)
class _Lines:
    """Line starts of all contents of a batch, as if their texts were laid end to end."""

    bases: Numbers
    starts: Numbers
    first_line: Numbers

    @staticmethod
    def of(sources: Sequence[Source | Undecodable]) -> _Lines:
        """The lines of a batch; an undecodable content has one, empty, line."""
        starts = [s.line_starts if isinstance(s, Source) else np.zeros(1, np.int32) for s in sources]
        # Each text takes at least one byte, so that no two lines start at one place.
        sizes = [len(s.text) + 1 if isinstance(s, Source) else 1 for s in sources]
        bases = np.cumsum([0, *sizes])[:-1]
        counts = np.array([len(s) for s in starts], np.int64)
        laid_out = np.concatenate([np.zeros(0, np.int64), *starts]) + np.repeat(bases, counts)
        return _Lines(bases, laid_out, np.cumsum(counts) - counts)

    def locate(self, content: Numbers, offset: Numbers) -> tuple[Numbers, Numbers]:
        """Line, from 1, and column, from 0, of a byte of a content."""
        position = self.bases[content] + offset
        line = np.searchsorted(self.starts, position, side="right") - 1
        return line - self.first_line[content] + 1, position - self.starts[line]


def record_batch(
    extractor: str, content_ids: Sequence[str], sources: Sequence[Source | Undecodable], cells: FactCells
) -> pa.RecordBatch:
    """The batch in the schema of `facts`, one row per content."""
    tables = _Tables.of(cells)
    lines = _Lines.of(sources)
    texts = pa.array(cells.pool.texts, pa.binary()).cast(pa.string())
    keys = _keys(tables, cells.pool.texts)
    lists = {
        "keywords": np.frombuffer(cells.keywords, np.int32),
        "unpack": np.frombuffer(cells.unpacks, np.int32),
        "decorators": tables.cells["cst_decorators"]["text"],
        "bases": tables.cells["cst_bases"]["text"],
    }
    columns: dict[str, pa.Array] = {
        "content_id": pa.array(content_ids, pa.string()),
        "extractor": pa.array([extractor] * len(sources), pa.string()),
        "encoding": pa.array([s.encoding if isinstance(s, Source) else None for s in sources], pa.string()),
        "has_bom": pa.array([s.has_bom for s in sources], pa.bool_()),
        "line_starts": pa.array(
            [s.line_starts if isinstance(s, Source) else None for s in sources], FACTS.column("line_starts").type
        ),
    }
    for dataset in facts.FACT_DATASETS:
        values = _computed(dataset, tables, lines)
        arrays = []
        for column in dataset.columns:
            if column.name in _KEYED:
                arrays.append(keys[_KEYED[column.name]].take(_numbers(column, values[column.name])))
            else:
                arrays.append(_arrow(column, values[column.name], texts, lists))
        structs = pa.StructArray.from_arrays(arrays, fields=list(dataset.schema()))
        columns[dataset.name] = pa.ListArray.from_arrays(
            pa.array(tables.ends[dataset.name], pa.int32()), structs, type=FACTS.column(dataset.name).type
        )
    return pa.RecordBatch.from_arrays([columns[name] for name in FACTS.names()], schema=FACTS.schema())


@dataclass(frozen=True)
class _Tables:
    """Cells of the batch by dataset and column, and where the rows of each content end."""

    cells: Mapping[str, Mapping[str, Numbers]]
    ends: Mapping[str, Numbers]
    def_of_scope: Numbers
    function_of_scope: Numbers
    binding_of_symbol: Numbers

    @staticmethod
    def of(cells: FactCells) -> _Tables:
        """The tables of a batch whose contents are all closed."""
        ends = np.zeros((len(cells.counts) + 1, len(STORED)), np.int64)
        if cells.counts:
            ends[1:] = cells.counts
        return _Tables(
            {
                name: dict(
                    zip(stored, np.frombuffer(cells.rows[name], np.int32).reshape(-1, len(stored)).T, strict=True)
                )
                for name, stored in STORED.items()
            },
            dict(zip(STORED, ends.T, strict=True)),
            np.frombuffer(cells.def_of_scope, np.int32),
            np.frombuffer(cells.function_of_scope, np.int32),
            np.append(np.frombuffer(cells.binding_of_symbol, np.int32), np.int32(-1)),
        )

    def content(self, dataset: str) -> Numbers:
        """Which content each row belongs to."""
        ends = self.ends[dataset]
        return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def _computed(dataset: Dataset, tables: _Tables, lines: _Lines) -> dict[str, Numbers]:
    """Values of every column of a dataset, stored or not; of a key column, the number of its row in the batch."""
    name = dataset.name
    content = tables.content(name)
    values = dict(tables.cells[name])
    if name in _ORDINALS:
        values[_ORDINALS[name]] = np.arange(len(content)) - tables.ends[name][content]
    if name in _DEF_OF_SCOPE:
        values[_DEF_OF_SCOPE[name]] = tables.def_of_scope[tables.ends["sym_scopes"][content] + values["scope_no"]]
    if _CALLER in dataset.names():
        values[_CALLER] = tables.function_of_scope[tables.ends["sym_scopes"][content] + values["scope_no"]]
    if "line_start" in dataset.names():
        prefix = "site_" if dataset is facts.SYM_BINDINGS else ""
        start, end = values[f"{prefix}bstart"], values[f"{prefix}bend"]
        line, col = lines.locate(content, np.maximum(start, 0))
        values["line_start"], values["col_start"] = np.where(start < 0, -1, line), np.where(start < 0, -1, col)
        line, _ = lines.locate(content, np.maximum(end - 1, np.maximum(start, 0)))
        values["line_end"] = np.where(start < 0, -1, line)
    if dataset is facts.SYM_BINDINGS:
        values.update((flag, values["flags"] >> bit & 1) for bit, flag in enumerate(BINDING_FLAGS))
    # The cell of a name is its symbol: which binding that is, is known only once its content was resolved.
    for symbol in _SYMBOLS.get(name, ()):
        values[symbol] = tables.binding_of_symbol[values[symbol]]
    for key in _KEYED.keys() & set(dataset.names()):
        beside = _KEY_OF_NUMBER.get(key, key)
        number = values[beside if beside in values else key]
        values[key] = np.where(number < 0, -1, tables.ends[_KEYED[key]][content] + number)
    return values


def _keys(tables: _Tables, texts: Sequence[bytes]) -> dict[str, pa.Array]:
    """The key of every definition, scope and binding of the batch."""
    named = {
        name: [
            b"%b#%d" % (texts[qualname], ordinal)
            for qualname, ordinal in zip(
                tables.cells[name]["qualname"].tolist(), tables.cells[name]["ordinal"].tolist(), strict=True
            )
        ]
        for name in ("cst_defs", "sym_scopes")
    }
    bindings = tables.cells["sym_bindings"]
    scopes = tables.ends["sym_scopes"][tables.content("sym_bindings")] + bindings["scope_no"]
    named["sym_bindings"] = [
        b"%b:%b" % (named["sym_scopes"][scope], texts[name])
        for scope, name in zip(scopes.tolist(), bindings["name"].tolist(), strict=True)
    ]
    return {name: pa.array([key_of(text) for text in keyed], pa.string()) for name, keyed in named.items()}


def key_of(text: bytes) -> str:
    """The key of what is called `text`."""
    return sha256(text).hexdigest()[:_KEY_DIGITS]


def _numbers(column: Column, values: Numbers) -> pa.Array:
    """Cells as an Arrow array, missing ones as null."""
    return pa.array(values, pa.int32(), mask=None if column.required else values < 0)


def _arrow(column: Column, values: Numbers, texts: pa.Array, lists: Mapping[str, Numbers]) -> pa.Array:
    """Cells of one column as an Arrow array of its type."""
    if pa.types.is_list(column.type):
        offsets = pa.array(np.concatenate(([0], np.cumsum(values))), pa.int32())
        elements = texts.take(pa.array(lists[column.name], pa.int32()))
        return pa.ListArray.from_arrays(offsets, elements, type=column.type)
    if pa.types.is_boolean(column.type):
        return pa.array(values != 0)
    numbers = _numbers(column, values)
    return texts.take(numbers) if pa.types.is_string(column.type) else numbers
