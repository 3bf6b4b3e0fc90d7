"""Makes the class-data archive: runs the kinds of query a build consists of, then lets the JVM write down its classes.

Run as a program. Must stay generic: what matters is which classes of Spark get loaded, not what is computed.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from codeanatomy.engine.archive import archive_path, failure_mark, is_usable, publish_archive
from codeanatomy.engine.frames import frame_of
from codeanatomy.engine.java import require_java
from codeanatomy.engine.places import cache_directory, scratch_directory
from codeanatomy.engine.profiles import MEMORY_TIGHT
from codeanatomy.engine.session import own_session
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import MachineError

SECONDS_TO_WRITE = 600

QUERY = """
WITH parts AS (
  SELECT left_side.path, part.name AS name, part.start AS start
  FROM left_side LATERAL VIEW explode(parts) AS part
), ranked AS (
  SELECT path, name, start, row_number() OVER (PARTITION BY path ORDER BY start, name) AS rank,
         lag(name) OVER (PARTITION BY path ORDER BY start, name) AS previous
  FROM parts
), joined AS (
  SELECT ranked.path, ranked.name, sha2(concat_ws('/', ranked.path, ranked.name), 256) AS id, right_side.value
  FROM ranked LEFT JOIN right_side ON ranked.path = right_side.path AND right_side.value > 0
  WHERE rank <= 3 AND coalesce(previous, '') <> 'x' AND ranked.name RLIKE '^n'
  UNION ALL
  SELECT path, CAST(NULL AS STRING), substring(md5(path), 1, 8), value FROM right_side
  WHERE path NOT IN (SELECT path FROM left_side) AND EXISTS (SELECT 1 FROM parts WHERE parts.start = value)
)
SELECT path, count(*) AS rows, count(DISTINCT name) AS names, min(id) AS first, sum(xxhash64(id, value) % 1000) AS mix,
       collect_set(name) AS all_names, max_by(name, value) AS latest, bit_xor(hash(id)) AS digest
FROM joined GROUP BY path HAVING count(*) > 0 ORDER BY path LIMIT 100
"""


def make_archive() -> Path:
    """Make the archive for this machine if it is not there; safe to run at the same time as others."""
    cache = cache_directory()
    archive = archive_path(require_java(), cache)
    archive.parent.mkdir(exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError("another process is making the class-data archive") from None
        if not is_usable(archive):
            made = archive.with_suffix(".new")
            made.unlink(missing_ok=True)
            try:
                _train(made)
                publish_archive(made, archive)
            except Exception:
                failure_mark(archive).touch()
                raise
    return archive


def _train(made: Path) -> None:
    settings = EngineSettings(
        profile=MEMORY_TIGHT,
        archive=False,
        conf={"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={made}"'},
    )
    with own_session(settings, SECONDS_TO_WRITE) as spark, scratch_directory() as scratch:
        for adaptive in ("true", "false"):
            spark.conf.set("spark.sql.adaptive.enabled", adaptive)
            for broadcast in ("10MB", "-1"):
                spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
                _run_queries(spark, scratch.path / f"{adaptive}{broadcast}")


def _run_queries(spark: SparkSession, directory: Path) -> None:
    rows = spark.range(2000).mapInArrow(_rows, "path string, parts array<struct<name: string, start: bigint>>")
    rows.selectExpr("*", "pmod(hash(path), 4) AS bucket").repartition(2, "bucket").sortWithinPartitions(
        "path"
    ).write.partitionBy("bucket").parquet(str(directory))
    stored = spark.read.option("basePath", str(directory)).schema(rows.schema).parquet(str(directory))
    stored.createOrReplaceTempView("left_side")
    table = pa.table({"path": [f"p{n}" for n in range(100)], "value": list(range(100))})
    frame_of(spark, table).localCheckpoint().createOrReplaceTempView("right_side")
    spark.sql(QUERY).cache().toArrow()
    spark.sql(QUERY).collect()


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        parts = [[{"name": f"n{n % 7}", "start": n}] for n in numbers]
        yield pa.RecordBatch.from_pydict({"path": [f"p{n % 50}" for n in numbers], "parts": parts})


if __name__ == "__main__":
    make_archive()
