"""What opens a scope without defining anything, and what declares names of other scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.shapes import parts
from codeanatomy.extract.syntax.assignments import push_loop
from codeanatomy.extract.walk import Handler, Walk

_COMPREHENSIONS: Final = {
    g.kind("list_comprehension"): b"listcomp",
    g.kind("set_comprehension"): b"setcomp",
    g.kind("dictionary_comprehension"): b"dictcomp",
    g.GENERATOR: b"genexpr",
}


def comprehension(w: Walk, node: Node) -> None:
    """A comprehension: a scope of its own, except that its first values are evaluated around it."""
    name = _COMPREHENSIONS[node.kind_id]
    around = w.scope
    inside = parts(node)
    first = next((at for at, part in enumerate(inside) if part.kind_id == g.FOR_IN_CLAUSE), None)
    scope = w.open_scope(name, around, name, node)
    w.stack.append(around)
    for at in range(len(inside) - 1, -1, -1):
        w.stack.append((push_loop, inside[at], around) if at == first else inside[at])
    w.stack.append(scope)


def global_statement(w: Walk, node: Node) -> None:
    """`global a, b`."""
    w.statement_end = node.end_byte
    for name in parts(node):
        w.scopes.declare_global(w.scope, w.pool[w.text[name.start_byte : name.end_byte]])


def nonlocal_statement(w: Walk, node: Node) -> None:
    """`nonlocal a, b`."""
    w.statement_end = node.end_byte
    for name in parts(node):
        w.scopes.declare_nonlocal(w.scope, w.pool[w.text[name.start_byte : name.end_byte]])


HANDLERS: Final[Mapping[int, Handler]] = {
    g.kind("global_statement"): global_statement,
    g.kind("nonlocal_statement"): nonlocal_statement,
    **dict.fromkeys(_COMPREHENSIONS, comprehension),
}
