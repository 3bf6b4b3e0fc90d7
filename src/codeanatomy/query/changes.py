"""Changes: the exact rows added to the graph and removed from it since the build that a consumer acknowledged.

Rows are multisets. A copy of the earlier build's rows becomes a copy of the later build's by deleting the removed rows
and then inserting the added ones. A consumer that acknowledged nothing starts from an empty copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.errors import InputError
from codeanatomy.query.build_diff import GRAPH_TABLES
from codeanatomy.query.comparison import AFTER, BEFORE, reading_builds, side_by_side
from codeanatomy.query.directory import replace_directory
from codeanatomy.store.builds import BuildRecord, current_build, find_build, list_builds
from codeanatomy.store.cursors import check_cursor_name, move_cursor, read_cursor
from codeanatomy.store.state import State

MANIFEST = "changes.json"
DIRECTIONS = ("added", "removed")
ROWS_PER_BATCH = 10_000

Counts = Mapping[str, Mapping[str, int]]
"""Rows by table and direction."""


@dataclass(frozen=True)
class Changes:
    """What a consumer has not acknowledged yet: everything from the build `before`, or from nothing, to `after`."""

    state: State
    cursor: str
    before: BuildRecord | None
    after: BuildRecord

    def count(self) -> Counts:
        """How many rows were added and removed."""
        with self._opened() as connection:
            return {
                table.name: {
                    direction: connection.sql(self._query(table, key, direction)).count("*").fetchall()[0][0]
                    for direction in DIRECTIONS
                }
                for table, key in GRAPH_TABLES.items()
            }

    @contextmanager
    def rows(self) -> Iterator[Mapping[str, Mapping[str, Iterator[dict[str, Any]]]]]:
        """The rows by table and direction, each to be read once, one iterator after the other."""
        with self._opened() as connection:
            yield {
                table.name: {direction: self._rows(connection, table, key, direction) for direction in DIRECTIONS}
                for table, key in GRAPH_TABLES.items()
            }

    def write_parquet(self, out: str) -> Counts:
        """Write one file per table and direction to the directory `out`, replacing earlier changes there."""
        counts: dict[str, dict[str, int]] = {}
        with replace_directory(out, MANIFEST) as directory, self._opened() as connection:
            for table, key in GRAPH_TABLES.items():
                counts[table.name] = {}
                for direction in DIRECTIONS:
                    file = directory / f"{table.name}_{direction}.parquet"
                    with pq.ParquetWriter(file, table.schema(), compression="zstd", write_page_checksum=True) as writer:
                        batches = self._batches(connection, table, key, direction)
                        counts[table.name][direction] = sum(_write(writer, batch) for batch in batches)
            manifest = json.dumps(self.as_json(counts), indent=1)
            (directory / MANIFEST).write_text(f"{manifest}\n", encoding="utf-8")
        return counts

    def acknowledge(self) -> None:
        """Move the cursor to the build that was reported."""
        move_cursor(self.state, self.cursor, self.after.build_id)

    def as_json(self, tables: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """The builds, and by table and direction the rows or (default) how many there are."""
        return {
            "cursor": self.cursor,
            "from_build": self.before.build_id if self.before else None,
            "to_build": self.after.build_id,
            "tables": self.count() if tables is None else tables,
        }

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with side_by_side(self.state, self.before, self.after, tuple(GRAPH_TABLES)) as connection:
            yield connection

    def _query(self, table: Dataset, key: str, direction: str) -> str:
        """The rows that only one side has, in a fixed order."""
        sides = (AFTER, BEFORE) if direction == "added" else (BEFORE, AFTER)
        mine, theirs = (exp.select("*").from_(exp.to_table(table.name, db=side)) for side in sides)
        rows = mine if self.before is None else exp.except_(mine, theirs, distinct=False)
        return rows.order_by(key).sql(dialect="duckdb")

    def _rows(
        self, connection: duckdb.DuckDBPyConnection, table: Dataset, key: str, direction: str
    ) -> Iterator[dict[str, Any]]:
        with reading_builds(self.state):
            for batch in self._batches(connection, table, key, direction):
                yield from batch.to_pylist()

    def _batches(
        self, connection: duckdb.DuckDBPyConnection, table: Dataset, key: str, direction: str
    ) -> Iterator[pa.RecordBatch]:
        batches = connection.sql(self._query(table, key, direction)).to_arrow_reader(ROWS_PER_BATCH)
        yield from (batch.cast(table.schema()) for batch in batches)


def changes_since(state: State, cursor: str, *, build: str | None = None, reset: bool = False) -> Changes:
    """What changed from the cursor's build (from nothing, if it has none or on `reset`) to `build` or the last."""
    check_cursor_name(cursor)
    after = find_build(state, build) if build else current_build(state)
    found = None if reset else read_cursor(state, cursor)
    if found is None:
        return Changes(state, cursor, None, after)
    before = next((build for build in list_builds(state) if build.build_id == found.build_id), None)
    if before is None:
        raise InputError(
            f"build {found.build_id}, the last that cursor {cursor} acknowledged, is no longer kept",
            hint="use --reset and start from an empty copy",
        )
    return Changes(state, cursor, before, after)


def _write(writer: pq.ParquetWriter, batch: pa.RecordBatch) -> int:
    writer.write_batch(batch)
    return int(batch.num_rows)
