"""Output for people: tables, messages, progress while a build runs. Data goes to stdout, the rest to stderr.

File names, source lines, names and messages come from the analysed repository, which is not trusted. Everything that
reaches a terminal goes through `printable`, so that no text can move the cursor, change colours or hide other text.
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

from codeanatomy.api.json_output import error_json, json_text

_CLEAR_LINE = "\r\033[K"

_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that a terminal interprets instead of showing them: controls (C0, DEL, C1), marks that
reorder or hide text, halves of surrogate pairs, line and paragraph separators."""

_ASCII_SIGNS = str.maketrans({"─": "-", "…": "...", "→": "->", "·": "-", "✓": "+", "✗": "x"})
"""What our own signs are on a terminal that has only ASCII."""

_ASCII_LOCALES = ("", "C", "POSIX")
_COERCED_LOCALES = ("C.UTF-8", "C.utf8")
"""What Python sets LC_CTYPE to when it starts in an ASCII locale."""

_ROWS_FOR_WIDTHS = 1000


def print_lines(*lines: str) -> None:
    """Print lines of data for people."""
    _print(sys.stdout, lines)


def print_message(*lines: str) -> None:
    """Print lines that are not data, to stderr."""
    _print(sys.stderr, lines)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows of data for people, as they come."""
    _print(sys.stdout, table_lines(columns, rows))


def print_json(value: object) -> None:
    """Print data for scripts."""
    sys.stdout.write(f"{json_text(value)}\n")


def print_error(message: str, hint: str | None, exit_code: int, *, as_json: bool) -> int:
    """Print what went wrong as one line on stderr, and as an object on stdout if JSON is expected; the exit code."""
    if as_json:
        print_json(error_json(message, hint, exit_code))
    print_message(f"codeanatomy: {message}: {hint}" if hint else f"codeanatomy: {message}")
    return exit_code


def printable(text: str, encoding: str = "utf-8") -> str:
    """Text that a terminal of this encoding shows as one line; control characters are escaped."""
    if not text.isprintable():
        text = "".join(map(_escaped, text))
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII_SIGNS).encode(encoding, "backslashreplace").decode(encoding)
    return text


def encoding_of(stream: TextIO, environ: Mapping[str, str] = os.environ) -> str:
    """The encoding that a terminal can show: ASCII in the C locale, although Python writes UTF-8 there."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if environ.get("PYTHONIOENCODING") or environ.get("PYTHONUTF8"):
        return encoding
    language, category = environ.get("LANG", ""), environ.get("LC_CTYPE", "")
    if language in _ASCII_LOCALES and category in _COERCED_LOCALES:
        category = ""
    locale = environ.get("LC_ALL") or category or language
    return "ascii" if locale in _ASCII_LOCALES else encoding


class EscapedLines:
    """A stream of lines that is shown on a terminal."""

    def write(self, line: str) -> int:
        """Print one line; line breaks inside it are escaped."""
        print_lines(line.removesuffix("\n"))
        return len(line)


def data_stream() -> TextIO | EscapedLines:
    """Where CSV goes: to stdout as UTF-8, escaped if stdout is a terminal."""
    if sys.stdout.isatty():
        return EscapedLines()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def _print(stream: TextIO, lines: Iterable[str]) -> None:
    encoding = encoding_of(stream)
    for line in lines:
        stream.write(f"{printable(line, encoding)}\n")


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _CONTROL_CATEGORIES:
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that was not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


class ProgressLine:
    """One line on a terminal with the current stage, its progress and its speed; removed at the end."""

    def __init__(self, stream: TextIO = sys.stderr, refresh: float = 0.2) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._name, self._detail, self._began = "", "", time.monotonic()
        self._painter = threading.Thread(target=self._repaint, args=(refresh,), daemon=True)

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

    def _repaint(self, refresh: float) -> None:
        while not self._done.wait(refresh):
            with self._lock:
                if not self._name:
                    continue
                parts = [self._name, self._detail, f"{time.monotonic() - self._began:.0f} s"]
            line = printable(" · ".join(part for part in parts if part), encoding_of(self._stream))
            self._stream.write(_CLEAR_LINE + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows below their column names, numbers aligned right; the first rows decide how wide columns are."""
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


def format_bytes(count: int) -> str:
    """A number of bytes with a unit."""
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
