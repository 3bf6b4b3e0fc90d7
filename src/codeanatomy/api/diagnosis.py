"""Check everything a build needs, on this machine and in the state of a repository."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from codeanatomy.api.requests import BuildRequest, Repository, RepositoryLike, as_repository
from codeanatomy.engine.java import find_java
from codeanatomy.engine.memory import machine_memory_mb
from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
from codeanatomy.index.pyrefly import find_pyrefly
from codeanatomy.repo.scan import checked_root
from codeanatomy.store.builds import check_whole, latest_build
from codeanatomy.store.location import StateLocation, locate_state
from codeanatomy.store.state import open_state, state_exists

_MIN_PYTHON = (3, 11)
_MIN_MEMORY_MB = 2048
_MIN_DISK_BYTES = 1 << 30

OK, FAILED = "ok", "failed"
"""What a check can come to."""

STATE = "state"
"""The check of the state; the others are of the machine."""


@dataclass(frozen=True)
class Check:
    """The result of one check; `hint` says what to do, if anything."""

    name: str
    status: str
    detail: str
    hint: str = ""

    @property
    def ok(self) -> bool:
        """Whether a build can rely on it."""
        return self.status == OK


@dataclass(frozen=True)
class Diagnosis:
    """The result of every check."""

    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def ok(self) -> bool:
        """Whether none did."""
        return not self.failed

    def as_json(self) -> list[dict[str, Any]]:
        """The list that `doctor --json` prints."""
        return [vars(check) for check in self.checks]


def doctor(repo: RepositoryLike = ".", *, deep: bool = False) -> Diagnosis:
    """Check the machine and the state of a repository; `deep` reads every row of the last build, on Spark."""
    return Diagnosis(tuple(_checks(as_repository(repo), deep=deep)))


def _checks(repository: Repository, *, deep: bool) -> Iterator[Check]:
    checked_root(Path(repository.repo))
    location = locate_state(repository.repo, repository.state, repository.storage_options)
    yield _check_python()
    yield _check_java()
    yield _check_spark()
    yield _check_indexer()
    yield _check_memory()
    yield _check_disk(location)
    state = _check_state(location)
    has_build = state.ok and not state.hint
    yield _check_rows(repository, state) if deep and has_build else state


def _check_python() -> Check:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < _MIN_PYTHON:
        return Check("python", FAILED, found, "use Python 3.11 or newer")
    return Check("python", OK, found)


def _check_java() -> Check:
    try:
        java = find_java()
    except CodeAnatomyError as error:
        return Check("java", FAILED, "not usable", str(error))
    if java is None:
        hint = "run scripts/ensure-java, or install a Java 17+ runtime"
        return Check("java", FAILED, "no Java 17 or newer found", hint)
    return Check("java", OK, f"{java.version} at {java.home}")


def _check_spark() -> Check:
    try:
        return Check("spark", OK, f"pyspark {version('pyspark')}")
    except PackageNotFoundError:
        return Check("spark", FAILED, "pyspark is not installed", "pip install pyspark")


def _check_indexer() -> Check:
    found = find_pyrefly()
    if found is None:
        return Check("indexer", FAILED, "pyrefly is not installed", "pip install pyrefly, or build with --index none")
    return Check("indexer", OK, f"pyrefly {found.version} at {found.executable}")


def _check_memory() -> Check:
    available = machine_memory_mb()
    if available < _MIN_MEMORY_MB:
        return Check("memory", FAILED, f"{available:,} MB", "builds may fail; try --profile memory_tight")
    return Check("memory", OK, f"{available:,} MB")


def _check_disk(location: StateLocation) -> Check:
    if not location.is_local:
        return Check("disk", OK, "the state is on an object store")
    directory = location.local_path
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free
    detail = f"{free / 1e9:,.1f} GB free at {directory}"
    if free < _MIN_DISK_BYTES:
        return Check("disk", FAILED, detail, "free some space, or choose another --state")
    return Check("disk", OK, detail)


def _check_state(location: StateLocation) -> Check:
    try:
        if not state_exists(location):
            return Check(STATE, OK, f"none yet at {location.uri}", "run `codeanatomy build`")
        state = open_state(location)
        last = latest_build(state)
        if last is None:
            return Check(STATE, OK, f"no build yet at {location.uri}", "run `codeanatomy build`")
        check_whole(state, last)
    except MachineError as error:
        return Check("access", FAILED, f"cannot read {location.uri}", str(error))
    except CodeAnatomyError as error:
        return Check(STATE, FAILED, f"damaged, at {location.uri}", str(error))
    return Check(STATE, OK, f"build {last.build_id} at {location.uri}")


def _check_rows(repository: Repository, state: Check) -> Check:
    """Whether every file and row of the last build is what was written."""
    from codeanatomy.pipeline.stored import verify_stored  # noqa: PLC0415 - loads Spark

    request = BuildRequest(repository.repo, repository.state, storage_options=repository.storage_options)
    try:
        found = verify_stored(request)
    except StateError as error:
        return Check(STATE, FAILED, "damaged", str(error))
    except (MachineError, InputError) as error:  # the other checks say more of the machine
        return Check(STATE, OK, f"{state.detail}, rows not checked", str(error))
    differing = [name for name, table in found.tables.items() if not table.equal]
    if differing:
        detail = f"rows of {', '.join(differing)} differ from those that build {found.build_id} wrote"
        return Check(STATE, FAILED, detail, "run `codeanatomy build --full` to write them again")
    rows = sum(table.rows for table in found.tables.values())
    return Check(STATE, OK, f"{state.detail}, all {rows:,} rows as they were written")
