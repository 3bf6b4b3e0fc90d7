"""The answering stage: the questions of files are answered over the whole snapshot.

A worker reads what the files define from the stored facts, once, and keeps it for its later tasks: an answer depends on
the whole repository, and what it depends on is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS
from codeanatomy.engine.rows import map_batches
from codeanatomy.impact.affected import id_array
from codeanatomy.pipeline.context import Build, task_count
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.passed import PassedValues
from codeanatomy.repo.files import file_table
from codeanatomy.resolve import Asked, Index, Resolver, answer_files

if TYPE_CHECKING:
    from codeanatomy.engine.rows import Rows

QUESTION_BYTES = 100
"""About so much source has one question."""

_DEFINED = ("file_id", "scip_symbol_information")
_SYMBOL_ASKS = ("file_id", "symbol_asks")


@dataclass(frozen=True)
class Knowledge:
    """What answers are found in: files and facts, documents if there is an index, values if they are followed."""

    files: pa.Table
    facts: Facts
    documents: Documents | None
    passed: PassedValues | None = None

    @classmethod
    def of(
        cls, build: Build, facts: Facts, documents: Documents | None, passed: PassedValues | None = None
    ) -> Knowledge:
        """What the snapshot of a build holds."""
        return cls(file_table(build.inputs.files.values()), facts, documents, passed)

    @cached_property
    def index(self) -> Index:
        """The index that a resolver works with."""
        return Index(self.files, self.facts.names, self.documents.read(_DEFINED) if self.documents else None)

    @property
    def resolver(self) -> Resolver:
        """Answers questions over all this; it remembers what it found."""
        return Resolver(self.index, self.passed.flow if self.passed else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_worker, (self.files, self.facts, self.documents, self.passed)

    def equals(self, other: Knowledge) -> bool:
        """Whether both hold the same."""
        keys = (
            (each.facts.key, each.documents and each.documents.key, each.passed and each.passed.key)
            for each in (self, other)
        )
        return len(set(keys)) == 1 and self.files.equals(other.files)


def answer(build: Build, known: Knowledge, asked: Asked | None = None) -> Rows:
    """The answers to all questions of the snapshot, or to those that are `asked`."""
    size: float = build.inputs.source_bytes()
    files = known.files
    if asked is not None:
        size = build.inputs.source_bytes({each for each, numbers in asked.items() if numbers is None})
        size += QUESTION_BYTES * sum(len(numbers) for numbers in asked.values() if numbers is not None)
        files = files.filter(pc.is_in(files["file_id"], id_array(asked)))
    is_stored = known.documents is None or not known.documents.replaced
    spark = build.workers(size) if is_stored else None
    asks = known.facts.of_files(files.select(["file_id", "path", "content_id"]), ["asks"], spark)
    asks = _with_symbol_asks(asks, known.documents)
    if not isinstance(asks, pa.Table):
        asks = asks.repartitionByRange(task_count(size), "path")
    return map_batches(asks, _Answering(known, asked), ANSWERS)


def _with_symbol_asks(asks: Rows, documents: Documents | None) -> Rows:
    """The questions of files, and those of their documents."""
    kind = DOCUMENTS.column("symbol_asks").type
    if isinstance(asks, pa.Table):
        file_ids = asks["file_id"].to_pylist()
        rows = documents.read(_SYMBOL_ASKS, file_ids).to_pylist() if documents else ()
        of_file = {row["file_id"]: row["symbol_asks"] for row in rows}
        return asks.append_column("symbol_asks", pa.array([of_file.get(each) for each in file_ids], kind))
    if documents is not None:
        return asks.join(documents.frame(asks.sparkSession, _SYMBOL_ASKS), "file_id", "left")
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415

    return asks.withColumn("symbol_asks", F.lit(None).cast(from_arrow_type(kind)))


@dataclass(frozen=True)
class _Answering:
    """What one task does; pickled to the workers."""

    known: Knowledge
    asked: Asked | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer the questions of the files of each batch."""
        resolver = self.known.resolver
        for batch in batches:
            yield answer_files(resolver, batch, self.asked)


def _in_worker(files: pa.Table, facts: Facts, documents: Documents | None, passed: PassedValues | None) -> Knowledge:
    """Knowledge as a task gets it: what this worker's last task read, if that is the same."""
    known = Knowledge(files, facts, documents, passed)
    if not _kept or not _kept[0].equals(known):
        _kept[:] = [known]
    return _kept[0]


_kept: list[Knowledge] = []
"""What this worker's last task read; empty in the driver."""
