"""A state with something of everything, made without Spark, and every use that commands make of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from codeanatomy.errors import CodeAnatomyError
from codeanatomy.store import (
    State,
    StateLocation,
    append_rows,
    collect_garbage,
    data_files,
    find_build,
    hold_lease,
    latest_build,
    list_builds,
    open_arrow,
    open_state,
    pin_latest,
    publish,
    rollback_build,
)
from codeanatomy.store.builds import check_whole
from codeanatomy.store.bundles import read_bundle_rows, read_bundle_text, write_bundle
from codeanatomy.store.cursors import list_cursors, move_cursor, read_cursor
from codeanatomy.store.datafiles import CollectedRows
from codeanatomy.store.digests import digest_of_names
from codeanatomy.store.tables import Replaced, TablePin, replace_rows, verified_files
from codeanatomy.store.temporary import temporary_rows

from .samples import CONTENTS, OWNED, build_of, contents, owned, state_at

BUILDS = 12
"""So many that there is a checkpoint."""


def digests_of(*owners: str):
    return {owner: digest_of_names([owner]) for owner in owners}


def rich_state(path: Path) -> State:
    """Builds with two tables, run bundles and a cursor."""
    state = state_at(path)
    last = None
    pins: dict[str, TablePin] = {}
    for number in range(1, BUILDS + 1):
        owners = [f"owner{each}" for each in range(number)]
        rows = pa.Table.from_pylist(owned(*owners), schema=OWNED.schema())
        pins["owned"] = replace_rows(CollectedRows(rows, digests_of(*owners)), OWNED, state).pin
        more = pa.Table.from_pylist(contents(f"content{number}"), schema=CONTENTS.schema())
        pins["contents"] = append_rows(more, CONTENTS, state, base=pins.get("contents")).pin
        last = build_of(number, last, dict(pins))
        write_bundle(state, last.build_id, {"manifest.json": "{}"}, {"owned": rows})
        publish(state, last)
    assert last is not None
    move_cursor(state, "c", last.build_id)
    with hold_lease(state.location):
        pass
    return state


def uses(location: StateLocation) -> Mapping[str, Callable[[], object]]:
    """What commands do with a state, readers first."""

    def opened() -> State:
        return open_state(location)

    def latest():
        state = opened()
        build = latest_build(state)
        assert build is not None
        return state, build

    def whole() -> None:
        check_whole(*latest())

    def arrow() -> object:
        state, build = latest()
        return [open_arrow(state, each, build.tables[each.name].version).to_table() for each in (OWNED, CONTENTS)]

    def files() -> object:
        state, build = latest()
        return [verified_files(state, each.name, build.tables[each.name].version) for each in (OWNED, CONTENTS)]

    def bundle() -> object:
        state, build = latest()
        return read_bundle_text(state, build.build_id, "manifest.json"), read_bundle_rows(state, build.build_id, OWNED)

    def update() -> None:
        with hold_lease(location), temporary_rows(opened()):
            state, build = latest()
            pins = dict(build.tables)
            rows = pa.Table.from_pylist(owned("owner0", "new"), schema=OWNED.schema())
            new = CollectedRows(rows, digests_of("owner0", "new"))
            replaced = Replaced(["owner0", "new"], digests_of("owner0"))
            pins["owned"] = replace_rows(new, OWNED, state, pins["owned"], replaced).pin
            base = pin_latest(state, CONTENTS, pins["contents"])
            more = pa.Table.from_pylist(contents("another"), schema=CONTENTS.schema())
            pins["contents"] = append_rows(more, CONTENTS, state, base=base).pin
            now = datetime.now(UTC)
            made = replace(build_of(1, build, pins), build_id=f"{now:%Y%m%dT%H%M%S}-abcdef", created_at=now)
            write_bundle(state, made.build_id, {"manifest.json": "{}"}, {"owned": rows})
            publish(state, made)

    def rollback() -> None:
        with hold_lease(location):
            state, build = latest()
            target = find_build(state, build_of(BUILDS, None).build_id)
            check_whole(state, target)
            publish(state, rollback_build(target, build, datetime.now(UTC)))

    def gc() -> None:
        state = opened()
        with hold_lease(location) as lease:
            collect_garbage(state, lease, keep=1)

    def acknowledge() -> None:
        state, build = latest()
        move_cursor(state, "c", build.build_id)

    return {
        "builds": lambda: list_builds(opened()),
        "whole": whole,
        "arrow": arrow,
        "files": files,
        "spark": lambda: [data_files(latest()[0], "owned", latest()[1].tables["owned"].version)],
        "bundle": bundle,
        "cursor": lambda: (read_cursor(opened(), "c"), list_cursors(opened())),
        "acknowledge": acknowledge,
        "update": update,
        "rollback": rollback,
        "gc": gc,
    }


def outcomes(location: StateLocation) -> dict[str, str]:
    """What each use came to: nothing, or the error that a command would print and exit with."""
    found = {}
    for name, use in uses(location).items():
        try:
            use()
            found[name] = ""
        except CodeAnatomyError as error:
            assert "\n" not in str(error)
            found[name] = f"{error.exit_code} {error}"
    return found


def everything_in(place: Path) -> dict[str, object]:
    """What is below a folder: contents, kinds and times."""
    found: dict[str, object] = {}
    for path in [place, *sorted(place.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_mode, status.st_mtime_ns, status.st_nlink, content)
    return found


def plant(target: Path, outside: Path) -> None:
    """Make `target` a link to what was there, now outside; to a folder with precious files if nothing was."""
    target.parent.mkdir(parents=True, exist_ok=True)
    moved = outside / "moved"
    if os.path.lexists(target):
        target.rename(moved)
    else:
        moved.mkdir()
        (moved / "part-precious.parquet").write_text("precious")
        (moved / "manifest.json").write_text("precious")
    target.symlink_to(moved)
