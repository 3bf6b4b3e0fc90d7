"""Publish a build for tools that read neither Delta nor nested facts: Parquet files, a DuckDB database, a SCIP index.

Written beside the target and moved there when complete. `canonical` sorts every table by all its columns, so that the
same graph gives the same bytes of Parquet. DuckDB files never do (each has a random identifier), SCIP indexes always.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.runs import RUN_DATASETS
from codeanatomy.catalogue.tables import CPG_PROPS_JSON
from codeanatomy.errors import InputError
from codeanatomy.query.directory import replace_directory
from codeanatomy.query.graph import Graph
from codeanatomy.query.request import FORMATS, PublishRequest
from codeanatomy.query.scip import write_scip
from codeanatomy.query.views import PUBLIC

DEFAULT_TABLES = ("cpg_nodes", "cpg_edges", "cpg_props", "repo_files", "parse_errors")
MANIFEST = "codeanatomy.json"
SCIP_FILE = "index.scip"


@dataclass(frozen=True)
class Publication:
    """What was written: the build, and the rows of each table."""

    build_id: str
    format: str
    tables: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        """The manifest that is written beside the tables."""
        return {"build_id": self.build_id, "format": self.format, "tables": dict(self.tables)}


def publish(graph: Graph, request: PublishRequest, *, on_table: Callable[[str], None] = lambda _: None) -> Publication:
    """Write the datasets to the directory of the request, replacing an earlier publication there."""
    if request.format not in FORMATS:
        raise InputError(f"unknown format {request.format!r}", hint=f"choose one of {', '.join(FORMATS)}")
    canonical = request.determinism == "canonical"
    if canonical and request.format == "duckdb":
        raise InputError(
            "a DuckDB file contains a random identifier, so it is never canonical", hint="use --format parquet"
        )
    if request.format == "scip" and (request.tables or request.props_json or request.diagnostics):
        raise InputError("--format scip writes an index, not tables", hint="use --format parquet or duckdb")
    chosen = [_public(name) for name in _names(request)]
    with replace_directory(str(request.out), MANIFEST) as directory:
        if request.format == "scip":
            on_table("scip")
            rows = {"documents": write_scip(graph, directory / SCIP_FILE)}
        else:
            write = {"parquet": _write_parquet, "duckdb": _write_duckdb}[request.format]
            rows = write(directory, [(d, _rows_of(graph, d, canonical=canonical)) for d in chosen], on_table)
        published = Publication(graph.build.build_id, request.format, rows)
        (directory / MANIFEST).write_text(json.dumps(published.as_json(), indent=1) + "\n", encoding="utf-8")
    return published


def _names(request: PublishRequest) -> list[str]:
    """The datasets that are asked for, each once."""
    names = list(request.tables or DEFAULT_TABLES)
    if request.props_json:
        names.append(CPG_PROPS_JSON.name)
    if request.diagnostics:
        names += [dataset.name for dataset in RUN_DATASETS]
    return list(dict.fromkeys(names))


Tables = Sequence[tuple[Dataset, Callable[[], pa.RecordBatchReader]]]


def _rows_of(graph: Graph, dataset: Dataset, *, canonical: bool) -> Callable[[], pa.RecordBatchReader]:
    rows = exp.select(*(exp.column(name, quoted=True) for name in dataset.names())).from_(dataset.name)
    if canonical:
        rows = rows.order_by(*(exp.column(name, quoted=True) for name in dataset.names()))
    return lambda: graph.read(rows.sql(dialect="duckdb"))


def _write_parquet(directory: Path, tables: Tables, on_table: Callable[[str], None]) -> dict[str, int]:
    rows = {}
    for dataset, read in tables:
        on_table(dataset.name)
        with pq.ParquetWriter(
            directory / f"{dataset.name}.parquet", dataset.schema(), compression="zstd", write_page_checksum=True
        ) as writer:
            rows[dataset.name] = sum(_write_group(writer, dataset, batch) for batch in read())
    return rows


def _write_group(writer: pq.ParquetWriter, dataset: Dataset, batch: pa.RecordBatch) -> int:
    writer.write_batch(batch.cast(dataset.schema()))
    return int(batch.num_rows)


def _write_duckdb(directory: Path, tables: Tables, on_table: Callable[[str], None]) -> dict[str, int]:
    rows = {}
    with duckdb.connect(str(directory / "graph.duckdb"), config={"threads": 1}) as database:
        for dataset, read in tables:
            on_table(dataset.name)
            database.from_arrow(read()).create(dataset.name)
            rows[dataset.name] = len(database.table(dataset.name))
    return rows


def _public(name: str) -> Dataset:
    if name not in PUBLIC:
        raise InputError(f"no dataset is called {name!r}", hint=f"choose from {', '.join(sorted(PUBLIC))}")
    return PUBLIC[name]
