"""Data files of tables: written by Spark, by its Python workers or by the driver; measured, and discarded if unneeded.

A file gets a unique name and belongs to a table only once a commit names it. What Spark writes is read back once, so
that digests are those of the stored rows. Rows collected to the driver are digested by the job that collects them,
because another job would cost more than its work.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.rows import BatchFunction
from codeanatomy.store.checksums import add_checksum
from codeanatomy.store.determinism import row_order
from codeanatomy.store.digests import NO_ROWS, SetDigest, digest_from, digest_sums, digests_by, hash_columns, total
from codeanatomy.store.faults import boundary
from codeanatomy.store.filewriter import FileWriter
from codeanatomy.store.layout import BUCKET, OWNER, bucket_column, layout_of
from codeanatomy.store.location import StateLocation, literal_paths
from codeanatomy.store.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_WRITE_OPTIONS = {
    "compression": "zstd",
    "parquet.page.write-checksum.enabled": "true",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The default local file system leaves a checksum file beside every data file.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}

READ_OPTIONS = {"parquet.page.verify-checksum.enabled": "true"}
"""Options of every read of data files by Spark."""

_WRITTEN_AT_ONCE = 4
"""Buckets that are in memory at the same time."""


@dataclass(frozen=True)
class DataFile:
    """A data file as the log names it, by its path below the table; `owners` has the digest of each one's rows."""

    path: str
    size: int
    modified: int
    rows: int
    bucket: int = 0
    digest: SetDigest = NO_ROWS
    owners: Mapping[str, SetDigest] = field(default_factory=dict)


@dataclass(frozen=True)
class CollectedRows:
    """Rows in the driver, and the digest of each owner's rows."""

    table: pa.Table
    digests: Mapping[str, SetDigest]


@dataclass(frozen=True)
class WorkerRows:
    """Rows without an owner that Python workers make from the batches of `source`, and write."""

    source: DataFrame
    make: BatchFunction = iter


def write_by_spark(frame: DataFrame, dataset: Dataset, state: State) -> list[DataFile]:
    """Write rows of owners in buckets, and measure the files."""
    frame = _bucketed(frame, dataset, state)
    schema = nullable_schema(stored_schema(dataset))
    if set(frame.columns) != set(schema.names):
        raise ValueError(f"{dataset.name}: columns {sorted(frame.columns)} are not {sorted(schema.names)}")
    uri = state.location.table_uri(dataset.name)
    basename = f"part-{secrets.token_hex(8)}"
    (
        frame.to(schema)
        .write.mode("append")
        .partitionBy(*layout_of(dataset))
        .options(**_WRITE_OPTIONS)
        .option("mapreduce.output.basename", basename)
        .parquet(uri)
    )
    boundary("table.files_written", dataset.name)
    reader = frame.sparkSession.read.schema(schema).option("basePath", uri)
    written = reader.option("pathGlobFilter", f"{basename}*").parquet(*literal_paths([uri]))
    return _with_checksums(_measure(written, dataset), dataset, state.location)


def write_by_workers(rows: WorkerRows, dataset: Dataset, state: State) -> list[DataFile]:
    """Make and write rows without an owner in Spark's Python workers."""
    writer = _file_writer(dataset, state, dataset.name, rows.make)
    written = rows.source.mapInArrow(writer, "file string, size bigint, rows bigint, digest string").collect()
    boundary("table.files_written", dataset.name)
    return [_data_file(row["file"], row["size"], row["rows"], row["digest"]) for row in written]


def write_from_driver(rows: pa.Table, dataset: Dataset, state: State) -> list[DataFile]:
    """Write rows without an owner."""
    writer = _file_writer(dataset, state, dataset.name)
    files = [_data_file(**row) for written in writer(rows.to_batches()) for row in written.to_pylist()]
    boundary("table.files_written", dataset.name)
    return files


def write_buckets_from_driver(
    buckets: Iterable[int], rows_of: Callable[[int], pa.Table], dataset: Dataset, state: State
) -> list[DataFile]:
    """Write the rows of some buckets; a bucket without rows has no file."""

    def write(bucket: int) -> list[DataFile]:
        folder = f"{BUCKET}={bucket}"
        writer = _file_writer(dataset, state, f"{dataset.name}/{folder}")
        parts = (_data_file(**row) for written in writer(rows_of(bucket).to_batches()) for row in written.to_pylist())
        return [replace(part, path=f"{folder}/{part.path}", bucket=bucket) for part in parts]

    with ThreadPoolExecutor(_WRITTEN_AT_ONCE) as pool:
        files = [file for written in pool.map(write, sorted(buckets)) for file in written]
    boundary("table.files_written", dataset.name)
    return files


def with_row_hashes(frame: DataFrame, dataset: Dataset) -> DataFrame:
    """The rows as one partition, with the hashes that `collected` reads."""
    return frame.select("*", *hash_columns(_digested_columns(dataset))).coalesce(1)


def collected(found: pa.Table, dataset: Dataset, owners: Collection[str] | None = None) -> CollectedRows:
    """Rows `with_row_hashes` that were collected, or those of `owners`."""
    import pyarrow.compute as pc  # noqa: PLC0415

    if owners is not None:
        found = found.filter(pc.is_in(found[OWNER], pa.array(owners, pa.string())))
    rows = found.select(list(dataset.names()))
    if gaps := [c.name for c in dataset.columns if c.required and rows[c.name].null_count]:
        raise ValueError(f"{dataset.name}: null in one of the required columns {gaps}")
    return CollectedRows(rows.cast(dataset.schema()), digests_by(found, OWNER))


def digest_rows(frame: DataFrame, dataset: Dataset) -> dict[str, SetDigest]:
    """The digest of the rows of each owner in `frame`, which has at least the columns that are digested."""
    return digests_by(frame.select(OWNER, *hash_columns(_digested_columns(dataset))).coalesce(1).toArrow(), OWNER)


def _bucketed(frame: DataFrame, dataset: Dataset, state: State) -> DataFrame:
    """The rows in the order of writing."""
    bucketed = frame.select("*", bucket_column(OWNER, state.buckets)).repartition(BUCKET)
    return bucketed.sortWithinPartitions(BUCKET, *row_order(dataset, state.determinism))


def discard(files: Iterable[DataFile], dataset: Dataset, location: StateLocation) -> None:
    """Delete files that no version names; on an object store that is left to garbage collection."""
    if location.is_local:
        for file in files:
            (Path(location.table_uri(dataset.name)) / file.path).unlink()


def duplicate_file(path: str, dataset: Dataset, location: StateLocation) -> DataFile:
    """Give a data file of a local table a second name, by a hard link if the file system has them."""
    old = Path(location.table_uri(dataset.name), path)
    new = old.with_name(f"part-{secrets.token_hex(16)}.{path.partition('.')[2]}")
    try:
        new.hardlink_to(old)
    except OSError:  # no hard links here
        shutil.copyfile(old, new)
    return DataFile(new.name, old.stat().st_size, int(time.time() * 1000), pq.read_metadata(old).num_rows)


def stored_schema(dataset: Dataset) -> pa.Schema:
    """The columns of the table: the dataset's and the layout's."""
    layout = (pa.field(name, pa.int32(), nullable=False) for name in layout_of(dataset))
    return pa.schema([*dataset.schema(), *layout])


def nullable_schema(schema: pa.Schema) -> StructType:
    """The schema for Spark, nullable at every depth: Spark does not check what a schema promises."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    return StructType.fromJson(_nullable(from_arrow_schema(schema).jsonValue()))


def _nullable(described: Any) -> Any:
    """A type in Spark's JSON, with everything nullable."""
    if isinstance(described, dict):
        promises = ("nullable", "containsNull", "valueContainsNull")
        return {key: True if key in promises else _nullable(value) for key, value in described.items()}
    return [_nullable(each) for each in described] if isinstance(described, list) else described


def _measure(frame: DataFrame, dataset: Dataset) -> list[DataFile]:
    """Size and digests of each file of `frame`, in one pass over it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    required = [column.name for column in dataset.columns if column.required]
    rows = frame.select(
        BUCKET,
        OWNER,
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_size").alias("size"),
        F.unix_millis("_metadata.file_modification_time").alias("modified"),
        reduce(or_, (F.col(name).isNull() for name in required), F.lit(False)).alias("has_gap"),
        *hash_columns(_digested_columns(dataset)),
    )
    of_file = (BUCKET, "path", "size", "modified")
    measured = rows.groupBy(*of_file, OWNER).agg(F.bool_or("has_gap").alias("has_gap"), *digest_sums()).collect()
    if any(row["has_gap"] for row in measured):
        raise ValueError(f"{dataset.name}: null in one of the required columns {required}")
    owners: dict[tuple[Any, ...], dict[str, SetDigest]] = {}
    for row in measured:
        owners.setdefault(tuple(row[name] for name in of_file), {})[row[OWNER]] = digest_from(row)
    files = []
    for (bucket, path, size, modified), digests in owners.items():
        digest = total(digests.values())
        name = "/".join(path.split("/")[-2:])  # the folder of its bucket and its own name
        files.append(DataFile(name, size, modified, digest.rows, bucket, digest, digests))
    return files


def _with_checksums(files: Sequence[DataFile], dataset: Dataset, location: StateLocation) -> list[DataFile]:
    """The files, renamed to carry their checksums; on an object store, unchanged."""
    if not location.is_local:
        return list(files)
    folder = Path(location.table_uri(dataset.name))
    with ThreadPoolExecutor(_WRITTEN_AT_ONCE) as pool:
        names = pool.map(lambda file: add_checksum(folder / file.path).relative_to(folder), files)
        return [replace(file, path=str(name)) for file, name in zip(files, names, strict=True)]


def _digested_columns(dataset: Dataset) -> Dataset:
    return replace(dataset, columns=tuple(dataset.column(name) for name in dataset.identity or dataset.names()))


def _file_writer(dataset: Dataset, state: State, folder: str, make: BatchFunction = iter) -> FileWriter:
    """A writer of files of one table; rows with an owner are digested elsewhere."""
    location = state.location
    identity = () if layout_of(dataset) else dataset.identity
    return FileWriter(make, location.tables_uri, folder, location.options(), dataset.schema(), identity)


def _data_file(file: str, size: int, rows: int, digest: str) -> DataFile:
    return DataFile(file, size, int(time.time() * 1000), rows, digest=SetDigest(rows, digest))
