"""Rows of a stage: an Arrow table in the driver or a frame that workers compute, with the same code for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def in_driver(rows: Rows) -> pa.Table:
    """The rows as a table in the driver."""
    return rows if isinstance(rows, pa.Table) else rows.toArrow()


def as_frame(spark: SparkSession, rows: Rows) -> DataFrame:
    """The rows as a frame; rows of the driver as one partition, so that joins do not shuffle them."""
    if isinstance(rows, pa.Table):
        from codeanatomy.engine.frames import frame_of  # noqa: PLC0415

        return frame_of(spark, rows.combine_chunks()).coalesce(1)
    return rows
