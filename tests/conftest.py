"""Fixtures of every room."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.run import build
from tests.repositories import write_repository


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The engine as builds use it, small and quick to start, one per test run."""
    settings = EngineSettings(
        master="local[2]",
        shuffle_partitions=2,
        short_run=True,
        archive=False,
        preload=("codeanatomy.extract",),
    )
    with open_engine(settings) as session:
        yield session


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The sample repository with its graph; only to be read or copied."""
    root = write_repository(tmp_path_factory.mktemp("built") / "repo")
    build(BuildRequest(root), spark=spark)
    return root


@pytest.fixture
def built(tmp_path: Path, built_once: Path) -> Path:
    """A copy of the sample repository and its graph, to do with as a test likes."""
    return Path(shutil.copytree(built_once, tmp_path / "repo"))
