"""Fixtures of the semantic index."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.indexing import TRICKY, TRICKY_SCIP, Indexed, Tree, index, pyrefly_provider, scip_index, tree

_MEMORY = Path("/dev/shm")
_ENOUGH = 1 << 29


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A place for mirrors and reports: in memory if there is enough, because a report is many files."""
    yield from _scratch()


@pytest.fixture(scope="module")
def shared_scratch() -> Iterator[Path]:
    """The same, for a whole module."""
    yield from _scratch()


@pytest.fixture(scope="session")
def tricky() -> Tree:
    """The tree of sources that are hard to count in."""
    return tree(TRICKY)


@pytest.fixture(scope="session")
def pyrefly_tricky(tricky: Tree) -> Iterator[Indexed]:
    """What pyrefly says of it."""
    for place in _scratch():
        yield index(tricky, pyrefly_provider(), place / "run")


@pytest.fixture(scope="session")
def scip_tricky(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """What scip-python said of it."""
    return scip_index(TRICKY, TRICKY_SCIP, tmp_path_factory.mktemp("scip") / "run")


def _scratch() -> Iterator[Path]:
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
    with tempfile.TemporaryDirectory(prefix="codeanatomy-tests-", dir=_MEMORY if roomy else None) as name:
        yield Path(name)
