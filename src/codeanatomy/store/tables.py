"""Tables: Arrow writes the data files and Spark reads them, the Delta log says which of them make up a version.

Rows that have an owner are laid out in hash buckets of it and replaced whole. A table whose rows have none (`facts`)
only grows; its rows are nested and written by the process that makes them (`filewriter`). There are two verbs:
`replace_rows` and `append_rows`.

A write adds new files (`datafiles`) and makes them visible by one commit. A process that dies in between leaves files
that no version names. Readers always name a version; only an append uses the latest one.

Glossary
    pin      a version of a table and the digests of its buckets: what a build records of a table.
    cutoff   a write of the rows that are already pinned commits nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, Schema, WriterProperties

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.errors import StateError
from codeanatomy.store.checksums import find_altered
from codeanatomy.store.datafiles import (
    READ_OPTIONS,
    CollectedRows,
    DataFile,
    WorkerRows,
    discard,
    duplicate_file,
    nullable_schema,
    stored_schema,
    write_buckets_from_driver,
    write_by_spark,
    write_by_workers,
    write_from_driver,
)
from codeanatomy.store.delta import (
    EVERYTHING,
    NO_RETRY,
    NOTHING,
    NewFile,
    arrow_dataset,
    check_files,
    check_version,
    columns_of_file,
    commit,
    create_table,
    files_after,
    files_of_version,
    open_table,
    stored_files,
    table_exists,
)
from codeanatomy.store.determinism import in_order, row_order
from codeanatomy.store.digests import NO_ROWS, SetDigest, total
from codeanatomy.store.failures import damaged, reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.filewriter import identity_digest
from codeanatomy.store.layout import BUCKET, OWNER, bucket_of, layout_of
from codeanatomy.store.location import StateLocation, literal_paths
from codeanatomy.store.state import State

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from pyarrow import dataset as pads
    from pyspark.sql import DataFrame, SparkSession

_SMALL_BYTES = 1 << 20
_MANY_SMALL_FILES = 32


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
    """The result of a write: the new pin, the files added (none if no row changed), the digest of each owner's rows."""

    name: str
    pin: TablePin
    written: bool
    files: int
    bytes: int
    owners: Mapping[str, SetDigest] = field(default_factory=dict)


@dataclass(frozen=True)
class Replaced:
    """The owners whose rows are replaced, and the digests of the rows they have in the version that is replaced."""

    owners: Collection[str]
    before: Mapping[str, SetDigest]


def replace_rows(
    rows: CollectedRows | DataFrame,
    dataset: Dataset,
    state: State,
    base: TablePin | None = None,
    replaced: Replaced | None = None,
) -> WrittenTable:
    """Replace rows in the version that `base` pins: those of the `replaced` owners, or all of them.

    What is replaced depends on the list of owners alone: an owner without rows in `rows` loses those it had. Unchanged
    rows are not written: buckets when some owners are replaced, the table when all are.
    """
    with writing(state.location):
        if replaced is None:
            return _replace_all(rows, dataset, state, base)
        if base is None:
            raise ValueError(f"{dataset.name}: there is no version in which rows of some owners could be replaced")
        if isinstance(rows, CollectedRows):
            return _replace(
                dataset, state, base, replaced, _BucketsFromDriver(rows, dataset, state, base, replaced.owners)
            )
        return _replace(dataset, state, base, replaced, _BucketsBySpark(rows, dataset, state, base, replaced.owners))


def _replace_all(
    rows: CollectedRows | DataFrame, dataset: Dataset, state: State, base: TablePin | None
) -> WrittenTable:
    files: list[DataFile] = []
    if isinstance(rows, CollectedRows):
        owners = dict(rows.digests)
        buckets = _sums_by_bucket(owners, state)
    else:
        files = write_by_spark(rows, dataset, state)
        owners, buckets = _owner_digests(files), _bucket_digests(files)
    if base is not None and base.buckets == buckets and _is_whole(state, dataset.name, base.version):
        discard(files, dataset, state.location)
        return _unwritten(dataset, base, owners)
    if isinstance(rows, CollectedRows):
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to load

        collected = rows.table
        row_owners = collected[OWNER].to_pylist()
        bucket_of_row = pa.array([bucket_of(owner, state.buckets) for owner in row_owners], pa.int32())
        order = row_order(dataset, state.determinism)
        by_bucket = {each: in_order(collected.filter(pc.equal(bucket_of_row, each)), order) for each in buckets}
        files = write_buckets_from_driver(by_bucket, by_bucket.__getitem__, dataset, state)
    table = _existing(state.location, dataset.name)
    version = _commit(state, table, files, dataset, EVERYTHING) if table else _create(files, dataset, state.location)
    return _written(dataset, TablePin(version, buckets), files, owners)


def _replace(
    dataset: Dataset, state: State, base: TablePin, replaced: Replaced, rewritten: _BucketsFromDriver | _BucketsBySpark
) -> WrittenTable:
    """Commit the buckets in which an owner's rows changed."""
    digests = rewritten.digests()
    changes = {owner: (replaced.before.get(owner, NO_ROWS), digests.get(owner, NO_ROWS)) for owner in replaced.owners}
    buckets = dict(base.buckets)
    touched = set()
    for owner, (old, new) in changes.items():
        if old != new:
            bucket = bucket_of(owner, state.buckets)
            buckets[bucket] = buckets.get(bucket, NO_ROWS) - old + new
            touched.add(bucket)
    now = {owner: new for owner, (_, new) in changes.items()}
    files = rewritten.files(touched)
    if not touched:
        return _unwritten(dataset, base, now)
    table = _existing(state.location, dataset.name)
    if table is None:
        raise damaged(state.location, f"table {dataset.name} is lost")
    if table.version() != base.version:  # a build died after its commit: that version was never published
        check_version(state.location, dataset.name, base.version)
        table.restore(base.version)
    version = _commit(state, table, files, dataset, touched)
    pin = TablePin(version, {bucket: digest for bucket, digest in buckets.items() if digest.rows})
    return _written(dataset, pin, files, now)


@dataclass(frozen=True)
class _BucketsBySpark:
    """The buckets of `owners` with their rows replaced, rewritten by Spark."""

    rows: DataFrame
    dataset: Dataset
    state: State
    base: TablePin
    owners: Collection[str]

    @cached_property
    def _written(self) -> list[DataFile]:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        from codeanatomy.engine.frames import frame_of  # noqa: PLC0415

        spark = self.rows.sparkSession
        stored = _read_files(spark, self.state, self.dataset, self.base.version, self.owners)
        owners = F.broadcast(frame_of(spark, pa.table({OWNER: pa.array(self.owners, pa.string())})))
        rows = stored.join(owners, OWNER, "left_anti").unionByName(self.rows.join(owners, OWNER, "left_semi"))
        return write_by_spark(rows, self.dataset, self.state)

    def digests(self) -> Mapping[str, SetDigest]:
        """The digest of the rows that each owner has now."""
        return {owner: digest for owner, digest in _owner_digests(self._written).items() if owner in self.owners}

    def files(self, buckets: Collection[int]) -> list[DataFile]:
        """The files of these buckets; those of the others are discarded."""
        discard((file for file in self._written if file.bucket not in buckets), self.dataset, self.state.location)
        return [file for file in self._written if file.bucket in buckets]


@dataclass(frozen=True)
class _BucketsFromDriver:
    """The buckets of `owners` with their rows replaced, rewritten by the driver: only those that are asked for."""

    rows: CollectedRows
    dataset: Dataset
    state: State
    base: TablePin
    owners: Collection[str]

    def digests(self) -> Mapping[str, SetDigest]:
        """The digest of the rows that each owner has now."""
        return self.rows.digests

    def files(self, buckets: Collection[int]) -> list[DataFile]:
        """The files of these buckets."""
        stored: dict[str, list[pads.Fragment]] = {}
        for file in open_arrow(self.state, self.dataset, self.base.version, owners=self.owners).get_fragments():
            stored.setdefault(file.path.split("/")[-2], []).append(file)

        def rows_of(bucket: int) -> pa.Table:
            return self._merged(bucket, stored.get(f"{BUCKET}={bucket}", ()))

        return write_buckets_from_driver(buckets, rows_of, self.dataset, self.state)

    def _merged(self, bucket: int, stored: Iterable[pads.Fragment]) -> pa.Table:
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to load

        owners = pa.array([each for each in self.owners if bucket_of(each, self.state.buckets) == bucket], pa.string())
        schema, is_kept = self.dataset.schema(), ~pc.field(OWNER).isin(owners)
        with reading(self.state.location):
            kept = [file.to_table(schema=schema, filter=is_kept) for file in stored]
        new = self.rows.table.filter(pc.is_in(self.rows.table[OWNER], owners))
        return in_order(pa.concat_tables([*kept, new]), row_order(self.dataset, self.state.determinism))


def _sums_by_bucket(owners: Mapping[str, SetDigest], state: State) -> dict[int, SetDigest]:
    buckets: dict[int, SetDigest] = {}
    for owner, digest in owners.items():
        bucket = bucket_of(owner, state.buckets)
        buckets[bucket] = buckets.get(bucket, NO_ROWS) + digest
    return dict(sorted(buckets.items()))


@dataclass(frozen=True)
class Emptied:
    """The latest version of a table, none of whose rows are kept by what is appended."""

    version: int


def append_rows(
    rows: pa.Table | WorkerRows, dataset: Dataset, state: State, base: TablePin | Emptied | None = None
) -> WrittenTable:
    """Add rows without an owner to the latest version, which `base` (from `pin_latest`) describes.

    Without a base the table starts empty: it is not there yet, or it has other columns. Rows of the driver make small
    files; many of them are compacted.
    """
    with writing(state.location):
        table = _existing(state.location, dataset.name)
        if isinstance(rows, WorkerRows):
            return _append(table, write_by_workers(rows, dataset, state), dataset, state, base)
        written = _append(table, write_from_driver(rows, dataset, state), dataset, state, base)
        if table is None or not written.written:
            return written
        return replace(written, pin=replace(written.pin, version=_compacted(table, dataset, state)))


def _compacted(table: DeltaTable, dataset: Dataset, state: State) -> int:
    """Compact small files if there are many, because every read opens each of them; returns the latest version."""
    table.update_incremental()
    files = stored_files(table)
    small = [file for file in files if file.size < _SMALL_BYTES]
    if len(small) <= _MANY_SMALL_FILES:
        return int(table.version())
    if not state.location.is_local:
        properties = WriterProperties(compression="ZSTD")
        table.optimize.compact(target_size=_SMALL_BYTES, writer_properties=properties, commit_properties=NO_RETRY)
        return int(table.version())
    # Not by delta-rs, which writes no checksums. A large file gets a new name: the commit removes all old names.
    check_files(state.location, dataset.name, files)
    rows = arrow_dataset(state.location, dataset.name, small, dataset.schema()).to_table()
    kept = [duplicate_file(file.path, dataset, state.location) for file in files if file not in small]
    return _commit(state, table, [*write_from_driver(rows, dataset, state), *kept], dataset, EVERYTHING)


def _append(
    table: DeltaTable | None, files: Sequence[DataFile], dataset: Dataset, state: State, base: TablePin | Emptied | None
) -> WrittenTable:
    kept = base if isinstance(base, TablePin) else None
    if kept is not None and not files:
        return _unwritten(dataset, kept)
    usable = table is not None and (isinstance(base, Emptied) or table.schema() == _stored_schema(dataset))
    if (table.version() if table and usable else None) != (base.version if base else None):
        raise StateError(
            f"another build wrote table {dataset.name} of {state.location.uri} at the same time: run again"
        )
    replaced = NOTHING if kept else EVERYTHING
    version = _commit(state, table, files, dataset, replaced) if table else _create(files, dataset, state.location)
    buckets = dict(kept.buckets) if kept else {}
    for bucket, digest in _bucket_digests(files).items():
        buckets[bucket] = buckets.get(bucket, NO_ROWS) + digest
    return _written(dataset, TablePin(version, buckets), files)


def pin_latest(state: State, dataset: Dataset, known: TablePin | None) -> TablePin | None:
    """The latest version of an append-only table, or None if it has other columns or is not there.

    It is read only if it has rows that `known` does not have: a build died after its append. Those rows are valid.
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
    rows = read_arrow(state, dataset, version, dataset.identity)
    return TablePin(version, {0: identity_digest(rows, dataset.identity)} if rows.num_rows else {})


def latest_version(state: State, name: str) -> int | None:
    """The latest version of a table, whatever its columns; None if there is no such table."""
    table = _existing(state.location, name)
    return int(table.version()) if table else None


def open_as_stored(state: State, name: str, version: int) -> pads.Dataset | None:
    """A version of a table without a layout, with the columns that its files have; None if it has no rows."""
    files = files_of_version(state.location, name, version)
    if not files:
        return None
    with reading(state.location):
        return arrow_dataset(state.location, name, files, columns_of_file(state.location, name, files[0]))


def read_table(
    spark: SparkSession,
    state: State,
    dataset: Dataset,
    version: int,
    *,
    owners: Collection[str] | None = None,
) -> DataFrame:
    """The rows of one version, or those of the given owners, read from the buckets that can hold them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    frame = _read_files(spark, state, dataset, version, owners)
    return frame if owners is None else frame.where(F.col(OWNER).isin(*owners))


def _read_files(
    spark: SparkSession, state: State, dataset: Dataset, version: int, owners: Collection[str] | None
) -> DataFrame:
    """The rows of one version, or of the buckets that can hold those of the given owners."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    files = data_files(state, dataset.name, version, owners=owners)
    schema = nullable_schema(dataset.schema())
    if not files:
        return spark.createDataFrame([], schema)
    try:
        return spark.read.schema(schema).options(**READ_OPTIONS).parquet(*literal_paths(files))
    except AnalysisException as error:
        raise damaged(state.location, f"table {dataset.name} lost a file") from error


def open_arrow(state: State, dataset: Dataset, version: int, *, owners: Collection[str] | None = None) -> pads.Dataset:
    """One version as an Arrow dataset (of the buckets that can hold rows of `owners`), without Spark."""
    files = files_of_version(state.location, dataset.name, version, buckets=_buckets_of(state, owners))
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
    stored = open_arrow(state, dataset, version, owners=owners)
    if owners is not None:
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to load

        only = pc.field(OWNER).isin(pa.array(sorted(owners), pa.string()))
    with reading(state.location):
        return stored.to_table(None if columns is None else list(columns), filter=only)


def read_kept(state: State, dataset: Dataset, version: int, columns: Iterable[str]) -> pa.Table:
    """Some columns of all rows of one version; a data file that was read before is not read again."""
    names = tuple(columns)
    schema = pa.schema([dataset.schema().field(name) for name in names])
    with reading(state.location):
        files = [
            state.location.opened.keep(
                dataset.name, (file.path, names), partial(file.to_table, schema=dataset.schema(), columns=list(names))
            )
            for file in open_arrow(state, dataset, version).get_fragments()
        ]
    return pa.concat_tables([schema.empty_table(), *files])


def data_files(state: State, name: str, version: int, *, owners: Collection[str] | None = None) -> list[str]:
    """The files of one version (of the buckets of `owners`), all of which exist, as paths or uris for Spark."""
    return _paths(state, name, version, _buckets_of(state, owners))


def verified_files(state: State, name: str, version: int, *, buckets: Collection[int] | None = None) -> list[str]:
    """The files of one version of a local table, checksums compared, for readers that do not verify pages."""
    files = _paths(state, name, version, buckets)
    with reading(state.location):
        altered = find_altered(files)
    if altered is not None:
        raise damaged(state.location, f"{altered} is not as it was written")
    return files


def _paths(state: State, name: str, version: int, buckets: Collection[int] | None) -> list[str]:
    files = files_of_version(state.location, name, version, buckets=buckets)
    return [f"{state.location.table_uri(name)}/{file.path}" for file in files]


def _create(files: Iterable[DataFile], dataset: Dataset, location: StateLocation) -> int:
    """Create the table of these files in one commit; returns its version."""
    return create_table(location, dataset.name, _new_files(files, dataset), _stored_schema(dataset))


def _commit(
    state: State, table: DeltaTable, files: Iterable[DataFile], dataset: Dataset, replaced: Collection[int] | None
) -> int:
    """Make the files visible in one commit; returns its version, whose files need not be read from the log again."""
    new = _new_files(files, dataset)
    known = files_after(table, new, replaced)
    version = commit(table, new, _stored_schema(dataset), replaced)
    state.location.opened.keep(dataset.name, version, lambda: known)
    return version


def _new_files(files: Iterable[DataFile], dataset: Dataset) -> list[NewFile]:
    layout = layout_of(dataset)
    return [
        NewFile(file.path, file.size, file.modified, file.rows, {name: str(file.bucket) for name in layout})
        for file in files
    ]


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
    """The digest of each owner's rows, which may be in several files of its bucket."""
    digests: dict[str, SetDigest] = {}
    for file in files:
        for owner, digest in file.owners.items():
            digests[owner] = digests.get(owner, NO_ROWS) + digest
    return digests


def _is_whole(state: State, name: str, version: int) -> bool:
    """Whether the files of a version are as they were written; not checked on an object store."""
    if state.location.is_local:
        try:
            verified_files(state, name, version)
        except StateError:
            return False
    return True


def _existing(location: StateLocation, name: str) -> DeltaTable | None:
    return open_table(location, name) if table_exists(location, name) else None


def _buckets_of(state: State, owners: Collection[str] | None) -> set[int] | None:
    return None if owners is None else {bucket_of(owner, state.buckets) for owner in owners}


def _stored_schema(dataset: Dataset) -> Schema:
    return Schema.from_arrow(stored_schema(dataset))
