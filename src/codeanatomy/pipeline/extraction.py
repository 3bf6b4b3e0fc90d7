"""The extraction stage: what is missing of the facts of the snapshot's contents is extracted and stored.

The bytes that were hashed are the bytes that are parsed: the driver reads each file once more, checks its hash, and
sends the bytes along. Workers therefore need no access to the repository, and a file that changes meanwhile is noticed.

The table has one row per content. A content without a row gets one, in all layers. Where a row lacks a layer, or has it
in another version, that layer alone is extracted: the rest of the row is kept, and the table is written again with the
rows of the snapshot. Nobody who reads facts has to ask for a version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from codeanatomy.catalogue.columns import table_of
from codeanatomy.catalogue.revisions import LAYER_VERSIONS
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.engine.rows import map_batches
from codeanatomy.extract import renewed_facts, stale_layers
from codeanatomy.pipeline.context import Build, task_count
from codeanatomy.pipeline.facts import Facts, StoredRows
from codeanatomy.pipeline.inputs import TreeChangedError
from codeanatomy.pipeline.progress import Listener
from codeanatomy.repo.scan import read_contents
from codeanatomy.repo.snapshot import ScannedFile
from codeanatomy.store.datafiles import WorkerRows
from codeanatomy.store.tables import Emptied, append_rows, latest_version, pin_latest

WAVE_BYTES = 128 << 20
"""Source bytes the driver holds at a time."""

_SOURCES = pa.schema(
    [pa.field("content_id", pa.string()), pa.field("source", pa.binary()), pa.field("stored_in", pa.string())]
)


def extract(build: Build) -> Facts:
    """The facts of every content of the snapshot.

    Facts are read at their latest version, not at the last build's: what a run that died has extracted is sound.
    """
    state, layers = build.state, build.inputs.layers
    pin = pin_latest(state, FACTS, build.pin(FACTS.name))
    version = pin.version if pin else latest_version(state, FACTS.name)
    stored = StoredRows(state, version)
    contents = {file.content_id: file for file in build.inputs.snapshot.files if file.content_id}
    if any(each in stored.identities and stale_layers(stored.identities[each], layers) for each in contents):
        pin = None
    base = pin or (None if version is None else Emptied(version))
    files = [file for each, file in contents.items() if pin is None or each not in stored.identities]
    extraction = _Extraction(layers, stored)
    spark = build.workers(sum(file.size for file in files))
    if spark is None:
        fresh = extraction.in_driver(build.inputs.root, files)
        if build.engine is not None:
            pin = append_rows(fresh, FACTS, state, base).pin
        return Facts(state, pin, fresh, fresh.num_rows)
    from codeanatomy.engine.frames import frame_of  # noqa: PLC0415
    from codeanatomy.engine.progress import stage_progress  # noqa: PLC0415

    done = 0
    for wave in extraction.waves(build.inputs.root, files):
        tasks = min(wave.num_rows, task_count(wave.nbytes))
        report = partial(_report, build.clock.listener, done, wave.num_rows, len(files))
        with stage_progress(spark, tasks, report):
            sources = frame_of(spark, wave).repartitionByRange(tasks, "content_id")
            pin = base = append_rows(WorkerRows(sources, extraction), FACTS, state, base).pin
        done += wave.num_rows
    return Facts(state, pin, extracted=done)


def extract_here(root: Path, files: Sequence[ScannedFile]) -> pa.Table:
    """The facts of the contents of some files; they are not stored."""
    return _Extraction(LAYER_VERSIONS, None).in_driver(root, files)


@dataclass(frozen=True)
class _Extraction:
    """Makes the facts of contents in some layers, with what is stored of them; can be pickled."""

    layers: Mapping[str, str]
    stored: StoredRows | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The facts of batches of sources."""
        for batch in batches:
            contents, sources = (batch.column(name).to_pylist() for name in ("content_id", "source"))
            files = set(batch.column("stored_in").drop_null().to_pylist())
            rows = self.stored.read(files, contents) if self.stored and files else None
            yield from renewed_facts(dict(zip(contents, sources, strict=True)), rows, self.layers)

    def in_driver(self, root: Path, files: Sequence[ScannedFile]) -> pa.Table:
        """The facts of the contents of some files."""
        waves = (map_batches(wave, self, FACTS) for wave in self.waves(root, files))
        return pa.concat_tables([FACTS.schema().empty_table(), *waves])

    def waves(self, root: Path, files: Sequence[ScannedFile]) -> Iterator[pa.Table]:
        """The bytes of each distinct content, in tables of bounded size."""
        wave: list[tuple[str, bytes, str | None]] = []
        held = 0
        for file, source in read_contents(root, files):
            if source is None or file.content_id is None:
                raise TreeChangedError(file.path)
            wave.append((file.content_id, source, self._stored_in(file.content_id)))
            held += len(source)
            if held >= WAVE_BYTES:
                yield table_of(_SOURCES, wave)
                wave, held = [], 0
        if wave:
            yield table_of(_SOURCES, wave)

    def _stored_in(self, content_id: str) -> str | None:
        """The data file that has layers of a content that can be kept."""
        row = self.stored.identities.get(content_id) if self.stored else None
        return row["__filename"] if row and stale_layers(row, self.layers) != self.layers.keys() else None


def _report(listener: Listener, before: int, wave: int, total: int, share: float) -> None:
    listener.advance(before + round(wave * share), total, "files")
