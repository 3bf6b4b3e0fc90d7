"""Builds: one row each in the table `builds`, which pins the version of every other table.

Publishing a build is one commit of one row; readers see nothing of the build before it and everything after it.
Builds form a line: each is published on top of its parent, or not at all. Rows are never changed.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import UnionType
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from codeanatomy.errors import InputError, StateError
from codeanatomy.store.delta import (
    EVERYTHING,
    NOTHING,
    NewFile,
    check_files,
    check_version,
    commit,
    open_table,
    read_files,
    stored_files,
)
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.failures import REBUILD, reading, writing
from codeanatomy.store.faults import boundary
from codeanatomy.store.filewriter import FileWriter, Folder
from codeanatomy.store.paths import is_build_id, is_table_name
from codeanatomy.store.state import BUILDS, BUILDS_SCHEMA, State
from codeanatomy.store.tables import TablePin

ROLLBACK = "rollback"
"""Mode of a build that repeats the pins of an earlier one."""


_MANY_FILES = 32

_FIGURES: Mapping[str, type | UnionType] = {
    "files": dict,
    "problems": list,
    "limits": dict,
    "index": dict | None,
    "strategy": str | None,
    "reasons": list,
    "costs": dict,
    "stages": list,
    "seconds": float | int,
    "peak_memory_mb": float | int,
}
"""Types of the figures that later commands read."""

_DIGEST = re.compile(r"[0-9a-f]{32}")

SHORTEST_COMMIT = 7
"""Digits of the shortest prefix that names a git commit."""


@dataclass(frozen=True)
class BuildRecord:
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

    def as_json(self) -> dict[str, Any]:
        """The build as `builds --json` lists it."""
        return {
            "build_id": self.build_id,
            "parent_build_id": self.parent_build_id,
            "created_at": self.created_at.isoformat(),
            "mode": self.mode,
            "rolled_back_to": self.rolled_back_to,
            "git_commit": self.git_commit,
            "snapshot_id": self.snapshot_id,
            "files": self.figures["files"],
            "tables": {
                name: {"rows": pin.rows, "digest": pin.digest.hash, "version": pin.version}
                for name, pin in self.tables.items()
            },
            "seconds": round(self.figures["seconds"], 3),
        }


def new_build_id(created_at: datetime) -> str:
    """An id that sorts by time and does not repeat."""
    return f"{created_at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def rollback_build(target: BuildRecord, parent: BuildRecord, created_at: datetime) -> BuildRecord:
    """The build that takes the state from `parent` back to what it was at `target`."""
    return BuildRecord(
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


def publish(state: State, build: BuildRecord) -> None:
    """Make the build the latest, in one commit; an error if its parent is not the latest any more."""
    table = open_table(state.location, BUILDS)
    rows = _rows(state, table)
    latest = rows[-1] if rows else None
    if (latest["build_id"] if latest else None) != build.parent_build_id:
        found = latest["build_id"] if latest else "none"
        raise StateError(f"the latest build is {found}, not {build.parent_build_id or 'none'}: run again on top of it")
    boundary("build.before_publish", build.build_id)
    row = {**_to_row(build), "sequence": latest["sequence"] + 1 if latest else 0}
    if len(stored_files(table)) < _MANY_FILES:  # one per build since the last compaction
        _write(state, table, [row], NOTHING)
    else:
        _write(state, table, [*rows, row], EVERYTHING)
    boundary("build.published", build.build_id)


def list_builds(state: State) -> list[BuildRecord]:
    """All builds that are kept, oldest first."""
    return [_from_row(state, row) for row in _rows(state)]


def latest_build(state: State, known: BuildRecord | None = None) -> BuildRecord | None:
    """The last build, or None if none was published yet; it may be `known` already."""
    rows = _rows(state)
    if known and rows and rows[-1]["build_id"] == known.build_id:
        return known
    return _from_row(state, rows[-1]) if rows else None


def current_build(state: State) -> BuildRecord:
    """The build readers open by default; an error if there is none."""
    build = latest_build(state)
    if build is None:
        raise InputError(f"no build at {state.location.uri} yet", hint="run `codeanatomy build`")
    return build


def find_build(state: State, prefix: str) -> BuildRecord:
    """The build whose id starts with `prefix`, or the last one of the git commit that does."""
    every = _rows(state)
    rows = [row for row in every if row["build_id"].startswith(prefix)]
    if not rows and len(prefix) >= SHORTEST_COMMIT:
        rows = [row for row in every if (row["git_commit"] or "").startswith(prefix.lower())][-1:]
    if not rows:
        raise InputError(f"no build {prefix}", hint="`codeanatomy builds` lists them")
    if len(rows) > 1:
        raise InputError(f"build {prefix} could be any of {', '.join(row['build_id'] for row in rows)}")
    return _from_row(state, rows[0])


def check_whole(state: State, build: BuildRecord) -> None:
    """Refuse a build with a missing or truncated data file in any of its tables."""
    for name, pin in build.tables.items():
        check_version(state.location, name, pin.version)


def drop_builds(state: State, build_ids: Sequence[str]) -> None:
    """Forget builds, in one commit."""
    table = open_table(state.location, BUILDS)
    kept = [row for row in _rows(state, table) if row["build_id"] not in set(build_ids)]
    _write(state, table, kept, EVERYTHING)


def _rows(state: State, table: DeltaTable | None = None) -> list[dict[str, Any]]:
    """The rows of the latest version of `builds`, in the order of publication."""
    with reading(state.location):
        files = stored_files(table or open_table(state.location, BUILDS))
        check_files(state.location, BUILDS, files)
        rows = read_files(state.location, BUILDS, files, BUILDS_SCHEMA).to_pylist()
        for row in rows:
            if gaps := [field.name for field in BUILDS_SCHEMA if not field.nullable and row[field.name] is None]:
                raise ValueError(f"a build without {gaps[0]}")
        return sorted(rows, key=lambda row: int(row["sequence"]))


def _write(
    state: State, table: DeltaTable, rows: Sequence[Mapping[str, Any]], replaced: Collection[int] | None
) -> None:
    location = state.location
    with writing(location):
        batches = pa.Table.from_pylist(list(rows), schema=BUILDS_SCHEMA).to_batches()
        writer = FileWriter(iter, Folder(location.tables_uri, BUILDS, location.options()), BUILDS_SCHEMA, ())
        now = int(time.time() * 1000)
        files = [
            NewFile(part["file"], part["size"], now, part["rows"], {})
            for written in writer(batches)
            for part in written.to_pylist()
        ]
        commit(table, files, Schema.from_arrow(BUILDS_SCHEMA), replaced)


def _to_row(build: BuildRecord) -> dict[str, Any]:
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


def _from_row(state: State, row: Mapping[str, Any]) -> BuildRecord:
    """The build in a row, which is untrusted input."""
    with reading(state.location):
        created_at = datetime.fromisoformat(row["created_at"])
        build = BuildRecord(
            build_id=row["build_id"],
            parent_build_id=row["parent_build_id"],
            created_at=created_at if created_at.tzinfo else created_at.replace(tzinfo=UTC),
            mode=row["mode"],
            snapshot_id=row["snapshot_id"],
            tables=_Recorded({_named(name): _pin_from_json(pin) for name, pin in _object(row["tables"]).items()}),
            git_commit=row["git_commit"],
            fingerprints=_Recorded({name: _text(value) for name, value in _object(row["fingerprints"]).items()}),
            figures=_figures_from(_object(row["figures"])),
            rolled_back_to=row["rolled_back_to"],
        )
        for name in (build.build_id, *filter(None, (build.parent_build_id, build.rolled_back_to))):
            if not is_build_id(name):
                raise ValueError(f"a build is called {name!r}")
        return build


class _Recorded(dict[str, Any]):
    """Values that a build records, by name; a missing one is reported as damage."""

    def __missing__(self, name: str) -> Any:
        raise StateError(f"the state is damaged (a build says nothing of {name!r})", hint=REBUILD)


def _figures_from(figures: dict[str, Any]) -> Mapping[str, Any]:
    """The figures, with the types that readers rely on."""
    for name, kind in _FIGURES.items():
        if name in figures and not isinstance(figures[name], kind):
            raise TypeError(f"a build has a figure {name} of {figures[name]!r}")
    for count in (*figures.get("files", {}).values(), *figures.get("limits", {}).values()):
        _number(count)
    for problem in figures.get("problems", ()):
        if not isinstance(problem, dict) or set(problem) != {"path", "reason", "detail"}:
            raise ValueError("a build has a problem of another kind")
        for value in problem.values():
            _text(value)
    nested = {name: _Recorded(figures[name]) for name in ("files", "index") if figures.get(name) is not None}
    return _Recorded(figures | nested)


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError("a build has a list where names are expected")
    return found


def _named(name: str) -> str:
    if not is_table_name(name):
        raise ValueError(f"a build has a table {name!r}")
    return name


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a build has {value!r} where a text is expected")
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"a build has a number {value!r}")
    return value


def _pin_to_json(pin: TablePin) -> dict[str, Any]:
    return {
        "version": pin.version,
        "buckets": {str(bucket): [digest.rows, digest.hash] for bucket, digest in sorted(pin.buckets.items())},
    }


def _pin_from_json(pin: Mapping[str, Any]) -> TablePin:
    digests = {}
    for bucket, (rows, value) in pin["buckets"].items():
        if not _DIGEST.fullmatch(_text(value)):
            raise ValueError(f"a build has a digest {value!r}")
        digests[_number(int(bucket))] = SetDigest(_number(rows), value)
    return TablePin(_number(pin["version"]), digests)
