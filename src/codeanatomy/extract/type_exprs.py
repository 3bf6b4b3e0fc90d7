"""Annotations. What they name is read where they stand, also under `from __future__ import annotations`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.expressions import emit_attribute
from codeanatomy.extract.shapes import parts, unparenthesized
from codeanatomy.extract.walk import NOTHING, Handler, Walk


class Annotated(NamedTuple):
    """What an annotation is about, as cells."""

    role: bytes
    owner: int = NOTHING
    owner_def: int = NOTHING
    position: int = NOTHING
    symbol: int = NOTHING
    target: int = NOTHING


def annotation(w: Walk, node: Node, what: Annotated) -> None:
    """The type of a parameter, a return or a variable."""
    inside = parts(node)
    expression = unparenthesized(inside[0]) if inside else node
    start, end = expression.start_byte, expression.end_byte
    # scope_no, role, owner_no, owner_key (its def_no), position, binding_key (its symbol), target, span, text
    w.types.fromlist([w.scope, w.pool[what.role], *what[1:], start, end, w.source(start, end)])
    w.stack.append(node)


def member_type(w: Walk, node: Node) -> None:
    """`Some[type].Name`, which the grammar does not see as an attribute."""
    base, name = node.children[0], node.children[-1]
    emit_attribute(w, b"load", NOTHING, node.start_byte, name.start_byte, name.end_byte)
    w.stack.append(base)


HANDLERS: Final[Mapping[int, Handler]] = {g.kind("member_type"): member_type}
