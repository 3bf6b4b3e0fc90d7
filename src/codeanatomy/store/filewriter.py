"""Write data files from Python with Arrow, in a Spark worker or in the driver: the rows do not pass through the JVM.

Every file gets a unique name, and only names that a finished job reports are committed. So files of failed or repeated
tasks are never taken for data.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.engine.rows import BatchFunction
from codeanatomy.store.checksums import add_checksum
from codeanatomy.store.digests import NO_ROWS, SetDigest, digest_of_names


@dataclass(frozen=True)
class FileWriter:
    """Makes the rows of a task and writes them to one file in `folder` below `uri`.

    Yields the name, size and row count of the file, and the digest of the columns `identity`, which determine a row.
    """

    make: BatchFunction
    uri: str
    folder: str
    options: Mapping[str, str]
    schema: pa.Schema
    identity: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one task."""
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
            name = add_checksum(Path(self.uri, self.folder, name)).name
        yield pa.record_batch({"file": [name], "size": [size], "rows": [digest.rows], "digest": [digest.hash]})


def identity_digest(rows: pa.RecordBatch | pa.Table, identity: tuple[str, ...]) -> SetDigest:
    """The digest of rows that the columns `identity` determine."""
    if not identity:
        return SetDigest(rows.num_rows, NO_ROWS.hash)
    columns = [rows.column(name).to_pylist() for name in identity]
    return digest_of_names("\0".join(names) for names in zip(*columns, strict=True))
