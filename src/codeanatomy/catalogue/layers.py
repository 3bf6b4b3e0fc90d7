"""Layers of extraction: which facts are read together, under one version.

A layer is a column family of the `facts` table. Its version names what it says of every content: as long as the version
is the same, so are the layer's facts, and stored ones are used as they are. A layer whose version changed is extracted
again alone; the columns of the others are kept. So a layer's version must be raised whenever its facts of some content
change, also where only a number changes by which it refers to the facts of another layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from codeanatomy.catalogue import facts
from codeanatomy.catalogue.columns import Column, Dataset, flag, text


@dataclass(frozen=True)
class Layer:
    """Datasets, and columns of the content itself, that are extracted under one version."""

    name: str
    version: int
    doc: str
    datasets: tuple[Dataset, ...]
    columns: tuple[Column, ...] = ()

    @property
    def version_column(self) -> str:
        """The column of `facts` that has the version with which a content was read."""
        return f"{self.name}_version"


SYNTAX = Layer(
    "syntax",
    2,
    "What is written where: definitions, calls, names, imports, annotations, assignments.",
    (
        facts.CST_DEFS,
        facts.CST_PARAMS,
        facts.CST_DECORATORS,
        facts.CST_BASES,
        facts.CST_CALLSITES,
        facts.CST_ARGUMENTS,
        facts.CST_MAIN_BLOCKS,
        facts.CST_NAME_REFS,
        facts.CST_IMPORTS,
        facts.CST_TYPE_EXPRS,
        facts.CST_ASSIGNS,
        facts.DOCSTRINGS,
        facts.ALL_NAMES,
        facts.PARSE_ERRORS,
    ),
    (
        text("encoding", "encoding of the source by PEP 263; null if it could not be decoded"),
        flag("has_bom", "starts with a UTF-8 byte order mark"),
        Column("line_starts", pa.list_(pa.int32()), "offset of the first byte of each line"),
    ),
)

SCOPES = Layer(
    "scopes", 1, "Which binding each name means, as the language defines it.", (facts.SYM_SCOPES, facts.SYM_BINDINGS)
)

VALUES = Layer(
    "values",
    1,
    "What names can hold, as far as one content can tell, and what it has to ask about the rest.",
    (facts.CST_IMPLICIT_CALLS, facts.SYM_VALUES, facts.ASKS),
)

LAYERS = (SYNTAX, SCOPES, VALUES)
"""In the order in which they build on each other."""

FACT_DATASETS: tuple[Dataset, ...] = tuple(dataset for layer in LAYERS for dataset in layer.datasets)


def facts_of(layers: Collection[str]) -> Dataset:
    """The table `facts` with the columns that these layers fill in, and those alone inside of each dataset."""
    chosen = [layer for layer in LAYERS if layer.name in layers]
    versions = (
        text(layer.version_column, f"version of the layer `{layer.name}`; empty if it was not extracted", required=True)
        for layer in chosen
    )
    return Dataset(
        "facts",
        "What extraction reads off one content: one row per content, one array column per fact dataset.",
        (
            text("content_id", "sha256 of the bytes, in hex", required=True),
            *versions,
            *(column for layer in chosen for column in layer.columns),
            *_arrays(layers),
        ),
        identity=("content_id", *(layer.version_column for layer in chosen)),
    )


def _arrays(layers: Collection[str]) -> Iterator[Column]:
    for layer in LAYERS:
        for dataset in layer.datasets:
            filled = tuple(column for column in dataset.columns if (column.layer or layer.name) in layers)
            if filled:
                fields = list(replace(dataset, columns=filled).schema())
                yield Column(dataset.name, pa.list_(pa.struct(fields)), dataset.doc)
