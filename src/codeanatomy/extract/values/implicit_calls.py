"""Implicit calls: the methods and classes that `with`, loops, `raise` and decorators call.

A row is added if the value that is called can be followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.shapes import significant_children, unparenthesized
from codeanatomy.extract.values.forms import Form, expression_value, new_value
from codeanatomy.extract.walk import Handler, Walk


def with_statement(w: Walk, node: Node) -> None:
    """`with value as target, …:`, which enters and leaves each value."""
    prefix = _prefix(node)
    for clause in node.named_children:
        if clause.kind_id == g.WITH_CLAUSE:
            for item in (
                part for with_item in significant_children(clause) for part in significant_children(with_item)
            ):
                entered = item.children[0] if item.kind_id == g.AS_PATTERN else item
                number = expression_value(w, entered)
                if number != NOTHING:
                    methods = (new_value(w, Form.ATTRIBUTE, number, prefix + name) for name in (b"enter__", b"exit__"))
                    add_implicit_call(w, b"with", entered, new_value(w, Form.EITHER, tuple(methods)))
    w.stack += node.named_children[::-1]


def raise_statement(w: Walk, node: Node) -> None:
    """`raise value from cause`: either, if it is a class, is instantiated. A call returns an instance already."""
    w.statement_end = node.end_byte
    w.stack += node.named_children[::-1]
    for raised in map(unparenthesized, significant_children(node)):
        if raised.kind_id != g.CALL:
            add_implicit_call(w, b"raise", raised, expression_value(w, raised))


def add_iteration(w: Walk, loop: Node, values: Node, number: int) -> None:
    """The calls of a loop over `values`, whose value is `number`."""
    if number != NOTHING:
        prefix = _prefix(loop)
        iterator = new_value(w, Form.ATTRIBUTE, number, prefix + b"iter__")
        following = new_value(w, Form.ATTRIBUTE, new_value(w, Form.CALL, iterator), prefix + b"next__")
        add_implicit_call(w, b"for", values, new_value(w, Form.EITHER, (iterator, following)))


def add_implicit_call(w: Walk, kind: bytes, node: Node, number: int) -> None:
    """The row of an implicit call of the value `number`, unless that cannot be followed."""
    if number != NOTHING:
        w.cells.rows["cst_implicit_calls"].add(
            scope_no=w.scope, kind=w.pool[kind], bstart=node.start_byte, bend=node.end_byte, ask_no=number
        )


def _prefix(statement: Node) -> bytes:
    """The prefix of the special methods that a statement calls."""
    return b"__a" if statement.children[0].kind_id == g.ASYNC else b"__"


HANDLERS: Final[Mapping[int, Handler]] = {
    g.kind("with_statement"): with_statement,
    g.RAISE_STATEMENT: raise_statement,
}
