"""Annotations. What they name is read where they stand, also under `from __future__ import annotations`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.walk import NOTHING, Handler, Walk


def annotation(w: Walk, node: Node, role: bytes, owner: int, target: int) -> None:
    """The type of a parameter, a return or a variable."""
    start, end = node.start_byte, node.end_byte
    # scope_no, role, owner_no, target, span, text
    w.types.fromlist([w.scope, w.pool[role], owner, target, start, end, w.source(start, end)])
    w.stack.append(node)


def member_type(w: Walk, node: Node) -> None:
    """`Some[type].Name`, which the grammar does not see as an attribute."""
    children = node.children
    base, name = children[0], children[-1]
    # scope_no, name, ctx, is_attribute, base, binding_no, span, name span
    w.refs.fromlist(
        [
            w.scope,
            w.pool[w.text[name.start_byte : name.end_byte]],
            w.pool[b"load"],
            1,
            NOTHING,
            NOTHING,
            node.start_byte,
            node.end_byte,
            name.start_byte,
            name.end_byte,
        ]
    )
    w.stack.append(base)


HANDLERS: Final[Mapping[int, Handler]] = {g.kind("member_type"): member_type}
