"""Values of string literals. It never evaluates code: escapes are replaced by the rules of the language reference."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g

_ESCAPE: Final = re.compile(
    r"\\(\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|N\{[^}]+\}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL
)
_OPENING: Final = re.compile(rb"([uUrR]?)(['\"])")
_SIMPLE: Final = {
    "\n": "",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def string_value(node: Node, text: bytes) -> bytes | None:
    """The value of a plain string literal, adjacent ones joined; None for anything else."""
    if node.kind_id == g.STRING:
        return _value(text[node.start_byte : node.end_byte])
    if node.kind_id != g.CONCATENATED_STRING:
        return None
    parts = [_value(text[part.start_byte : part.end_byte]) for part in node.named_children if part.kind_id == g.STRING]
    return None if None in parts else b"".join(part for part in parts if part is not None)


def _value(literal: bytes) -> bytes | None:
    opening = _OPENING.match(literal)
    if opening is None:
        return None
    prefix, quote = opening[1].lower(), opening.start(2)
    width = 3 if literal[quote : quote + 3] in (b'"""', b"'''") and len(literal) - quote >= 6 else 1
    value = literal[quote + width : len(literal) - width].replace(b"\r\n", b"\n")
    if b"\\" not in value or prefix == b"r":
        return value
    # A lone surrogate has no UTF-8 form.
    return _ESCAPE.sub(_unescaped, value.decode()).encode(errors="replace")


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if code in _SIMPLE:
        return _SIMPLE[code]
    try:
        if code[0] == "N":
            return unicodedata.lookup(code[2:-1])
        if code[0] in "xuU":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8))
    except (ValueError, KeyError, OverflowError):
        pass  # not an escape that Python accepts: left as written
    return escape[0]
