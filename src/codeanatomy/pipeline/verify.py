"""Verify: build the same snapshot from scratch beside the state and compare every table as a set of rows.

What is compared is what is on disk, not the digests that builds remember: rows are hashed by owner, and shown where the
hashes differ. `facts` may hold contents of other builds as well, so of them the contents of the snapshot are compared
one by one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import DOCUMENTS, FACTS, FLOW_TABLES, SCIP_DOCUMENTS, STORED_TABLES
from codeanatomy.engine.directories import scratch_directory
from codeanatomy.errors import InputError
from codeanatomy.pipeline.inputs import BuildInputs, gather
from codeanatomy.pipeline.plan import as_built, plan_build
from codeanatomy.pipeline.progress import Listener
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.run import build
from codeanatomy.store.builds import BuildRecord, check_whole, current_build
from codeanatomy.store.location import StateLocation, locate_state
from codeanatomy.store.owners import OWNER_DIGESTS
from codeanatomy.store.state import State, create_state, open_state
from codeanatomy.store.tables import open_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN_ROWS = 5
"""Differing rows shown per side and table."""


@dataclass(frozen=True)
class TableComparison:
    """One table of the build against the same table built from scratch.

    `as_pinned` is false if the rows of the build were found to be others than it remembers.
    """

    rows: int
    rows_full: int
    only_incremental: int = 0
    only_full: int = 0
    examples: tuple[Mapping[str, Any], ...] = ()
    as_pinned: bool = True

    @property
    def equal(self) -> bool:
        """Whether both hold the same rows, as often."""
        return self.as_pinned and not self.only_incremental and not self.only_full


@dataclass(frozen=True)
class Verification:
    """The answer of `verify`."""

    build_id: str
    tables: Mapping[str, TableComparison]
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether no table differs."""
        return all(table.equal for table in self.tables.values())

    def as_json(self) -> dict[str, Any]:
        """The verification as the interface describes it."""
        return {
            "equal": self.equal,
            "build_id": self.build_id,
            "tables": {
                name: {
                    "equal": table.equal,
                    "rows": table.rows,
                    "rows_full": table.rows_full,
                    "only_incremental": table.only_incremental,
                    "only_full": table.only_full,
                    "examples": list(table.examples),
                }
                for name, table in self.tables.items()
            },
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class _Side:
    """A build and the state it is in."""

    state: State
    build: BuildRecord

    def rows(self, table: Dataset) -> ds.Dataset:
        return open_arrow(self.state, table, self.build.tables[table.name].version)


def verify(
    request: BuildRequest, *, listener: Listener | None = None, spark: SparkSession | None = None
) -> Verification:
    """Compare the last build with a build from scratch of the same snapshot."""
    began = time.monotonic()
    location = locate_state(request.repo, request.state, request.storage_options)
    state = open_state(location)
    last = current_build(state)
    check_whole(state, last)
    request = as_built(request, last)
    inputs = gather(request, location, state)
    if reasons := plan_build(last, inputs, full=False).reasons:
        raise InputError(
            f"the last build is out of date ({', '.join(reasons)})", hint="run `codeanatomy build`, then verify"
        )
    with scratch_directory() as scratch:
        place = str(scratch.path)
        fresh_state = create_state(StateLocation.at(place), state.buckets, state.repo_id)
        build(replace(request, state=place, storage_options={}, full=True), listener=listener, spark=spark)
        fresh = current_build(fresh_state)
        if fresh.snapshot_id != last.snapshot_id:
            raise InputError("the tree changed while it was verified", hint="run `codeanatomy build`, then verify")
        ours, theirs = _Side(state, last), _Side(fresh_state, fresh)
        tables = {table.name: _compare_table(table, ours, theirs) for table in (*STORED_TABLES, OWNER_DIGESTS)}
        flow = [table for table in FLOW_TABLES if table.name in last.tables]
        tables |= {table.name: _compare_table(table, ours, theirs) for table in flow}
        if DOCUMENTS.name in last.tables:
            tables[DOCUMENTS.name] = _compare_table(SCIP_DOCUMENTS, ours, theirs, DOCUMENTS)
        tables[FACTS.name] = _compare_facts(inputs, ours, theirs)
    return Verification(last.build_id, tables, time.monotonic() - began)


def _compare_table(table: Dataset, ours: _Side, theirs: _Side, stored: Dataset | None = None) -> TableComparison:
    """Compare the columns of `table`, which is all that the table `stored` is digested by."""
    stored = stored or table
    names = list(table.names())
    mine, fresh = (_owner_hashes(side.rows(stored).scanner(names)) for side in (ours, theirs))
    rows, rows_full = (sum(count for _, count, _ in side) for side in (mine, fresh))
    differing = pa.array(sorted({owner for owner, _, _ in mine ^ fresh}), pa.string())
    if not len(differing):
        as_pinned = ours.build.tables[stored.name].buckets == theirs.build.tables[stored.name].buckets
        return TableComparison(rows, rows_full, as_pinned=as_pinned)
    of_those = pc.field("file_id").isin(differing)
    sides = (side.rows(stored).to_table(names, filter=of_those) for side in (ours, theirs))
    return _comparison(rows, rows_full, *_differences(*sides))


def _owner_hashes(rows: ds.Scanner) -> set[tuple[str, int, int]]:
    """What each owner has on disk: its rows, and an order-independent hash of them."""
    with duckdb.connect() as connection:
        connection.register("held", rows)
        query = "SELECT file_id, count(*), sum(hash(held)::HUGEINT) FROM held GROUP BY file_id"
        return set(connection.sql(query).fetchall())


def _compare_facts(inputs: BuildInputs, ours: _Side, theirs: _Side) -> TableComparison:
    """Compare the facts of the snapshot's contents; a content's facts are one row, told apart by their text."""
    contents = pa.array({file.content_id for file in inputs.snapshot.files if file.content_id}, pa.string())
    of_those = pc.field("content_id").isin(contents)
    sides = [_row_texts(side.rows(FACTS).scanner(list(FACTS.names()), filter=of_those)) for side in (ours, theirs)]
    return _comparison(sides[0].num_rows, sides[1].num_rows, *_differences(*sides))


def _row_texts(rows: ds.Scanner) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("facts", rows)
        return connection.sql("SELECT content_id, md5(CAST(facts AS VARCHAR)) AS facts FROM facts").to_arrow_table()


def _differences(left: pa.Table, right: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows only `left` has and rows only `right` has, as multisets."""
    with duckdb.connect() as connection:
        connection.register("ours", left)
        connection.register("theirs", right)
        return (
            connection.sql("FROM ours EXCEPT ALL FROM theirs ORDER BY ALL").to_arrow_table(),
            connection.sql("FROM theirs EXCEPT ALL FROM ours ORDER BY ALL").to_arrow_table(),
        )


def _comparison(rows: int, rows_full: int, ours_only: pa.Table, theirs_only: pa.Table) -> TableComparison:
    examples = [
        {"only_in": side, **row}
        for side, differing in (("build", ours_only), ("scratch", theirs_only))
        for row in differing.slice(0, SHOWN_ROWS).to_pylist()
    ]
    return TableComparison(rows, rows_full, ours_only.num_rows, theirs_only.num_rows, tuple(examples))
