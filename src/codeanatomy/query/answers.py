"""Answers of a query in the forms scripts want: rows, CSV on a stream, an Arrow file. Never all at once."""

from __future__ import annotations

import csv
import os
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
    """Write an Arrow IPC file, whole or not at all, unless it is a device or a pipe; the number of rows in it."""
    target = Path(path)
    if target.exists() and not target.is_file():
        return _write_batches(answer, target, path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        rows = _write_batches(answer, unfinished, path)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def _write_batches(answer: pa.RecordBatchReader, place: Path, path: str) -> int:
    rows = 0
    try:
        with place.open("wb") as sink, pa.ipc.new_file(sink, answer.schema) as writer:
            for batch in answer:
                writer.write_batch(batch)
                rows += batch.num_rows
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return rows
