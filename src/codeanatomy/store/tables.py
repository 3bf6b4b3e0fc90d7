"""Tables: Spark writes and reads the data files, the Delta log says which of them make up a version.

Rows that have an owner are laid out in hash buckets of it, written by Spark and replaced whole. A table whose rows have
none (`facts`) only grows; its rows are nested and written where they are made (`parts`). What names such a row
(`identity`) says all that is in it, so that alone is digested.

A write puts new files beside the old ones (`datafiles`) and makes them visible by one commit. What dies in between
leaves files that no version names. Readers always name a version; only an append looks at the latest one.

Glossary
    pin      a version of a table and the digests of its buckets; what a build remembers of a table.
    cutoff   a write that yields the rows already pinned commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema, WriterProperties

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.errors import StateError
from codeanatomy.store.checksums import find_altered
from codeanatomy.store.datafiles import (
    READ_OPTIONS,
    DataFile,
    collect_rows,
    discard,
    give_name,
    relaxed,
    spread,
    stored_schema,
    write_buckets_here,
    write_by_spark,
    write_by_workers,
    write_here,
)
from codeanatomy.store.delta import (
    NO_RETRY,
    Added,
    arrow_dataset,
    check_files,
    commit,
    files_of_version,
    open_table,
    stored_files,
    table_exists,
)
from codeanatomy.store.digests import NO_ROWS, SetDigest, total
from codeanatomy.store.failures import damaged, reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.layout import BUCKET, OWNER, bucket_of, layout_of
from codeanatomy.store.location import StateLocation, literal_paths
from codeanatomy.store.parts import Make, identity_digest
from codeanatomy.store.state import State

if TYPE_CHECKING:
    from pyarrow import dataset as pads
    from pyspark.sql import DataFrame, SparkSession

_SMALL_BYTES = 1 << 20
_MANY_SMALL_FILES = 32

COLLECTED_OWNERS = 512
"""Rows of so many owners are collected and written from here."""


@dataclass(frozen=True)
class TablePin:
    """One version of a table, and the digest of each bucket that has rows."""

    version: int
    buckets: Mapping[int, SetDigest]

    @property
    def digest(self) -> SetDigest:
        """The digest of the whole table."""
        return total(self.buckets.values())

    @property
    def rows(self) -> int:
        """Rows in the table."""
        return self.digest.rows


@dataclass(frozen=True)
class WrittenTable:
    """What a write did: the pin to remember, the files it added (none if nothing changed), what each owner now has."""

    name: str
    pin: TablePin
    written: bool
    files: int
    bytes: int
    owners: Mapping[str, SetDigest] = field(default_factory=dict)


def write_table(
    frame: DataFrame,
    dataset: Dataset,
    state: State,
    *,
    sort_by: Sequence[str] = (),
    previous: TablePin | None = None,
    identity: Sequence[str] = (),
) -> WrittenTable:
    """Replace all rows by those of `frame`, unless they are those of `previous`."""
    with writing(state.location):
        files = write_by_spark(spread(frame, state, sort_by), dataset, state, identity)
        buckets, owners = _bucket_digests(files), _owner_digests(files)
        if previous is not None and previous.buckets == buckets and _is_whole(state, dataset.name, previous.version):
            discard(files, dataset, state.location)
            return _unwritten(dataset, previous, owners)
        table = _existing(state.location, dataset.name)
        version = _commit(table, files, dataset, state.location, "overwrite")
        return _written(dataset, TablePin(version, buckets), files, owners)


def replace_rows(
    frame: DataFrame,
    dataset: Dataset,
    state: State,
    *,
    owners: Collection[str],
    base: TablePin,
    before: Mapping[str, SetDigest],
    sort_by: Sequence[str] = (),
    identity: Sequence[str] = (),
) -> WrittenTable:
    """Replace the rows of `owners`, and of nobody else, in the version that `base` pins.

    By the list of owners, not by the rows there are: an owner that has none in `frame` loses those it had. An owner
    whose rows come out as they were (`before` has their digests) is left alone, and so is a bucket without another.
    """
    if len(owners) <= COLLECTED_OWNERS:
        rows, after = collect_rows(frame, dataset, owners, identity)
        return replace_collected(
            rows, dataset, state, owners=owners, base=base, before=before, after=after, sort_by=sort_by
        )
    with writing(state.location):
        files = _rewrite_by_spark(frame, dataset, state, owners, base, sort_by, identity)
        measured = {owner: digest for owner, digest in _owner_digests(files).items() if owner in owners}

        def keep(buckets: Collection[int]) -> list[DataFile]:
            discard((file for file in files if file.bucket not in buckets), dataset, state.location)
            return [file for file in files if file.bucket in buckets]

        return _replace(dataset, state, owners, base, before, measured, keep)


def replace_collected(
    rows: pa.Table,
    dataset: Dataset,
    state: State,
    *,
    owners: Collection[str],
    base: TablePin,
    before: Mapping[str, SetDigest],
    after: Mapping[str, SetDigest],
    sort_by: Sequence[str] = (),
) -> WrittenTable:
    """The same for rows that are here already; `after` has the digests of each owner's."""

    def write(buckets: Collection[int]) -> list[DataFile]:
        stored = _Buckets(state, dataset, base.version)
        return write_buckets_here(
            buckets, lambda bucket: _merged(bucket, rows, stored, owners, sort_by), dataset, state
        )

    with writing(state.location):
        return _replace(dataset, state, owners, base, before, after, write)


def write_collected(
    rows: pa.Table,
    dataset: Dataset,
    state: State,
    *,
    owners: Mapping[str, SetDigest],
    previous: TablePin | None = None,
) -> WrittenTable:
    """Replace all rows by `rows`, which are here already, unless they are those of `previous`."""
    digests: dict[int, list[SetDigest]] = {}
    for owner, digest in owners.items():
        digests.setdefault(bucket_of(owner, state.buckets), []).append(digest)
    buckets = {bucket: total(each) for bucket, each in sorted(digests.items())}
    with writing(state.location):
        if previous is not None and previous.buckets == buckets and _is_whole(state, dataset.name, previous.version):
            return _unwritten(dataset, previous, owners)
        of_row = pa.array([bucket_of(owner, state.buckets) for owner in rows[OWNER].to_pylist()], pa.int32())
        by_bucket = {bucket: rows.filter(pc.equal(of_row, bucket)).sort_by(OWNER) for bucket in buckets}
        files = write_buckets_here(by_bucket, by_bucket.__getitem__, dataset, state)
        version = _commit(_existing(state.location, dataset.name), files, dataset, state.location, "overwrite")
        return _written(dataset, TablePin(version, buckets), files, owners)


def _replace(
    dataset: Dataset,
    state: State,
    owners: Collection[str],
    base: TablePin,
    before: Mapping[str, SetDigest],
    after: Mapping[str, SetDigest],
    write: Callable[[Collection[int]], list[DataFile]],
) -> WrittenTable:
    """Commit the buckets that `write` makes anew, of which only those are asked for in which an owner changed."""
    table = _existing(state.location, dataset.name)
    if table is None:
        raise StateError(f"the state at {state.location.uri} lost table {dataset.name}: delete it and build again")
    if table.version() != base.version:  # a run died after its commit: what it wrote was never published
        files_of_version(state.location, dataset.name, base.version)
        table.restore(base.version)
    changes = {owner: (before.get(owner, NO_ROWS), after.get(owner, NO_ROWS)) for owner in owners}
    digests = dict(base.buckets)
    touched = set()
    for owner, (old, new) in changes.items():
        if old != new:
            bucket = bucket_of(owner, state.buckets)
            digests[bucket] = digests.get(bucket, NO_ROWS) - old + new
            touched.add(bucket)
    files = write(touched)
    now = {owner: new for owner, (_, new) in changes.items()}
    if not touched:
        return _unwritten(dataset, replace(base, version=table.version()), now)
    version = _commit(table, files, dataset, state.location, "overwrite", touched)
    pin = TablePin(version, {bucket: digest for bucket, digest in digests.items() if digest.rows})
    return _written(dataset, pin, files, now)


def _rewrite_by_spark(
    frame: DataFrame,
    dataset: Dataset,
    state: State,
    owners: Collection[str],
    base: TablePin,
    sort_by: Sequence[str],
    identity: Sequence[str],
) -> list[DataFile]:
    """The buckets of `owners` with their rows replaced, as files."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kept = _read_files(frame.sparkSession, state, dataset, base.version, owners)
    listed = F.broadcast(frame.sparkSession.createDataFrame(pa.table({OWNER: pa.array(owners, pa.string())})))
    rows = kept.join(listed, OWNER, "left_anti").unionByName(frame.join(listed, OWNER, "left_semi"))
    return write_by_spark(spread(rows, state, sort_by), dataset, state, identity)


class _Buckets:
    """The rows of one version, bucket by bucket."""

    def __init__(self, state: State, dataset: Dataset, version: int) -> None:
        self.state = state
        self._schema = dataset.schema()
        self._files: dict[str, list[pads.Fragment]] = {}
        for file in open_arrow(state, dataset, version).get_fragments():
            self._files.setdefault(file.path.split("/")[-2], []).append(file)

    def without(self, bucket: int, owners: pa.Array) -> list[pa.Table]:
        """The rows of a bucket but those of `owners`, file by file."""
        is_kept = ~pc.field(OWNER).isin(owners)
        with reading(self.state.location):
            return [
                file.to_table(schema=self._schema, filter=is_kept) for file in self._files.get(f"{BUCKET}={bucket}", ())
            ]


def _merged(bucket: int, rows: pa.Table, stored: _Buckets, owners: Collection[str], sort_by: Sequence[str]) -> pa.Table:
    """A bucket with the rows of `owners` replaced by `rows`."""
    theirs = pa.array([owner for owner in owners if bucket_of(owner, stored.state.buckets) == bucket], pa.string())
    new = rows.filter(pc.is_in(rows[OWNER], theirs))
    whole = pa.concat_tables([*stored.without(bucket, theirs), new])
    return whole.sort_by([(name, "ascending") for name in (OWNER, *sort_by)])


def append_rows(
    frame: DataFrame,
    dataset: Dataset,
    state: State,
    *,
    base: TablePin | None,
    identity: Sequence[str],
    make: Make = iter,
) -> WrittenTable:
    """Add the rows that `make` yields for `frame` to the latest version, which `base` (from `pin_latest`) describes.

    Without a base the table begins anew: it is not there yet, or it has other columns.
    """
    with writing(state.location):
        files = write_by_workers(frame, dataset, state, identity, make)
        return _append(_existing(state.location, dataset.name), files, dataset, state, base)


def append_collected(
    rows: pa.Table, dataset: Dataset, state: State, *, base: TablePin | None, identity: Sequence[str]
) -> WrittenTable:
    """The same for rows that are here already. Every so often, the small files this leaves are made one."""
    with writing(state.location):
        table = _existing(state.location, dataset.name)
        written = _append(table, write_here(rows, dataset, state, identity), dataset, state, base)
        if table is None or not written.written:
            return written
        return replace(written, pin=replace(written.pin, version=_tidied(table, dataset, state)))


def _tidied(table: DeltaTable, dataset: Dataset, state: State) -> int:
    """The version after small files were made one, if there are many: each has to be opened to be searched."""
    table.update_incremental()
    files = stored_files(table)
    small = [file for file in files if file.size < _SMALL_BYTES]
    if len(small) <= _MANY_SMALL_FILES:
        return int(table.version())
    if not state.location.is_local:
        properties = WriterProperties(compression="ZSTD")
        table.optimize.compact(target_size=_SMALL_BYTES, writer_properties=properties, commit_properties=NO_RETRY)
        return int(table.version())
    # Not by delta-rs, which writes no checksums. A file that stays needs a new name: the commit removes all others.
    check_files(state.location, dataset.name, files)
    rows = arrow_dataset(state.location, dataset.name, small, dataset.schema()).to_table()
    kept = [give_name(file.path, dataset, state.location) for file in files if file not in small]
    return _commit(table, [*write_here(rows, dataset, state, ()), *kept], dataset, state.location, "overwrite")


def _append(
    table: DeltaTable | None, files: Sequence[DataFile], dataset: Dataset, state: State, base: TablePin | None
) -> WrittenTable:
    if base is not None and not files:
        return _unwritten(dataset, base)
    usable = table is not None and table.schema() == _stored_schema(dataset)
    if (table.version() if table and usable else None) != (base.version if base else None):
        raise StateError(f"another build wrote table {dataset.name} of {state.location.uri} meanwhile: run again")
    version = _commit(table, files, dataset, state.location, "append" if usable else "overwrite")
    buckets = dict(base.buckets) if base else {}
    for bucket, digest in _bucket_digests(files).items():
        buckets[bucket] = buckets.get(bucket, NO_ROWS) + digest
    return _written(dataset, TablePin(version, buckets), files)


def pin_latest(state: State, dataset: Dataset, *, known: TablePin | None, identity: Sequence[str]) -> TablePin | None:
    """The latest version of an append-only table, or None if it has other columns or is not there.

    It is read only if it has rows that `known` has not. It has when a run died after its append: those rows are
    sound, only no build names them yet.
    """
    table = _existing(state.location, dataset.name)
    if table is None or table.schema() != _stored_schema(dataset):
        return None
    version = table.version()
    if known is not None and known.version == version:
        return known
    files = data_files(state, dataset.name, version)
    if known is not None and files == data_files(state, dataset.name, known.version):
        return TablePin(version, known.buckets)
    rows = read_arrow(state, dataset, version, identity)
    return TablePin(version, {0: identity_digest(rows, tuple(identity))} if rows.num_rows else {})


def read_table(
    spark: SparkSession,
    state: State,
    dataset: Dataset,
    version: int,
    *,
    keys: Collection[str] | None = None,
) -> DataFrame:
    """The rows of one version, or those of the given owners, read from the buckets that can hold them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    frame = _read_files(spark, state, dataset, version, keys)
    return frame if keys is None else frame.where(F.col(OWNER).isin(*keys))


def _read_files(
    spark: SparkSession, state: State, dataset: Dataset, version: int, keys: Collection[str] | None
) -> DataFrame:
    """The rows of one version, or of the buckets that can hold those of the given owners."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    files = data_files(state, dataset.name, version, keys=keys)
    schema = relaxed(dataset.schema())
    if not files:
        return spark.createDataFrame([], schema)
    try:
        return spark.read.schema(schema).options(**READ_OPTIONS).parquet(*literal_paths(files))
    except AnalysisException as error:
        raise StateError(
            f"the state at {state.location.uri} is damaged (table {dataset.name} lost a file): "
            "delete it and build again"
        ) from error


def open_arrow(state: State, dataset: Dataset, version: int, *, keys: Collection[str] | None = None) -> pads.Dataset:
    """One version as an Arrow dataset (of the buckets that can hold `keys`), without Spark."""
    files = files_of_version(state.location, dataset.name, version, buckets=_buckets_of(state, keys))
    with reading(state.location):
        stored = arrow_dataset(state.location, dataset.name, files, stored_schema(dataset))
        return stored.replace_schema(dataset.schema())


def read_arrow(
    state: State,
    dataset: Dataset,
    version: int,
    columns: Iterable[str] | None = None,
    *,
    only: pc.Expression | None = None,
    owners: Collection[str] | None = None,
) -> pa.Table:
    """Rows of one version, without Spark: all, those of which `only` is true, or those of `owners`."""
    stored = open_arrow(state, dataset, version, keys=owners)
    if owners is not None:
        only = pc.field(OWNER).isin(pa.array(sorted(owners), pa.string()))
    with reading(state.location):
        return stored.to_table(None if columns is None else list(columns), filter=only)


def data_files(state: State, name: str, version: int, *, keys: Collection[str] | None = None) -> list[str]:
    """The files of one version (of the buckets that can hold `keys`), as paths or uris Spark takes; they are there."""
    return _paths(state, name, version, _buckets_of(state, keys))


def verified_files(state: State, name: str, version: int, *, buckets: Collection[int] | None = None) -> list[str]:
    """The files of one version of a local table, for readers that verify no pages: each was compared byte by byte."""
    files = _paths(state, name, version, buckets)
    with reading(state.location):
        altered = find_altered(files)
    if altered is not None:
        raise damaged(state.location, f"{altered} is not as it was written")
    return files


def _paths(state: State, name: str, version: int, buckets: Collection[int] | None) -> list[str]:
    files = files_of_version(state.location, name, version, buckets=buckets)
    return [f"{state.location.table_uri(name)}/{file.path}" for file in files]


def _commit(
    table: DeltaTable | None,
    files: Iterable[DataFile],
    dataset: Dataset,
    location: StateLocation,
    mode: Literal["append", "overwrite"],
    only_buckets: Collection[int] | None = None,
) -> int:
    """Make the files visible in one commit; the version it made."""
    layout = layout_of(dataset)
    added = (
        Added(file.path, file.size, file.modified, file.rows, {name: str(file.bucket) for name in layout})
        for file in files
    )
    return commit(location, dataset.name, table, added, _stored_schema(dataset), mode, only_buckets)


def _written(
    dataset: Dataset, pin: TablePin, files: Collection[DataFile], owners: Mapping[str, SetDigest] | None = None
) -> WrittenTable:
    boundary("table.committed", dataset.name)
    size = sum(file.size for file in files)
    return WrittenTable(dataset.name, pin, written=True, files=len(files), bytes=size, owners=owners or {})


def _unwritten(dataset: Dataset, pin: TablePin, owners: Mapping[str, SetDigest] | None = None) -> WrittenTable:
    return WrittenTable(dataset.name, pin, written=False, files=0, bytes=0, owners=owners or {})


def _bucket_digests(files: Iterable[DataFile]) -> dict[int, SetDigest]:
    by_bucket = sorted(files, key=lambda file: file.bucket)
    return {
        bucket: total(file.digest for file in group) for bucket, group in groupby(by_bucket, lambda file: file.bucket)
    }


def _owner_digests(files: Iterable[DataFile]) -> dict[str, SetDigest]:
    """What each owner has; its rows may be in several files of its bucket."""
    digests: dict[str, SetDigest] = {}
    for file in files:
        for owner, digest in file.owners.items():
            digests[owner] = digests.get(owner, NO_ROWS) + digest
    return digests


def _is_whole(state: State, name: str, version: int) -> bool:
    """Whether the files of a version are what was written; on an object store, that is taken for granted."""
    if state.location.is_local:
        try:
            verified_files(state, name, version)
        except StateError:
            return False
    return True


def _existing(location: StateLocation, name: str) -> DeltaTable | None:
    return open_table(location, name) if table_exists(location, name) else None


def _buckets_of(state: State, keys: Collection[str] | None) -> set[int] | None:
    return None if keys is None else {bucket_of(key, state.buckets) for key in keys}


def _stored_schema(dataset: Dataset) -> Schema:
    return Schema.from_arrow(stored_schema(dataset))
