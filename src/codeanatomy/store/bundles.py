"""Run bundles: what a build leaves beside its tables, to explain it and to run it again. One folder per build.

Written before the build is published, so that a published build has its bundle; dropped with the build.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import State

_FOLDER = "runs"


def write_bundle(state: State, build_id: str, texts: Mapping[str, str], rows: Mapping[str, pa.Table]) -> None:
    """Write text files, by name, and a Parquet file for each dataset that has rows."""
    with writing(state.location):
        files = _files_of(state.location)
        files.create_dir(f"{_FOLDER}/{build_id}")
        for name, text in texts.items():
            with files.open_output_stream(f"{_FOLDER}/{build_id}/{name}") as sink:
                sink.write(text.encode())
        for name, table in rows.items():
            if table.num_rows:
                with files.open_output_stream(f"{_FOLDER}/{build_id}/{name}.parquet") as sink:
                    pq.write_table(table, sink, compression="zstd")
    boundary("build.bundle_written", build_id)


def read_bundle_text(state: State, build_id: str, name: str) -> str | None:
    """A text of a bundle; None if the build has none."""
    path = f"{_FOLDER}/{build_id}/{name}"
    with reading(state.location):
        files = _files_of(state.location)
        if files.get_file_info(path).type != pafs.FileType.File:
            return None
        with files.open_input_stream(path) as source:
            return bytes(source.read()).decode()


def read_bundle_rows(state: State, build_id: str, dataset: Dataset) -> pa.Table:
    """The rows that a bundle has of a dataset; none if it has no such file."""
    path = f"{_FOLDER}/{build_id}/{dataset.name}.parquet"
    with reading(state.location):
        files = _files_of(state.location)
        if files.get_file_info(path).type != pafs.FileType.File:
            return dataset.schema().empty_table()
        with files.open_input_file(path) as source:
            return pq.read_table(source, schema=dataset.schema())


def drop_bundles(state: State, kept: Collection[str]) -> None:
    """Delete the bundles of every build but those."""
    files = _files_of(state.location)
    if files.get_file_info(_FOLDER).type == pafs.FileType.Directory:
        for folder in files.get_file_info(pafs.FileSelector(_FOLDER)):
            if folder.base_name not in kept:
                files.delete_dir(folder.path)


def _files_of(location: StateLocation) -> pafs.FileSystem:
    if location.is_local:
        return pafs.SubTreeFileSystem(location.uri, pafs.LocalFileSystem())
    return pafs.PyFileSystem(DeltaStorageHandler(location.uri, location.options()))
