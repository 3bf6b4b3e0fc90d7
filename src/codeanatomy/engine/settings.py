"""The settings contract of a session: every Spark option we set, and the fingerprint of those that can alter rows.

Row-altering options are pinned here; a user's own `conf` may override them, and then the fingerprint says so.
Nothing about the machine (threads, memory, partitions, paths, credentials) may reach the fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from types import MappingProxyType

from codeanatomy.engine.profiles import PROD_FAST, Profile

PINNED: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
    }
)

# How a query runs, not what it returns. Any other `spark.sql.` option counts as able to alter rows.
HARMLESS = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.codegen.",
    "spark.sql.debug.",
    "spark.sql.execution.arrow.",
    "spark.sql.files.",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.join.",
    "spark.sql.optimizer.",
    "spark.sql.shuffle.",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",
)


# Compiling a query takes longer than running it on a few thousand rows.
_FEW_FILES = 32
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def job_conf(files: int) -> Mapping[str, str]:
    """Options for jobs over the rows of that many files, on whatever session: planning takes longer than running."""
    one_place = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # all is in one place: a broadcast is a job of its own
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    return one_place | _INTERPRETED if files <= _FEW_FILES else one_place


@dataclass(frozen=True)
class EngineSettings:
    """How to reach Spark and how to run it."""

    profile: Profile = PROD_FAST
    master: str | None = None  # None: this machine, as many threads as the profile allows
    remote: str | None = None  # sc://host:port of a Spark Connect server; wins over master
    shuffle_partitions: int = 8
    short_run: bool = False  # an update of seconds: start fast instead of running fast
    long_run: bool = False  # many minutes of work: let the JVM compile as well as it can
    preload: tuple[str, ...] = ()  # modules a Python worker should find already imported
    archive: bool = True  # use the class-data archive, and have it made in the background if there is none
    conf: Mapping[str, str] = field(default_factory=dict)  # the user's own Spark options, storage credentials included

    @property
    def is_local(self) -> bool:
        """Whether Spark runs inside a JVM of our own."""
        return self.remote is None and (self.master is None or self.master.split("[")[0] == "local")

    def sql_conf(self) -> dict[str, str]:
        """The options that can be set on any session, a remote one included."""
        adaptive = self.profile.adaptive and not self.short_run
        return {
            **PINNED,
            "spark.sql.adaptive.enabled": str(adaptive).lower(),
            **(_INTERPRETED if self.short_run else {}),
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(self.profile.arrow_batch_rows),
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            # Filters inferred from an explode name the whole array, so that all its fields would be read.
            "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            # Tables are read by file list; looking at each file in a job of its own would take longer than reading.
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
            **{key: value for key, value in self.conf.items() if key.startswith("spark.sql.")},
        }

    def fingerprint(self) -> str:
        """Names everything here that can alter rows; equal fingerprints promise equal rows."""
        altering = {key: value for key, value in self.sql_conf().items() if not key.startswith(HARMLESS)}
        text = json.dumps({"spark": version("pyspark"), **altering}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]
