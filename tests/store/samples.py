"""A small dataset of every kind of column the store must carry, and rows of it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.catalogue.columns import Column, Dataset, flag, long, real, text, texts
from codeanatomy.store import BuildRecord, State, StateLocation, TablePin, create_state

THINGS = Dataset(
    "things",
    "Rows of every column type.",
    (
        text("file_id", "key", required=True),
        text("name", "a text"),
        text("naming", "another text"),
        long("size", "a number"),
        flag("is_big", "a flag", required=False),
        real("weight", "a real"),
        texts("tags", "a list"),
        Column("props", pa.map_(pa.string(), pa.string()), "a map"),
        Column(
            "parts",
            pa.list_(pa.struct([pa.field("at", pa.int32(), nullable=False), pa.field("of", pa.string())])),
            "a list of structs",
        ),
    ),
)

CONTENTS = Dataset(
    "contents",
    "An append-only table.",
    (text("content_id", "key", required=True), long("size", "a number")),
    identity=("content_id",),
)


OWNED = Dataset("owned", "A narrow table.", (text("file_id", "key", required=True), long("size", "a number")))


def thing(number: int, **changes: Any) -> dict[str, Any]:
    """The row of that number."""
    return {
        "file_id": f"file{number % 10}",
        "name": f"name{number}",
        "naming": None if number % 3 else f"naming{number}",
        "size": number,
        "is_big": number > 50,
        "weight": number / 7,
        "tags": [f"t{number}", None] if number % 2 else [],
        "props": {"a": str(number), "b": "x"} if number % 5 else None,
        "parts": [{"at": number, "of": None}, {"at": number + 1, "of": "é😀"}],
    } | changes


def things(numbers: range = range(40)) -> list[dict[str, Any]]:
    """The rows of those numbers."""
    return [thing(number) for number in numbers]


def contents(*ids: str) -> list[dict[str, Any]]:
    """One row per content id."""
    return [{"content_id": content_id, "size": len(content_id)} for content_id in ids]


def owned(*ids: str) -> list[dict[str, Any]]:
    """One row per owner."""
    return [{"file_id": file_id, "size": len(file_id)} for file_id in ids]


def frame_of(spark: SparkSession, dataset: Dataset, rows: list[dict[str, Any]]) -> DataFrame:
    """The rows as a DataFrame of the dataset's columns."""
    schema = from_arrow_schema(dataset.schema())
    return spark.createDataFrame([tuple(row[name] for name in dataset.names()) for row in rows], schema)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a DataFrame, sorted."""
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=repr)


def overwrite(state: State, name: str, file: str, rows: pa.Table) -> None:
    """Put other rows into a data file, and its new size into the log, so that only its rows tell."""
    size = Path(file).stat().st_size
    pq.write_table(rows, file)
    for log in (Path(state.location.table_uri(name)) / "_delta_log").glob("*.json"):
        log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{Path(file).stat().st_size}'))


def build_of(
    number: int, parent: BuildRecord | None, tables: dict[str, TablePin] | None = None, **changes: Any
) -> BuildRecord:
    """The `number`th build of a test."""
    values: dict[str, Any] = {
        "build_id": f"20260101T0000{number:02}-00000{number % 10}",
        "parent_build_id": parent.build_id if parent else None,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number),
        "mode": "full",
        "snapshot_id": f"snapshot{number}",
        "tables": tables or {},
        "git_commit": None,
        "fingerprints": {"rules": f"r{number}"},
        "figures": {"stages": [{"name": "scan", "seconds": 0.5}]},
    } | changes
    return BuildRecord(**values)


def state_at(path: Path) -> Any:
    """A new state of four buckets."""
    return create_state(StateLocation.at(path / "state"), 4, "repo")


def python(*lines: str) -> list[str]:
    """The command that runs those lines in another process."""
    return [sys.executable, "-c", "\n".join(lines)]
