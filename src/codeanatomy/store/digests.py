"""Set digests: 128-bit hashes of multisets of rows, independent of order, partitioning and files.

Two tables with the same digest have the same columns and the same rows, equally often. Digests add up: those of owners
to that of their bucket, those of buckets to that of the table, and an append adds to the digest before it. The layout
column is not hashed.

Glossary
    lane   one of the two independent 64-bit sums of row hashes.
    cell   a column's value in the form that is hashed: maps by sorted entries, nested values as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset

if TYPE_CHECKING:
    from pyspark.sql import Column, Row

_LANES = ("lane_a", "lane_b")
_LANE_MODULUS = 1 << 64
_LOW_HALF = 0xFFFFFFFF
_ROWS = "digest_rows"


@dataclass(frozen=True)
class SetDigest:
    """Row count and order-independent hash of a multiset of rows, as 32 hexadecimal digits."""

    rows: int
    hash: str

    def __add__(self, other: SetDigest) -> SetDigest:
        """The digest of both multisets together."""
        sums = (mine + theirs for mine, theirs in zip(self._lanes(), other._lanes(), strict=True))
        return _from_lanes(self.rows + other.rows, sums)

    def __sub__(self, other: SetDigest) -> SetDigest:
        """The digest without the rows of the other multiset, which must be contained in this one."""
        sums = (mine - theirs for mine, theirs in zip(self._lanes(), other._lanes(), strict=True))
        return _from_lanes(self.rows - other.rows, sums)

    def _lanes(self) -> tuple[int, int]:
        return int(self.hash[:16], 16), int(self.hash[16:], 16)


NO_ROWS = SetDigest(0, "0" * 32)
"""The digest of no rows."""


def total(digests: Iterable[SetDigest]) -> SetDigest:
    """The digest of all the multisets together."""
    return reduce(SetDigest.__add__, digests, NO_ROWS)


def digest_of_names(names: Iterable[str]) -> SetDigest:
    """The digest of rows that a name determines; computed in the driver."""
    hashes = [sha256(name.encode()).digest() for name in names]
    lanes = (sum(int.from_bytes(each[start : start + 8]) for each in hashes) for start in (0, 8))
    return _from_lanes(len(hashes), lanes)


def hash_columns(dataset: Dataset) -> list[Column]:
    """Two hashes of each row, which `digest_sums` adds up."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = sorted(dataset.columns, key=lambda column: column.name)
    names = ",".join(column.name for column in columns)
    # Spark's hash skips nulls: without the flags, (null, 'x') and ('x', null) would be the same row.
    values = ", ".join(
        [*(_cell(column.name, column.type) for column in columns), *(f"`{column.name}` IS NULL" for column in columns)]
    )
    return [F.expr(f"xxhash64('{lane} {names}', {values})").alias(lane) for lane in _LANES]


def digest_sums() -> list[Column]:
    """Aggregates over `hash_columns`; `digest_from` reads their row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    # In halves, because a sum of 64-bit hashes overflows, which is an error in ANSI mode.
    halves = [
        half
        for lane in _LANES
        for half in (
            F.sum(F.col(lane).bitwiseAND(_LOW_HALF)).alias(f"{lane}_low"),
            F.sum(F.shiftrightunsigned(lane, 32)).alias(f"{lane}_high"),
        )
    ]
    return [F.count(F.lit(1)).alias(_ROWS), *halves]


def digest_from(row: Row) -> SetDigest:
    """The digest in a row of `digest_sums`."""
    return _from_lanes(row[_ROWS], ((row[f"{lane}_high"] << 32) + row[f"{lane}_low"] for lane in _LANES))


def digests_by(rows: pa.Table, key: str) -> dict[str, SetDigest]:
    """The digest of the rows of each key; `rows` includes the `hash_columns`."""
    import numpy as np  # noqa: PLC0415

    keys = rows[key].combine_chunks().dictionary_encode()
    numbers = keys.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(numbers, minlength=len(keys.dictionary))
    sums = []
    for lane in _LANES:
        lane_sums = np.zeros(len(counts), np.uint64)
        np.add.at(lane_sums, numbers, rows[lane].to_numpy().astype(np.uint64))  # modulo 2**64, like a lane
        sums.append(lane_sums.tolist())
    return {
        name: _from_lanes(count, lanes)
        for name, count, *lanes in zip(keys.dictionary.to_pylist(), counts.tolist(), *sums, strict=True)
    }


def _from_lanes(rows: int, lanes: Iterable[int]) -> SetDigest:
    return SetDigest(rows, "".join(f"{lane % _LANE_MODULUS:016x}" for lane in lanes))


def _cell(name: str, kind: pa.DataType) -> str:
    """A column in a form that can be hashed, in SQL."""
    if pa.types.is_map(kind):
        return f"to_json(sort_array(map_entries(`{name}`)))"
    if _holds_map(kind):
        raise TypeError(f"column {name}: a map inside another value has no canonical form")
    return f"to_json(`{name}`)" if pa.types.is_nested(kind) else f"`{name}`"


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if not pa.types.is_nested(kind):
        return False
    return any(_holds_map(kind.field(index).type) for index in range(kind.num_fields))
