"""Answers of a query in the forms scripts want: CSV on a stream, an Arrow file. Batch by batch, never all at once."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from codeanatomy.errors import InputError


def print_csv(answer: pa.RecordBatchReader, stream: TextIO) -> None:
    """Write a header and one line per row."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(answer.schema.names)
    for batch in answer:
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def write_arrow(answer: pa.RecordBatchReader, path: str) -> int:
    """Write an Arrow IPC file; the number of rows in it."""
    rows = 0
    try:
        with Path(path).open("wb") as sink, pa.ipc.new_file(sink, answer.schema) as writer:
            for batch in answer:
                writer.write_batch(batch)
                rows += batch.num_rows
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return rows
