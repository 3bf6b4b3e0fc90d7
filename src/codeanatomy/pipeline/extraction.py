"""The extraction stage: contents that have no facts yet are parsed, and their facts appended to the table.

The bytes that were hashed are the bytes that are parsed: the driver reads each file once more, checks its hash, and
sends the bytes along. Workers therefore need no access to the repository, and a file that changes meanwhile is noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from codeanatomy.catalogue.columns import table_of
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.engine.rows import map_batches
from codeanatomy.extract import extract_batch
from codeanatomy.pipeline.context import Build, task_count
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.inputs import TreeChangedError
from codeanatomy.pipeline.progress import Listener
from codeanatomy.repo.scan import read_contents
from codeanatomy.repo.snapshot import ScannedFile
from codeanatomy.store.datafiles import WorkerRows
from codeanatomy.store.tables import append_rows, pin_latest

WAVE_BYTES = 128 << 20
"""Source bytes the driver holds at a time."""

_SOURCES = pa.schema([pa.field("content_id", pa.string()), pa.field("source", pa.binary())])


def extract(build: Build) -> Facts:
    """The facts of every content of the snapshot.

    Facts are read at their latest version, not at the last build's: what a run that died has extracted is sound.
    """
    state = build.state
    pin = pin_latest(state, FACTS, build.pin(FACTS.name))
    known = Facts(state, pin)
    missing = {
        file.content_id: file
        for file in build.inputs.snapshot.files
        if file.content_id and file.content_id not in known
    }
    files = list(missing.values())
    spark = build.workers(sum(file.size for file in files))
    if spark is None:
        fresh = extract_here(build.inputs.root, files)
        if build.engine is not None:
            pin = append_rows(fresh, FACTS, state, pin).pin
        return Facts(state, pin, fresh, fresh.num_rows)
    from codeanatomy.engine.frames import frame_of  # noqa: PLC0415
    from codeanatomy.engine.progress import stage_progress  # noqa: PLC0415

    done = 0
    for wave in _source_waves(build.inputs.root, files):
        tasks = min(wave.num_rows, task_count(wave.nbytes))
        report = partial(_report, build.clock.listener, done, wave.num_rows, len(files))
        with stage_progress(spark, tasks, report):
            contents = frame_of(spark, wave).repartitionByRange(tasks, "content_id")
            pin = append_rows(WorkerRows(contents, _extract), FACTS, state, pin).pin
        done += wave.num_rows
    return Facts(state, pin, extracted=done)


def extract_here(root: Path, files: Sequence[ScannedFile]) -> pa.Table:
    """The facts of the contents of some files; they are not stored."""
    waves = (map_batches(wave, _extract, FACTS) for wave in _source_waves(root, files))
    return pa.concat_tables([FACTS.schema().empty_table(), *waves])


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
