"""Data files written where rows are made: in a Python process, as Arrow, without a detour through the JVM.

Runs inside a worker of Spark's, or here. A file gets a name nobody else uses, so that what a failed or repeated task
leaves behind is never taken for data: only the names a finished job reports are committed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.store.checksums import seal
from codeanatomy.store.digests import NO_ROWS, SetDigest, digest_of_names

Make = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]
"""What turns the batches of a task into rows of a table."""


@dataclass(frozen=True)
class PartWriter:
    """Makes rows and writes them as one file per task into `folder` below `uri`; yields what the file is.

    That is its name, its size, its rows, and the digest of the columns `identity`, which name all that is in a row.
    """

    make: Make
    uri: str
    folder: str
    options: Mapping[str, str]
    schema: pa.Schema
    identity: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do one task's work."""
        rows = (batch for batch in self.make(batches) if batch.num_rows)
        first = next(iter(rows), None)
        if first is None:
            return
        name = f"part-{secrets.token_hex(16)}.zstd.parquet"
        storage = pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))
        digest = NO_ROWS
        with (
            storage.open_output_stream(f"{self.folder}/{name}") as sink,
            pq.ParquetWriter(sink, self.schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for batch in (first, *rows):
                writer.write_batch(batch)
                digest += identity_digest(batch, self.identity)
            writer.close()
            size = sink.tell()
        if "://" not in self.uri:
            name = seal(Path(self.uri, self.folder, name)).name
        yield pa.record_batch({"file": [name], "size": [size], "rows": [digest.rows], "digest": [digest.hash]})


def identity_digest(rows: pa.RecordBatch | pa.Table, identity: tuple[str, ...]) -> SetDigest:
    """The digest of rows of which the columns `identity` name all that is in them."""
    if not identity:
        return SetDigest(rows.num_rows, NO_ROWS.hash)
    columns = [rows.column(name).to_pylist() for name in identity]
    return digest_of_names("\0".join(names) for names in zip(*columns, strict=True))
