"""How rows are spread over a table's files: in hash buckets of their key, a fixed number per state.

The bucket of a key is the same in Spark and in Python, so that a reader knows which files to open.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from codeanatomy.catalogue.columns import Dataset

if TYPE_CHECKING:
    from pyspark.sql import Column

BUCKET = "bucket"
"""The layout column: in every stored table whose rows have an owner, in no dataset."""

OWNER = "file_id"
"""The column that determines the bucket of a row."""

_FILES_PER_BUCKET = 64
MAX_BUCKETS = 256
"""The most buckets of a state."""


def layout_of(dataset: Dataset) -> list[str]:
    """The layout columns of its table."""
    return [BUCKET] if OWNER in dataset.names() else []


def bucket_count_for(files: int) -> int:
    """How many buckets suit a repository of that many files: a power of two, about 64 files in each."""
    wanted = max(1, files // _FILES_PER_BUCKET)
    return int(min(MAX_BUCKETS, 1 << (wanted - 1).bit_length()))


def bucket_of(key: str, buckets: int) -> int:
    """The bucket a key belongs to."""
    return zlib.crc32(key.encode()) % buckets


def bucket_column(key: str, buckets: int) -> Column:
    """The bucket of the key column, as Spark computes it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return (F.crc32(F.col(key).cast("binary")) % buckets).cast("int").alias(BUCKET)
