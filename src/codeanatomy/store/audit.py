"""Audit stored tables: compare checksums of files, and compute digests from the rows on disk.

An update does not read rows that it does not replace, so the digests that it pins are sums of earlier ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.checksums import find_unreadable
from codeanatomy.store.digests import SetDigest, digest_from, digest_sums, hash_columns
from codeanatomy.store.failures import damaged, reading
from codeanatomy.store.layout import BUCKET, OWNER, bucket_column
from codeanatomy.store.state import State
from codeanatomy.store.tables import data_files, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_bytes(state: State, build: BuildRecord) -> None:
    """Refuse a build with a file that is not as it was written; not checked on an object store."""
    for name, pin in build.tables.items():
        files = data_files(state, name, pin.version)
        if state.location.is_local:
            with reading(state.location):
                unreadable = find_unreadable(files)
            if unreadable is not None:
                raise damaged(state.location, f"{unreadable} is not as it was written")


def digests_on_disk(
    spark: SparkSession, state: State, versions: Mapping[Dataset, int]
) -> dict[str, dict[int, SetDigest]]:
    """The digest of each bucket that has rows, by table, of tables whose rows have an owner; one pass over all."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    def hashed(dataset: Dataset, version: int) -> DataFrame:
        rows = read_table(spark, state, dataset, version)
        name = F.lit(dataset.name).alias("table")
        return rows.select(name, bucket_column(OWNER, state.buckets), *hash_columns(dataset))

    rows = reduce(lambda one, other: one.unionAll(other), (hashed(*each) for each in versions.items()))
    found: dict[str, dict[int, SetDigest]] = {dataset.name: {} for dataset in versions}
    for row in rows.groupBy("table", BUCKET).agg(*digest_sums()).collect():
        found[row["table"]][row[BUCKET]] = digest_from(row)
    return found
