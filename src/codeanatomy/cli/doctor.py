"""Look at everything a build needs and say what is there, what is wrong and what to do."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from codeanatomy.cli.terminal import size
from codeanatomy.engine.java import find_java
from codeanatomy.engine.memory import machine_memory_mb
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.index.pyrefly import find_pyrefly
from codeanatomy.store.builds import latest_build
from codeanatomy.store.location import StateLocation, locate_state
from codeanatomy.store.state import open_state, state_exists
from codeanatomy.store.tables import data_files

_LEAST_MEMORY_MB = 2048
_LEAST_DISK = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `todo` says what to do if it is not well."""

    what: str
    ok: bool
    found: str
    todo: str = ""


def examine(repo: str, state: str | None, storage_options: Mapping[str, str]) -> list[Finding]:
    """Look at the machine and at the state of `repo`."""
    location = locate_state(repo, state, storage_options)
    return [_python(), _java(), _package("pyspark", "spark"), _indexer(), _memory(), _disk(location), _state(location)]


def _python() -> Finding:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    return Finding(
        "python", sys.version_info >= (3, 11), found, "" if sys.version_info >= (3, 11) else "use 3.11 or newer"
    )


def _java() -> Finding:
    try:
        java = find_java()
    except CodeAnatomyError as error:
        return Finding("java", False, "not usable", str(error))
    if java is None:
        return Finding(
            "java", False, "none of version 17 or newer", "run scripts/ensure-java, or install a Java 17+ runtime"
        )
    return Finding("java", True, f"{java.version} at {java.home}")


def _package(name: str, what: str) -> Finding:
    try:
        return Finding(what, True, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(what, False, f"{name} is not installed", f"pip install {name}")


def _indexer() -> Finding:
    found = find_pyrefly()
    if found is None:
        return Finding("indexer", False, "pyrefly is not installed", "pip install pyrefly, or build with --index none")
    return Finding("indexer", True, f"pyrefly {found.version} at {found.executable}")


def _memory() -> Finding:
    available = machine_memory_mb()
    ok = available >= _LEAST_MEMORY_MB
    return Finding("memory", ok, f"{available:,} MB", "" if ok else "builds may fail: try --profile memory_tight")


def _disk(location: StateLocation) -> Finding:
    if not location.is_local:
        return Finding("disk", True, "the state is on an object store")
    place = location.local_path
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    ok = free >= _LEAST_DISK
    return Finding("disk", ok, f"{size(free)} free at {place}", "" if ok else "make room, or choose another --state")


def _state(location: StateLocation) -> Finding:
    try:
        if not state_exists(location):
            return Finding("state", True, f"none yet at {location.uri}", "run `codeanatomy build`")
        state = open_state(location)
        last = latest_build(state)
        if last is None:
            return Finding("state", True, f"no build yet at {location.uri}", "run `codeanatomy build`")
        missing = [
            file
            for name, pin in last.tables.items()
            for file in data_files(state, name, pin.version)
            if location.is_local and not Path(file).is_file()
        ]
    except CodeAnatomyError as error:
        return Finding("state", False, f"damaged, at {location.uri}", str(error))
    if missing:
        return Finding(
            "state", False, f"{len(missing)} data files are missing", "`codeanatomy build --full` makes them anew"
        )
    return Finding("state", True, f"build {last.build_id} at {location.uri}")
