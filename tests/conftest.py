"""Fixtures of every room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkValueError
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline import inputs
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.run import build
from codeanatomy.pipeline.warm import Warm
from tests.repositories import write_repository

os.environ["CODEANATOMY_ENGINE"] = "off"  # of commands: tests of the engine start their own
os.environ["CODEANATOMY_INDEX"] = "none"  # of commands: a test that wants an index asks for it
os.environ["LC_ALL"] = "C.UTF-8"  # whatever the locale of whoever runs the tests


@pytest.fixture(scope="session", autouse=True)
def no_index() -> Iterator[None]:
    """Builds without an index, unless they ask for one: indexing a tree takes longer than most tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "DEFAULT_INDEX", "none")
        yield


@pytest.fixture(scope="session", autouse=True)
def frames_as_over_connect() -> Iterator[None]:
    """Refuse what Spark Connect refuses, which a session of our own would take: no rows, and no schema either."""
    create = SparkSession.createDataFrame

    def create_or_refuse(session: SparkSession, data: Any, schema: Any = None, *more: Any, **options: Any) -> DataFrame:
        if schema is None and len(data) == 0:
            raise PySparkValueError(errorClass="CANNOT_INFER_EMPTY_SCHEMA", messageParameters={})
        return create(session, data, schema, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "createDataFrame", create_or_refuse)
        yield


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
def warm(spark: SparkSession) -> Iterator[Warm]:
    """What builds of a process that stays share, on the engine of the tests."""
    with Warm(spark) as process:
        yield process


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The sample repository with its graph; only to be read or copied."""
    root = write_repository(tmp_path_factory.mktemp("built") / "repo")
    build(BuildRequest(root), spark=spark)
    return root


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """The sample repository with its graph and a semantic index; only to be read."""
    root = write_repository(tmp_path_factory.mktemp("indexed") / "repo")
    build(BuildRequest(root, index="pyrefly"), spark=spark)
    return root


@pytest.fixture
def built(tmp_path: Path, built_once: Path) -> Path:
    """A copy of the sample repository and its graph, to do with as a test likes."""
    return Path(shutil.copytree(built_once, tmp_path / "repo"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)
