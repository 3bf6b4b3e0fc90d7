"""Whatever binds or passes on a value: assignments, loops, `with`, `except`, `del`, walrus, comprehensions, `return`.

A target gets its row when the walk comes to it, so that its row and its reference are in source order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import ANNOTATED, ASSIGNED, COMPREHENSIONS, MODULE_SCOPE
from codeanatomy.extract.shapes import parts
from codeanatomy.extract.syntax.exports import export_assignment, export_entries
from codeanatomy.extract.syntax.expressions import attribute_chain
from codeanatomy.extract.syntax.type_annotations import Annotated, annotation
from codeanatomy.extract.values.forms import (
    Form,
    Value,
    bind_value,
    new_value,
    next_value,
    no_value,
    type_value,
    value,
    value_of,
)
from codeanatomy.extract.values.implicit_calls import add_iteration
from codeanatomy.extract.walk import Handler, Walk

_UNPACKING: Final = frozenset(
    {g.TUPLE, g.TUPLE_PATTERN, g.LIST, g.LIST_PATTERN, g.PATTERN_LIST, g.EXPRESSION_LIST, g.PARENTHESIZED}
)
_PARENTHESES: Final = frozenset({g.TUPLE, g.TUPLE_PATTERN, g.PARENTHESIZED})
_STARRED: Final = frozenset({g.LIST_SPLAT, g.LIST_SPLAT_PATTERN})
_MAX_PATH: Final = 100


class Binding(NamedTuple):
    """How a target is bound; `typed` is the value of its declared type."""

    op: bytes
    value: Value
    path: tuple[bytes, ...] = ()
    flags: int = ASSIGNED
    typed: int = NOTHING


def add_assign(w: Walk, shape: bytes, target: int, span: tuple[int, int], binding: Binding) -> None:
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


def store(w: Walk, node: Node, binding: Binding) -> None:
    """Bind (or, for `del`, unbind) a target, or each target inside it."""
    kind = node.kind_id
    starred = kind in _STARRED
    if starred:
        node = node.children[-1]
        kind = node.kind_id
    start, end = node.start_byte, node.end_byte
    op, bound, path, flags, typed = binding
    ctx = b"del" if op == b"del" else b"store"
    if kind == g.IDENTIFIER:
        if start == end:  # a name the parser misses
            return
        name = w.pool[w.text[start:end]]
        site = b"comprehension" if op == b"for" and w.scopes.kinds[w.scope] in COMPREHENSIONS else op
        symbol = w.scopes.bind(w.scope, name, site, start, end, flags) if flags else w.scopes.symbol(w.scope, name)
        held = _held(w, op, bound.number, (b"*",) if starred else path, typed)
        bind_value(w, symbol, max(end, bound.end), held)
        add_stored_name(w, name, ctx, symbol, start, end)
        add_assign(w, b"starred" if starred else b"name", name, (start, end), binding)
    elif kind == g.ATTRIBUTE:
        target = value(w, node)
        if target != NOTHING and op != b"del" and not starred:
            _, base, attribute = w.values[target]
            number = w.scope_defs[w.scope]
            in_constructor = number != NOTHING and w.definitions[number].name == b"__init__"
            is_certain = in_constructor and w.scope_blocks.get(w.scope) == w.block
            w.attribute_stores.append((base, attribute, _held(w, op, bound.number, path, typed), is_certain))
        dotted = attribute_chain(w, node, ctx).dotted
        add_assign(w, b"starred" if starred else b"attribute", dotted, (start, end), binding)
    elif kind in _UNPACKING:
        w.stack += _elements(node, binding)[::-1]
    else:
        if kind == g.SUBSCRIPT:
            add_assign(w, b"starred" if starred else b"subscript", NOTHING, (start, end), binding)
        w.stack.append(node)


def _held(w: Walk, op: bytes, number: int, path: tuple[bytes, ...] = (), typed: int = NOTHING) -> int:
    """The value that a target holds after a value was bound to it."""
    form = _HELD.get(op)
    if form is not None and number != NOTHING:
        number = new_value(w, form, number)
    if path:
        number = new_value(w, Form.PART, number, path) if number != NOTHING else NOTHING
    if op == b"del":
        return new_value(w, Form.DELETED)
    if form is None:
        return new_value(w, Form.ASSIGNED, number, typed)
    return number if number != NOTHING else new_value(w, Form.UNKNOWN)


_HELD: Final = {b"for": Form.ELEMENT, b"with": Form.ENTERED, b"except": Form.RAISED}


def add_stored_name(w: Walk, name: int, ctx: bytes, symbol: int, start: int, end: int) -> None:
    """The reference that is a name's binding."""
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


def _elements(node: Node, binding: Binding) -> list[tuple[object, ...]]:
    """The targets inside a target, each with its path inside the value."""
    targets = parts(node)
    path = binding.path
    # The type that an annotation declares is that of the whole target.
    binding = binding._replace(typed=NOTHING)
    in_parentheses = node.kind_id in _PARENTHESES and all(c.kind_id != g.COMMA for c in node.children)
    if in_parentheses or binding.op == b"del" or len(path) >= _MAX_PATH:
        return [(store, target, binding) for target in targets]
    star = next((at for at, target in enumerate(targets) if target.kind_id in _STARRED), len(targets))
    steps = [at if at < star else at - len(targets) for at in range(len(targets))]
    return [
        (store, target, binding._replace(path=(*path, b"*" if at == star else b"%d" % step)))
        for at, (target, step) in enumerate(zip(targets, steps, strict=True))
    ]


def _push_value(w: Walk, node: Node, value: Value) -> None:
    """Push a value whose targets come before it."""
    w.stack.append(node)
    if w.pool.texts[value.shape] in (b"call", b"lambda"):
        w.stack.append((_number_value, len(w.assigns), value))


def _number_value(w: Walk, first_row: int, value: Value) -> None:
    """The value comes next, which gives its number to the rows of its targets."""
    assigns = w.assigns
    if w.pool.texts[value.shape] == b"call":
        column, number = "value_call_no", w.call_count
    else:
        column, number = "value_def_no", len(w.def_qualnames)
    for row, start in enumerate(assigns.cells[assigns.column("value_bstart", first_row)], first_row):
        if start == value.start:  # a target may contain a binding of its own (`a[b := c] = …`), with another value
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
            bound = value_of(w, value)
            _push_value(w, value, bound)
            w.stack += [(store, target, Binding(b"assign", bound)) for target in reversed(targets)]
            if w.scope == MODULE_SCOPE and any(w.text[t.start_byte : t.end_byte] == b"__all__" for t in targets):
                export_assignment(w, value)
            break
        node = value


def _annotated(w: Walk, children: list[Node]) -> None:
    target = children[0]
    annotated = next(child for child in children if child.kind_id == g.TYPE)
    value = no_value(w)
    if children[-1].kind_id != g.TYPE:
        value = value_of(w, children[-1])
        _push_value(w, children[-1], value)
    start, end = target.start_byte, target.end_byte
    # In parentheses it is an ordinary target, which only a value binds.
    flags, symbol = ASSIGNED if value.start != NOTHING else 0, NOTHING
    if target.kind_id == g.IDENTIFIER:
        flags = ASSIGNED | ANNOTATED
        symbol = w.first_symbol + w.scopes.symbol(w.scope, w.pool[w.text[start:end]])
        w.declared_types[symbol - w.first_symbol] = w.text[annotated.start_byte : annotated.end_byte]
    what = Annotated(b"variable", symbol=symbol, target=w.source(start, end))
    w.stack.append((annotation, annotated, what))
    typed = type_value(w, annotated)
    w.stack.append((store, target, Binding(b"annotated", value, flags=flags, typed=typed)))
    if w.scope == MODULE_SCOPE and w.text[start:end] == b"__all__" and value.start != NOTHING:
        export_assignment(w, children[-1])


def augmented_assignment(w: Walk, node: Node) -> None:
    """`a += value`."""
    children = node.children
    target, value = children[0], children[-1]
    bound = value_of(w, value)
    _push_value(w, value, bound)
    w.stack.append((store, target, Binding(b"augmented", bound)))
    if w.scope == MODULE_SCOPE and w.text[target.start_byte : target.end_byte] == b"__all__":
        export_entries(w, value)


def named_expression(w: Walk, node: Node) -> None:
    """`name := value`."""
    children = node.children
    start, end = children[0].start_byte, children[0].end_byte
    name = w.pool[w.text[start:end]]
    binding = Binding(b"walrus", next_value(w, children[-1]))
    w.stack.append(children[-1])
    symbol = w.scopes.bind_walrus(w.scope, name, start, end)
    bind_value(w, symbol, node.end_byte, _held(w, b"walrus", binding.value.number))
    add_stored_name(w, name, b"store", symbol, start, end)
    add_assign(w, b"name", name, (start, end), binding)


def delete_statement(w: Walk, node: Node) -> None:
    """`del a, b`."""
    w.statement_end = node.end_byte
    binding = Binding(b"del", no_value(w))
    w.stack += [(store, target, binding) for target in reversed(parts(node))]


def push_loop(w: Walk, node: Node, values_scope: int = NOTHING) -> None:
    """`for target in values`, statement or clause; its values may be evaluated in another scope than its target."""
    inside = [child for child in node.children if not child.is_extra and child.kind_id not in (g.ASYNC, g.COMMA)]
    at_in = next((at for at, child in enumerate(inside) if child.kind_id == g.IN), None)
    if at_in is None or at_in + 1 == len(inside):
        w.stack += inside[::-1]
        return
    target, values, rest = inside[at_in - 1], inside[at_in + 1], inside[at_in + 2 :]
    here, w.scope = w.scope, w.scope if values_scope == NOTHING else values_scope
    bound = value_of(w, values)
    w.scope = here
    add_iteration(w, node, values, bound.number)
    w.stack += rest[::-1]
    if values_scope != NOTHING:
        w.stack.append(w.scope)
    _push_value(w, values, bound)
    if values_scope != NOTHING:
        w.stack.append(values_scope)
    w.stack.append((store, target, Binding(b"for", bound)))


def as_pattern(w: Walk, node: Node) -> None:
    """`value as target` of a `with`."""
    children = node.children
    value, target = children[0], children[-1]
    w.stack += [(store, target.children[0], Binding(b"with", next_value(w, value))), value]


def except_clause(w: Walk, node: Node) -> None:
    """`except value as name:`, whose name is no expression."""
    for child in reversed(node.named_children):
        if child.kind_id == g.AS_PATTERN:
            value, name = child.children[0], child.children[-1]
            w.stack += [(bind_name, name, Binding(b"except", next_value(w, value))), value]
        else:
            w.stack.append(child)


def bind_name(w: Walk, node: Node, binding: Binding) -> None:
    """Bind a name that is not written as an expression."""
    start, end = node.start_byte, node.end_byte
    if start != end:
        name = w.pool[w.text[start:end]]
        symbol = w.scopes.bind(w.scope, name, binding.op, start, end)
        if binding.op == b"except":
            bind_value(w, symbol, end, _held(w, b"except", binding.value.number))
        add_assign(w, b"name", name, (start, end), binding)


def return_statement(w: Walk, node: Node) -> None:
    """`return value`."""
    w.statement_end = node.end_byte
    push_result(w, b"return", parts(node))


def yield_expression(w: Walk, node: Node) -> None:
    """`yield value` or `yield from value`."""
    w.generators.add(w.scope)
    delegates = any(child.kind_id == g.FROM for child in node.children)
    push_result(w, b"yield_from" if delegates else b"yield", parts(node))


def push_result(w: Walk, op: bytes, values: list[Node]) -> None:
    """What a function hands out."""
    value = next_value(w, values[0]) if values else no_value(w)
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
