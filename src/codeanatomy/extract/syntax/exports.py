"""What module-level statements do to `__all__`, as rows of `all_names`.

`set` empties it; the entries that follow are added. An entry is a literal name, a dotted name whose entries are all
added (`other.__all__`), or neither if it cannot be read off the source.
"""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.literals import string_value
from codeanatomy.extract.shapes import dotted_name, significant_children, unparenthesized
from codeanatomy.extract.walk import Walk

_COPIES: Final = frozenset({b"list", b"tuple", b"set", b"frozenset", b"sorted"})
_SEQUENCES: Final = frozenset({g.LIST, g.TUPLE, g.SET, g.EXPRESSION_LIST, g.PATTERN_LIST})


def export_assignment(w: Walk, value: Node) -> None:
    """`__all__ = value`."""
    _add_entry(w, b"set", NOTHING, NOTHING, value)
    export_entries(w, value)


def export_call(w: Walk, callee: int, arguments: Node) -> None:
    """`__all__.extend(…)`, `.append(…)` or `.remove(…)`."""
    method = w.pool.texts[callee] if callee != NOTHING else b""
    if method == b"__all__.extend":
        for argument in significant_children(arguments):
            export_entries(w, argument)
    elif method in (b"__all__.append", b"__all__.remove"):
        for argument in significant_children(arguments):
            _add_element(w, b"add" if method == b"__all__.append" else b"remove", argument)


def export_entries(w: Walk, value: Node) -> None:
    """Add every entry of an expression that is a sequence of names, or a sum of sequences."""
    pending = [value]
    while pending:
        node = unparenthesized(pending.pop())
        if node.kind_id == g.BINARY_OPERATOR:
            pending += (node.children[-1], node.children[0])
        elif node.kind_id in _SEQUENCES:
            for element in significant_children(node):
                _add_element(w, b"add", element)
        elif node.kind_id == g.CALL and (copied := _copied_sequence(w, node)) is not None:
            pending.append(copied)
        else:
            _add_entry(w, b"add", NOTHING, dotted_name(w, node), node)


def _copied_sequence(w: Walk, call: Node) -> Node | None:
    """The argument of `list(…)` and other calls that copy a sequence."""
    callee, arguments = call.children[0], call.children[-1]
    inside = significant_children(arguments) if arguments.kind_id == g.ARGUMENT_LIST else []
    is_copy = w.text_of(callee) in _COPIES and len(inside) == 1
    return inside[0] if is_copy else None


def _add_element(w: Walk, op: bytes, element: Node) -> None:
    """One element of a sequence: a name, or a starred sequence."""
    if element.kind_id == g.LIST_SPLAT:
        element = element.children[-1]
        _add_entry(w, op, NOTHING, dotted_name(w, element), element)
        return
    name = string_value(unparenthesized(element), w.text)
    _add_entry(w, op, w.pool[name] if name is not None else NOTHING, NOTHING, element)


def _add_entry(w: Walk, op: bytes, name: int, ref: int, node: Node) -> None:
    w.cells.rows["all_names"].add(op=w.pool[op], name=name, ref=ref, bstart=node.start_byte, bend=node.end_byte)
