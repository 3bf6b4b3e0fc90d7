"""Cursors: the last build that each consumer of changes acknowledged, one small file per consumer beside the tables.

Only the consumer moves its cursor, by one atomic write. A build that a cursor names is not garbage.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.errors import InputError, StateError
from codeanatomy.store.failures import machine_failure, reading, writing
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import checked_file, file_names, is_build_id, read_own_file
from codeanatomy.store.state import CURSORS, State

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ENDING = ".json"
_LARGEST = 1 << 16
_BUFFER = 4096  # larger than any cursor: delta-rs refuses unbuffered writes of pyarrow


@dataclass(frozen=True)
class Cursor:
    """A consumer's name and the build it acknowledged last."""

    name: str
    build_id: str


def check_cursor_name(name: str) -> str:
    """The name, if a cursor may have it."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} cannot name a cursor: use up to 100 letters, digits, dots, dashes and underscores")
    return name


def read_cursor(state: State, name: str) -> Cursor | None:
    """The cursor of that name, or None if nothing was acknowledged under it yet."""
    content = _read(state.location, check_cursor_name(name) + _ENDING)
    if content is None:
        return None
    try:
        build_id = json.loads(content)["build_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        build_id = None
    if not is_build_id(build_id):
        raise StateError(
            f"the cursor {name} of {state.location.uri} is damaged: "
            f"`codeanatomy changes --cursor {name} --reset --ack` starts it over"
        )
    return Cursor(name, build_id)


def list_cursors(state: State) -> list[Cursor]:
    """All cursors, by name."""
    names = sorted(file.removesuffix(_ENDING) for file in _files(state.location) if file.endswith(_ENDING))
    found = (read_cursor(state, name) for name in names if _NAME.fullmatch(name))
    return [cursor for cursor in found if cursor is not None]


def move_cursor(state: State, name: str, build_id: str) -> None:
    """Acknowledge everything up to `build_id`."""
    content = {"build_id": build_id, "acknowledged_at": datetime.now(UTC).isoformat()}
    with writing(state.location):
        _write(state.location, check_cursor_name(name) + _ENDING, json.dumps(content).encode())


def _read(location: StateLocation, file: str) -> bytes | None:
    try:
        if location.is_local:
            return read_own_file(location, CURSORS, file, limit=_LARGEST)
        with _remote(location).open_input_stream(f"{CURSORS}/{file}") as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise machine_failure(error, location.uri) or StateError(
            f"cannot read {CURSORS}/{file} of {location.uri}: {error.strerror or error}"
        ) from error


def _write(location: StateLocation, file: str, content: bytes) -> None:
    if not location.is_local:  # objects appear atomically
        with _remote(location).open_output_stream(f"{CURSORS}/{file}", buffer_size=_BUFFER) as stream:
            stream.write(content)
        return
    checked_file(location, CURSORS, file)
    folder = location.local_path / CURSORS
    folder.mkdir(exist_ok=True)
    scratch = folder / f"{file}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        scratch.replace(folder / file)
    finally:
        scratch.unlink(missing_ok=True)


def _files(location: StateLocation) -> list[str]:
    if location.is_local:
        with reading(location):
            return file_names(location, CURSORS)
    infos = _remote(location).get_file_info(pafs.FileSelector(CURSORS, allow_not_found=True))
    return [str(info.base_name) for info in infos]


def _remote(location: StateLocation) -> pafs.FileSystem:
    """The state as a file system."""
    return pafs.PyFileSystem(DeltaStorageHandler(location.uri, location.options()))
