"""Two builds side by side: their rows in one DuckDB connection, read only where their digests differ.

Rows of one owner are in one bucket, the same in every build of a state. So buckets with equal digests have equal rows,
and every row that was added, removed or changed is in the other buckets, on both sides.
"""

# ruff: noqa: S608 - names come from the catalogue, paths are quoted

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.errors import StateError
from codeanatomy.query.interrupts import interruptible
from codeanatomy.query.sql import connect, create_view_of_files
from codeanatomy.store.builds import BuildRecord, check_whole
from codeanatomy.store.failures import machine_failure
from codeanatomy.store.layout import BUCKET
from codeanatomy.store.state import State
from codeanatomy.store.tables import open_arrow, verified_files

BEFORE, AFTER = "before", "after"
"""Schemas of the connection, one per build."""

ALL_BUCKETS = "whole_"
"""Prefix of a table that has all its buckets."""


@contextmanager
def side_by_side(
    state: State,
    before: BuildRecord | None,
    after: BuildRecord,
    tables: Sequence[Dataset],
    *,
    whole: Sequence[Dataset] = (),
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with the differing buckets of `tables` and all of `whole`, of both builds; no build has no rows."""
    for each in filter(None, (before, after)):
        check_whole(state, each)
    buckets = _differing_buckets(before, after, tables)
    with connect() as connection, reading_builds(state), interruptible(connection):
        for side, build in ((BEFORE, before), (AFTER, after)):
            connection.execute(f"CREATE SCHEMA {side}")
            for table in tables:
                _create_view(connection, f"{side}.{table.name}", table, _stored(state, table, build, buckets))
            for table in whole:
                relation = f"{side}.{ALL_BUCKETS}{table.name}"
                _create_view(connection, relation, table, _stored(state, table, build, None))
        yield connection


def _differing_buckets(before: BuildRecord | None, after: BuildRecord, tables: Sequence[Dataset]) -> set[int]:
    differing: set[int] = set()
    for table in tables:
        old, new = (
            build.tables[table.name].buckets if build and table.name in build.tables else {}
            for build in (before, after)
        )
        differing |= {bucket for bucket in old.keys() | new.keys() if old.get(bucket) != new.get(bucket)}
    return differing


def _create_view(
    connection: duckdb.DuckDBPyConnection, relation: str, table: Dataset, stored: ds.Dataset | Sequence[str]
) -> None:
    """Create a view of stored rows."""
    if not isinstance(stored, ds.Dataset):
        create_view_of_files(connection, relation, table, stored)
        return
    columns = ", ".join(f'"{name}"' for name in table.names())
    connection.register(f"{relation} stored", stored)
    connection.execute(f'CREATE VIEW {relation} AS SELECT {columns} FROM "{relation} stored"')


def _stored(
    state: State, table: Dataset, build: BuildRecord | None, buckets: Collection[int] | None
) -> ds.Dataset | Sequence[str]:
    """The rows as files if they are on this machine, else as a dataset."""
    if build is None or table.name not in build.tables:
        return ds.dataset(table.schema().empty_table())
    version = build.tables[table.name].version
    if state.location.is_local:
        chosen = verified_files(state, table.name, version, buckets=buckets)
        return chosen or ds.dataset(table.schema().empty_table())
    stored = open_arrow(state, table, version)
    fragments = [fragment for fragment in stored.get_fragments() if _in_buckets(fragment.path, buckets)]
    return ds.FileSystemDataset(fragments, stored.schema, stored.format, stored.filesystem)


def _in_buckets(file: str, buckets: Collection[int] | None) -> bool:
    return buckets is None or file.split("/")[-2] in {f"{BUCKET}={bucket}" for bucket in buckets}


@contextmanager
def reading_builds(state: State) -> Iterator[None]:
    """Turn what reading the builds of a state may fail with into an error of the state or the machine."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        reason = " ".join(str(error).splitlines()[0].split())
        raise machine_failure(error, state.location.uri) or StateError(
            f"cannot read the builds of {state.location.uri} ({reason})", hint="run `codeanatomy doctor --deep`"
        ) from error
