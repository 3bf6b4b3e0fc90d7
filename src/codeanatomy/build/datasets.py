"""What rules start from, as frames: the snapshot, and the facts of its contents given to the files that have them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.build.inputs import BuildInputs
from codeanatomy.catalogue.facts import FACT_DATASETS
from codeanatomy.catalogue.tables import CONTENTS, FACT_OWNER, SCAN_FILES, SCAN_REPO
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.repo.modules import module_names
from codeanatomy.repo.snapshot import Snapshot
from codeanatomy.rules.evaluator import offer, spark_schema


def offer_inputs(spark: SparkSession, inputs: BuildInputs, facts: DataFrame) -> None:
    """Let rules read the snapshot and the facts under their dataset names."""
    files = spark.createDataFrame(_scan_rows(inputs.snapshot, inputs.roots), spark_schema(SCAN_FILES))
    offer(SCAN_REPO.name, spark.createDataFrame([(inputs.repo_id,)], spark_schema(SCAN_REPO)))
    offer(SCAN_FILES.name, files)
    facts = facts.where(F.col("extractor") == EXTRACTOR_VERSION)
    offer(CONTENTS.name, facts.select(*CONTENTS.names()))
    owners = F.broadcast(files.select("content_id", *(c.name for c in FACT_OWNER)))
    for dataset in FACT_DATASETS:
        rows = facts.select("content_id", F.explode(dataset.name).alias("fact")).join(owners, "content_id")
        offer(dataset.name, rows.select(*(c.name for c in FACT_OWNER), *(f"fact.{c}" for c in dataset.names())))


def _scan_rows(snapshot: Snapshot, roots: tuple[str, ...]) -> list[tuple[object, ...]]:
    names = module_names([file.path for file in snapshot.files], roots)
    return [
        (
            file.file_id,
            file.path,
            file.content_id,
            file.size,
            file.status,
            file.detail or None,
            module.module_fqn,
            module.is_init,
            module.is_stub,
            module.root,
        )
        for file, module in zip(snapshot.files, names, strict=True)
    ]
