"""The answering stage: the questions of the snapshot's files go to Spark, each task answers those of some files.

A worker reads what the files hold from the pinned facts, once, and keeps it for its later tasks: an answer depends on
the whole repository, and what it depends on is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS
from codeanatomy.engine.frames import frame_of
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.pipeline.datasets import read_documents_of, read_facts
from codeanatomy.pipeline.facts import KnownFacts, of_files
from codeanatomy.resolve import CONTENT_COLUMNS, Asked, ContentNames, Index, Resolver, answer_files
from codeanatomy.rules.evaluator import spark_schema
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow

FILES_PER_TASK = 300
"""Enough that reading the index is worth it, few enough that no core waits long for the last task."""

_DEFINED = ["file_id", "scip_symbol_information"]
_MODULES = ["file_id", "path", "content_id", "module_fqn", "is_init", "is_stub"]


def answer_here(
    index: Index, files: pa.Table, facts: KnownFacts, symbol_asks: Mapping[str, Any], asked: Asked
) -> pa.Table:
    """The answers to questions of a few files; `symbol_asks` are those of their semantic documents, by file id."""
    files = _those(files, asked)
    contents = facts.rows({each for each in files["content_id"].to_pylist() if each}, ["asks"])
    asks = of_files(files, contents)
    symbols = [symbol_asks.get(file_id) for file_id in asks["file_id"].to_pylist()]
    asks = asks.append_column("symbol_asks", pa.array(symbols, DOCUMENTS.column("symbol_asks").type))
    resolver = Resolver(index)
    answers = [answer_files(resolver, batch, asked) for batch in asks.combine_chunks().to_batches()]
    return pa.Table.from_batches(answers, ANSWERS.schema())


def answer_questions(
    spark: SparkSession,
    state: State,
    files: pa.Table,
    facts_version: int,
    documents_version: int | None,
    asked: Asked | None = None,
) -> DataFrame:
    """The answers to every question of `files`, which are those of the snapshot, or to those that are `asked`."""
    answering = _Answering(state, facts_version, documents_version, files.select(_MODULES), asked)
    if asked is not None:
        files = _those(files, asked)
    tasks = -(-files.num_rows // FILES_PER_TASK) or 1
    owners = F.broadcast(frame_of(spark, files.select(["content_id", "file_id", "path"])))
    asks = read_facts(spark, state, facts_version, "content_id", "asks").join(owners, "content_id")
    if documents_version is None:
        asks = asks.withColumn("symbol_asks", F.lit(None).cast(spark_schema(DOCUMENTS)["symbol_asks"].dataType))
    else:
        symbols = read_documents_of(spark, state, documents_version, "file_id", "symbol_asks")
        asks = asks.join(symbols, "file_id", "left")
    placed = asks.repartitionByRange(tasks, "path").select("file_id", "asks", "symbol_asks")
    return placed.mapInArrow(answering, spark_schema(ANSWERS))


def _those(files: pa.Table, asked: Asked) -> pa.Table:
    return files.filter(pc.is_in(files["file_id"], pa.array(sorted(asked), pa.string())))


@dataclass(frozen=True)
class _Answering:
    """What one task does; pickled to the workers."""

    state: State
    facts_version: int
    documents_version: int | None
    files: pa.Table
    asked: Asked | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer the questions of the files of each batch."""
        resolver = Resolver(self._index())
        for batch in batches:
            yield answer_files(resolver, batch, self.asked)

    def _index(self) -> Index:
        key = (self.state.location.uri, self.facts_version, self.documents_version)
        for kept_key, kept_files, index in _kept:
            if kept_key == key and kept_files.equals(self.files):
                return index
        contents = pc.unique(self.files["content_id"].drop_null())
        of_these = pc.field("content_id").isin(contents) & (pc.field("extractor") == EXTRACTOR_VERSION)
        facts = read_arrow(self.state, FACTS, self.facts_version, CONTENT_COLUMNS, only=of_these)
        index = Index(self.files, ContentNames(facts), self._defined_symbols())
        _kept[:] = [(key, self.files, index)]
        return index

    def _defined_symbols(self) -> pa.Table | None:
        if self.documents_version is None:
            return None
        return read_arrow(self.state, DOCUMENTS, self.documents_version, _DEFINED)


_kept: list[tuple[tuple[str, int, int | None], pa.Table, Index]] = []
"""The index of this process's last task."""
