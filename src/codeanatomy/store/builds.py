"""Builds: one row each in the table `builds`, which pins the version of every other table.

Publishing a build is one commit of one row; before it nothing of the build can be seen, after it everything can.
Builds form a line: each is published on top of the one it was made from, or not at all. Rows are never changed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from codeanatomy.errors import InputError, StateError
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.failures import reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.state import BUILDS, BUILDS_SCHEMA, State
from codeanatomy.store.tables import NO_RETRY, TablePin

ROLLBACK = "rollback"
"""Mode of a build that repeats the pins of an earlier one."""


_MANY_FILES = 32

SHORTEST_COMMIT = 7
"""So many digits of a git commit tell that one is meant."""


@dataclass(frozen=True)
class Build:
    """One committed, immutable, consistent version of every table."""

    build_id: str
    parent_build_id: str | None
    created_at: datetime
    mode: str
    snapshot_id: str
    tables: Mapping[str, TablePin]
    git_commit: str | None = None
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    rolled_back_to: str | None = None


def new_build_id(created_at: datetime) -> str:
    """An id that sorts by time and does not repeat."""
    return f"{created_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def rollback_build(target: Build, parent: Build, created_at: datetime) -> Build:
    """The build that takes the state from `parent` back to what it was at `target`."""
    return Build(
        build_id=new_build_id(created_at),
        parent_build_id=parent.build_id,
        created_at=created_at,
        mode=ROLLBACK,
        snapshot_id=target.snapshot_id,
        tables=target.tables,
        git_commit=target.git_commit,
        fingerprints=target.fingerprints,
        figures=target.figures,
        rolled_back_to=target.build_id,
    )


def publish(state: State, build: Build) -> None:
    """Make the build the latest, in one commit; an error if its parent is not the latest any more."""
    with reading(state.location):
        table = _builds_table(state)
        rows = _rows(table)
    latest = rows[-1] if rows else None
    if (latest["build_id"] if latest else None) != build.parent_build_id:
        found = latest["build_id"] if latest else "none"
        raise StateError(f"the latest build is {found}, not {build.parent_build_id or 'none'}: run again on top of it")
    boundary("build.before_publish", build.build_id)
    with writing(state.location):
        row = {**_to_row(build), "sequence": latest["sequence"] + 1 if latest else 0}
        crowded = len(table.file_uris()) >= _MANY_FILES  # one per build since they were last made one
        written = pa.Table.from_pylist([*rows, row] if crowded else [row], schema=BUILDS_SCHEMA)
        write_deltalake(table, written, mode="overwrite" if crowded else "append", commit_properties=NO_RETRY)
    boundary("build.published", build.build_id)


def list_builds(state: State) -> list[Build]:
    """All builds that are kept, oldest first."""
    with reading(state.location):
        return [_from_row(row) for row in _rows(_builds_table(state))]


def latest_build(state: State) -> Build | None:
    """The last build, or None if none was published yet."""
    with reading(state.location):
        rows = _rows(_builds_table(state))
        return _from_row(rows[-1]) if rows else None


def current_build(state: State) -> Build:
    """The build readers open by default; an error if there is none."""
    build = latest_build(state)
    if build is None:
        raise InputError(f"no build at {state.location.uri} yet", hint="run `codeanatomy build`")
    return build


def find_build(state: State, prefix: str) -> Build:
    """The build whose id starts with `prefix`, or the last one of the git commit that does."""
    with reading(state.location):
        every = _rows(_builds_table(state))
    rows = [row for row in every if row["build_id"].startswith(prefix)]
    if not rows and len(prefix) >= SHORTEST_COMMIT:
        rows = [row for row in every if (row["git_commit"] or "").startswith(prefix.lower())][-1:]
    if not rows:
        raise InputError(f"no build {prefix}", hint="`codeanatomy builds` lists them")
    if len(rows) > 1:
        raise InputError(f"build {prefix} could be any of {', '.join(row['build_id'] for row in rows)}")
    with reading(state.location):
        return _from_row(rows[0])


def drop_builds(state: State, build_ids: Sequence[str]) -> None:
    """Forget builds, in one commit."""
    with reading(state.location):
        table = _builds_table(state)
        kept = [row for row in _rows(table) if row["build_id"] not in set(build_ids)]
    with writing(state.location):
        write_deltalake(
            table,
            pa.Table.from_pylist(kept, schema=BUILDS_SCHEMA),
            mode="overwrite",
            commit_properties=NO_RETRY,
        )


def _builds_table(state: State) -> DeltaTable:
    return DeltaTable(state.location.table_uri(BUILDS), storage_options=state.location.options())


def _rows(table: DeltaTable) -> list[dict[str, Any]]:
    # `to_pyarrow_table` would import pandas, which takes longer than the rest of a small query.
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(table.scan()).read_all().to_pylist()
    return sorted(rows, key=lambda row: row["sequence"])


def _to_row(build: Build) -> dict[str, Any]:
    return {
        "build_id": build.build_id,
        "parent_build_id": build.parent_build_id,
        "created_at": build.created_at.isoformat(),
        "mode": build.mode,
        "git_commit": build.git_commit,
        "snapshot_id": build.snapshot_id,
        "tables": json.dumps({name: _pin_to_json(pin) for name, pin in build.tables.items()}),
        "fingerprints": json.dumps(dict(build.fingerprints)),
        "figures": json.dumps(dict(build.figures)),
        "rolled_back_to": build.rolled_back_to,
    }


def _from_row(row: Mapping[str, Any]) -> Build:
    return Build(
        build_id=row["build_id"],
        parent_build_id=row["parent_build_id"],
        created_at=datetime.fromisoformat(row["created_at"]),
        mode=row["mode"],
        snapshot_id=row["snapshot_id"],
        tables={name: _pin_from_json(pin) for name, pin in json.loads(row["tables"]).items()},
        git_commit=row["git_commit"],
        fingerprints=json.loads(row["fingerprints"]),
        figures=json.loads(row["figures"]),
        rolled_back_to=row["rolled_back_to"],
    )


def _pin_to_json(pin: TablePin) -> dict[str, Any]:
    return {
        "version": pin.version,
        "buckets": {str(bucket): [digest.rows, digest.hash] for bucket, digest in sorted(pin.buckets.items())},
    }


def _pin_from_json(pin: Mapping[str, Any]) -> TablePin:
    return TablePin(
        pin["version"], {int(bucket): SetDigest(rows, value) for bucket, (rows, value) in pin["buckets"].items()}
    )
