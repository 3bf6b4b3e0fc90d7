"""What rules start from, as frames: the snapshot, and the facts of its contents given to the files that have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.documents import DOCUMENT_DATASETS
from codeanatomy.catalogue.facts import FACT_DATASETS
from codeanatomy.catalogue.tables import (
    CONTENTS,
    DOCUMENTS,
    FACT_OWNER,
    FACTS,
    SCAN_FILES,
    SCAN_REPO,
    SCIP_DOCUMENTS,
)
from codeanatomy.engine.frames import frame_of
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.pipeline.facts import KnownFacts, of_files
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.repo.modules import module_names
from codeanatomy.rules.compiler import CompiledRule, unmade
from codeanatomy.rules.evaluator import offer
from codeanatomy.store.shared import keep_collected
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow, read_table

OFFERED_AT_ONCE = 4
"""Small frames: each is mostly a wait for the other side."""

FEW_ROWS = 5_000
"""So many rows are handed to Spark as they are."""


def read_facts(spark: SparkSession, state: State, version: int, *columns: str) -> DataFrame:
    """Some columns of the facts; only those, for Spark analyses the whole nested schema at every step."""
    narrow = replace(FACTS, columns=tuple(FACTS.column(name) for name in ("extractor", *columns)))
    rows = read_table(spark, state, narrow, version)
    return rows.where(F.col("extractor") == EXTRACTOR_VERSION).select(*columns)


def offer_inputs(
    spark: SparkSession,
    inputs: BuildInputs,
    rules: Sequence[CompiledRule],
    snapshot: pa.Table,
    state: State,
    facts_version: int,
) -> None:
    """Let `rules` read the snapshot (as `scan_table` has it) and the facts under their dataset names."""
    files = frame_of(spark, snapshot)
    offer(SCAN_FILES.name, files)
    offer(SCAN_REPO.name, repository(spark, inputs))
    owner = [column.name for column in FACT_OWNER]
    owners = F.broadcast(files.select("content_id", *owner))
    offer(CONTENTS.name, read_facts(spark, state, facts_version, *CONTENTS.names()))
    for dataset in _read_by(rules, FACT_DATASETS):
        facts = read_facts(spark, state, facts_version, "content_id", dataset.name)
        rows = facts.select("content_id", F.explode(dataset.name).alias("fact"))
        offer(dataset.name, rows.join(owners, "content_id").select(*owner, *(f"fact.{c}" for c in dataset.names())))


def offer_few_inputs(
    spark: SparkSession,
    inputs: BuildInputs,
    rules: Sequence[CompiledRule],
    files: pa.Table,
    state: State,
    facts: KnownFacts,
) -> None:
    """The same for few files: their facts are read here, and each dataset is one small frame."""
    datasets = _read_by(rules, FACT_DATASETS)
    offer(SCAN_FILES.name, few(spark, files))
    offer(SCAN_REPO.name, repository(spark, inputs))
    contents = facts.rows(
        {content for content in files["content_id"].to_pylist() if content},
        [*CONTENTS.names()[1:], *(dataset.name for dataset in datasets)],
    )
    offer(CONTENTS.name, few(spark, contents.select(list(CONTENTS.names()))))
    rows = of_files(files, contents)

    def offer_rows(dataset: Dataset) -> None:
        offer(dataset.name, collected(spark, _unnested(rows, dataset), dataset.name, state))

    with ThreadPoolExecutor(OFFERED_AT_ONCE) as pool:
        list(pool.map(offer_rows, datasets))


def _unnested(rows: pa.Table, dataset: Dataset) -> pa.Table:
    """One row per owner and fact."""
    lists = rows[dataset.name].combine_chunks()
    of_row = pc.list_parent_indices(lists)
    facts = pc.list_flatten(lists)
    owner = {column.name: rows[column.name].take(of_row) for column in FACT_OWNER}
    return pa.table(owner | {name: facts.field(name) for name in dataset.names()})


def few(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Few rows as a frame of one partition: what is joined and grouped in one place is never shuffled."""
    return frame_of(spark, rows.combine_chunks()).coalesce(1)


def collected(spark: SparkSession, rows: pa.Table, name: str, state: State) -> DataFrame:
    """Rows that are here, few or not, as a frame of one partition.

    A frame made from rows carries all of them into every query that reads some; many are better read from a file.
    """
    if rows.num_rows <= FEW_ROWS or not state.location.is_local:
        return few(spark, rows)
    return keep_collected(spark, rows, name, state).coalesce(1)


def repository(spark: SparkSession, inputs: BuildInputs) -> DataFrame:
    """The repository itself, as a row."""
    return few(spark, SCAN_REPO.table([(inputs.repo_id,)]))


def offer_documents(
    spark: SparkSession,
    rules: Sequence[CompiledRule],
    state: State,
    version: int | None,
    owners: Collection[str] | None = None,
) -> None:
    """Let `rules` read the semantic documents (of some owners) under their dataset names."""
    _offer_nothing(spark, rules)
    if version is None:
        return
    offer(SCIP_DOCUMENTS.name, read_documents_of(spark, state, version, *SCIP_DOCUMENTS.names(), owners=owners))
    owner = [column.name for column in FACT_OWNER]
    for dataset in _read_by(rules, DOCUMENT_DATASETS):
        documents = read_documents_of(spark, state, version, *owner, dataset.name, owners=owners)
        rows = documents.select(*owner, F.explode(dataset.name).alias("said"))
        offer(dataset.name, rows.select(*owner, *(f"said.{c}" for c in dataset.names())))


def offer_few_documents(
    spark: SparkSession, rules: Sequence[CompiledRule], state: State, version: int | None, owners: Collection[str]
) -> None:
    """The same for few owners: their documents are read here, and each dataset is one small frame."""
    _offer_nothing(spark, rules)
    if version is None:
        return
    rows = read_arrow(state, DOCUMENTS, version, owners=owners)
    offer(SCIP_DOCUMENTS.name, few(spark, rows.select(list(SCIP_DOCUMENTS.names()))))
    for dataset in _read_by(rules, DOCUMENT_DATASETS):
        offer(dataset.name, collected(spark, _unnested(rows, dataset), dataset.name, state))


def _offer_nothing(spark: SparkSession, rules: Sequence[CompiledRule]) -> None:
    """What is made from documents has no rows where there are none."""
    for view in unmade(rules):
        offer(view.name, frame_of(spark, view.table([])))


def _read_by(rules: Sequence[CompiledRule], datasets: Sequence[Dataset]) -> list[Dataset]:
    read = {name for rule in rules for name in rule.inputs}
    return [dataset for dataset in datasets if dataset.name in read]


def read_documents_of(
    spark: SparkSession, state: State, version: int, *columns: str, owners: Collection[str] | None = None
) -> DataFrame:
    """Some columns of the documents (of some owners)."""
    narrow = replace(DOCUMENTS, columns=tuple(DOCUMENTS.column(name) for name in columns))
    return read_table(spark, state, narrow, version, keys=owners)


def scan_table(inputs: BuildInputs) -> pa.Table:
    """The snapshot's files with their module names."""
    files = inputs.snapshot.files
    names = module_names([file.path for file in files], inputs.roots)
    rows = (
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
        for file, module in zip(files, names, strict=True)
    )
    return SCAN_FILES.table(rows)
