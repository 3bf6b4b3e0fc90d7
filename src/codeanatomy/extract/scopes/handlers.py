"""Syntax that matters to scopes alone: comprehensions, and `global` and `nonlocal` declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.shapes import significant_children
from codeanatomy.extract.syntax.assignments import push_loop
from codeanatomy.extract.values.forms import expression_value
from codeanatomy.extract.walk import Handler, NewScope, Walk

_COMPREHENSIONS: Final = {
    g.kind("list_comprehension"): b"listcomp",
    g.kind("set_comprehension"): b"setcomp",
    g.kind("dictionary_comprehension"): b"dictcomp",
    g.GENERATOR: b"genexpr",
}


def comprehension(w: Walk, node: Node) -> None:
    """A comprehension: a scope of its own, but its first iterable is evaluated in the enclosing scope."""
    name = _COMPREHENSIONS[node.kind_id]
    enclosing = w.scope
    inside = significant_children(node)
    first = next((at for at, part in enumerate(inside) if part.kind_id == g.FOR_IN_CLAUSE), None)
    scope = w.open_scope(NewScope(name, enclosing, name), node)
    element = inside[0].children[-1] if inside and inside[0].kind_id == g.PAIR else inside[0] if inside else node
    if element.kind_id not in (g.FOR_IN_CLAUSE, node.kind_id):
        w.scope = scope
        w.comprehension_values[node.start_byte] = expression_value(w, element)
        w.scope = enclosing
    w.stack.append(enclosing)
    for at in range(len(inside) - 1, -1, -1):
        w.stack.append((push_loop, inside[at], enclosing) if at == first else inside[at])
    w.stack.append(scope)


def global_statement(w: Walk, node: Node) -> None:
    """`global a, b`."""
    w.statement_end = node.end_byte
    for name in significant_children(node):
        w.scopes.declare_global(w.scope, w.pool[w.text_of(name)])


def nonlocal_statement(w: Walk, node: Node) -> None:
    """`nonlocal a, b`."""
    w.statement_end = node.end_byte
    for name in significant_children(node):
        w.scopes.declare_nonlocal(w.scope, w.pool[w.text_of(name)])


HANDLERS: Final[Mapping[int, Handler]] = {
    g.kind("global_statement"): global_statement,
    g.kind("nonlocal_statement"): nonlocal_statement,
    **dict.fromkeys(_COMPREHENSIONS, comprehension),
}
