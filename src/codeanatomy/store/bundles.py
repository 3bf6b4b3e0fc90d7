"""Run bundles: files beside the tables that explain a build and let it run again. One folder per build.

Written before the build is published, so that a published build has its bundle; dropped with the build.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import checked_file, files_below, folder_names, is_build_id, is_bundle_file
from codeanatomy.store.state import RUNS, State


def write_bundle(state: State, build_id: str, texts: Mapping[str, str], rows: Mapping[str, pa.Table]) -> None:
    """Write text files, by name, and a Parquet file for each dataset that has rows."""
    with writing(state.location):
        files = _files_of(state.location)
        files.create_dir(f"{RUNS}/{build_id}")
        for name, text in texts.items():
            content = text.encode()
            # The buffer holds everything: delta-rs refuses unbuffered writes of pyarrow.
            with files.open_output_stream(f"{RUNS}/{build_id}/{name}", buffer_size=len(content) + 1) as sink:
                sink.write(content)
        for name, table in rows.items():
            if table.num_rows:
                with files.open_output_stream(f"{RUNS}/{build_id}/{name}.parquet") as sink:
                    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    boundary("build.bundle_written", build_id)


def read_bundle_text(state: State, build_id: str, name: str) -> str | None:
    """A text of a bundle; None if the build has none."""
    with reading(state.location):
        path = _path_of(state.location, build_id, name)
        if path is None:
            return None
        with _files_of(state.location).open_input_stream(path) as source:
            return bytes(source.read()).decode()


def read_bundle_rows(state: State, build_id: str, dataset: Dataset) -> pa.Table:
    """The rows of a dataset in a bundle; none if it has no such file."""
    with reading(state.location):
        path = _path_of(state.location, build_id, f"{dataset.name}.parquet")
        if path is None:
            return pa.Table.from_batches([], dataset.schema())
        with _files_of(state.location).open_input_file(path) as source:
            rows = pq.ParquetFile(source, page_checksum_verification=True).read()
        schema = dataset.schema()
        if rows.schema == schema:
            return rows
        present = set(rows.schema.names)  # a bundle of an earlier version can lack some
        columns = [rows[each.name] if each.name in present else pa.nulls(len(rows), each.type) for each in schema]
        return pa.Table.from_arrays(columns, names=schema.names).cast(schema)


def bundles_without(state: State, kept: Collection[str], older_than: datetime) -> dict[str, dict[str, int]]:
    """The files of the bundles of all other builds, by build, with their sizes; on an object store, of old ones only.

    Only files with names that bundles use: nothing else is ever deleted.
    """
    if state.location.is_local:
        found = {build_id: dict(files_below(state.location, RUNS, build_id)) for build_id in _local_bundles(state)}
    else:
        found = _remote_bundles(state.location, older_than)
    return {
        build_id: {name: size for name, size in files.items() if is_bundle_file(name)}
        for build_id, files in found.items()
        if build_id not in kept and is_build_id(build_id)
    }


def drop_bundles(state: State, bundles: Mapping[str, Iterable[str]]) -> None:
    """Delete these files of bundles, and folders that become empty."""
    files = _files_of(state.location)
    for build_id, names in bundles.items():
        for name in names:
            files.delete_file(f"{RUNS}/{build_id}/{name}")
        if state.location.is_local:
            with suppress(OSError):  # it has files that are not of a bundle
                (state.location.local_path / RUNS / build_id).rmdir()


def _local_bundles(state: State) -> list[str]:
    return [name for name in folder_names(state.location, RUNS) if is_build_id(name)]


def _remote_bundles(location: StateLocation, older_than: datetime) -> dict[str, dict[str, int]]:
    bundles: dict[str, list[pafs.FileInfo]] = {}
    for file in _files_of(location).get_file_info(pafs.FileSelector(RUNS, allow_not_found=True, recursive=True)):
        _, build_id, *inside = file.path.split("/")
        if inside and file.type == pafs.FileType.File:
            bundles.setdefault(build_id, []).append(file)
    return {
        build_id: {file.path.removeprefix(f"{RUNS}/{build_id}/"): file.size for file in files}
        for build_id, files in bundles.items()
        if all(file.mtime < older_than for file in files)
    }


def _path_of(location: StateLocation, build_id: str, name: str) -> str | None:
    """Where a file of a bundle is, or None if it is not there."""
    path = f"{RUNS}/{build_id}/{name}"
    if location.is_local:
        return path if checked_file(location, RUNS, build_id, name) else None
    return path if _files_of(location).get_file_info(path).type == pafs.FileType.File else None


def _files_of(location: StateLocation) -> pafs.FileSystem:
    if location.is_local:
        return pafs.SubTreeFileSystem(location.uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler(location.uri, location.options()))
