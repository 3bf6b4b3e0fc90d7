"""Tables: Spark writes and reads the data files, the Delta log says which of them make up a version.

Rows that have an owner are laid out in hash buckets of it, written by Spark and replaced whole. A table whose rows have
none (`facts`) only grows; its rows are nested and written where they are made (`parts`). What names such a row
(`identity`) says all that is in it, so that alone is digested.

A write puts new files beside the old ones under a name of its own, reads them back once for statistics and digests
(so that a digest is of what is on disk), and makes them visible by one commit. What dies in between leaves files
that no version names. Readers always name a version; only an append looks at the latest one.

Glossary
    pin      a version of a table and the digests of its buckets; what a build remembers of a table.
    cutoff   a full write that yields the rows already pinned commits nothing.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyarrow import fs as pafs

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.errors import StateError
from codeanatomy.store.digests import SetDigest, digest_from, digest_sums, hash_columns, total
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.layout import BUCKET, bucket_column, bucket_of
from codeanatomy.store.location import StateLocation
from codeanatomy.store.parts import Make, PartWriter
from codeanatomy.store.state import LOG_SETTINGS, State

if TYPE_CHECKING:
    from pyarrow import dataset as pads
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

OWNER = "file_id"
"""The column whose bucket a row is in, where it has one."""

NO_RETRY = CommitProperties(max_commit_retries=0)
"""Commit the next version of what was read, or fail: a retry would put a write on top of rows it never saw."""

_WRITE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The default local file system leaves a checksum file beside every data file.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


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
    """What a write did: the pin to remember, and the files it added (none if nothing changed)."""

    name: str
    pin: TablePin
    written: bool
    files: int
    bytes: int


@dataclass(frozen=True)
class _DataFile:
    """A data file as it is on disk."""

    path: str
    size: int
    modified: int
    bucket: int
    digest: SetDigest


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
        files = _write_files(_spread(frame, state, sort_by), dataset, state, identity)
        buckets = _bucket_digests(files)
        if previous is not None and previous.buckets == buckets and _is_whole(state, dataset.name, previous.version):
            _discard(files, dataset, state.location)
            return WrittenTable(dataset.name, previous, written=False, files=0, bytes=0)
        table = _existing(state.location, dataset.name)
        version = _commit(table, files, dataset, state.location, "overwrite")
        return _written(dataset, TablePin(version, buckets), files)


def replace_rows(
    frame: DataFrame,
    dataset: Dataset,
    state: State,
    *,
    owners: Collection[str],
    base: TablePin,
    sort_by: Sequence[str] = (),
) -> WrittenTable:
    """Replace the rows of `owners`, and of nobody else, in the version that `base` pins.

    By the list of owners, not by the rows there are: an owner that has none in `frame` loses those it had. Buckets of
    other owners are not touched, and a bucket that comes out the same is not committed.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    touched = {bucket_of(owner, state.buckets) for owner in owners}
    with writing(state.location):
        table = _existing(state.location, dataset.name)
        if table is None:
            raise StateError(f"the state at {state.location.uri} lost table {dataset.name}: delete it and build again")
        if table.version() != base.version:  # a run died after its commit: what it wrote was never published
            table.restore(base.version)
        kept = _read_files(frame.sparkSession, state, dataset, base.version, owners)
        rows = kept.where(~F.col(OWNER).isin(*owners)).unionByName(frame.where(F.col(OWNER).isin(*owners)))
        files = _write_files(_spread(rows, state, sort_by), dataset, state)
        after = _bucket_digests(files)
        changed = {bucket for bucket in touched if after.get(bucket) != base.buckets.get(bucket)}
        _discard((file for file in files if file.bucket not in changed), dataset, state.location)
        if not changed:
            return WrittenTable(dataset.name, replace(base, version=table.version()), written=False, files=0, bytes=0)
        added = [file for file in files if file.bucket in changed]
        version = _commit(table, added, dataset, state.location, "overwrite", changed)
        others = {bucket: digest for bucket, digest in base.buckets.items() if bucket not in changed}
        return _written(dataset, TablePin(version, others | _bucket_digests(added)), added)


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
        files = _write_parts(frame, dataset, state, identity, make)
        if base is not None and not files:
            return WrittenTable(dataset.name, base, written=False, files=0, bytes=0)
        table = _existing(state.location, dataset.name)
        usable = table is not None and table.schema() == _stored_schema(dataset)
        if (table.version() if table and usable else None) != (base.version if base else None):
            raise StateError(f"another build wrote table {dataset.name} of {state.location.uri} meanwhile: run again")
        version = _commit(table, files, dataset, state.location, "append" if usable else "overwrite")
        buckets = dict(base.buckets) if base else {}
        for bucket, digest in _bucket_digests(files).items():
            buckets[bucket] = buckets[bucket] + digest if bucket in buckets else digest
        return _written(dataset, TablePin(version, buckets), files)


def pin_latest(
    spark: SparkSession, state: State, dataset: Dataset, *, known: TablePin | None, identity: Sequence[str]
) -> TablePin | None:
    """The latest version of an append-only table, or None if it has other columns or is not there.

    It is read only if it has rows that `known` has not. It has when a run died after its append: those rows are
    sound, only no build names them yet.
    """
    table = _existing(state.location, dataset.name)
    if table is None or table.schema() != _stored_schema(dataset):
        return None
    version = table.version()
    files = data_files(state, dataset.name, version)
    if known is not None and files == data_files(state, dataset.name, known.version):
        return TablePin(version, known.buckets)
    if not files:
        return TablePin(version, {})
    rows = spark.read.schema(_relaxed(dataset.schema())).parquet(*literal_paths(files))
    return TablePin(version, _bucket_digests(_measure(rows, dataset, identity)))


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
    schema = _relaxed(dataset.schema())
    if not files:
        return spark.createDataFrame([], schema)
    try:
        return spark.read.schema(schema).parquet(*literal_paths(files))
    except AnalysisException as error:
        raise StateError(
            f"the state at {state.location.uri} is damaged (table {dataset.name} lost a file): "
            "delete it and build again"
        ) from error


def open_arrow(state: State, dataset: Dataset, version: int, *, keys: Collection[str] | None = None) -> pads.Dataset:
    """One version as an Arrow dataset (of the buckets that can hold `keys`), without Spark."""
    location = state.location
    with reading(location):
        table = DeltaTable(location.table_uri(dataset.name), version=version, storage_options=location.options())
        filesystem = (
            pafs.SubTreeFileSystem(location.table_uri(dataset.name), pafs.LocalFileSystem())
            if location.is_local
            else None
        )
        stored = table.to_pyarrow_dataset(
            filesystem=filesystem,
            schema=_stored_arrow_schema(dataset),
            file_pruning_predicate=_bucket_filter(state, keys),
        )
        return stored.replace_schema(dataset.schema())


def data_files(state: State, name: str, version: int, *, keys: Collection[str] | None = None) -> list[str]:
    """The files of one version (of the buckets that can hold `keys`), as paths or uris Spark and DuckDB take."""
    location = state.location
    with reading(location):
        table = DeltaTable(location.table_uri(name), version=version, storage_options=location.options())
        files = relative_files(table)
    if keys is not None:
        folders = {f"{BUCKET}={bucket_of(key, state.buckets)}" for key in keys}
        files = [file for file in files if file.split("/")[0] in folders]
    return [f"{location.table_uri(name)}/{file}" for file in files]


def relative_files(table: DeltaTable) -> list[str]:
    """The files of a table's version, relative to its folder; `file_uris` escapes what a local path may contain."""
    return sorted(str(path) for path in table.get_add_actions().column("path").to_pylist())


def _spread(frame: DataFrame, state: State, sort_by: Sequence[str]) -> DataFrame:
    """The rows laid out for writing: those of one bucket together, those of one owner next to each other."""
    bucketed = frame.select("*", bucket_column(OWNER, state.buckets)).repartition(BUCKET)
    return bucketed.sortWithinPartitions(BUCKET, OWNER, *sort_by)


def _write_files(frame: DataFrame, dataset: Dataset, state: State, identity: Sequence[str] = ()) -> list[_DataFile]:
    """Write the rows, laid out as they are, under a basename of their own and measure the files that came out.

    Where `identity` names what is in a row, that alone is digested.
    """
    schema = _stored_spark_schema(dataset)
    if set(frame.columns) != set(schema.names):
        raise ValueError(f"{dataset.name}: columns {sorted(frame.columns)} are not {sorted(schema.names)}")
    uri = state.location.table_uri(dataset.name)
    basename = f"part-{secrets.token_hex(8)}"
    (
        frame.to(schema)
        .write.mode("append")
        .partitionBy(*_partition_by(dataset))
        .options(**_WRITE_OPTIONS)
        .option("mapreduce.output.basename", basename)
        .parquet(uri)
    )
    boundary("table.files_written", dataset.name)
    reader = frame.sparkSession.read.schema(schema).option("basePath", uri)
    written = reader.option("pathGlobFilter", f"{basename}*").parquet(*literal_paths([uri]))
    return _measure(written, dataset, identity or dataset.names())


def _write_parts(
    frame: DataFrame, dataset: Dataset, state: State, identity: Sequence[str], make: Make
) -> list[_DataFile]:
    """Have the rows made and written by Spark's Python workers and measure the files they report."""
    location = state.location
    uri = location.table_uri(dataset.name)
    writer = PartWriter(make, location.tables_uri, dataset.name, location.options(), dataset.schema())
    names = [row["file"] for row in frame.mapInArrow(writer, "file string").collect()]
    boundary("table.files_written", dataset.name)
    if not names:
        return []
    reader = frame.sparkSession.read.schema(_relaxed(dataset.schema()))
    return _measure(reader.parquet(*literal_paths(f"{uri}/{name}" for name in names)), dataset, identity)


def _measure(frame: DataFrame, dataset: Dataset, digested: Sequence[str]) -> list[_DataFile]:
    """Size and digest (of the columns named) of each file of `frame`, in one pass over it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    owned = bool(_partition_by(dataset))
    required = [column.name for column in dataset.columns if column.required]
    rows = frame.select(
        F.col(BUCKET) if owned else F.lit(0).alias(BUCKET),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_size").alias("size"),
        F.unix_millis("_metadata.file_modification_time").alias("modified"),
        reduce(or_, (F.col(name).isNull() for name in required), F.lit(False)).alias("has_gap"),
        *hash_columns(replace(dataset, columns=tuple(dataset.column(name) for name in digested))),
    )
    measured = (
        rows.groupBy(BUCKET, "path", "size", "modified")
        .agg(
            F.bool_or("has_gap").alias("has_gap"),
            *digest_sums(),
        )
        .collect()
    )
    if any(row["has_gap"] for row in measured):
        raise ValueError(f"{dataset.name}: null in one of the required columns {required}")
    return [
        _DataFile(
            # The log names a file relative to its table: the folder of its bucket, if it has one, and its name.
            path="/".join(row["path"].split("/")[-1 - owned :]),
            size=row["size"],
            modified=row["modified"],
            bucket=row[BUCKET],
            digest=digest_from(row),
        )
        for row in measured
    ]


def _commit(
    table: DeltaTable | None,
    files: Iterable[_DataFile],
    dataset: Dataset,
    location: StateLocation,
    mode: Literal["append", "overwrite"],
    only_buckets: Collection[int] | None = None,
) -> int:
    """Make the files visible in one commit; the version it made."""
    actions = [_add_action(file, _partition_by(dataset)) for file in files]
    if table is None:
        create_table_with_add_actions(
            location.table_uri(dataset.name),
            _stored_schema(dataset),
            actions,
            partition_by=_partition_by(dataset),
            configuration=LOG_SETTINGS,
            storage_options=location.options(),
        )
        return 0
    table.create_write_transaction(
        list(actions),
        mode,
        _stored_schema(dataset),
        _partition_by(dataset),
        partition_filters=[(BUCKET, "in", sorted(map(str, only_buckets)))] if only_buckets else None,
        commit_properties=NO_RETRY,
    )
    return table.version() + 1


def _add_action(file: _DataFile, layout: Sequence[str]) -> AddAction:
    # Row counts only: delta-rs takes a column without bounds for one whose bounds are null, and prunes its rows away.
    stats = {"numRecords": file.digest.rows}
    values = {name: str(file.bucket) for name in layout}
    return AddAction(file.path, file.size, values, file.modified, True, json.dumps(stats))


def _written(dataset: Dataset, pin: TablePin, files: Collection[_DataFile]) -> WrittenTable:
    boundary("table.committed", dataset.name)
    size = sum(file.size for file in files)
    return WrittenTable(dataset.name, pin, written=True, files=len(files), bytes=size)


def _bucket_digests(files: Iterable[_DataFile]) -> dict[int, SetDigest]:
    by_bucket = sorted(files, key=lambda file: file.bucket)
    return {
        bucket: total(file.digest for file in group) for bucket, group in groupby(by_bucket, lambda file: file.bucket)
    }


def _is_whole(state: State, name: str, version: int) -> bool:
    """Whether no file of a version was lost; on an object store, that is taken for granted."""
    return not state.location.is_local or all(Path(file).is_file() for file in data_files(state, name, version))


def _discard(files: Iterable[_DataFile], dataset: Dataset, location: StateLocation) -> None:
    """Delete files no version names; on an object store, garbage collection does."""
    if location.is_local:
        for file in files:
            (Path(location.table_uri(dataset.name)) / file.path).unlink()


def _existing(location: StateLocation, name: str) -> DeltaTable | None:
    uri, options = location.table_uri(name), location.options()
    with reading(location):
        return DeltaTable(uri, storage_options=options) if DeltaTable.is_deltatable(uri, options) else None


def _bucket_filter(state: State, keys: Collection[str] | None) -> list[tuple[str, str, list[str]]] | None:
    if keys is None:
        return None
    return [(BUCKET, "in", sorted({str(bucket_of(key, state.buckets)) for key in keys}))]


def _partition_by(dataset: Dataset) -> list[str]:
    return [BUCKET] if OWNER in dataset.names() else []


def _stored_arrow_schema(dataset: Dataset) -> pa.Schema:
    layout = (pa.field(name, pa.int32(), nullable=False) for name in _partition_by(dataset))
    return pa.schema([*dataset.schema(), *layout])


def _stored_schema(dataset: Dataset) -> Schema:
    return Schema.from_arrow(_stored_arrow_schema(dataset))


def _stored_spark_schema(dataset: Dataset) -> StructType:
    return _relaxed(_stored_arrow_schema(dataset))


def _relaxed(schema: pa.Schema) -> StructType:
    """The schema for Spark, nullable at every depth: Spark does not check what a file promises."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    strict = from_arrow_schema(schema).jsonValue()
    return StructType.fromJson(_nullable(strict))


def _nullable(described: Any) -> Any:
    """A type as Spark describes it in JSON, with every promise of a value taken back."""
    if isinstance(described, dict):
        promises = ("nullable", "containsNull", "valueContainsNull")
        return {key: True if key in promises else _nullable(value) for key, value in described.items()}
    return [_nullable(each) for each in described] if isinstance(described, list) else described


def literal_paths(paths: Iterable[str]) -> list[str]:
    """Paths as Spark must spell them, for it reads every path as a pattern."""
    return [re.sub(r"([\\{}\[\]*?])", r"\\\1", path) for path in paths]
