"""A table of one state, read in another: what is computed beside a state starts from the state's own tables."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.store.failures import reading
from codeanatomy.store.state import State
from codeanatomy.store.tables import relative_files


def lend_table(state: State, name: str, version: int, borrower: State) -> None:
    """Let `borrower`, a local state without such a table, read that version of it; it must never write it.

    From a local state nothing is copied, from an object store what the version has.
    """
    place = Path(borrower.location.table_uri(name))
    if state.location.is_local:
        place.symlink_to(state.location.table_uri(name), target_is_directory=True)
        return
    uri, options = state.location.table_uri(name), state.location.options()
    with reading(state.location):
        files = pafs.PyFileSystem(DeltaStorageHandler(uri, options))
        log = [file.path for file in files.get_file_info(pafs.FileSelector("_delta_log"))]
        table = DeltaTable(uri, version=version, storage_options=options)
        for path in (*log, *relative_files(table)):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            with files.open_input_file(path) as source:
                (place / path).write_bytes(source.read())
