"""What rules start from, as frames: the snapshot, and the facts and documents of its files, one row per fact."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.documents import DOCUMENT_DATASETS
from codeanatomy.catalogue.layers import FACT_DATASETS
from codeanatomy.catalogue.tables import (
    CONTENTS,
    DOCUMENTS,
    FACT_OWNER,
    GIVEN_PATTERNS,
    SCAN_FILES,
    SCAN_REPO,
    SCIP_DOCUMENTS,
)
from codeanatomy.engine.frames import frame_of
from codeanatomy.impact.affected import id_array
from codeanatomy.pipeline.context import TASKS_OF_TABLES, Build
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.scope import Scope
from codeanatomy.repo.files import file_table
from codeanatomy.rules.compiled import CompiledRule, unmade
from codeanatomy.rules.evaluator import RuleInputs

OFFERED_AT_ONCE = 4
"""Small frames: each is mostly a wait for the JVM."""

_OWNER = [column.name for column in FACT_OWNER]


@dataclass(frozen=True)
class Sources:
    """What the files of a scope are described by; `documents` if the build has an index."""

    build: Build
    scope: Scope
    facts: Facts
    documents: Documents | None

    @property
    def workers(self) -> SparkSession | None:
        """The session whose workers read the sources; None if the driver does."""
        return self.build.workers(self.build.inputs.source_bytes(self.scope.rebuilt), TASKS_OF_TABLES)

    def files(self) -> pa.Table:
        """The files of the scope."""
        files = file_table(self.build.inputs.files.values())
        if self.scope.rebuilt is None:
            return files
        return files.filter(pc.is_in(files["file_id"], id_array(self.scope.rebuilt)))


def offer_sources(inputs: RuleInputs, sources: Sources, rules: Sequence[CompiledRule]) -> None:
    """Let `rules` read everything that is not made by rules, but for answers."""
    offer_repository(inputs, sources.build)
    _offer_facts(inputs, sources, rules)
    _offer_documents(inputs, sources, rules)


def offer_repository(inputs: RuleInputs, build: Build) -> None:
    """Let rules read what belongs to no file: the row of the repository itself, and the patterns of entry points."""
    inputs.offer_rows(SCAN_REPO.name, SCAN_REPO.table([(build.inputs.repo_id,)]))
    inputs.offer_rows(GIVEN_PATTERNS.name, GIVEN_PATTERNS.table(build.inputs.patterns))


def _offer_facts(inputs: RuleInputs, sources: Sources, rules: Sequence[CompiledRule]) -> None:
    files = sources.files()
    datasets = _read_by(rules, FACT_DATASETS)
    owners = files.select([*_OWNER, "content_id"])
    if workers := sources.workers:
        inputs.offer(SCAN_FILES.name, frame_of(workers, files))
        inputs.offer(CONTENTS.name, sources.facts.frame(workers, CONTENTS.names()[1:]).select(*CONTENTS.names()))
        for dataset in datasets:
            inputs.offer(dataset.name, _unnested(sources.facts.of_files(owners, [dataset.name], workers), dataset))
        return
    inputs.offer_rows(SCAN_FILES.name, files)
    contents = sources.facts.rows({each for each in files["content_id"].to_pylist() if each}, CONTENTS.names()[1:])
    inputs.offer_rows(CONTENTS.name, contents.select(list(CONTENTS.names())))
    rows = sources.facts.of_files(owners, [dataset.name for dataset in datasets], None)
    _offer_lists(inputs, rows, datasets)


def _offer_documents(inputs: RuleInputs, sources: Sources, rules: Sequence[CompiledRule]) -> None:
    documents, owners = sources.documents, sources.scope.rebuilt
    for view in unmade(rules):  # what is made from documents has no rows where there are none
        inputs.offer_rows(view.name, view.table([]))
    if documents is None:
        return
    datasets = _read_by(rules, DOCUMENT_DATASETS)
    if workers := sources.workers:
        inputs.offer(SCIP_DOCUMENTS.name, documents.frame(workers, SCIP_DOCUMENTS.names(), owners))
        for dataset in datasets:
            rows = documents.frame(workers, [*_OWNER, dataset.name], owners)
            inputs.offer(dataset.name, _unnested(rows, dataset))
        return
    here = documents.read(DOCUMENTS.names(), owners)
    inputs.offer_rows(SCIP_DOCUMENTS.name, here.select(list(SCIP_DOCUMENTS.names())))
    _offer_lists(inputs, here, datasets)


def _offer_lists(inputs: RuleInputs, rows: pa.Table, datasets: Sequence[Dataset]) -> None:
    """Let rules read datasets that are list columns of `rows`."""

    def offer(dataset: Dataset) -> None:
        inputs.offer_rows(dataset.name, rows.select([*_OWNER, dataset.name]), lambda frame: _unnested(frame, dataset))

    with ThreadPoolExecutor(OFFERED_AT_ONCE) as pool:
        list(pool.map(offer, datasets))


def _unnested(rows: DataFrame, dataset: Dataset) -> DataFrame:
    """One row per owner and element of the list that `dataset` is stored as."""
    elements = rows.select(*_OWNER, F.explode(dataset.name).alias("element"))
    return elements.select(*_OWNER, *(f"element.{name}" for name in dataset.names()))


def _read_by(rules: Sequence[CompiledRule], datasets: Sequence[Dataset]) -> list[Dataset]:
    read = {name for rule in rules for name in rule.inputs}
    return [dataset for dataset in datasets if dataset.name in read]
