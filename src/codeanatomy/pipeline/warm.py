"""What builds of one process share, so that each costs only what changed: Spark, planned rules, and what was read.

For each state there is what the last build opened of it. It is bound to that build: if another one was published since,
by whatever process, it is dropped, and everything is read again. Nothing here is needed to build, and nothing is here
that is not in a state; a build with it is compared with builds from scratch by the same tests as every other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

from codeanatomy.engine.settings import EngineSettings
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.location import StateLocation
from codeanatomy.store.opened import Opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.index.warm import WarmPyrefly
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.request import BuildRequest, BuildResult
    from codeanatomy.rules.prepared import Identity, PreparedRules


class _Workspace(NamedTuple):
    """What the build `build_id` opened."""

    build_id: str
    opened: Opened


class _Indexer(NamedTuple):
    """An indexer that stays, and what ends it."""

    indexer: WarmPyrefly
    ending: ExitStack


class Warm:
    """A Spark session that stays, and what builds on it leave for the next; used with `with`."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._lock = threading.Lock()
        self._prepared: dict[bool, tuple[Identity, PreparedRules]] = {}
        self._workspaces: dict[str, _Workspace] = {}
        self._indexers: dict[str, _Indexer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def build(self, request: BuildRequest, listener: Listener | None = None) -> BuildResult:
        """Bring the graph of a repository up to date."""
        from codeanatomy.pipeline.run import build  # noqa: PLC0415

        return build(request, listener=listener, spark=self.spark, warm=self)

    def prepared(self, rules: Sequence[CompiledRule], settings: EngineSettings) -> PreparedRules | None:
        """The rules, planned for these settings, if this session can keep plans and need not record them."""
        from codeanatomy.engine.slots import supports_slots  # noqa: PLC0415
        from codeanatomy.rules.prepared import PreparedRules, identity_of  # noqa: PLC0415

        if settings.profile.records_plans or not supports_slots(self.spark):
            return None
        identity = identity_of(rules, settings)
        has_documents = any(each.rule.needs_documents for each in rules)
        with self._lock:
            known = self._prepared.get(has_documents)
            if known is None or known[0] != identity:
                known = self._prepared[has_documents] = (identity, PreparedRules(self.spark))
            return known[1]

    def opened_before(self, location: StateLocation, last: BuildRecord | None) -> Opened:
        """What is known of a state whose last build is `last`."""
        with self._lock:
            known = self._workspaces.get(location.uri)
        if known is None or last is None or known.build_id != last.build_id:
            return Opened()
        return known.opened.for_next_build()

    def keep(self, location: StateLocation, build_id: str) -> None:
        """Remember what a build that was published has opened."""
        with self._lock:
            self._workspaces.pop(location.uri, None)
            self._workspaces[location.uri] = _Workspace(build_id, location.opened)

    def states(self) -> list[str]:
        """The states of which something is known, the least recently built first."""
        with self._lock:
            return list(self._workspaces)

    def indexer(self, location: StateLocation) -> WarmPyrefly:
        """The indexer that stays for the repository of a state; started by the first build that has use for it."""
        from codeanatomy.pipeline.indexing import warm_index  # noqa: PLC0415

        with self._lock:
            if location.uri not in self._indexers:
                ending = ExitStack()
                self._indexers[location.uri] = _Indexer(ending.enter_context(warm_index()), ending)
            return self._indexers[location.uri].indexer

    def evict(self, uri: str) -> None:
        """Forget what is known of a state."""
        with self._lock:
            self._workspaces.pop(uri, None)
            indexer = self._indexers.pop(uri, None)
        if indexer:
            indexer.ending.close()

    def close(self) -> None:
        """Forget everything; the session is not ended."""
        for uri in {*self._workspaces, *self._indexers}:
            self.evict(uri)
