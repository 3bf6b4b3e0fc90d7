"""Annotations. Their names are read in the scope they are written in, even if they are evaluated later or never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.shapes import significant_children, unparenthesized
from codeanatomy.extract.syntax.expressions import AttributeSpan, add_attribute
from codeanatomy.extract.values.forms import type_value
from codeanatomy.extract.walk import Handler, Walk

_QUOTED: Final = frozenset({g.STRING, g.CONCATENATED_STRING})


class Annotated(NamedTuple):
    """The parameter, return or variable that an annotation is of, as cells of its row."""

    role: bytes
    owner_no: int = NOTHING
    owner_def: int = NOTHING
    position: int = NOTHING
    symbol: int = NOTHING
    target: int = NOTHING


def annotation(w: Walk, node: Node, what: Annotated) -> None:
    """The annotation of a parameter, a return or a variable."""
    inside = significant_children(node)
    expression = unparenthesized(inside[0]) if inside else node
    quoted = type_value(w, expression) if expression.kind_id in _QUOTED else NOTHING
    enclosing = w.type_no
    w.type_no = len(w.types) - w.first_rows["cst_type_exprs"]
    w.types.add(
        scope_no=w.scope,
        role=w.pool[what.role],
        owner_no=what.owner_no,
        owner_key=what.owner_def,
        position=what.position,
        binding_key=what.symbol,
        target=what.target,
        bstart=expression.start_byte,
        bend=expression.end_byte,
        text=w.source_text(expression),
        ask_no=quoted,
    )
    w.stack += [(_end_annotation, enclosing), node]


def _end_annotation(w: Walk, enclosing: int) -> None:
    w.type_no = enclosing


def member_type(w: Walk, node: Node) -> None:
    """`Some[type].Name`, which is not an attribute in the grammar."""
    base, name = node.children[0], node.children[-1]
    add_attribute(w, b"load", NOTHING, AttributeSpan(node.start_byte, name.start_byte, name.end_byte))
    w.stack.append(base)


HANDLERS: Final[Mapping[int, Handler]] = {g.kind("member_type"): member_type}
