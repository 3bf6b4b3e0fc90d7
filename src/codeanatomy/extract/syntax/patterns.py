"""Patterns of `match`: the names they capture, the values and classes they compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.shapes import parts
from codeanatomy.extract.syntax.assignments import Binding, bind_name
from codeanatomy.extract.syntax.expressions import add_attribute, load
from codeanatomy.extract.values.forms import no_value
from codeanatomy.extract.walk import Handler, Walk


def case_clause(w: Walk, node: Node) -> None:
    """`case patterns if guard: block`."""
    for child in reversed(parts(node)):
        w.stack.append((pattern, child) if child.kind_id == g.CASE_PATTERN else child)


def pattern(w: Walk, node: Node) -> None:
    """One pattern, or the patterns inside it."""
    kind = node.kind_id
    if kind == g.DOTTED_NAME:
        if node.child_count == 1:
            _capture(w, node.children[0])
        else:
            load_dotted(w, node)
    elif kind == g.IDENTIFIER:
        _capture(w, node)
    elif kind == g.KEYWORD_PATTERN:
        w.stack.append((pattern, node.children[-1]))
    elif kind in _LEAVES:
        return
    else:
        inside = parts(node)
        entries = [(pattern, child) for child in inside]
        if kind == g.CLASS_PATTERN:
            entries[0] = (load_dotted, inside[0])
        w.stack += reversed(entries)


def _capture(w: Walk, node: Node) -> None:
    if w.text[node.start_byte : node.end_byte] != b"_":
        bind_name(w, node, Binding(b"match", no_value(w)))


def load_dotted(w: Walk, node: Node) -> None:
    """Read a dotted name, outermost attribute first, like any other."""
    names = parts(node)
    start = node.start_byte
    prefixes = [w.text[names[0].start_byte : names[0].end_byte]]
    for name in names[1:]:
        prefixes.append(b"%b.%b" % (prefixes[-1], w.text[name.start_byte : name.end_byte]))
    for at in range(len(names) - 1, 0, -1):
        base = w.pool[prefixes[at - 1]]
        add_attribute(w, b"load", base, start, (names[at].start_byte, names[at].end_byte))
    load(w, names[0].start_byte, names[0].end_byte)


_LEAVES: Final = frozenset({*g.LITERALS, g.ERROR, g.COMMENT})

HANDLERS: Final[Mapping[int, Handler]] = {g.kind("case_clause"): case_clause}
