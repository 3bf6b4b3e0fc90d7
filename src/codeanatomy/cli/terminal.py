"""What people see: progress while a build runs, tables, one-line summaries. Data goes to stdout, the rest to stderr."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import TextIO

_CLEAR_LINE = "\r\033[K"


class ProgressLine:
    """One line on a terminal that says which stage runs, how far it is and how fast; gone when the work is done."""

    def __init__(self, stream: TextIO = sys.stderr, refresh: float = 0.2) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._name, self._detail, self._began = "", "", time.monotonic()
        self._painter = threading.Thread(target=self._paint_often, args=(refresh,), daemon=True)

    def __enter__(self) -> ProgressLine:
        self._painter.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._painter.join()
        self._stream.write(_CLEAR_LINE)
        self._stream.flush()

    def stage(self, name: str) -> None:
        """A stage begins."""
        with self._lock:
            self._name, self._detail, self._began = name, "", time.monotonic()

    def advance(self, done: int, total: int, unit: str) -> None:
        """The current stage has done `done` of `total`."""
        with self._lock:
            elapsed = max(time.monotonic() - self._began, 0.001)
            self._detail = f"{done:,} of {total:,} {unit}, {done / elapsed:,.0f}/s"

    def _paint_often(self, refresh: float) -> None:
        while not self._done.wait(refresh):
            with self._lock:
                if not self._name:
                    continue
                parts = [self._name, self._detail, f"{time.monotonic() - self._began:.0f} s"]
            line = " · ".join(part for part in parts if part)
            self._stream.write(_CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under their column names, numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        all(isinstance(row[i], int | float | Decimal) or row[i] is None for row in rows) for i in range(len(columns))
    ]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]

    def line(values: Sequence[str]) -> str:
        padded = (v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(columns), line(["─" * width for width in widths]), *(line(row) for row in cells)])


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(str(value).splitlines())
