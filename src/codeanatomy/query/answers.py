"""Answers of a query in the forms scripts want: rows, CSV on a stream, an Arrow file. Never all at once."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from codeanatomy.errors import InputError

ROWS_AT_ONCE = 5_000
"""Rows that are in memory at the same time while an answer is printed."""


class Lines(Protocol):
    """Something that lines can be written to."""

    def write(self, line: str, /) -> object:
        """Write one."""


def rows_of(answer: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    """The rows of an answer, as they come."""
    for batch in answer:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def print_csv(answer: pa.RecordBatchReader, stream: Lines) -> None:
    """Write a header and one line per row."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(answer.schema.names)
    writer.writerows(rows_of(answer))


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
