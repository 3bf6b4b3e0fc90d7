"""Facts of contents of which some layers are stored: those layers are kept, the others are extracted.

Equal versions of a layer mean equal facts, so a stored layer of the wanted version need not be extracted again. Stored
rows whose columns do not fit are not used: all layers of their contents are extracted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.layers import LAYERS, facts_of
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract.extractor import extract_batch


def stale_layers(row: Mapping[str, Any], wanted: Mapping[str, str]) -> frozenset[str]:
    """The wanted layers that a row of `facts` does not have, or has in another version."""
    return frozenset(
        layer.name for layer in LAYERS if layer.name in wanted and row.get(layer.version_column) != wanted[layer.name]
    )


def renewed_facts(
    sources: Mapping[str, bytes], stored: pa.Table | None, wanted: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """The facts of contents in the wanted layers; `stored` has rows of some contents, from any earlier version."""
    versions = stored.select([n for n in FACTS.identity if n in stored.column_names]).to_pylist() if stored else []
    row_of = {row["content_id"]: number for number, row in enumerate(versions)}
    groups: dict[frozenset[str], list[str]] = {}
    for content in sources:
        stale = stale_layers(versions[row_of[content]], wanted) if content in row_of else frozenset(wanted)
        groups.setdefault(stale, []).append(content)
    for stale, contents in groups.items():
        of_group = {content: sources[content] for content in contents}
        rows = stored.take([row_of[each] for each in contents]) if stored and stale != wanted.keys() else None
        yield _renewed(of_group, rows, wanted, stale)


def _renewed(
    sources: Mapping[str, bytes], stored: pa.Table | None, wanted: Mapping[str, str], stale: frozenset[str]
) -> pa.RecordBatch:
    """The same for contents with the same stale layers; `stored` has their rows, in the same order."""
    contents, texts = list(sources), list(sources.values())
    if stored is not None:
        fresh = extract_batch(contents, texts, {name: version for name, version in wanted.items() if name in stale})
        kept = _kept_columns(stored, wanted.keys() - stale)
        renewed = _whole_rows([fresh, kept], wanted) if kept is not None else None
        if renewed is not None:
            return renewed
    renewed = _whole_rows([extract_batch(contents, texts, wanted)], wanted)
    if renewed is None:
        raise AssertionError("rows that were extracted together fit together")
    return renewed


def _kept_columns(stored: pa.Table, layers: Collection[str]) -> pa.RecordBatch | None:
    """The columns of these layers in stored rows; None if the rows have different columns."""
    arrays = {}
    for column in facts_of(layers).columns:
        if column.name not in stored.column_names:
            return None
        array = stored[column.name].combine_chunks()
        if pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type):
            if not pa.types.is_list(array.type) or not pa.types.is_struct(array.type.value_type):
                return None
            array = _with_fields([array], column.type)
        if array is None or array.type != column.type:
            return None
        arrays[column.name] = array
    return pa.record_batch(arrays)


def _whole_rows(parts: Sequence[pa.RecordBatch], wanted: Mapping[str, str]) -> pa.RecordBatch | None:
    """Rows of `facts` assembled from columns of the same contents; None if they do not fit together."""
    versions = {layer.version_column: wanted.get(layer.name, "") for layer in LAYERS}
    count = parts[0].num_rows
    arrays = []
    for column in FACTS.columns:
        found = [part.column(column.name) for part in parts if column.name in part.schema.names]
        if column.name in versions:
            array = pa.array([versions[column.name]] * count, pa.string())
        elif not found:
            array = pa.nulls(count, column.type)
        elif found[0].type == column.type:
            array = found[0]
        else:
            array = _with_fields(found, column.type)
        if array is None:
            return None
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=FACTS.schema())


def _with_fields(lists: Sequence[pa.ListArray], wanted: pa.ListType) -> pa.ListArray | None:
    """Lists of structs with the wanted fields, each taken from the first of `lists` that has it.

    None if none has, or if the lists are not of the same lengths.
    """
    lengths = pc.list_value_length(lists[0])
    if any(not pc.list_value_length(other).equals(lengths) for other in lists[1:]):
        return None
    elements = [each.flatten() for each in lists]
    fields = []
    for field in wanted.value_type:
        having = next((each for each in elements if each.type.get_field_index(field.name) >= 0), None)
        if having is None:
            return None
        fields.append(pc.struct_field(having, field.name))
        if fields[-1].type != field.type:
            return None
    structs = pa.StructArray.from_arrays(fields, fields=list(wanted.value_type))
    ends = np.concatenate(([0], np.cumsum(lengths.to_numpy(zero_copy_only=False))))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, type=wanted)
