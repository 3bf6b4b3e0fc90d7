"""Write data files from Python with Arrow, in a Spark worker or in the driver: the rows do not pass through the JVM.

Every file gets a unique name, and only names that a finished job reports are committed. So files of failed or repeated
tasks are never taken for data.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs as pafs

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.rows import BatchFunction
from codeanatomy.store.checksums import add_checksum
from codeanatomy.store.determinism import in_order
from codeanatomy.store.digests import NO_ROWS, SetDigest, digest_of_names, digests_by, total
from codeanatomy.store.layout import BUCKET, OWNER


@dataclass(frozen=True)
class Folder:
    """A folder of data files below `uri`, with the options to reach it; can be pickled."""

    uri: str
    name: str
    options: Mapping[str, str]

    def write(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> tuple[str, int]:
        """Write a file; returns its name and size."""
        name = f"part-{secrets.token_hex(16)}.zstd.parquet"
        storage = pafs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.options)))
        with (
            storage.open_output_stream(f"{self.name}/{name}") as sink,
            pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
            writer.close()
            size = sink.tell()
        if "://" not in self.uri:
            name = add_checksum(Path(self.uri, self.name, name)).name
        return name, size


@dataclass(frozen=True)
class FileWriter:
    """Makes the rows of a task and writes them to one file.

    Yields the name, size and row count of the file, and the digest of the columns `identity`, which determine a row.
    """

    make: BatchFunction
    folder: Folder
    schema: pa.Schema
    identity: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one task."""
        rows = (batch for batch in self.make(batches) if batch.num_rows)
        first = next(iter(rows), None)
        if first is None:
            return
        digests = []

        def digested() -> Iterator[pa.RecordBatch]:
            for batch in (first, *rows):
                digests.append(identity_digest(batch, self.identity))
                yield batch

        name, size = self.folder.write(digested(), self.schema)
        digest = total(digests)
        yield pa.record_batch({"file": [name], "size": [size], "rows": [digest.rows], "digest": [digest.hash]})


@dataclass(frozen=True)
class BucketWriter:
    """Sorts and writes the rows of a task, which come bucket by bucket with their hashes, to one file for each bucket.

    Yields the name of the file and the digest of its rows for each owner. A bucket with null in a required column has
    no file.
    """

    folder: Folder
    dataset: Dataset
    order: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one task."""
        for bucket, slices in groupby(_slices(batches), itemgetter(0)):
            yield self._written(bucket, pa.Table.from_batches([rows for _, rows in slices]))

    def _written(self, bucket: int | None, found: pa.Table) -> pa.RecordBatch:
        rows = found.select(list(self.dataset.names()))
        if any(column.required and rows[column.name].null_count for column in self.dataset.columns):
            return pa.RecordBatch.from_pylist([{"bucket": bucket}], BUCKET_REPORT)
        folder = replace(self.folder, name=f"{self.folder.name}/{BUCKET}={bucket}")
        stored = in_order(rows.cast(self.dataset.schema()), self.order).combine_chunks()
        name, size = folder.write(stored.to_batches(), self.dataset.schema())
        of_file = {"bucket": bucket, "file": name, "size": size}
        owners = digests_by(found, OWNER).items()
        parts = [of_file | {"owner": owner, "rows": digest.rows, "digest": digest.hash} for owner, digest in owners]
        return pa.RecordBatch.from_pylist(parts, BUCKET_REPORT)


BUCKET_REPORT = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("file", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("owner", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("digest", pa.string()),
    ]
)
"""What a `BucketWriter` yields."""


def _slices(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """Each batch in parts of one bucket."""
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to load

    for batch in batches:
        buckets = pc.run_end_encode(batch.column(BUCKET))
        ends = buckets.run_ends.to_pylist()
        for bucket, (start, end) in zip(buckets.values.to_pylist(), pairwise([0, *ends]), strict=True):
            yield bucket, batch.slice(start, end - start)


def identity_digest(rows: pa.RecordBatch | pa.Table, identity: tuple[str, ...]) -> SetDigest:
    """The digest of rows that the columns `identity` determine."""
    if not identity:
        return SetDigest(rows.num_rows, NO_ROWS.hash)
    columns = [rows.column(name).to_pylist() for name in identity]
    return digest_of_names("\0".join(names) for names in zip(*columns, strict=True))
