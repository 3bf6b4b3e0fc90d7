"""Annotations. What they name is read where they stand, also under `from __future__ import annotations`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.shapes import parts, unparenthesized
from codeanatomy.extract.syntax.expressions import add_attribute
from codeanatomy.extract.values.forms import type_value
from codeanatomy.extract.walk import Handler, Walk

_QUOTED: Final = frozenset({g.STRING, g.CONCATENATED_STRING})


class Annotated(NamedTuple):
    """What an annotation is about, as cells of its row."""

    role: bytes
    owner_no: int = NOTHING
    owner_def: int = NOTHING
    position: int = NOTHING
    symbol: int = NOTHING
    target: int = NOTHING


def annotation(w: Walk, node: Node, what: Annotated) -> None:
    """The type of a parameter, a return or a variable."""
    inside = parts(node)
    expression = unparenthesized(inside[0]) if inside else node
    start, end = expression.start_byte, expression.end_byte
    quoted = type_value(w, expression) if expression.kind_id in _QUOTED else NOTHING
    around = w.type_no
    w.type_no = len(w.types) - w.first_rows["cst_type_exprs"]
    w.types.add(
        scope_no=w.scope,
        role=w.pool[what.role],
        owner_no=what.owner_no,
        owner_key=what.owner_def,
        position=what.position,
        binding_key=what.symbol,
        target=what.target,
        bstart=start,
        bend=end,
        text=w.source(start, end),
        ask_no=quoted,
    )
    w.stack += [(_leave, around), node]


def _leave(w: Walk, around: int) -> None:
    """The annotation is behind."""
    w.type_no = around


def member_type(w: Walk, node: Node) -> None:
    """`Some[type].Name`, which the grammar does not see as an attribute."""
    base, name = node.children[0], node.children[-1]
    add_attribute(w, b"load", NOTHING, node.start_byte, (name.start_byte, name.end_byte))
    w.stack.append(base)


HANDLERS: Final[Mapping[int, Handler]] = {g.kind("member_type"): member_type}
