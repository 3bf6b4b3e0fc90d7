"""What people see: progress while a build runs, tables, one-line summaries. Data goes to stdout, the rest to stderr.

File names, source lines, names and messages are written by whoever wrote the analysed repository. Nothing here reaches
a terminal but through `printable`, so that no text can move the cursor, change colours or look like other text.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import TextIO

from codeanatomy.query.json_output import error_json, json_text

_CLEAR_LINE = "\r\033[K"

_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that a terminal obeys instead of showing them: controls (C0, DEL, C1), marks that reorder or
hide text, halves of surrogate pairs, line and paragraph separators."""

_IN_ASCII = str.maketrans({"─": "-", "…": "...", "→": "->", "·": "-", "✓": "+", "✗": "x"})
"""What our own signs look like where there is only ASCII."""

_C_LOCALES = ("", "C", "POSIX")
_COERCED = ("C.UTF-8", "C.utf8")
_ROWS_FOR_WIDTHS = 1000


def show(*lines: str) -> None:
    """Print lines of data for people."""
    _print(sys.stdout, lines)


def tell(*lines: str) -> None:
    """Say something that is not data."""
    _print(sys.stderr, lines)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows of data for people, as they come."""
    _print(sys.stdout, table(columns, rows))


def show_json(value: object) -> None:
    """Print data for scripts."""
    sys.stdout.write(f"{json_text(value)}\n")


def fail(message: str, hint: str | None, exit_code: int, *, as_json: bool) -> int:
    """Say what went wrong, in one line, and as an object to whoever reads JSON; the exit code."""
    if as_json:
        show_json(error_json(message, hint, exit_code))
    tell(f"codeanatomy: {message}: {hint}" if hint else f"codeanatomy: {message}")
    return exit_code


def printable(text: str, encoding: str = "utf-8") -> str:
    """One line of text that any terminal of this encoding shows as it is; what it would obey instead is escaped."""
    if not text.isprintable():
        text = "".join(map(_visible, text))
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def encoding_of(stream: TextIO, environ: Mapping[str, str] = os.environ) -> str:
    """What the reader of a stream can show: in the C locale that is ASCII, although Python writes UTF-8 there."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if environ.get("PYTHONIOENCODING") or environ.get("PYTHONUTF8"):
        return encoding
    language, category = environ.get("LANG", ""), environ.get("LC_CTYPE", "")
    if language in _C_LOCALES and category in _COERCED:
        category = ""  # what Python put there when it started
    locale = environ.get("LC_ALL") or category or language
    return "ascii" if locale in _C_LOCALES else encoding


class EscapedLines:
    """A stream of lines as `print_csv` writes them, for a terminal."""

    def write(self, line: str) -> int:
        """Show one line; what breaks it in two is escaped."""
        show(line.removesuffix("\n"))
        return len(line)


def data_stream() -> TextIO | EscapedLines:
    """Where data in a form for scripts goes: bytes as they are in UTF-8, unless a person looks on."""
    if sys.stdout.isatty():
        return EscapedLines()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def _print(stream: TextIO, lines: Iterable[str]) -> None:
    encoding = encoding_of(stream)
    for line in lines:
        stream.write(f"{printable(line, encoding)}\n")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _OBEYED:
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


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
            line = printable(" · ".join(part for part in parts if part), encoding_of(self._stream))
            self._stream.write(_CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows under their column names, line by line, numbers to the right; columns are as wide as the first rows need."""
    encoding = encoding_of(sys.stdout)
    remaining = iter(rows)
    first = list(islice(remaining, _ROWS_FOR_WIDTHS))
    names = [printable(name, encoding) for name in columns]
    cells = [[_cell(value, encoding) for value in row] for row in first]
    numeric = [
        all(isinstance(row[i], int | float | Decimal) or row[i] is None for row in first) for i in range(len(names))
    ]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(names)]

    def line(values: Sequence[str]) -> str:
        padded = (v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    yield line(names)
    yield line(["─" * width for width in widths])
    yield from map(line, chain(cells, ([_cell(value, encoding) for value in row] for row in remaining)))


def size(count: int) -> str:
    """Bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _cell(value: object, encoding: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return printable(str(value), encoding)
