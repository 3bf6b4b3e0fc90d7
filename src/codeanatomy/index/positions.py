"""Lines and columns of an indexer as byte offsets in a source's text, the offsets that facts use.

Lines end in LF, CRLF or a lone CR. A byte order mark is part of the first line: one character, three bytes. Only lines
with characters beyond ASCII need a table of offsets.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Final

from codeanatomy.extract.source import Source, read_source
from codeanatomy.index.scip_format import UTF8, UTF16

_NOWHERE: Final = -1
_END_OF_LINE: Final = re.compile(rb"\r\n|\r|\n")


class Positions:
    """Places in one source. A place that is not in it, or inside of a character, is no place."""

    def __init__(
        self, content: bytes, unit: int, line_starts: Sequence[int] | None = None, *, read_as_utf8: bool = False
    ) -> None:
        """`unit` is what columns count: bytes of UTF-8, or units of UTF-16 or UTF-32.

        `line_starts` saves finding them. `read_as_utf8` tells that the indexer took a source in another encoding for
        UTF-8 and counts in what that gave.
        """
        source = read_source(content)
        self._source = source if isinstance(source, Source) else None
        self.text = source.text if isinstance(source, Source) else b""
        self._unit = unit
        self._starts = self._starts_of_lines(line_starts)
        self._lines = len(self._starts) - 1 if self._source else 0
        self._is_ascii = self.text.isascii()
        self._raw_lines: list[bytes] | None = None
        if self._source and self._source.encoding != "utf-8" and read_as_utf8 and not self._is_ascii:
            self._raw_lines = _END_OF_LINE.split(content)
        self._tables: dict[int, list[int] | None] = {}

    def span(self, place: Sequence[int]) -> tuple[int, int] | None:
        """First byte and the byte after the last of a range as SCIP writes it: three or four numbers."""
        if len(place) == 3:
            line, first, last = place
            start, end = self._offset(line, first), self._offset(line, last)
        elif len(place) == 4:
            start, end = self._offset(place[0], place[1]), self._offset(place[2], place[3])
        else:
            return None
        return (start, end) if 0 <= start <= end else None

    def _offset(self, line: int, column: int) -> int:
        if not 0 <= line < self._lines or column < 0:
            return _NOWHERE
        start, end = self._starts[line], self._starts[line + 1]
        table = None if self._is_ascii else self._table(line)
        if table is not None:
            return table[column] if column < len(table) else _NOWHERE
        return start + column if start + column <= end else _NOWHERE

    def _table(self, line: int) -> list[int] | None:
        """Offset of every column of a line; none if columns are bytes."""
        if line not in self._tables:
            self._tables[line] = self._made_table(line)
        return self._tables[line]

    def _made_table(self, line: int) -> list[int] | None:
        start = self._starts[line]
        bytes_ = self.text[start : self._starts[line + 1]]
        if bytes_.isascii():
            return None
        if self._source and self._raw_lines is not None:
            if line >= len(self._raw_lines):
                return []
            return _columns_of_misread(self._raw_lines[line], self._source.encoding, start, self._unit)
        return _columns(bytes_.decode(), start, self._unit)

    def _starts_of_lines(self, given: Sequence[int] | None) -> list[int]:
        """Where each line starts, the empty one after a last newline too, and where the text ends."""
        known = self._source.line_starts if given is None and self._source else given
        starts = [int(start) for start in known] if known is not None else [0]
        if self.text.endswith(b"\n"):
            starts.append(len(self.text))
        return [*starts, len(self.text)]


def _columns(text: str, offset: int, unit: int) -> list[int]:
    """Offset of each column of a line of text."""
    table = []
    for character in text:
        size = len(character.encode())
        table.append(offset)
        units = size if unit == UTF8 else 2 if unit == UTF16 and size == 4 else 1
        table += [_NOWHERE] * (units - 1)
        offset += size
    return [*table, offset]


def _columns_of_misread(raw: bytes, encoding: str, start: int, unit: int) -> list[int]:
    """Offset of each column of a line that was decoded as UTF-8, wrong bytes becoming a replacement character each."""
    offsets = _offsets_of_bytes(raw, encoding, start)
    table = []
    at = 0
    for character, size in _misread(raw):
        table.append(offsets[at])
        units = len(character.encode()) if unit == UTF8 else 2 if unit == UTF16 and character > "\uffff" else 1
        table += [_NOWHERE] * (units - 1)
        at += size
    return [*table, offsets[at]]


def _misread(raw: bytes) -> list[tuple[str, int]]:
    """Characters that a lenient UTF-8 decoder sees, with the bytes each took."""
    found: list[tuple[str, int]] = []
    at = 0
    while at < len(raw):
        try:
            text, wrong = raw[at:].decode(), 0
        except UnicodeDecodeError as error:
            text, wrong = raw[at : at + error.start].decode(), error.end - error.start
        for character in text:
            size = len(character.encode())
            found.append((character, size))
            at += size
        if wrong:
            found.append(("\N{REPLACEMENT CHARACTER}", wrong))
            at += wrong
    return found


def _offsets_of_bytes(raw: bytes, encoding: str, start: int) -> list[int]:
    """Where in the UTF-8 text each byte of a line begins a character, and where the line ends."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offsets = [start]
    offset = start
    for byte in raw:
        try:
            offset += len(decoder.decode(bytes((byte,))).encode())
        except UnicodeError:
            return [*offsets, *[_NOWHERE] * (len(raw) + 1 - len(offsets))]
        offsets.append(_NOWHERE if decoder.getstate()[0] else offset)
    return offsets
