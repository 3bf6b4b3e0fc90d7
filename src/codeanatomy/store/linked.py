"""Linked tables: a table of one state that another state reads, as `replay` does for the inputs of a build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.store.delta import open_table, stored_files
from codeanatomy.store.failures import reading
from codeanatomy.store.state import State


def link_table(state: State, name: str, version: int, into: State) -> State:
    """Let `into`, a local state without such a table, read a version of it; nothing may write that table there.

    A table of a local state is read in place; one on an object store is copied.
    """
    if state.location.is_local:
        linked = MappingProxyType({**into.location.linked, name: state.location})
        return replace(into, location=replace(into.location, linked=linked))
    folder = Path(into.location.table_uri(name))
    uri, options = state.location.table_uri(name), state.location.options()
    table = open_table(state.location, name, version)
    with reading(state.location):
        files = pafs.PyFileSystem(DeltaStorageHandler(uri, options))
        log = [file.path for file in files.get_file_info(pafs.FileSelector("_delta_log"))]
        for path in (*log, *(file.path for file in stored_files(table))):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with files.open_input_file(path) as source:
                (folder / path).write_bytes(source.read())
    return into
