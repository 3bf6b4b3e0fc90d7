"""The indexing stage: an indexer runs beside the engine's start and the extraction; Spark then reads what it reports.

One shard's report at a time is kept. It is read where Spark's workers run, so they must see the folder it is in: the
one asked for, else one in memory if the engine is on this machine and there is room, else the state's own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import reduce
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.index.documents import SITE_FIELDS, DocumentRow, about_other_packages, as_batch
from codeanatomy.index.provider import Failed, Provider, Shard
from codeanatomy.index.pyrefly import SHARD_BYTES
from codeanatomy.pipeline.facts import KnownFacts, of_files
from codeanatomy.pipeline.inputs import BuildInputs, TreeChangedError
from codeanatomy.repo.modules import module_names
from codeanatomy.repo.snapshot import Stamp
from codeanatomy.store.paths import SCRATCH
from codeanatomy.store.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_PER_TASK = 100
"""Enough that reading the definitions of what they mention is worth it."""

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private
_ROOM = 16 * SHARD_BYTES


class Indexing:
    """An indexer at work. Its results come one by one; the first is being made while this object is new."""

    def __init__(
        self, provider: Provider, inputs: BuildInputs, scratch: Path, asked: Collection[str] | None = None
    ) -> None:
        self.provider = provider
        self.failed: list[Failed] = []
        self.seconds = 0.0
        self._inputs = inputs
        self._cancelled = Event()
        files = [file for file in inputs.snapshot.files if file.content_id]
        modules = module_names([file.path for file in inputs.snapshot.files], inputs.roots)
        self._results = provider.run(inputs.root, files, modules, scratch, self._cancelled, asked)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="indexing")
        self._next = self._pool.submit(self._advance)

    def _advance(self) -> Shard | Failed | None:
        began = time.monotonic()
        result = next(self._results, None)
        self.seconds += time.monotonic() - began
        return result

    def shards(self) -> Iterator[Shard]:
        """Each finished shard; its report is gone when the next one is asked for, the last one's with the indexing."""
        while (result := self._next.result()) is not None:
            if isinstance(result, Failed):
                self.failed.append(result)
            else:
                self._refuse_changes()
                yield result
                if result.is_last:
                    return
            self._next = self._pool.submit(self._advance)

    def _refuse_changes(self) -> None:
        """The indexer read the files themselves, and what they import: they must still be those of the snapshot."""
        known = self._inputs.snapshot.stat_cache.entries
        for path in (file.path for file in self._inputs.snapshot.files if file.content_id):
            try:
                stamp = Stamp.of((self._inputs.root / path).stat())
            except OSError as error:
                raise TreeChangedError(path) from error
            if path not in known or known[path][0] != stamp:
                raise TreeChangedError(path)

    def stop(self) -> None:
        """End the indexer, finished or not."""
        self._cancelled.set()
        self._pool.shutdown(cancel_futures=True)
        self._results.close()


@contextmanager
def indexing(inputs: BuildInputs, asked: Collection[str] | None = None) -> Iterator[Indexing | None]:
    """Start the indexer of `inputs`, if there is one, about all files or those that are asked about."""
    if inputs.provider is None:
        yield None
        return
    scratch = _scratch(inputs)
    try:
        started = Indexing(inputs.provider, inputs, scratch, asked)
        try:
            yield started
        finally:
            started.stop()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _scratch(inputs: BuildInputs) -> Path:
    """A folder for the mirror and the reports; what a run that died left in it is removed.

    A report is thousands of small files, mostly the indexer's own stubs: a file system in memory takes them far faster.
    """
    location = inputs.location
    if inputs.scratch:
        return Path(tempfile.mkdtemp(prefix="codeanatomy-index-", dir=inputs.scratch))
    if inputs.settings.is_local and _has_room(_IN_MEMORY):
        name = hashlib.sha256(location.uri.encode()).hexdigest()[:16]
        with suppress(OSError):
            return _emptied(_IN_MEMORY / f"codeanatomy-{os.getuid()}-{name}")
    if location.is_local:
        return _emptied(location.local_path / SCRATCH)
    return Path(tempfile.mkdtemp(prefix="codeanatomy-index-"))


def _has_room(place: Path) -> bool:
    try:
        return shutil.disk_usage(place).free >= _ROOM
    except OSError:
        return False


def _emptied(place: Path) -> Path:
    """A new folder at `place`, ours alone."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700, parents=True)
    return place


def read_documents(
    spark: SparkSession, state: State, files: pa.Table, facts_version: int, started: Indexing
) -> DataFrame:
    """The documents of all shards, and a row for each file that has none. What is in a report that goes is kept."""
    from pyspark import StorageLevel  # noqa: PLC0415

    from codeanatomy.rules.evaluator import spark_schema  # noqa: PLC0415

    frames = []
    for shard in started.shards():
        rows = _with_sites(spark, state, files, facts_version, shard)
        read = rows.mapInArrow(shard.reader(), spark_schema(DOCUMENTS))
        frames.append(read if shard.is_last else read.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY))
    others = pa.Table.from_batches([_others(files, started)])
    frames.append(spark.createDataFrame(others, spark_schema(DOCUMENTS)))
    return reduce(lambda one, other: one.unionByName(other), frames)


def read_documents_here(files: pa.Table, facts: KnownFacts, started: Indexing) -> pa.Table:
    """The same for few files, read in this process."""
    batches: list[pa.RecordBatch] = []
    for shard in started.shards():
        said = shard.rows()
        asked = files.filter(pc.is_in(files["path"], said["path"].combine_chunks()))
        contents = {each for each in asked["content_id"].to_pylist() if each}
        sites = _sites(facts.rows(contents, ["line_starts", *SITE_FIELDS]))
        rows = of_files(asked, sites, "size")
        place_of = {path: place for place, path in enumerate(said["path"].to_pylist())}
        of_row = said.take(pa.array([place_of[path] for path in rows["path"].to_pylist()], pa.int64()))
        for name in said.column_names[1:]:
            rows = rows.append_column(name, of_row[name])
        batches += shard.reader()(rows.combine_chunks().to_batches())
    return pa.Table.from_batches([*batches, _others(files, started)], DOCUMENTS.schema())


def _sites(contents: pa.Table) -> pa.Table:
    """The sites of decoded contents, each field as a list of its own."""
    decoded = contents.filter(pc.is_valid(contents["line_starts"])).combine_chunks()
    columns = {name: decoded[name] for name in ("content_id", "line_starts")}
    for dataset, names in SITE_FIELDS.items():
        lists = decoded[dataset].combine_chunks()
        for name in names:
            columns[f"{dataset}_{name}"] = pa.ListArray.from_arrays(lists.offsets, lists.values.field(name))
    return pa.table(columns)


def _others(files: pa.Table, started: Indexing) -> pa.RecordBatch:
    """Rows for files that have no document, and for what an index knows of other packages."""
    ids = dict(zip(files["path"].to_pylist(), files["file_id"].to_pylist(), strict=True))
    name = started.provider.name
    rows = [DocumentRow(ids[each.path], each.path, name, "failed", each.detail) for each in started.failed]
    if external := started.provider.external_symbols():
        rows.append(about_other_packages(external, name))
    return as_batch(rows)


def _with_sites(spark: SparkSession, state: State, files: pa.Table, facts_version: int, shard: Shard) -> DataFrame:
    """The files of a shard with what the reader needs: what the shard says of each, and their sites."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from codeanatomy.pipeline.datasets import read_facts  # noqa: PLC0415

    asked = shard.rows()
    known = files.select(["file_id", "path", "content_id", "size"]).join(asked, "path", join_type="inner")
    facts = read_facts(spark, state, facts_version, "content_id", "line_starts", *SITE_FIELDS)
    fields = [
        F.col(f"{dataset}.{field}").alias(f"{dataset}_{field}")
        for dataset, names in SITE_FIELDS.items()
        for field in names
    ]
    decoded = facts.where(F.col("line_starts").isNotNull())
    sites = decoded.select("content_id", "line_starts", *fields)
    tasks = -(-known.num_rows // FILES_PER_TASK) or 1
    return spark.createDataFrame(known).join(sites, "content_id").repartition(tasks, "path")
