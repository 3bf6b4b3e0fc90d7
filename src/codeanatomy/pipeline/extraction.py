"""The extraction stage: contents that have no facts yet are shipped to Spark, parsed there, and appended to `facts`.

The bytes that were hashed are the bytes that are parsed: the driver reads each file once more, checks its hash, and
sends the bytes along. Workers therefore need no access to the repository, and a file that changes meanwhile is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from codeanatomy.catalogue.columns import table_of
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.engine.frames import frame_of
from codeanatomy.engine.progress import stage_progress
from codeanatomy.extract import EXTRACTOR_VERSION, extract_batch
from codeanatomy.pipeline.inputs import BuildInputs, TreeChangedError
from codeanatomy.pipeline.progress import Listener, RunningStage
from codeanatomy.repo.scan import read_contents
from codeanatomy.repo.snapshot import ScannedFile
from codeanatomy.store.state import State
from codeanatomy.store.tables import TablePin, append_rows, pin_latest, read_arrow

WAVE_BYTES = 128 << 20
"""Source bytes the driver holds at a time."""

TASK_BYTES = 2 << 20
"""Source bytes per task, and so per file of facts: few files to open again, yet no core waits long for the last one."""

IDENTITY = ("content_id", "extractor")
"""What names a row of facts: all else follows from it."""

_SOURCES = pa.schema([pa.field("content_id", pa.string()), pa.field("source", pa.binary())])


def extract_new_contents(
    spark: SparkSession,
    state: State,
    inputs: BuildInputs,
    known: TablePin | None,
    listener: Listener,
    stage: RunningStage,
) -> TablePin:
    """Append the facts of every content that has none yet; the version of `facts` that has them all.

    Facts are read at their latest version, not at the last build's: what a run that died has extracted is sound.
    """
    pin = pin_latest(state, FACTS, known=known, identity=IDENTITY)
    present = _contents_with_facts(state, pin) if pin else set()
    missing = [file for file in inputs.snapshot.files if file.content_id and file.content_id not in present]
    total = len({file.content_id for file in missing})
    done = 0
    for wave in _source_waves(inputs.root, missing):
        tasks = min(wave.num_rows, -(-wave.nbytes // TASK_BYTES))
        report = partial(_report, listener, done, wave.num_rows, total)
        with stage_progress(spark, tasks, report):
            contents = frame_of(spark, wave).repartitionByRange(tasks, "content_id")
            pin = append_rows(contents, FACTS, state, base=pin, identity=IDENTITY, make=_extract).pin
        done += wave.num_rows
    stage.rows = done
    if pin is None:  # a repository without a single readable file still has its tables
        nothing = frame_of(spark, table_of(_SOURCES, []))
        pin = append_rows(nothing, FACTS, state, base=None, identity=IDENTITY, make=_extract).pin
    return pin


def extract_here(root: Path, files: Sequence[ScannedFile]) -> pa.Table:
    """The facts of a few files' contents; they are not stored."""
    batches = [batch for wave in _source_waves(root, files) for batch in _extract(wave.to_batches())]
    return pa.Table.from_batches(batches, FACTS.schema())


def _contents_with_facts(state: State, pin: TablePin) -> set[str]:
    rows = read_arrow(state, FACTS, pin.version, ["content_id"], only=pc.field("extractor") == EXTRACTOR_VERSION)
    return set(rows["content_id"].to_pylist())


def _source_waves(root: Path, files: Sequence[ScannedFile]) -> Iterator[pa.Table]:
    """The bytes of each distinct content, in tables of bounded size."""
    wave: list[tuple[str, bytes]] = []
    held = 0
    for file, source in read_contents(root, files):
        if source is None or file.content_id is None:
            raise TreeChangedError(file.path)
        wave.append((file.content_id, source))
        held += len(source)
        if held >= WAVE_BYTES:
            yield table_of(_SOURCES, wave)
            wave, held = [], 0
    if wave:
        yield table_of(_SOURCES, wave)


def _extract(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield extract_batch(batch.column("content_id").to_pylist(), batch.column("source").to_pylist())


def _report(listener: Listener, before: int, wave: int, total: int, share: float) -> None:
    listener.advance(before + round(wave * share), total, "files")
