"""What builds of one process share, so that each costs only what changed: Spark, and the rules it has planned."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codeanatomy.engine.settings import EngineSettings
from codeanatomy.rules.compiler import CompiledRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.request import BuildRequest, BuildResult
    from codeanatomy.rules.prepared import Identity, PreparedRules


class Warm:
    """A Spark session that stays, and what was made for it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._prepared: dict[bool, tuple[Identity, PreparedRules]] = {}

    def build(self, request: BuildRequest, listener: Listener | None = None) -> BuildResult:
        """Bring the graph of a repository up to date."""
        from codeanatomy.pipeline.run import build  # noqa: PLC0415

        return build(request, listener=listener, spark=self._spark, warm=self)

    def prepared(self, rules: Sequence[CompiledRule], settings: EngineSettings) -> PreparedRules | None:
        """The rules, planned for these settings, if this session can keep plans and need not record them."""
        from codeanatomy.engine.slots import supports_slots  # noqa: PLC0415
        from codeanatomy.rules.prepared import PreparedRules, identity_of  # noqa: PLC0415

        if settings.profile.records_plans or not supports_slots(self._spark):
            return None
        identity = identity_of(rules, settings)
        has_documents = any(each.rule.needs_documents for each in rules)
        with self._lock:
            known = self._prepared.get(has_documents)
            if known is None or known[0] != identity:
                known = self._prepared[has_documents] = (identity, PreparedRules(self._spark))
            return known[1]
