"""Bytes of a content as text: its encoding by PEP 263, its byte order mark, its lines.

Everything after this module works on `Source.text`, UTF-8 bytes in which a lone CR has become LF, as in Python's own
tokenizer. Both have the same length, so spans in it are spans in the decoded content. It never guesses an encoding.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from tokenize import detect_encoding

import numpy as np
import numpy.typing as npt

_BOM = b"\xef\xbb\xbf"
_LONE_CR = re.compile(rb"\r(?!\n)")


@dataclass(frozen=True)
class Source:
    """A decoded content, ready to be parsed."""

    text: bytes
    encoding: str
    has_bom: bool
    line_starts: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Undecodable:
    """A content that cannot be decoded, which Python could not read either, and why."""

    reason: str
    has_bom: bool


def read_source(content: bytes) -> Source | Undecodable:
    """Decode `content` the way Python would."""
    has_bom = content.startswith(_BOM)
    try:
        encoding = detect_encoding(io.BytesIO(content).readline)[0].removesuffix("-sig")
        if encoding == "utf-8":
            content.decode()  # only to find out whether it is
            text = content
        else:
            text = content.decode(encoding).encode()
    except (SyntaxError, ValueError, LookupError) as error:
        return Undecodable(str(error), has_bom)
    if b"\r" in text:
        text = _LONE_CR.sub(b"\n", text)
    return Source(text, encoding, has_bom, _line_starts(text))


def _line_starts(text: bytes) -> npt.NDArray[np.int32]:
    """Offset of the first byte of each line; an empty text has one, empty, line."""
    after_newline = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    starts = np.concatenate(([0], after_newline)).astype(np.int32)
    return starts[:-1] if len(starts) > 1 and starts[-1] == len(text) else starts
