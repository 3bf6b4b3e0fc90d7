"""Arrow tables as Spark frames, and datasets in Spark's types."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from codeanatomy.catalogue.columns import Dataset


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows as a frame with the schema of the table, which Spark cannot infer without rows.

    Spark Connect refuses an empty table without a schema, and a local session one without chunks.
    """
    whole = rows if rows.num_rows else rows.schema.empty_table()
    return spark.createDataFrame(whole, from_arrow_schema(rows.schema))


@cache
def spark_schema(dataset: Dataset) -> StructType:
    """The dataset's schema in Spark's types."""
    return from_arrow_schema(dataset.schema())
