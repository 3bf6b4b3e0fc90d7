"""Data files written where rows are made: by Spark's Python workers, as Arrow, without a detour through the JVM.

Runs inside a worker. A file gets a name nobody else uses, so that what a failed or repeated task leaves behind is never
taken for data: only the names a finished job reports are committed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

Make = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
"""What turns the batches of a task into rows of a table."""


@dataclass(frozen=True)
class PartWriter:
    """Makes rows and writes them as one file per task into `folder` below `uri`; yields the file's name."""

    make: Make
    uri: str
    folder: str
    options: Mapping[str, str]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do one task's work."""
        rows = (batch for batch in self.make(batches) if batch.num_rows)
        first = next(iter(rows), None)
        if first is None:
            return
        name = f"part-{secrets.token_hex(16)}.zstd.parquet"
        storage = pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))
        with (
            storage.open_output_stream(f"{self.folder}/{name}") as sink,
            pq.ParquetWriter(sink, self.schema, compression="zstd") as writer,
        ):
            writer.write_batch(first)
            for batch in rows:
                writer.write_batch(batch)
        yield pa.record_batch({"file": [name]})
