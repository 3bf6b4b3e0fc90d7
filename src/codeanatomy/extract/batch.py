"""The cells of a batch as a record batch of `facts`: one row per content.

This module knows how datasets are laid out, and nothing of Python's syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from codeanatomy.catalogue import facts
from codeanatomy.catalogue.columns import Column, Dataset
from codeanatomy.catalogue.layers import FACT_DATASETS, LAYERS, facts_of
from codeanatomy.extract.cells import BINDING_FLAGS, CALLER, DEF_OF_SCOPE, NUMBER_OF_KEY, ORDINALS, FactCells, key_of
from codeanatomy.extract.source import Source, Undecodable

Numbers = npt.NDArray[np.integer[Any]]

_DATASET_OF_KEY: Final = {
    "def_key": "cst_defs",
    "container_key": "cst_defs",
    "owner_key": "cst_defs",
    "caller_key": "cst_defs",
    "scope_key": "sym_scopes",
    "parent_key": "sym_scopes",
    "binding_key": "sym_bindings",
    "target_key": "sym_bindings",
}
_SYMBOL_COLUMNS: Final = {
    "cst_name_refs": ["binding_no"],
    "cst_type_exprs": ["binding_key"],
    "sym_values": ["binding_key"],
}
_DATASETS: Final = {dataset.name: dataset for dataset in FACT_DATASETS}


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
        # Each text takes at least one byte, so that no two lines have the same start.
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
    versions: Mapping[str, str], content_ids: Sequence[str], sources: Sequence[Source | Undecodable], cells: FactCells
) -> pa.RecordBatch:
    """The columns of `facts` that the layers named in `versions` fill in."""
    columns: dict[str, Any] = {
        "content_id": content_ids,
        "encoding": [s.encoding if isinstance(s, Source) else None for s in sources],
        "has_bom": [s.has_bom for s in sources],
        "line_starts": [s.line_starts if isinstance(s, Source) else None for s in sources],
        **{layer.version_column: [versions.get(layer.name)] * len(sources) for layer in LAYERS},
    }
    datasets = _Datasets(cells, sources)
    table = facts_of(versions)
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[c.name], c.type) if c.name in columns else datasets.array(c) for c in table.columns],
        schema=table.schema(),
    )


class _Datasets:
    """The datasets of a batch as Arrow arrays, a list of rows for each content."""

    def __init__(self, cells: FactCells, sources: Sequence[Source | Undecodable]) -> None:
        self._tables = _Tables.of(cells)
        self._lines = _Lines.of(sources)
        self._texts = pa.array(cells.pool.texts, pa.binary()).cast(pa.string())
        self._keys = _keys(self._tables, cells.pool.texts)
        self._lists = {
            "keywords": np.frombuffer(cells.keywords, np.int32),
            "unpack": np.frombuffer(cells.unpacks, np.int32),
            "decorators": self._tables.cells["cst_decorators"]["text"],
            "bases": self._tables.cells["cst_bases"]["text"],
        }

    def array(self, column: Column) -> pa.Array:
        """The column of `facts` with the rows of a dataset, as far as the column's type has the dataset's columns."""
        dataset = _DATASETS[column.name]
        values = _all_columns(dataset, self._tables, self._lines)
        fields = list(column.type.value_type)
        arrays = [self._field(dataset.column(field.name), values[field.name]) for field in fields]
        structs = pa.StructArray.from_arrays(arrays, fields=fields)
        return pa.ListArray.from_arrays(pa.array(self._tables.ends[column.name], pa.int32()), structs, type=column.type)

    def _field(self, column: Column, values: Numbers) -> pa.Array:
        """Cells of one column of a dataset as an Arrow array of its type."""
        if column.name in _DATASET_OF_KEY:
            return self._keys[_DATASET_OF_KEY[column.name]].take(_numbers(column, values))
        if pa.types.is_list(column.type):
            offsets = pa.array(np.concatenate(([0], np.cumsum(values))), pa.int32())
            elements = self._texts.take(pa.array(self._lists[column.name], pa.int32()))
            return pa.ListArray.from_arrays(offsets, elements, type=column.type)
        if pa.types.is_boolean(column.type):
            return pa.array(values != 0)
        numbers = _numbers(column, values)
        return self._texts.take(numbers) if pa.types.is_string(column.type) else numbers


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
        ends = np.zeros((len(cells.counts) + 1, len(cells.rows)), np.int64)
        if cells.counts:
            ends[1:] = cells.counts
        by_column = {
            name: np.frombuffer(rows.cells, np.int32).reshape(-1, rows.width).T for name, rows in cells.rows.items()
        }
        return _Tables(
            {name: dict(zip(cells.rows[name].columns, each, strict=True)) for name, each in by_column.items()},
            dict(zip(cells.rows, ends.T, strict=True)),
            np.frombuffer(cells.def_of_scope, np.int32),
            np.frombuffer(cells.function_of_scope, np.int32),
            np.append(np.frombuffer(cells.binding_of_symbol, np.int32), np.int32(-1)),
        )

    def content(self, dataset: str) -> Numbers:
        """Which content each row belongs to."""
        ends = self.ends[dataset]
        return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


def _all_columns(dataset: Dataset, tables: _Tables, lines: _Lines) -> dict[str, Numbers]:
    """All columns of a dataset, stored or computed; of a key column, the number of its row in the batch."""
    name = dataset.name
    content = tables.content(name)
    values = dict(tables.cells[name])
    if name in ORDINALS:
        values[ORDINALS[name]] = np.arange(len(content)) - tables.ends[name][content]
    if name in DEF_OF_SCOPE:
        values[DEF_OF_SCOPE[name]] = tables.def_of_scope[tables.ends["sym_scopes"][content] + values["scope_no"]]
    if CALLER in dataset.names():
        values[CALLER] = tables.function_of_scope[tables.ends["sym_scopes"][content] + values["scope_no"]]
    if dataset is facts.CST_NAME_REFS:
        values |= {"is_attribute": (values["binding_no"] < 0).astype(np.int32), "bend": values["name_bend"]}
    if "line_start" in dataset.names():
        prefix = "site_" if dataset is facts.SYM_BINDINGS else ""
        start, end = values[f"{prefix}bstart"], values[f"{prefix}bend"]
        line, col = lines.locate(content, np.maximum(start, 0))
        values["line_start"], values["col_start"] = np.where(start < 0, -1, line), np.where(start < 0, -1, col)
        line, _ = lines.locate(content, np.maximum(end - 1, np.maximum(start, 0)))
        values["line_end"] = np.where(start < 0, -1, line)
    if dataset is facts.SYM_BINDINGS:
        values.update((flag, values["flags"] >> bit & 1) for bit, flag in enumerate(BINDING_FLAGS))
    for symbol in _SYMBOL_COLUMNS.get(name, ()):
        values[symbol] = tables.binding_of_symbol[values[symbol]]
    for key in _DATASET_OF_KEY.keys() & set(dataset.names()):
        number_column = NUMBER_OF_KEY.get(key, key)
        number = values[number_column if number_column in values else key]
        values[key] = np.where(number < 0, -1, tables.ends[_DATASET_OF_KEY[key]][content] + number)
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


def _numbers(column: Column, values: Numbers) -> pa.Array:
    """Cells as an Arrow array, missing ones as null."""
    return pa.array(values, pa.int32(), mask=None if column.required else values < 0)
