"""What builds of one process share: the Spark session, and what is known of each state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeanatomy.pipeline.request import BuildRequest, BuildResult
from codeanatomy.pipeline.run import build
from codeanatomy.store.location import locate_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.pipeline.progress import Listener


class Warm:
    """What builds of this process share: the Spark session, prepared rules, and a workspace per state."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._states: dict[str, None] = {}

    def build(self, request: BuildRequest, listener: Listener | None = None) -> BuildResult:
        """Bring the graph of a repository up to date."""
        uri = locate_state(request.repo, request.state, request.storage_options).uri
        self._states.pop(uri, None)
        self._states[uri] = None
        return build(request, listener=listener, spark=self._spark)

    def states(self) -> list[str]:
        """The states with a workspace, least recently used first."""
        return list(self._states)

    def evict(self, uri: str) -> None:
        """Drop the workspace of a state."""
        self._states.pop(uri, None)

    def close(self) -> None:
        """Drop every workspace."""
        self._states.clear()
