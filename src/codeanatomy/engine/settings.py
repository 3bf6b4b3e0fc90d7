"""Settings of a session: every Spark option that is set, and the fingerprint of those that can change rows.

Options that can change rows are pinned here; a user's `conf` may override them, which changes the fingerprint. Nothing
about the machine (threads, memory, partitions, paths, credentials) is part of the fingerprint.
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

# Options of how a query runs, not of what it returns. Any other `spark.sql.` option is taken to change rows.
ROW_NEUTRAL = (
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


# Up to so many files queries are interpreted: compiling one takes longer than running it on some thousand rows.
_INTERPRETED_FILES = 32
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


ONE_PARTITION: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # with one partition, a broadcast is only another job
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.shuffle.partitions": "1",
    }
)
"""Options for jobs over rows that fit in one task."""


def job_conf(files: int) -> Mapping[str, str]:
    """Options for jobs over the rows of that many files, on any session: planning takes longer than running."""
    return {**ONE_PARTITION, **(_INTERPRETED if files <= _INTERPRETED_FILES else {})}


@dataclass(frozen=True)
class EngineSettings:
    """How to reach Spark and how to run it."""

    profile: Profile = PROD_FAST
    master: str | None = None  # None: this machine, as many threads as the profile allows
    remote: str | None = None  # sc://host:port of a Spark Connect server; takes precedence over master
    shuffle_partitions: int = 8
    short_run: bool = False  # an update of seconds: optimize start time
    long_run: bool = False  # many minutes of work: let the JVM optimize fully
    preload: tuple[str, ...] = ()  # modules to import before workers are forked
    archive: bool = True  # use the class-data archive, and create it in the background if there is none
    conf: Mapping[str, str] = field(default_factory=dict)  # the user's own Spark options, storage credentials included

    @property
    def is_local(self) -> bool:
        """Whether Spark runs in a JVM that is a child of this process."""
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
            # Tables are read by file list; listing the files in a job would take longer than reading them.
            "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
            **{key: value for key, value in self.conf.items() if key.startswith("spark.sql.")},
        }

    def fingerprint(self) -> str:
        """A hash of everything here that can change rows; equal fingerprints promise equal rows."""
        relevant = {key: value for key, value in self.sql_conf().items() if not key.startswith(ROW_NEUTRAL)}
        text = json.dumps({"spark": version("pyspark"), **relevant}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]
