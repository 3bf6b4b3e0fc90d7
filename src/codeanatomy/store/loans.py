"""A table of one state, read in another: what is computed beside a state starts from the state's own tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.store.delta import open_table, stored_files
from codeanatomy.store.failures import reading
from codeanatomy.store.state import State


def lend_table(state: State, name: str, version: int, borrower: State) -> State:
    """`borrower`, a local state without such a table, able to read that version of it; it must never write it.

    From a local state nothing is copied, from an object store what the version has.
    """
    if state.location.is_local:
        lent = MappingProxyType({**borrower.location.lent, name: state.location})
        return replace(borrower, location=replace(borrower.location, lent=lent))
    place = Path(borrower.location.table_uri(name))
    uri, options = state.location.table_uri(name), state.location.options()
    table = open_table(state.location, name, version)
    with reading(state.location):
        files = pafs.PyFileSystem(DeltaStorageHandler(uri, options))
        log = [file.path for file in files.get_file_info(pafs.FileSelector("_delta_log"))]
        for path in (*log, *(file.path for file in stored_files(table))):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            with files.open_input_file(path) as source:
                (place / path).write_bytes(source.read())
    return borrower
