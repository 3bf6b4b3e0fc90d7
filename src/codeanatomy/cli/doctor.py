"""Look at everything a build needs and say what is there, what is wrong and what to do."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from codeanatomy.cli.terminal import size
from codeanatomy.engine.java import find_java
from codeanatomy.engine.memory import machine_memory_mb
from codeanatomy.errors import CodeAnatomyError, MachineError, StateError
from codeanatomy.index.pyrefly import find_pyrefly
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.store.builds import check_whole, latest_build
from codeanatomy.store.location import StateLocation, locate_state
from codeanatomy.store.state import open_state, state_exists

_LEAST_MEMORY_MB = 2048
_LEAST_DISK = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `todo` says what to do if it is not well."""

    what: str
    ok: bool
    found: str
    todo: str = ""


def examine(request: BuildRequest, *, deep: bool = False) -> list[Finding]:
    """Look at the machine and at the state of a repository; `deep` reads all that the last build has."""
    location = locate_state(request.repo, request.state, request.storage_options)
    found = [_python(), _java(), _package("pyspark", "spark"), _indexer(), _memory(), _disk(location), _state(location)]
    if deep and found[-1].ok and not found[-1].todo:
        found[-1] = _stored(request, found[-1])
    return found


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
        check_whole(state, last)
    except MachineError as error:
        return Finding("access", False, f"cannot read {location.uri}", str(error))
    except CodeAnatomyError as error:
        return Finding("state", False, f"damaged, at {location.uri}", str(error))
    return Finding("state", True, f"build {last.build_id} at {location.uri}")


def _stored(request: BuildRequest, shallow: Finding) -> Finding:
    """Whether every file and row of the last build is what was written."""
    from codeanatomy.pipeline.stored import verify_stored  # noqa: PLC0415 - starts Spark

    try:
        found = verify_stored(request)
    except StateError as error:
        return Finding("state", False, "damaged", str(error))
    except MachineError as error:  # which one of the others says more of
        return Finding("state", True, f"{shallow.found}, its rows not read", str(error))
    differing = [name for name, table in found.tables.items() if not table.equal]
    if differing:
        what = f"rows of {', '.join(differing)} are not those that build {found.build_id} wrote"
        return Finding("state", False, what, "`codeanatomy build --full` writes them again")
    rows = sum(table.rows for table in found.tables.values())
    return Finding("state", True, f"{shallow.found}, all {rows:,} rows as they were written")
