"""The shape of an expression, and the dotted name that it is or calls. Adds no facts."""

from __future__ import annotations

from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.walk import Walk

# Each attribute of a chain has its base as text: this bounds the sum of their lengths.
MAX_DOTTED: Final = 100

_SHAPES: Final = {
    g.IDENTIFIER: b"name",
    g.ATTRIBUTE: b"attribute",
    g.CALL: b"call",
    g.SUBSCRIPT: b"subscript",
    g.LAMBDA: b"lambda",
    g.LIST: b"list",
    g.TUPLE: b"tuple",
    g.EXPRESSION_LIST: b"tuple",
    g.PATTERN_LIST: b"tuple",
    g.SET: b"set",
    g.DICTIONARY: b"dict",
} | dict.fromkeys(g.LITERALS, b"literal")


def shape(node: Node) -> bytes:
    """The kind of expression, as facts name it."""
    return _SHAPES.get(node.kind_id, b"other")


def unparenthesized(node: Node) -> Node:
    """The expression inside any parentheses."""
    while node.kind_id == g.PARENTHESIZED:
        inside = significant_children(node)
        if len(inside) != 1:
            break
        node = inside[0]
    return node


def significant_children(node: Node) -> list[Node]:
    """Named children without comments and line continuations."""
    return [child for child in node.named_children if not child.is_extra]


def unstarred(node: Node) -> Node:
    """The expression without a star that belongs to the whole of what it is part of.

    Where a target is possible, the grammar reads `*a.b` as `(*a).b`.
    """
    return node.children[-1] if node.kind_id == g.LIST_SPLAT else node


def start_of(w: Walk, node: Node) -> int:
    """The start of an attribute or a call, without a star that belongs to the whole of it."""
    start = node.start_byte
    if not w.text.startswith(b"*", start):
        return start
    while node.kind_id != g.LIST_SPLAT and node.child_count:
        node = node.children[0]
    return unstarred(node).start_byte


def dotted_name(w: Walk, node: Node) -> int:
    """The cell of an expression that is a dotted name."""
    names: list[bytes] = []
    while node.kind_id == g.ATTRIBUTE and len(names) < MAX_DOTTED:
        children = node.children
        names.append(w.text_of(children[-1]))
        node = unparenthesized(children[0])
    if node.kind_id != g.IDENTIFIER:
        return NOTHING
    names.append(w.text_of(node))
    return w.pool[b".".join(reversed(names))]


def called_name(w: Walk, node: Node) -> int:
    """The cell of an expression that is a dotted name, or calls one."""
    return dotted_name(w, unparenthesized(node.children[0]) if node.kind_id == g.CALL else node)
