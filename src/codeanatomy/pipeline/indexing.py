"""The indexing stage: an indexer runs beside the engine's start and the extraction; Spark then reads what it reports.

One shard's report at a time is kept. It is read where Spark's workers run, so they must see the folder it is in: the
one asked for, else one in memory if the engine is on this machine and there is room, else the state's own.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.engine.directories import scratch_directory
from codeanatomy.engine.rows import as_frame, computed, map_batches
from codeanatomy.index.documents import SITE_FIELDS, DocumentRow, about_other_packages, as_batch
from codeanatomy.index.provider import Failed, IndexTask, Provider, Reader, Shard, Split
from codeanatomy.index.pyrefly import SHARD_BYTES
from codeanatomy.index.warm import WarmPyrefly
from codeanatomy.pipeline.context import Build, task_count
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.inputs import BuildInputs, TreeChangedError
from codeanatomy.pipeline.journal import FallbackKind
from codeanatomy.repo.files import file_table
from codeanatomy.repo.snapshot import Stamp
from codeanatomy.store.paths import SCRATCH

if TYPE_CHECKING:
    from codeanatomy.engine.rows import Rows

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made there is private
_ROOM = 16 * SHARD_BYTES


class Indexing:
    """An indexer at work. Its results come one by one; the first is being made while this object is new."""

    def __init__(self, provider: Provider, inputs: BuildInputs, task: IndexTask) -> None:
        self.provider = provider
        self.failed: list[Failed] = []
        self.splits: list[Split] = []
        self.seconds = 0.0
        self._inputs = inputs
        self._cancelled = task.cancelled
        self._results = provider.run(task)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="indexing")
        self._next = self._pool.submit(self._advance)

    def _advance(self) -> Shard | Failed | Split | None:
        began = time.monotonic()
        result = next(self._results, None)
        self.seconds += time.monotonic() - began
        return result

    def shards(self) -> Iterator[Shard]:
        """Each finished shard; its report is gone when the next one is asked for, the last one's with the indexing."""
        while (result := self._next.result()) is not None:
            if isinstance(result, Failed):
                self.failed.append(result)
            elif isinstance(result, Split):
                self.splits.append(result)
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
def indexing(
    inputs: BuildInputs, asked: Collection[str] | None = None, warm: WarmPyrefly | None = None
) -> Iterator[Indexing]:
    """Start the indexer of `inputs`, about all files or those that are asked about; `warm` is asked first."""
    if inputs.provider is None:
        raise AssertionError("a build without an index starts no indexer")
    files = [file for file in inputs.snapshot.files if file.content_id]
    modules = [file.module for file in inputs.files.values()]
    kept = warm if inputs.settings.is_local else None  # workers elsewhere would not see its reports
    with _scratch(inputs) as scratch:
        task = IndexTask(inputs.root, files, modules, scratch, Event(), asked, kept)
        started = Indexing(inputs.provider, inputs, task)
        try:
            yield started
        finally:
            started.stop()


@contextmanager
def warm_index() -> Iterator[WarmPyrefly]:
    """An indexer that stays, for builds of one repository in this process; started by the first that has use for it."""
    with scratch_directory(_IN_MEMORY if _has_room(_IN_MEMORY) else None) as scratch:
        warm = WarmPyrefly(scratch.path / "warm")
        try:
            yield warm
        finally:
            warm.close()


@contextmanager
def _scratch(inputs: BuildInputs) -> Iterator[Path]:
    """A folder for the mirror and the reports; what a run that died left in its place is removed.

    A report is thousands of small files, mostly the indexer's own stubs: a file system in memory takes them far faster.
    """
    in_memory = inputs.settings.is_local and _has_room(_IN_MEMORY)
    if inputs.location.is_local and not (inputs.scratch or in_memory):
        place = _emptied(inputs.location.local_path / SCRATCH)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
    else:
        with scratch_directory(inputs.scratch or (_IN_MEMORY if in_memory else None)) as scratch:
            yield scratch.path


def _has_room(place: Path) -> bool:
    try:
        return os.access(place, os.W_OK) and shutil.disk_usage(place).free >= _ROOM
    except OSError:
        return False


def _emptied(place: Path) -> Path:
    """A new folder at `place`, ours alone."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700, parents=True)
    return place


def read_documents(build: Build, facts: Facts, started: Indexing, source_bytes: float) -> Rows:
    """The documents of all shards, and a row for each file that has none."""
    files = file_table(build.inputs.files.values())
    spark = build.workers(source_bytes)
    found: list[Rows] = []
    for shard in started.shards():
        rows = facts.of_files(_files_of(shard, files), ["line_starts", *SITE_COLUMNS], spark)
        documents = map_batches(_spread(rows, source_bytes), _Reading(shard.reader()), DOCUMENTS)
        found.append(documents if shard.is_last else computed(documents))  # its report goes
    for split in started.splits:
        build.journal.note(FallbackKind.SPLIT_SHARD, f"{split.files} files are indexed in halves: {split.detail}")
    found.append(pa.Table.from_batches([_others(files, started)]))
    if spark is None:
        return pa.concat_tables(found)
    return reduce(lambda one, other: one.unionByName(other), (as_frame(spark, each) for each in found))


SITE_COLUMNS = tuple(f"{dataset}.{field}" for dataset, fields in SITE_FIELDS.items() for field in fields)


@dataclass(frozen=True)
class _Reading:
    """Reads the documents of decoded files; pickled to the workers."""

    read: Reader

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The documents of a batch of files."""
        yield from self.read(batch.filter(pc.is_valid(batch["line_starts"])) for batch in batches)


def _spread(rows: Rows, source_bytes: float) -> Rows:
    """Rows that workers read, in as many tasks as suit so much source; enough that each file is read with others."""
    return rows if isinstance(rows, pa.Table) else rows.repartition(task_count(source_bytes), "path")


def _files_of(shard: Shard, files: pa.Table) -> pa.Table:
    """The files of a shard, with what its reader needs to know of each."""
    known = shard.rows()
    place_of = {path: place for place, path in enumerate(known["path"].to_pylist())}
    places = pa.array([place_of.get(path) for path in files["path"].to_pylist()], pa.int64())
    rows, known = files.filter(pc.is_valid(places)), known.take(places.drop_null())
    for name in known.column_names:
        if name != "path":
            rows = rows.append_column(name, known[name])
    return rows


def _others(files: pa.Table, started: Indexing) -> pa.RecordBatch:
    """Rows for files that have no document, and for what an index knows of other packages."""
    ids = dict(zip(files["path"].to_pylist(), files["file_id"].to_pylist(), strict=True))
    name = started.provider.name
    rows = [DocumentRow(ids[each.path], each.path, name, "failed", each.detail) for each in started.failed]
    if external := started.provider.external_symbols():
        rows.append(about_other_packages(external, name))
    return as_batch(rows)
