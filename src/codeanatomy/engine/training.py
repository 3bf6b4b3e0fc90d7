"""Create the class-data archive: run queries like those of a build, then let the JVM dump the classes it has loaded.

Run as a program. The result of the queries does not matter, only which classes of Spark they load.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.engine.archive import archive_path, failure_mark, is_usable, publish_archive
from codeanatomy.engine.directories import cache_directory, scratch_directory
from codeanatomy.engine.frames import frame_of
from codeanatomy.engine.java import require_java
from codeanatomy.engine.profiles import MEMORY_TIGHT
from codeanatomy.engine.session import own_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import MachineError

SECONDS_TO_WRITE = 600


def make_archive() -> Path:
    """Create the archive for this machine unless it exists; safe to run concurrently."""
    cache = cache_directory()
    archive = archive_path(require_java(), cache)
    archive.parent.mkdir(exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError("another process is creating the class-data archive") from None
        if not is_usable(archive):
            new = archive.with_suffix(".new")
            new.unlink(missing_ok=True)
            try:
                _train(new)
                publish_archive(new, archive)
            except Exception:
                failure_mark(archive).touch()
                raise
    return archive


def _train(archive: Path) -> None:
    settings = EngineSettings(
        profile=MEMORY_TIGHT,
        archive=False,
        conf={"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={archive}"'},
    )
    with own_engine(settings, SECONDS_TO_WRITE) as connect, scratch_directory() as scratch:
        spark = connect()
        for adaptive in ("true", "false"):
            spark.conf.set("spark.sql.adaptive.enabled", adaptive)
            for broadcast in ("10MB", "-1"):
                spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
                _run_queries(spark, scratch.path / f"{adaptive}{broadcast}")


def _run_queries(spark: SparkSession, directory: Path) -> None:
    rows = spark.range(2000).mapInArrow(_rows, "path string, parts array<struct<name: string, start: bigint>>")
    bucketed = rows.withColumn("bucket", F.pmod(F.hash("path"), F.lit(4))).repartition(2, "bucket")
    bucketed.sortWithinPartitions("path").write.partitionBy("bucket").parquet(str(directory))
    stored = spark.read.option("basePath", str(directory)).schema(rows.schema).parquet(str(directory))
    stored.createOrReplaceTempView("left_side")
    table = pa.table({"path": [f"p{n}" for n in range(100)], "value": list(range(100))})
    frame_of(spark, table).localCheckpoint().createOrReplaceTempView("right_side")
    query = files(__package__).joinpath("training.sql").read_text(encoding="utf-8")
    spark.sql(query).cache().toArrow()
    spark.sql(query).collect()


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        parts = [[{"name": f"n{n % 7}", "start": n}] for n in numbers]
        yield pa.RecordBatch.from_pydict({"path": [f"p{n % 50}" for n in numbers], "parts": parts})


if __name__ == "__main__":
    make_archive()
