"""The result of a query, in the forms that programs want: rows, a table, CSV, an Arrow file."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from codeanatomy.errors import InputError

ROWS_PER_BATCH = 5_000
"""Rows that are in memory at the same time while a result is printed."""


class LineStream(Protocol):
    """Something that lines can be written to."""

    def write(self, line: str, /) -> object:
        """Write one."""


@dataclass(frozen=True)
class QueryResult:
    """The rows of one SELECT. They are computed as they are read, and can be read once."""

    reader: pa.RecordBatchReader

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order; two may have the same name."""
        names: list[str] = self.reader.schema.names
        return names

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows, as they come."""
        for batch in self.reader:
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def table(self) -> pa.Table:
        """All rows as an Arrow table."""
        return self.reader.read_all()

    def as_json(self) -> dict[str, Any]:
        """The object that `sql --json` prints, with all rows."""
        return {"columns": self.columns, "rows": [list(row) for row in self.rows()]}

    def write_csv(self, stream: LineStream) -> None:
        """Write a header and one line per row."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows())

    def write_arrow(self, path: str) -> int:
        """Write an Arrow IPC file, whole or not at all unless it is a device or a pipe; the number of rows."""
        target = Path(path)
        if target.exists() and not target.is_file():
            return self._write_batches(target, path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            rows = self._write_batches(unfinished, path)
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        return rows

    def _write_batches(self, file: Path, path: str) -> int:
        rows = 0
        try:
            with file.open("wb") as sink, pa.ipc.new_file(sink, self.reader.schema) as writer:
                for batch in self.reader:
                    writer.write_batch(batch)
                    rows += batch.num_rows
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error
        return rows
