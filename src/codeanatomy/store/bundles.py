"""Run bundles: what a build leaves beside its tables, to explain it and to run it again. One folder per build.

Written before the build is published, so that a published build has its bundle; dropped with the build.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import RUNS, State


def write_bundle(state: State, build_id: str, texts: Mapping[str, str], rows: Mapping[str, pa.Table]) -> None:
    """Write text files, by name, and a Parquet file for each dataset that has rows."""
    with writing(state.location):
        files = _files_of(state.location)
        files.create_dir(f"{RUNS}/{build_id}")
        for name, text in texts.items():
            content = text.encode()
            # Buffered whole: delta-rs refuses what pyarrow hands on unbuffered.
            with files.open_output_stream(f"{RUNS}/{build_id}/{name}", buffer_size=len(content) + 1) as sink:
                sink.write(content)
        for name, table in rows.items():
            if table.num_rows:
                with files.open_output_stream(f"{RUNS}/{build_id}/{name}.parquet") as sink:
                    pq.write_table(table, sink, compression="zstd")
    boundary("build.bundle_written", build_id)


def read_bundle_text(state: State, build_id: str, name: str) -> str | None:
    """A text of a bundle; None if the build has none."""
    path = f"{RUNS}/{build_id}/{name}"
    with reading(state.location):
        files = _files_of(state.location)
        if files.get_file_info(path).type != pafs.FileType.File:
            return None
        with files.open_input_stream(path) as source:
            return bytes(source.read()).decode()


def read_bundle_rows(state: State, build_id: str, dataset: Dataset) -> pa.Table:
    """The rows that a bundle has of a dataset; none if it has no such file."""
    path = f"{RUNS}/{build_id}/{dataset.name}.parquet"
    with reading(state.location):
        files = _files_of(state.location)
        if files.get_file_info(path).type != pafs.FileType.File:
            return dataset.schema().empty_table()
        with files.open_input_file(path) as source:
            return pq.read_table(source, schema=dataset.schema())


def bundles_without(state: State, kept: Collection[str], older_than: datetime) -> dict[str, list[pafs.FileInfo]]:
    """The files of the bundles of all other builds, by build; on an object store, only of those that are old."""
    selector = pafs.FileSelector(RUNS, allow_not_found=True, recursive=True)
    bundles: dict[str, list[pafs.FileInfo]] = {}
    for file in _files_of(state.location).get_file_info(selector):
        _, build_id, *inside = file.path.split("/")
        if inside or file.type == pafs.FileType.Directory:
            bundles.setdefault(build_id, []).extend([file] if file.type == pafs.FileType.File else [])
    return {
        build_id: files
        for build_id, files in bundles.items()
        if build_id not in kept and (state.location.is_local or all(file.mtime < older_than for file in files))
    }


def drop_bundles(state: State, build_ids: Iterable[str]) -> None:
    """Delete the bundles of those builds."""
    files = _files_of(state.location)
    for build_id in build_ids:
        files.delete_dir(f"{RUNS}/{build_id}")


def _files_of(location: StateLocation) -> pafs.FileSystem:
    if location.is_local:
        return pafs.SubTreeFileSystem(location.uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler(location.uri, location.options()))
