"""Whatever binds or passes on a value: assignments, loops, `with`, `except`, `del`, walrus, comprehensions, `return`.

A target is emitted when the walk comes to it, so that its row and its reference are in source order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.columns import STORED
from codeanatomy.extract.exports import export_assignment, export_entries
from codeanatomy.extract.expressions import attribute_chain
from codeanatomy.extract.scopes import ANNOTATED, ASSIGNED, COMPREHENSIONS, MODULE_SCOPE
from codeanatomy.extract.shapes import parts
from codeanatomy.extract.type_exprs import Annotated, annotation
from codeanatomy.extract.values import (
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
from codeanatomy.extract.walk import NOTHING, Handler, Walk

_UNPACKING: Final = frozenset(
    {g.TUPLE, g.TUPLE_PATTERN, g.LIST, g.LIST_PATTERN, g.PATTERN_LIST, g.EXPRESSION_LIST, g.PARENTHESIZED}
)
_PARENTHESES: Final = frozenset({g.TUPLE, g.TUPLE_PATTERN, g.PARENTHESIZED})
_STARRED: Final = frozenset({g.LIST_SPLAT, g.LIST_SPLAT_PATTERN})
_MAX_PATH: Final = 100

_WIDTH: Final = len(STORED["cst_assigns"])
_VALUE_START: Final = STORED["cst_assigns"].index("value_bstart")
_VALUE_CALL: Final = STORED["cst_assigns"].index("value_call_no")
_VALUE_DEF: Final = STORED["cst_assigns"].index("value_def_no")

_COMPREHENSION_SCOPES: Final = {
    g.kind("list_comprehension"): b"listcomp",
    g.kind("set_comprehension"): b"setcomp",
    g.kind("dictionary_comprehension"): b"dictcomp",
    g.GENERATOR: b"genexpr",
}


def emit_assign(
    w: Walk, op: bytes, shape: bytes, target: int, start: int, end: int, path: tuple[bytes, ...], value: Value
) -> None:
    """One row of `cst_assigns`."""
    pool = w.pool
    for step in path:
        w.cells.unpacks.append(pool[step])
    # scope_no, op, target_shape, target, target span, unpack, value_shape, value, value span, its call_no and def_no
    w.assigns.fromlist([w.scope, pool[op], pool[shape], target, start, end, len(path), *value.cells()])


def store(
    w: Walk,
    node: Node,
    op: bytes,
    bound: Value,
    path: tuple[bytes, ...] = (),
    flags: int = ASSIGNED,
    typed: int = NOTHING,
) -> None:
    """Bind (or, for `del`, unbind) a target, or each target inside it; `typed` is the value of its declared type."""
    kind = node.kind_id
    starred = kind in _STARRED
    if starred:
        node = node.children[-1]
        kind = node.kind_id
    start, end = node.start_byte, node.end_byte
    ctx = b"del" if op == b"del" else b"store"
    if kind == g.IDENTIFIER:
        if start == end:  # a name the parser misses
            return
        name = w.pool[w.text[start:end]]
        site = b"comprehension" if op == b"for" and w.scopes.kinds[w.scope] in COMPREHENSIONS else op
        symbol = w.scopes.bind(w.scope, name, site, start, end, flags) if flags else w.scopes.symbol(w.scope, name)
        bind_value(w, symbol, max(end, bound.end), _held(w, op, bound, path if not starred else (b"*",), typed))
        emit_stored_name(w, name, ctx, symbol, start, end)
        emit_assign(w, op, b"starred" if starred else b"name", name, start, end, path, bound)
    elif kind == g.ATTRIBUTE:
        target = value(w, node)
        if target != NOTHING and op != b"del" and not starred:
            _, base, attribute = w.values[target]
            number = w.scope_defs[w.scope]
            in_constructor = number != NOTHING and w.definitions[number].name == b"__init__"
            is_certain = in_constructor and w.scope_blocks.get(w.scope) == w.block
            w.attribute_stores.append((base, attribute, _held(w, op, bound, path, typed), is_certain))
        dotted = attribute_chain(w, node, ctx).dotted
        emit_assign(w, op, b"starred" if starred else b"attribute", dotted, start, end, path, bound)
    elif kind in _UNPACKING:
        w.stack += _elements(node, op, bound, path, flags)[::-1]
    else:
        if kind == g.SUBSCRIPT:
            emit_assign(w, op, b"starred" if starred else b"subscript", NOTHING, start, end, path, bound)
        w.stack.append(node)


def _held(w: Walk, op: bytes, bound: Value, path: tuple[bytes, ...], typed: int = NOTHING) -> int:
    """The value that a target holds after it was bound."""
    number = bound.number
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


def emit_stored_name(w: Walk, name: int, ctx: bytes, symbol: int, start: int, end: int) -> None:
    """The reference that is a name's binding."""
    # scope_no, name, ctx, is_attribute, base, binding_no (its symbol, for now), span, name span, type_no, ask_no
    w.refs.fromlist(
        [w.scope, name, w.pool[ctx], 0, NOTHING, w.first_symbol + symbol, start, end, start, end, w.type_no, NOTHING]
    )


def _elements(node: Node, op: bytes, value: Value, path: tuple[bytes, ...], flags: int) -> list[tuple[object, ...]]:
    """The targets inside a target, each with its path inside the value."""
    targets = parts(node)
    in_parentheses = node.kind_id in _PARENTHESES and all(c.kind_id != g.COMMA for c in node.children)
    if in_parentheses or op == b"del" or len(path) >= _MAX_PATH:
        return [(store, target, op, value, path, flags) for target in targets]
    star = next((at for at, target in enumerate(targets) if target.kind_id in _STARRED), len(targets))
    steps = [at if at < star else at - len(targets) for at in range(len(targets))]
    return [
        (store, target, op, value, (*path, b"*" if at == star else b"%d" % step), flags)
        for at, (target, step) in enumerate(zip(targets, steps, strict=True))
    ]


def _push_value(w: Walk, node: Node, value: Value) -> None:
    """Push a value whose targets come before it."""
    w.stack.append(node)
    if w.pool.texts[value.shape] in (b"call", b"lambda"):
        w.stack.append((_number_value, len(w.assigns), value))


def _number_value(w: Walk, first_cell: int, value: Value) -> None:
    """The value comes next, which gives its number to the rows of its targets."""
    assigns = w.assigns
    if w.pool.texts[value.shape] == b"call":
        column, number = _VALUE_CALL, w.call_count
    else:
        column, number = _VALUE_DEF, len(w.def_qualnames)
    for row in range(first_cell, len(assigns), _WIDTH):
        # A target may contain a binding of its own (`a[b := c] = …`), with another value.
        if assigns[row + _VALUE_START] == value.start:
            assigns[row + column] = number


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
            w.stack += [(store, target, b"assign", bound) for target in reversed(targets)]
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
    w.stack.append((store, target, b"annotated", value, (), flags, type_value(w, annotated)))
    if w.scope == MODULE_SCOPE and w.text[start:end] == b"__all__" and value.start != NOTHING:
        export_assignment(w, children[-1])


def augmented_assignment(w: Walk, node: Node) -> None:
    """`a += value`."""
    children = node.children
    target, value = children[0], children[-1]
    bound = value_of(w, value)
    _push_value(w, value, bound)
    w.stack.append((store, target, b"augmented", bound))
    if w.scope == MODULE_SCOPE and w.text[target.start_byte : target.end_byte] == b"__all__":
        export_entries(w, value)


def named_expression(w: Walk, node: Node) -> None:
    """`name := value`."""
    children = node.children
    start, end = children[0].start_byte, children[0].end_byte
    name = w.pool[w.text[start:end]]
    bound = next_value(w, children[-1])
    w.stack.append(children[-1])
    symbol = w.scopes.bind_walrus(w.scope, name, start, end)
    bind_value(w, symbol, node.end_byte, _held(w, b"walrus", bound, ()))
    emit_stored_name(w, name, b"store", symbol, start, end)
    emit_assign(w, b"walrus", b"name", name, start, end, (), bound)


def emit_implicit_call(w: Walk, kind: bytes, node: Node, number: int) -> None:
    """A call that a statement makes; `number` is the value that is called."""
    # scope_no, kind, span, ask_no (its value, for now)
    w.implicit_calls.fromlist([w.scope, w.pool[kind], node.start_byte, node.end_byte, number])


def with_statement(w: Walk, node: Node) -> None:
    """`with value as target, …:`, which enters and leaves each value."""
    prefix = b"__a" if node.children[0].kind_id == g.ASYNC else b"__"
    for clause in node.named_children:
        if clause.kind_id == g.WITH_CLAUSE:
            for item in (part for with_item in parts(clause) for part in parts(with_item)):
                entered = item.children[0] if item.kind_id == g.AS_PATTERN else item
                number = value(w, entered)
                if number != NOTHING:
                    methods = (new_value(w, Form.ATTRIBUTE, number, prefix + name) for name in (b"enter__", b"exit__"))
                    emit_implicit_call(w, b"with", entered, new_value(w, Form.EITHER, tuple(methods)))
    w.stack += node.named_children[::-1]


def delete_statement(w: Walk, node: Node) -> None:
    """`del a, b`."""
    w.statement_end = node.end_byte
    w.stack += [(store, target, b"del", no_value(w)) for target in reversed(parts(node))]


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
    prefix = b"__a" if node.children[0].kind_id == g.ASYNC else b"__"
    if bound.number != NOTHING:
        iterator = new_value(w, Form.ATTRIBUTE, bound.number, prefix + b"iter__")
        following = new_value(w, Form.ATTRIBUTE, new_value(w, Form.CALL, iterator), prefix + b"next__")
        emit_implicit_call(w, b"for", values, new_value(w, Form.EITHER, (iterator, following)))
    w.stack += rest[::-1]
    if values_scope != NOTHING:
        w.stack.append(w.scope)
    _push_value(w, values, bound)
    if values_scope != NOTHING:
        w.stack.append(values_scope)
    w.stack.append((store, target, b"for", bound))


def comprehension(w: Walk, node: Node) -> None:
    """A comprehension: a scope of its own, except that its first values are evaluated around it."""
    name = _COMPREHENSION_SCOPES[node.kind_id]
    around = w.scope
    inside = parts(node)
    first = next((at for at, part in enumerate(inside) if part.kind_id == g.FOR_IN_CLAUSE), None)
    scope = w.open_scope(name, around, name, node)
    w.stack.append(around)
    for at in range(len(inside) - 1, -1, -1):
        w.stack.append((push_loop, inside[at], around) if at == first else inside[at])
    w.stack.append(scope)


def as_pattern(w: Walk, node: Node) -> None:
    """`value as target` of a `with`."""
    children = node.children
    value, target = children[0], children[-1]
    w.stack += [(store, target.children[0], b"with", next_value(w, value)), value]


def except_clause(w: Walk, node: Node) -> None:
    """`except value as name:`, whose name is no expression."""
    for child in reversed(node.named_children):
        if child.kind_id == g.AS_PATTERN:
            value, name = child.children[0], child.children[-1]
            w.stack += [(bind_name, name, b"except", next_value(w, value)), value]
        else:
            w.stack.append(child)


def bind_name(w: Walk, node: Node, op: bytes, value: Value) -> None:
    """Bind a name that is not written as an expression."""
    start, end = node.start_byte, node.end_byte
    if start != end:
        name = w.pool[w.text[start:end]]
        symbol = w.scopes.bind(w.scope, name, op, start, end)
        if op == b"except":
            bind_value(w, symbol, end, _held(w, op, value, ()))
        emit_assign(w, op, b"name", name, start, end, (), value)


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
    emit_assign(w, op, b"none", NOTHING, NOTHING, NOTHING, (), value)
    w.stack += values[::-1]


HANDLERS: Final[Mapping[int, Handler]] = {
    g.ASSIGNMENT: assignment,
    g.kind("augmented_assignment"): augmented_assignment,
    g.NAMED_EXPRESSION: named_expression,
    g.kind("delete_statement"): delete_statement,
    g.kind("for_statement"): push_loop,
    g.FOR_IN_CLAUSE: push_loop,
    g.kind("with_statement"): with_statement,
    g.AS_PATTERN: as_pattern,
    g.kind("except_clause"): except_clause,
    g.kind("return_statement"): return_statement,
    g.kind("yield"): yield_expression,
} | dict.fromkeys(_COMPREHENSION_SCOPES, comprehension)
