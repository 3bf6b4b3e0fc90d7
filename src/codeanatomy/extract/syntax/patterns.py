"""Patterns of `match`: the names they capture, the values and classes they compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.shapes import significant_children
from codeanatomy.extract.syntax.assignments import Binding, bind_name
from codeanatomy.extract.syntax.expressions import AttributeSpan, add_attribute, read_name
from codeanatomy.extract.values.forms import Form, name_value, new_value, nothing_bound
from codeanatomy.extract.walk import Handler, Walk


def case_clause(w: Walk, node: Node) -> None:
    """`case patterns if guard: block`."""
    for child in reversed(significant_children(node)):
        w.stack.append((pattern, child) if child.kind_id == g.CASE_PATTERN else child)


def pattern(w: Walk, node: Node) -> None:
    """One pattern, or the patterns inside it."""
    kind = node.kind_id
    if kind == g.DOTTED_NAME:
        if node.child_count == 1:
            _capture(w, node.children[0])
        else:
            read_dotted_name(w, node)
    elif kind == g.IDENTIFIER:
        _capture(w, node)
    elif kind == g.KEYWORD_PATTERN:
        w.stack.append((pattern, node.children[-1]))
    elif kind in _LEAVES:
        return
    else:
        inside = significant_children(node)
        entries: list[tuple[object, ...]] = [(pattern, child) for child in inside]
        if kind == g.CLASS_PATTERN:
            entries[0] = (read_dotted_name, inside[0])
        elif kind == g.AS_PATTERN and len(inside) == 2 and inside[1].kind_id == g.IDENTIFIER:
            entries[1] = (_capture, inside[1], _instance_of_pattern(w, inside[0]))
        w.stack += reversed(entries)


def _capture(w: Walk, node: Node, number: int = NOTHING) -> None:
    if w.text_of(node) != b"_":
        bind_name(w, node, Binding(b"match", nothing_bound(w)._replace(number=number)))


def _instance_of_pattern(w: Walk, node: Node) -> int:
    """The value of what matches `Class(…)`: an instance of that class."""
    inside = significant_children(node)
    if len(inside) != 1 or inside[0].kind_id != g.CLASS_PATTERN:
        return NOTHING
    first, *rest = significant_children(significant_children(inside[0])[0])
    number = name_value(w, first.start_byte, first.end_byte)
    for name in rest:
        number = new_value(w, Form.ATTRIBUTE, number, w.text_of(name))
    return new_value(w, Form.CALL, number)


def read_dotted_name(w: Walk, node: Node) -> None:
    """Add the rows of a dotted name that is read, outermost attribute first, as of any other."""
    names = significant_children(node)
    start = node.start_byte
    prefixes = [w.text_of(names[0])]
    for name in names[1:]:
        prefixes.append(b"%b.%b" % (prefixes[-1], w.text_of(name)))
    for at in range(len(names) - 1, 0, -1):
        base = w.pool[prefixes[at - 1]]
        add_attribute(w, b"load", base, AttributeSpan(start, names[at].start_byte, names[at].end_byte))
    read_name(w, names[0].start_byte, names[0].end_byte)


_LEAVES: Final = frozenset({*g.LITERALS, g.ERROR, g.COMMENT})

HANDLERS: Final[Mapping[int, Handler]] = {g.kind("case_clause"): case_clause}
