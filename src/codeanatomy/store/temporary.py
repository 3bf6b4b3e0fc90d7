"""Temporary rows: intermediate results that many rules of a build read, stored beside the tables while it runs.

They are Parquet files, partitioned by a column that every reader filters on, so that a reader opens only the partitions
and columns it needs. Every reader of a Spark checkpoint would read all of it and decode it row by row.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from codeanatomy.engine.rows import as_frame
from codeanatomy.store.failures import writing
from codeanatomy.store.location import literal_paths
from codeanatomy.store.paths import checked_folder
from codeanatomy.store.state import State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

INLINE_BYTES = 512 << 10
"""A frame of rows in the driver carries all of them into every query; more than this is better read from a file."""

_FOLDER = "shared"


@contextmanager
def temporary_rows(state: State) -> Iterator[None]:
    """Delete temporary rows on exit; on entry, those that a killed build left."""
    _delete(state)
    try:
        yield
    finally:
        _delete(state)


def materialize(frame: DataFrame, name: str, state: State, *, by: str) -> DataFrame:
    """Compute the rows of `frame` once and store them, partitioned by the column `by`."""
    if not state.location.is_local:
        return frame.localCheckpoint()
    folder = str(state.location.local_path / _FOLDER / name)
    with writing(state.location):
        frame.write.mode("overwrite").partitionBy(by).option("compression", "lz4_raw").parquet(folder)
    return frame.sparkSession.read.schema(frame.schema).parquet(*literal_paths([folder]))


def small_frame(spark: SparkSession, rows: pa.Table, name: str, state: State | None) -> DataFrame:
    """Rows of the driver as a frame of one partition, inside the plan or in a file."""
    if rows.nbytes <= INLINE_BYTES or state is None or not state.location.is_local:
        return as_frame(spark, rows)
    return _write(spark, rows, name, state).coalesce(1)


def _write(spark: SparkSession, rows: pa.Table, name: str, state: State) -> DataFrame:
    """Store rows of the driver as one file; `state` must be local."""
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    file = state.location.local_path / _FOLDER / name
    with writing(state.location):
        file.parent.mkdir(exist_ok=True)
        pq.write_table(rows, file)
    return spark.read.schema(from_arrow_schema(rows.schema)).parquet(*literal_paths([str(file)]))


def _delete(state: State) -> None:
    if state.location.is_local and checked_folder(state.location, _FOLDER):
        shutil.rmtree(state.location.local_path / _FOLDER, ignore_errors=True)
