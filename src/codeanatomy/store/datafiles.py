"""Data files of tables: written by Python workers of Spark or by the driver; digested, and discarded if unneeded.

A file gets a unique name and belongs to a table only once a commit names it. Arrow writes all of them. Rows of owners
are hashed by Spark in the job that writes or collects them, because another pass would cost more than its work.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.rows import BatchFunction
from codeanatomy.store.determinism import row_order
from codeanatomy.store.digests import NO_ROWS, SetDigest, digests_by, hash_columns, total
from codeanatomy.store.faults import boundary
from codeanatomy.store.filewriter import BUCKET_REPORT, BucketWriter, FileWriter, Folder
from codeanatomy.store.layout import BUCKET, OWNER, bucket_column, layout_of
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

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
    """Write rows of owners in buckets. Spark brings them together and hashes them, its Python workers write them."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    if set(frame.columns) != set(dataset.names()):
        raise ValueError(f"{dataset.name}: columns {sorted(frame.columns)} are not {sorted(dataset.names())}")
    bucketed = frame.to(nullable_schema(dataset.schema())).select("*", bucket_column(OWNER, state.buckets))
    rows = bucketed.repartition(BUCKET).sortWithinPartitions(BUCKET)
    writer = BucketWriter(_folder(dataset, state), dataset, row_order(dataset, state.determinism))
    hashed = rows.select("*", *hash_columns(_digested_columns(dataset)))
    report = hashed.mapInArrow(writer, from_arrow_schema(BUCKET_REPORT)).toArrow()
    boundary("table.files_written", dataset.name)
    if report["file"].null_count:
        required = [column.name for column in dataset.columns if column.required]
        raise ValueError(f"{dataset.name}: null in one of the required columns {required}")
    return _bucket_files(report.to_pylist())


def write_by_workers(rows: WorkerRows, dataset: Dataset, state: State) -> list[DataFile]:
    """Make and write rows without an owner in Spark's Python workers."""
    writer = _file_writer(dataset, state, make=rows.make)
    written = rows.source.mapInArrow(writer, "file string, size bigint, rows bigint, digest string").collect()
    boundary("table.files_written", dataset.name)
    return [_data_file(row["file"], row["size"], row["rows"], row["digest"]) for row in written]


def write_from_driver(rows: pa.Table, dataset: Dataset, state: State) -> list[DataFile]:
    """Write rows without an owner."""
    writer = _file_writer(dataset, state)
    files = [_data_file(**row) for written in writer(rows.to_batches()) for row in written.to_pylist()]
    boundary("table.files_written", dataset.name)
    return files


def write_buckets_from_driver(
    buckets: Iterable[int], rows_of: Callable[[int], pa.Table], dataset: Dataset, state: State
) -> list[DataFile]:
    """Write the rows of some buckets; a bucket without rows has no file."""

    def write(bucket: int) -> list[DataFile]:
        folder = f"{BUCKET}={bucket}"
        writer = _file_writer(dataset, state, folder)
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


def _bucket_files(report: Iterable[Mapping[str, Any]]) -> list[DataFile]:
    """The files that a `BucketWriter` reports, one row per owner."""
    now = int(time.time() * 1000)
    owners: dict[tuple[int, str, int], dict[str, SetDigest]] = {}
    for part in report:
        of_file = (part["bucket"], part["file"], part["size"])
        owners.setdefault(of_file, {})[part["owner"]] = SetDigest(part["rows"], part["digest"])
    files = []
    for (bucket, file, size), digests in owners.items():
        digest = total(digests.values())
        files.append(DataFile(f"{BUCKET}={bucket}/{file}", size, now, digest.rows, bucket, digest, digests))
    return files


def _digested_columns(dataset: Dataset) -> Dataset:
    return replace(dataset, columns=tuple(dataset.column(name) for name in dataset.identity or dataset.names()))


def _file_writer(dataset: Dataset, state: State, folder: str = "", make: BatchFunction = iter) -> FileWriter:
    """A writer of files in a folder of one table; rows with an owner are digested elsewhere."""
    identity = () if layout_of(dataset) else dataset.identity
    return FileWriter(make, _folder(dataset, state, folder), dataset.schema(), identity)


def _folder(dataset: Dataset, state: State, inside: str = "") -> Folder:
    """The folder of a table, or one inside it."""
    name = f"{dataset.name}/{inside}" if inside else dataset.name
    return Folder(state.location.tables_uri, name, state.location.options())


def _data_file(file: str, size: int, rows: int, digest: str) -> DataFile:
    return DataFile(file, size, int(time.time() * 1000), rows, digest=SetDigest(rows, digest))
