"""Delta tables: the only module that opens a log or commits to one.

A log is untrusted input (see `paths`). It may name only files that this program writes: everything else that the format
allows (files elsewhere, deletion vectors, checkpoints in parts or with sidecars, compacted logs) is refused before it
is followed. Statistics are never used. A version is opened as a whole: each of its files must exist with the size that
the log has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyarrow import fs as pafs

from codeanatomy.store.failures import damaged, reading
from codeanatomy.store.layout import BUCKET
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import TABLES, file_names, is_data_file, is_table_name, sizes_below

if TYPE_CHECKING:
    import pyarrow.dataset as pads

NO_RETRY = CommitProperties(max_commit_retries=0)
"""Commit the next version of what was read, or fail: a retry would put a write on top of rows it never saw."""

LOG_SETTINGS = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": "10"}
"""Builds pin versions, so log entries must not expire by age. Opening a table takes longer with every commit since the
last checkpoint, and an update opens every table more than once."""

NOTHING: Final = ()
EVERYTHING: Final = None
"""What a commit replaces, beside a set of buckets."""

_LOG = "_delta_log"
_LOG_FILE = re.compile(
    r"[0-9]{20}(?:\.checkpoint\.parquet|\.json)(?:#[0-9]+)?"
)  # delta-rs appends a number to files that it has not finished
_NUMBERED = re.compile(r"[0-9]{20}\..*")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PROTOCOL = (1, 2)


@dataclass(frozen=True)
class StoredFile:
    """A data file of a version, by its path below the table's folder."""

    path: str
    size: int

    @property
    def bucket(self) -> str | None:
        """The folder of its bucket."""
        return self.path.split("/")[0] if "/" in self.path else None


@dataclass(frozen=True)
class NewFile:
    """A data file to be committed: its path below the table's folder, and what the log records of it."""

    path: str
    size: int
    modified: int
    rows: int
    layout: Mapping[str, str]


def table_exists(location: StateLocation, name: str) -> bool:
    """Whether there is such a table, damaged or not."""
    home = location.home_of(name)
    with reading(location):
        if home.is_local and not file_names(home, TABLES, _checked_name(home, name), _LOG):
            return False
        return bool(DeltaTable.is_deltatable(home.table_uri(name), home.options()))


def open_table(location: StateLocation, name: str, version: int | None = None) -> DeltaTable:
    """A version of a table, or the latest; refused if its log names anything but files of the table."""
    home = location.home_of(name)
    with reading(location):
        if home.is_local:
            _check_log(home, _checked_name(home, name), version)
        table = DeltaTable(home.table_uri(name), version=version, storage_options=home.options())
        _check_content(table, home, name)
        return table


def read_settings(location: StateLocation, name: str) -> dict[str, str]:
    """The settings of a table; readable even if a newer version of this program created it."""
    with reading(location):
        if location.is_local:
            _check_log(location, _checked_name(location, name), None)
        table = DeltaTable(location.table_uri(name), storage_options=location.options())
        return dict(table.metadata().configuration)


def stored_files(table: DeltaTable) -> list[StoredFile]:
    """The files of a table's version; not by `file_uris`, which escapes characters of local paths."""
    added = table.get_add_actions()
    paths, sizes = (added.column(name).to_pylist() for name in ("path", "size_bytes"))
    return sorted((StoredFile(str(path), int(size)) for path, size in zip(paths, sizes, strict=True)), key=_path)


def files_of_version(
    location: StateLocation, name: str, version: int, *, buckets: Collection[int] | None = None
) -> list[StoredFile]:
    """The files of one version, or of some of its buckets, to be read; all of them exist."""
    everything = _files_at(location, name, version)
    folders = None if buckets is None else {f"{BUCKET}={bucket}" for bucket in buckets}
    files = [file for file in everything if folders is None or file.bucket in folders]
    with reading(location):
        check_files(location, name, files)
    location.opened.note(name, version, everything, files)
    return files


def _files_at(location: StateLocation, name: str, version: int) -> list[StoredFile]:
    """The files that the log has for a version."""
    return location.opened.keep(name, version, lambda: stored_files(open_table(location, name, version)))


def check_version(location: StateLocation, name: str, version: int) -> None:
    """Refuse a version of which a file is missing or truncated."""
    with reading(location):
        check_files(location, name, _files_at(location, name, version))


def check_files(location: StateLocation, name: str, files: Collection[StoredFile]) -> None:
    """Refuse files that are missing, truncated or not regular; not checked on an object store."""
    home = location.home_of(name)
    if not home.is_local:
        return
    sizes = sizes_below(home, TABLES, name, paths=[file.path for file in files])
    for file in files:
        size = sizes.get(file.path)
        if size is None:
            raise damaged(location, f"table {name} lost {file.path}")
        if size != file.size:
            raise damaged(location, f"{file.path} of table {name} has {size} bytes, not {file.size}")


def read_files(location: StateLocation, name: str, files: Sequence[StoredFile], schema: pa.Schema) -> pa.Table:
    """The rows of small files of a table without a layout; checksums of pages are verified.

    An Arrow dataset would import pandas, which takes longer than the rest of a small query.
    """
    filesystem = _filesystem(location.home_of(name), name, files)
    batches: list[pa.RecordBatch] = []
    for file in files:
        with filesystem.open_input_file(file.path) as source:
            rows = pq.ParquetFile(source, page_checksum_verification=True).read()
        # A cast loads Arrow's compute functions, which takes as long as the rest of a small query.
        batches += (rows if rows.schema == schema else rows.cast(schema)).to_batches()
    return pa.Table.from_batches(batches, schema)


def arrow_dataset(
    location: StateLocation, name: str, files: Sequence[StoredFile], schema: pa.Schema
) -> pads.FileSystemDataset:
    """Files of a table as an Arrow dataset, which verifies checksums of pages; `schema` has the layout column."""
    import pyarrow.dataset as pads  # noqa: PLC0415 - imports pandas

    checked = pads.ParquetFragmentScanOptions(page_checksum_verification=True)
    everything = pads.scalar(True)
    return pads.FileSystemDataset.from_paths(
        [file.path for file in files],
        schema=schema,
        format=pads.ParquetFileFormat(default_fragment_scan_options=checked),
        filesystem=_filesystem(location.home_of(name), name, files),
        partitions=[
            pads.field(BUCKET) == int(file.bucket.partition("=")[2]) if file.bucket else everything for file in files
        ],
    )


def columns_of_file(location: StateLocation, name: str, file: StoredFile) -> pa.Schema:
    """The columns that a data file has."""
    with _filesystem(location.home_of(name), name, [file]).open_input_file(file.path) as source:
        return pq.read_schema(source)


def create_table(location: StateLocation, name: str, files: Iterable[NewFile], schema: Schema) -> int:
    """Create a table of these files in one commit; returns its version."""
    location.opened.forget(name)
    create_table_with_add_actions(
        location.table_uri(name),
        schema,
        [_add_action(file) for file in files],
        partition_by=_layout(schema),
        configuration=LOG_SETTINGS,
        storage_options=location.options(),
    )
    return 0


def commit(table: DeltaTable, files: Iterable[NewFile], schema: Schema, replaced: Collection[int] | None) -> int:
    """Make the files visible in one commit, instead of those of some buckets, `NOTHING` or `EVERYTHING`."""
    table.create_write_transaction(
        [_add_action(file) for file in files],
        "overwrite" if replaced is EVERYTHING or replaced else "append",
        schema,
        _layout(schema),
        partition_filters=[(BUCKET, "in", sorted(map(str, replaced)))] if replaced else None,
        commit_properties=NO_RETRY,
    )
    return int(table.version()) + 1


def files_after(table: DeltaTable, files: Iterable[NewFile], replaced: Collection[int] | None) -> list[StoredFile]:
    """The files that a table will have once `files` are committed."""
    folders = {f"{BUCKET}={bucket}" for bucket in replaced or NOTHING}
    kept = [] if replaced is EVERYTHING else [file for file in stored_files(table) if file.bucket not in folders]
    return sorted([*kept, *(StoredFile(file.path, file.size) for file in files)], key=_path)


def _layout(schema: Schema) -> list[str]:
    return [BUCKET] if any(field.name == BUCKET for field in schema.fields) else []


def _add_action(file: NewFile) -> AddAction:
    # Row counts only: delta-rs takes missing bounds of a column for null bounds, and prunes the file.
    stats = json.dumps({"numRecords": file.rows})
    return AddAction(file.path, file.size, file.layout, file.modified, True, stats)


def _checked_name(location: StateLocation, name: str) -> str:
    if not is_table_name(name):
        raise damaged(location, f"it names a table {name!r}")
    return name


def _check_log(location: StateLocation, name: str, version: int | None) -> None:
    """Check the log before delta-rs reads it, because delta-rs follows every reference."""
    entries = file_names(location, TABLES, name, _LOG)
    if strange := [entry for entry in entries if _NUMBERED.fullmatch(entry) and not _LOG_FILE.fullmatch(entry)]:
        raise damaged(location, f"the log of table {name} has {strange[0]!r}")
    checkpoints = [entry for entry in entries if _CHECKPOINT.fullmatch(entry)]
    usable = [entry for entry in checkpoints if version is None or int(entry[:20]) <= version]
    if usable:  # delta-rs reads the last of them
        path = Path(location.table_uri(name)) / _LOG / usable[-1]
        with pq.ParquetFile(path) as checkpoint:
            for column in checkpoint.read(columns=["sidecar"]).columns:
                if column.null_count < len(column):
                    raise damaged(location, f"the log of table {name} has sidecars")


def _check_content(table: DeltaTable, location: StateLocation, name: str) -> None:
    """Refuse a log with features or paths that this program never writes."""
    protocol = table.protocol()
    if (protocol.min_reader_version, protocol.min_writer_version) != _PROTOCOL:
        raise damaged(location, f"table {name} is of another format")
    for file in stored_files(table):
        if not is_data_file(file.path):
            raise damaged(location, f"the log of table {name} names {file.path!r}")


def _filesystem(location: StateLocation, name: str, files: Iterable[StoredFile]) -> pafs.FileSystem:
    """The folder of a table."""
    if location.is_local:
        return pafs.SubTreeFileSystem(location.table_uri(name), pafs.LocalFileSystem())
    sizes = {file.path: file.size for file in files}
    return pafs.PyFileSystem(DeltaStorageHandler(location.table_uri(name), location.options(), sizes))


def _path(file: StoredFile) -> str:
    return file.path
