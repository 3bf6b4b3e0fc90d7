"""Rows that are here, as a frame: the one way to hand Arrow tables to Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a frame with the schema of the table, of which Spark itself learns nothing where there are no rows.

    Spark Connect refuses an empty table without a schema, and a session of our own one without a single chunk.
    """
    whole = rows if rows.num_rows else rows.schema.empty_table()
    return spark.createDataFrame(whole, from_arrow_schema(rows.schema))
