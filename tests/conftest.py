"""Fixtures of every room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings


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
