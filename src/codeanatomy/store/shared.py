"""Rows that many rules of one build read: computed once, kept beside the tables while the build runs, then dropped.

As Parquet in folders by a column that every reader filters on, so that each reads its columns of its rows. A checkpoint
of Spark's would be read whole, and decoded row by row, by every reader.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from codeanatomy.store.failures import writing
from codeanatomy.store.location import literal_paths
from codeanatomy.store.paths import checked_folder
from codeanatomy.store.state import State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_FOLDER = "shared"


@contextmanager
def shared_rows(state: State) -> Iterator[None]:
    """Everything kept meanwhile is gone afterwards; what a run that died left is gone before."""
    _drop(state)
    try:
        yield
    finally:
        _drop(state)


def keep(frame: DataFrame, name: str, state: State, *, by: str) -> DataFrame:
    """The rows of `frame`, computed; readers should filter on `by`."""
    if not state.location.is_local:
        return frame.localCheckpoint()
    place = str(state.location.local_path / _FOLDER / name)
    with writing(state.location):
        frame.write.mode("overwrite").partitionBy(by).option("compression", "lz4_raw").parquet(place)
    return frame.sparkSession.read.schema(frame.schema).parquet(*literal_paths([place]))


def keep_collected(spark: SparkSession, rows: pa.Table, name: str, state: State) -> DataFrame:
    """The same for rows that are here already, as one file; `state` is on this machine."""
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    place = state.location.local_path / _FOLDER / name
    with writing(state.location):
        place.parent.mkdir(exist_ok=True)
        pq.write_table(rows, place)
    return spark.read.schema(from_arrow_schema(rows.schema)).parquet(*literal_paths([str(place)]))


def _drop(state: State) -> None:
    if state.location.is_local and checked_folder(state.location, _FOLDER):
        shutil.rmtree(state.location.local_path / _FOLDER, ignore_errors=True)
