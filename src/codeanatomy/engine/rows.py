"""Rows of a stage: an Arrow table in the driver or a frame that workers compute, with the same code for both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows: TypeAlias = "pa.Table | DataFrame"

BatchFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""The work of a stage, from Arrow batches to Arrow batches; pickled for workers."""


def map_batches(rows: Rows, function: BatchFunction, output: Dataset) -> Rows:
    """Apply `function` to `rows`, in the driver if they are there; returns rows of `output`."""
    if isinstance(rows, pa.Table):
        return pa.Table.from_batches(function(rows.combine_chunks().to_batches()), output.schema())
    from codeanatomy.engine.frames import spark_schema  # noqa: PLC0415

    return rows.mapInArrow(function, spark_schema(output))


def computed(rows: Rows) -> Rows:
    """The rows, computed now and kept, whatever becomes of what they are computed from."""
    if isinstance(rows, pa.Table):
        return rows
    from pyspark import StorageLevel  # noqa: PLC0415

    return rows.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def rows_of(rows: Rows, *, columns: Sequence[str] | None = None, owners: Collection[str] | None = None) -> Rows:
    """Some columns, and the rows of some owners."""
    if isinstance(rows, pa.Table):
        if owners is not None:
            import pyarrow.compute as pc  # noqa: PLC0415 - slow to load

            rows = rows.filter(pc.is_in(rows["file_id"], pa.array(sorted(owners), pa.string())))
        return rows if columns is None else rows.select(list(columns))
    if owners is not None:
        rows = rows.where(rows["file_id"].isin(*owners))
    return rows if columns is None else rows.select(*columns)


def in_driver(rows: Rows) -> pa.Table:
    """The rows as a table in the driver."""
    return rows if isinstance(rows, pa.Table) else rows.toArrow()


def as_frame(spark: SparkSession, rows: Rows) -> DataFrame:
    """The rows as a frame; rows of the driver as one partition, so that joins do not shuffle them."""
    if isinstance(rows, pa.Table):
        from codeanatomy.engine.frames import frame_of  # noqa: PLC0415

        return frame_of(spark, rows.combine_chunks()).coalesce(1)
    return rows
