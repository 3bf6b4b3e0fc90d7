"""A state: the directory or object store prefix with all builds of one repository. It exists once `builds` does.

That table is created by one atomic commit whose metadata has what never changes afterwards (the format, the number of
buckets, the repository's id) and which repository the state belongs to, which can change. This module does not read
builds or other tables.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from codeanatomy.errors import InputError, StateError
from codeanatomy.store.delta import LOG_SETTINGS, NO_RETRY, open_table, read_settings, table_exists
from codeanatomy.store.determinism import Determinism
from codeanatomy.store.failures import damaged, reading, writing
from codeanatomy.store.layout import MAX_BUCKETS
from codeanatomy.store.location import StateLocation
from codeanatomy.store.paths import check_surface

FORMAT_VERSION = 1
"""Version of the layout that this code writes; a state of a newer one is refused."""

OWN_FILES = frozenset({"lease", ".gitignore"})
"""Files at the top of a state."""

BUILDS = "builds"
"""Name of the table that makes a directory a state."""

CURSORS = "cursors"
"""Name of the folder, beside that of the tables, that has the cursors of consumers."""

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

_FORMAT = "codeanatomy.formatVersion"
_BUCKETS = "codeanatomy.buckets"
_REPO_ID = "codeanatomy.repoId"
_REPOSITORY = "codeanatomy.repository"


@dataclass(frozen=True)
class State:
    """An opened state: its location, what was fixed when it was created, and how it is written."""

    location: StateLocation
    buckets: int
    repo_id: str
    repository: str = ""  # that it belongs to; empty if that is not known yet
    determinism: Determinism = Determinism.STABLE  # of the data files that are written through this value


def create_state(location: StateLocation, buckets: int, repo_id: str = "", repository: str = "") -> State:
    """Create an empty state; an error if there is one already."""
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
                _REPOSITORY: repository,
            },
            storage_options=location.options(),
            raise_if_key_not_exists=False,
        )
    return State(location, buckets, repo_id, repository)


def remember_repository(state: State, repository: str) -> State:
    """Record which repository the state belongs to; the caller holds the lease."""
    with writing(state.location):
        open_table(state.location, BUILDS).alter.set_table_properties(
            {_REPOSITORY: repository}, raise_if_not_exists=False, commit_properties=NO_RETRY
        )
    return replace(state, repository=repository)


def _claim_directory(directory: Path) -> None:
    """Prepare the directory, which must be empty except for the lease of its first writer."""
    directory.mkdir(parents=True, exist_ok=True)
    if {entry.name for entry in directory.iterdir()} - OWN_FILES:
        raise InputError(f"{directory} is not empty and not a state: choose another place with --state")
    with suppress(FileExistsError), (directory / ".gitignore").open("x", encoding="ascii") as ignore:
        ignore.write("*\n")


def state_exists(location: StateLocation) -> bool:
    """Whether there is a state, damaged or not."""
    return table_exists(location, BUILDS)


def open_state(location: StateLocation) -> State:
    """Open an existing state."""
    if not state_exists(location):
        raise InputError(f"no build at {location.uri} yet", hint="run `codeanatomy build`")
    with reading(location):
        check_surface(location)
        settings = read_settings(location, BUILDS)
        version, buckets, repo_id = int(settings[_FORMAT]), int(settings[_BUCKETS]), settings[_REPO_ID]
    if version > FORMAT_VERSION:
        raise StateError(
            f"the state at {location.uri} was made by a newer version of codeanatomy "
            f"(format {version}, this one knows {FORMAT_VERSION}): upgrade codeanatomy"
        )
    if not 0 < buckets <= MAX_BUCKETS:
        raise damaged(location, f"it has {buckets} buckets")
    return State(location, buckets, repo_id, settings.get(_REPOSITORY, ""))
