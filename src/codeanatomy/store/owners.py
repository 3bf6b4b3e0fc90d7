"""Owner digests: the digest of each owner's rows in each table, stored as a table. Digests of buckets are their sums.

An update compares an owner's new rows with the old ones without reading these: unchanged rows are not written, and the
new digest of a bucket follows from the digests of the owners that changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset, long, text
from codeanatomy.store.datafiles import CollectedRows
from codeanatomy.store.digests import NO_ROWS, SetDigest, digest_of_names, total
from codeanatomy.store.layout import OWNER, bucket_of
from codeanatomy.store.state import State
from codeanatomy.store.tables import Replaced, TablePin, WrittenTable, read_arrow, replace_rows

OWNER_DIGESTS = Dataset(
    "owner_digests",
    "How many rows each owner has in each table, and their digest.",
    (
        text(OWNER, "owner", required=True),
        text("table_name", "table", required=True),
        long("rows", "rows it has there", required=True),
        text("digest", "digest of those rows", required=True),
    ),
)

Digests = Mapping[str, Mapping[str, SetDigest]]
"""By table, then by owner; an owner without rows in a table is left out."""


def read_owner_digests(
    state: State, pin: TablePin, owners: Collection[str] | None = None
) -> dict[str, dict[str, SetDigest]]:
    """The digests of these owners, or of all."""
    rows = read_arrow(state, OWNER_DIGESTS, pin.version, owners=owners)
    found: dict[str, dict[str, SetDigest]] = {}
    for owner, table, count, digest in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        found.setdefault(table, {})[owner] = SetDigest(count, digest)
    return found


def replace_owner_digests(
    state: State, digests: Digests, base: TablePin | None, replaced: Collection[str] | None, before: Digests
) -> WrittenTable:
    """Store the digests of the `replaced` owners (None: all) in every table; `before` has the digests they had."""
    rows = _rows(digests)
    now = CollectedRows(rows, _digests_of(rows))
    of_some = None if replaced is None else Replaced(replaced, _digests_of(_rows(before)))
    return replace_rows(now, OWNER_DIGESTS, state, base, of_some)


def own_digests(state: State, pin: TablePin) -> dict[int, SetDigest]:
    """The digest of each bucket of this table itself, computed from its rows."""
    found: dict[int, SetDigest] = {}
    for owner, digest in _digests_of(read_arrow(state, OWNER_DIGESTS, pin.version)).items():
        bucket = bucket_of(owner, state.buckets)
        found[bucket] = found.get(bucket, NO_ROWS) + digest
    return found


def _rows(digests: Digests) -> pa.Table:
    return OWNER_DIGESTS.table(
        (owner, table, digest.rows, digest.hash)
        for table, of_owners in sorted(digests.items())
        for owner, digest in sorted(of_owners.items())
        if digest.rows
    )


def _digests_of(rows: pa.Table) -> dict[str, SetDigest]:
    """The digests of these rows themselves, by owner."""
    found: dict[str, SetDigest] = {}
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        digest = digest_of_names(["\0".join(map(str, row))])
        found[row[0]] = total((found[row[0]], digest)) if row[0] in found else digest
    return found
