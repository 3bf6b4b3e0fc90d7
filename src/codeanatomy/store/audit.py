"""What tables really hold: digests computed from their rows, not from what a build remembers of them.

An update does not read what it leaves alone: the digests it pins are sums. Here they are made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.digests import SetDigest, digest_from, digest_sums, hash_columns
from codeanatomy.store.layout import BUCKET, OWNER, bucket_column
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
