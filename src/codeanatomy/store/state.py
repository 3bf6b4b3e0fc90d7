"""A state: the place that holds every build of one repository. A state *is* its `builds` table.

That table is created by one atomic commit whose metadata says what can never change afterwards: the format, the
number of buckets, the repository's id. This module never looks at builds or tables.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from codeanatomy.errors import InputError, StateError
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.location import StateLocation

FORMAT_VERSION = 1
"""Of the layout this code writes; a state of a higher one is not touched."""

OWN_FILES = frozenset({"lease", ".gitignore"})
"""What a state has beside its tables."""

BUILDS = "builds"
"""Name of the table that makes a directory a state."""

CURSORS = "cursors"
"""Name of the folder, beside that of the tables, in which consumers keep how far they came."""

BUILDS_SCHEMA = pa.schema(
    [
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("build_id", pa.string(), nullable=False),
        pa.field("parent_build_id", pa.string()),
        pa.field("created_at", pa.string(), nullable=False),
        pa.field("mode", pa.string(), nullable=False),
        pa.field("git_commit", pa.string()),
        pa.field("snapshot_id", pa.string(), nullable=False),
        pa.field("tables", pa.string(), nullable=False),
        pa.field("fingerprints", pa.string(), nullable=False),
        pa.field("figures", pa.string(), nullable=False),
        pa.field("rolled_back_to", pa.string()),
    ]
)
"""Columns of the `builds` table. Nested values are JSON and times ISO 8601, for pyarrow reads those without pandas."""

RUNS = "runs"
"""Name of the folder, beside that of the tables, that has a bundle for each build."""

LOG_SETTINGS = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": "10"}
"""A build pins versions for as long as it is kept, so that no log entry may expire by age. An update opens every table
more than once, and what that takes grows with the commits since the last checkpoint."""

_FORMAT = "codeanatomy.formatVersion"
_BUCKETS = "codeanatomy.buckets"
_REPO_ID = "codeanatomy.repoId"


@dataclass(frozen=True)
class State:
    """An opened state: where it is, and what was fixed when it was made."""

    location: StateLocation
    buckets: int
    repo_id: str


def create_state(location: StateLocation, buckets: int, repo_id: str = "") -> State:
    """Make an empty state; an error if there is one already."""
    if state_exists(location):
        raise StateError(f"there is a state at {location.uri} already")
    with writing(location):
        if location.is_local:
            _claim_directory(location.local_path)
        DeltaTable.create(
            location.table_uri(BUILDS),
            BUILDS_SCHEMA,
            mode="error",
            configuration={
                **LOG_SETTINGS,
                _FORMAT: str(FORMAT_VERSION),
                _BUCKETS: str(buckets),
                _REPO_ID: repo_id,
            },
            storage_options=location.options(),
            raise_if_key_not_exists=False,
        )
    return State(location, buckets, repo_id)


def _claim_directory(directory: Path) -> None:
    """Make the directory ours: it must be new, but for the lease that its first writer already holds."""
    directory.mkdir(parents=True, exist_ok=True)
    if {entry.name for entry in directory.iterdir()} - OWN_FILES:
        raise InputError(f"{directory} is not empty and not a state: choose another place with --state")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(directory / ".gitignore", flags, 0o644), "w") as ignore:
        ignore.write("*\n")


def refuse_links(location: StateLocation) -> None:
    """A repository may ship a state whose parts are links to places that are not its own: never write through one."""
    if location.is_local:
        folders = tuple(location.local_path / name for name in ("tables", CURSORS, RUNS))
        inside = (part for folder in folders for part in sorted(folder.glob("*")))
        for part in (*(location.local_path / name for name in OWN_FILES), *folders, *inside):
            if part.is_symlink():
                raise StateError(f"{part} is a link, which no state of ours has: delete {location.uri} and build again")


def state_exists(location: StateLocation) -> bool:
    """Whether there is a state here, sound or not."""
    with reading(location):
        return bool(DeltaTable.is_deltatable(location.table_uri(BUILDS), location.options()))


def open_state(location: StateLocation) -> State:
    """The state that is there."""
    if not state_exists(location):
        raise InputError(f"no build at {location.uri} yet", hint="run `codeanatomy build`")
    with reading(location):
        table = DeltaTable(location.table_uri(BUILDS), storage_options=location.options())
        settings = table.metadata().configuration
        version, buckets, repo_id = int(settings[_FORMAT]), int(settings[_BUCKETS]), settings[_REPO_ID]
    refuse_links(location)
    if version > FORMAT_VERSION:
        raise StateError(
            f"the state at {location.uri} was made by a newer version of codeanatomy "
            f"(format {version}, this one knows {FORMAT_VERSION}): upgrade codeanatomy"
        )
    return State(location, buckets, repo_id)
