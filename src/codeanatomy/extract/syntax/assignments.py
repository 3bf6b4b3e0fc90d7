"""Assignments and everything else that binds or returns a value: loops, `with`, `except`, `del`, walrus, `return`.

The row of a target is added when the walk comes to it, so that rows and references are in source order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import ANNOTATED, ASSIGNED, COMPREHENSIONS, MODULE_SCOPE, Span
from codeanatomy.extract.shapes import significant_children
from codeanatomy.extract.syntax.exports import export_assignment, export_entries
from codeanatomy.extract.syntax.expressions import attribute_chain
from codeanatomy.extract.syntax.type_annotations import Annotated, annotation
from codeanatomy.extract.values.forms import (
    BoundExpression,
    Form,
    bind_value,
    bound_expression,
    constant_key,
    expression_value,
    new_value,
    next_bound_expression,
    nothing_bound,
    type_value,
)
from codeanatomy.extract.values.implicit_calls import add_iteration
from codeanatomy.extract.values.structure import BindingSite
from codeanatomy.extract.walk import Handler, Walk

_UNPACKING: Final = frozenset(
    {g.TUPLE, g.TUPLE_PATTERN, g.LIST, g.LIST_PATTERN, g.PATTERN_LIST, g.EXPRESSION_LIST, g.PARENTHESIZED}
)
_PARENTHESES: Final = frozenset({g.TUPLE, g.TUPLE_PATTERN, g.PARENTHESIZED})
_STARRED: Final = frozenset({g.LIST_SPLAT, g.LIST_SPLAT_PATTERN})
_MAX_PATH: Final = 100


class Binding(NamedTuple):
    """How a target is bound: by which operation, to what, and to which part of it (`path`)."""

    op: bytes
    value: BoundExpression
    path: tuple[bytes, ...] = ()
    flags: int = ASSIGNED
    declared_type: int = NOTHING


def add_assign(w: Walk, shape: bytes, target: int, span: Span, binding: Binding) -> None:
    """One row of `cst_assigns`."""
    pool = w.pool
    op, bound, path, _, _ = binding
    for step in path:
        w.cells.unpacks.append(pool[step])
    w.add_assign(
        scope_no=w.scope,
        op=pool[op],
        target_shape=pool[shape],
        target=target,
        target_bstart=span[0],
        target_bend=span[1],
        unpack=len(path),
        value_shape=bound.shape,
        value=bound.dotted,
        value_bstart=bound.start,
        value_bend=bound.end,
        value_call_no=bound.call_no,
        value_def_no=bound.def_no,
    )


def bind_target(w: Walk, node: Node, binding: Binding) -> None:
    """Bind a target, or each target inside it; `del` unbinds."""
    kind = node.kind_id
    starred = kind in _STARRED
    if starred:
        node = node.children[-1]
        kind = node.kind_id
    span = start, end = node.start_byte, node.end_byte
    op, flags = binding.op, binding.flags
    ctx = b"del" if op == b"del" else b"store"
    if kind == g.IDENTIFIER:
        if start == end:  # the parser inserted a missing name
            return
        name = w.pool[w.text[start:end]]
        site = b"comprehension" if op == b"for" and w.scopes.kinds[w.scope] in COMPREHENSIONS else op
        symbol = w.scopes.bind(w.scope, name, site, span, flags) if flags else w.scopes.symbol(w.scope, name)
        number = _target_value(w, binding._replace(path=(b"*",)) if starred else binding)
        bind_value(w, symbol, max(end, binding.value.end), number)
        add_stored_name(w, name, ctx, symbol, span)
        add_assign(w, b"starred" if starred else b"name", name, span, binding)
    elif kind == g.ATTRIBUTE:
        target = expression_value(w, node)
        if target != NOTHING and op != b"del" and not starred:
            _, base, attribute = w.values[target]
            def_no = w.scope_defs[w.scope]
            in_constructor = def_no != NOTHING and w.definitions[def_no].name == b"__init__"
            is_certain = in_constructor and w.scope_blocks.get(w.scope) == w.block
            is_certain |= w.scope == MODULE_SCOPE and w.block == 0 and op == b"assign"
            w.attribute_stores.append((base, attribute, _target_value(w, binding), is_certain))
        dotted = attribute_chain(w, node, ctx).dotted
        add_assign(w, b"starred" if starred else b"attribute", dotted, span, binding)
    elif kind in _UNPACKING:
        w.stack += _inner_targets(node, binding)[::-1]
    else:
        if kind == g.SUBSCRIPT:
            _store_item(w, node, binding)
            add_assign(w, b"starred" if starred else b"subscript", NOTHING, span, binding)
        w.stack.append(node)


def _store_item(w: Walk, node: Node, binding: Binding) -> None:
    """Record `container[key] = value`."""
    container, *keys = significant_children(node)
    base = expression_value(w, container) if binding.op in (b"assign", b"annotated") else NOTHING
    if NOTHING not in (base, binding.value.number):
        key = constant_key(w, keys[0]) if len(keys) == 1 else None
        number = _target_value(w, binding)
        w.item_stores.append((base, key, number, BindingSite(max(node.end_byte, binding.value.end), w.block, number)))


def _target_value(w: Walk, binding: Binding) -> int:
    """The value of a target after it was bound."""
    op, bound, path, _, declared_type = binding
    number = bound.number
    form = _FORM_OF_OPERATION.get(op)
    if form is not None and number != NOTHING:
        number = new_value(w, form, number)
    if path:
        number = new_value(w, Form.PART, number, path) if number != NOTHING else NOTHING
    if op == b"del":
        return new_value(w, Form.DELETED)
    if form is None:
        return new_value(w, Form.ASSIGNED, number, declared_type)
    return number if number != NOTHING else new_value(w, Form.UNKNOWN)


_FORM_OF_OPERATION: Final = {b"for": Form.ELEMENT, b"with": Form.ENTERED, b"except": Form.RAISED}


def add_stored_name(w: Walk, name: int, ctx: bytes, symbol: int, span: Span) -> None:
    """The row of `cst_name_refs` of a name that is bound or deleted."""
    start, end = span
    w.add_name_ref(
        scope_no=w.scope,
        name=name,
        ctx=w.pool[ctx],
        base=NOTHING,
        binding_no=w.first_symbol + symbol,
        bstart=start,
        name_bstart=start,
        name_bend=end,
        type_no=w.type_no,
        ask_no=NOTHING,
    )


def _inner_targets(node: Node, binding: Binding) -> list[tuple[object, ...]]:
    """The targets inside a target, as stack entries, each with its path inside the value."""
    targets = significant_children(node)
    path = binding.path
    # A declared type is that of the whole target.
    binding = binding._replace(declared_type=NOTHING)
    in_parentheses = node.kind_id in _PARENTHESES and all(c.kind_id != g.COMMA for c in node.children)
    if in_parentheses or binding.op == b"del" or len(path) >= _MAX_PATH:
        return [(bind_target, target, binding) for target in targets]
    star = next((at for at, target in enumerate(targets) if target.kind_id in _STARRED), len(targets))
    steps = [at if at < star else at - len(targets) for at in range(len(targets))]
    return [
        (bind_target, target, binding._replace(path=(*path, b"*" if at == star else b"%d" % step)))
        for at, (target, step) in enumerate(zip(targets, steps, strict=True))
    ]


def _push_value(w: Walk, node: Node, value: BoundExpression) -> None:
    """Push the expression of a value whose targets are visited first."""
    w.stack.append(node)
    if w.pool.texts[value.shape] in (b"call", b"lambda"):
        w.stack.append((_set_value_number, len(w.assigns), value))


def _set_value_number(w: Walk, first_row: int, value: BoundExpression) -> None:
    """Put the number of the call or lambda that is visited next into the rows of its targets."""
    assigns = w.assigns
    if w.pool.texts[value.shape] == b"call":
        column, number = "value_call_no", w.call_count
    else:
        column, number = "value_def_no", len(w.def_qualnames)
    for row, start in enumerate(assigns.cells[assigns.column("value_bstart", first_row)], first_row):
        if start == value.start:  # a target may contain a binding of another value: `a[b := c] = …`
            assigns.set(row, column, number)


def assignment(w: Walk, node: Node) -> None:
    """`a = b = value`, `a: T` or `a: T = value`."""
    targets = []
    while True:
        children = node.children
        target, value = children[0], children[-1]
        if children[1].kind_id != g.EQUALS and any(child.kind_id == g.TYPE for child in children):
            _annotated(w, children)
            break
        targets.append(target)
        if value.kind_id != g.ASSIGNMENT:
            bound = bound_expression(w, value)
            _push_value(w, value, bound)
            w.stack += [(bind_target, target, Binding(b"assign", bound)) for target in reversed(targets)]
            if w.scope == MODULE_SCOPE and any(w.text_of(t) == b"__all__" for t in targets):
                export_assignment(w, value)
            break
        node = value


def _annotated(w: Walk, children: list[Node]) -> None:
    target = children[0]
    annotated = next(child for child in children if child.kind_id == g.TYPE)
    value = nothing_bound(w)
    if children[-1].kind_id != g.TYPE:
        value = bound_expression(w, children[-1])
        _push_value(w, children[-1], value)
    start, end = target.start_byte, target.end_byte
    # A target other than a plain name is bound only if there is a value.
    flags, symbol = ASSIGNED if value.start != NOTHING else 0, NOTHING
    if target.kind_id == g.IDENTIFIER:
        flags = ASSIGNED | ANNOTATED
        symbol = w.first_symbol + w.scopes.symbol(w.scope, w.pool[w.text[start:end]])
        w.declared_types[symbol - w.first_symbol] = w.text_of(annotated)
    what = Annotated(b"variable", symbol=symbol, target=w.source_text(target))
    w.stack.append((annotation, annotated, what))
    declared_type = type_value(w, annotated)
    w.stack.append((bind_target, target, Binding(b"annotated", value, flags=flags, declared_type=declared_type)))
    if w.scope == MODULE_SCOPE and w.text[start:end] == b"__all__" and value.start != NOTHING:
        export_assignment(w, children[-1])


def augmented_assignment(w: Walk, node: Node) -> None:
    """`a += value`."""
    children = node.children
    target, value = children[0], children[-1]
    bound = bound_expression(w, value)
    _push_value(w, value, bound)
    w.stack.append((bind_target, target, Binding(b"augmented", bound)))
    if w.scope == MODULE_SCOPE and w.text_of(target) == b"__all__":
        export_entries(w, value)


def named_expression(w: Walk, node: Node) -> None:
    """`name := value`."""
    children = node.children
    start, end = children[0].start_byte, children[0].end_byte
    name = w.pool[w.text[start:end]]
    binding = Binding(b"walrus", next_bound_expression(w, children[-1]))
    w.stack.append(children[-1])
    symbol = w.scopes.bind_walrus(w.scope, name, (start, end))
    bind_value(w, symbol, node.end_byte, _target_value(w, binding))
    add_stored_name(w, name, b"store", symbol, (start, end))
    add_assign(w, b"name", name, (start, end), binding)


def delete_statement(w: Walk, node: Node) -> None:
    """`del a, b`."""
    w.statement_end = node.end_byte
    binding = Binding(b"del", nothing_bound(w))
    w.stack += [(bind_target, target, binding) for target in reversed(significant_children(node))]


def push_loop(w: Walk, node: Node, values_scope: int = NOTHING) -> None:
    """`for target in values`, statement or clause; `values_scope` if the values are evaluated in another scope."""
    inside = [child for child in node.children if not child.is_extra and child.kind_id not in (g.ASYNC, g.COMMA)]
    at_in = next((at for at, child in enumerate(inside) if child.kind_id == g.IN), None)
    if at_in is None or at_in + 1 == len(inside):
        w.stack += inside[::-1]
        return
    target, values, rest = inside[at_in - 1], inside[at_in + 1], inside[at_in + 2 :]
    here, w.scope = w.scope, w.scope if values_scope == NOTHING else values_scope
    bound = bound_expression(w, values)
    w.scope = here
    add_iteration(w, node, values, bound.number)
    w.stack += rest[::-1]
    if values_scope != NOTHING:
        w.stack.append(w.scope)
    _push_value(w, values, bound)
    if values_scope != NOTHING:
        w.stack.append(values_scope)
    w.stack.append((bind_target, target, Binding(b"for", bound)))


def as_pattern(w: Walk, node: Node) -> None:
    """`value as target` of a `with`."""
    children = node.children
    value, target = children[0], children[-1]
    w.stack += [(bind_target, target.children[0], Binding(b"with", next_bound_expression(w, value))), value]


def except_clause(w: Walk, node: Node) -> None:
    """`except value as name:`; the name is not an expression."""
    for child in reversed(node.named_children):
        if child.kind_id == g.AS_PATTERN:
            value, name = child.children[0], child.children[-1]
            w.stack += [(bind_name, name, Binding(b"except", next_bound_expression(w, value))), value]
        else:
            w.stack.append(child)


def bind_name(w: Walk, node: Node, binding: Binding) -> None:
    """Bind a name that is not written as an expression."""
    start, end = node.start_byte, node.end_byte
    if start != end:
        name = w.pool[w.text[start:end]]
        symbol = w.scopes.bind(w.scope, name, binding.op, (start, end))
        if binding.op == b"except" or binding.value.number != NOTHING:
            bind_value(w, symbol, end, _target_value(w, binding))
        add_assign(w, b"name", name, (start, end), binding)


def return_statement(w: Walk, node: Node) -> None:
    """`return value`."""
    w.statement_end = node.end_byte
    push_result(w, b"return", significant_children(node))


def yield_expression(w: Walk, node: Node) -> None:
    """`yield value` or `yield from value`."""
    w.generator_scopes.add(w.scope)
    delegates = any(child.kind_id == g.FROM for child in node.children)
    push_result(w, b"yield_from" if delegates else b"yield", significant_children(node))


def push_result(w: Walk, op: bytes, values: list[Node]) -> None:
    """The value that a function returns or yields."""
    value = next_bound_expression(w, values[0]) if values else nothing_bound(w)
    function = w.scope_defs[w.scope]
    if function != NOTHING:
        results = w.returns if op == b"return" else w.yields
        number = value.number
        if op == b"yield_from" and number != NOTHING:
            number = new_value(w, Form.ELEMENT, number)
        results.setdefault(function, []).append(number)
    add_assign(w, b"none", NOTHING, (NOTHING, NOTHING), Binding(op, value))
    w.stack += values[::-1]


HANDLERS: Final[Mapping[int, Handler]] = {
    g.ASSIGNMENT: assignment,
    g.kind("augmented_assignment"): augmented_assignment,
    g.NAMED_EXPRESSION: named_expression,
    g.kind("delete_statement"): delete_statement,
    g.kind("for_statement"): push_loop,
    g.FOR_IN_CLAUSE: push_loop,
    g.AS_PATTERN: as_pattern,
    g.kind("except_clause"): except_clause,
    g.kind("return_statement"): return_statement,
    g.kind("yield"): yield_expression,
}
