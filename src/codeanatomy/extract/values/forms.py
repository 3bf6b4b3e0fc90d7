"""Expressions as values, in the few forms that can be followed to a definition.

Handlers create values for calls, attributes, bindings and annotations; what a name in them is bound to is decided at
the end, by `terms`. A value is the number of a row of `Walk.values`, a tuple that starts with its form. An expression
that cannot be followed (arithmetic, slices, …) has the value `NOTHING`. This module adds no facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.literals import string_value
from codeanatomy.extract.shapes import called_name, shape, significant_children, unparenthesized, unstarred
from codeanatomy.extract.values.structure import BindingSite
from codeanatomy.extract.walk import Walk

_MAX_DEPTH: Final = 60
_MAX_ITEMS: Final = 64

_DOTTED: Final = re.compile(rb"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FORMATTED: Final = re.compile(rb"""[fF][rR]?["']([^\W\d]\w*)\{""")
_BOUND: Final = re.compile(rb"(-?\d{1,6})?")
_IMPORTERS: Final = frozenset({b"importlib.import_module", b"import_module", b"__import__"})
_CONTAINERS: Final = frozenset(
    {b"list", b"dict", b"set", b"deque", b"defaultdict", b"OrderedDict"}
    | {b"collections.deque", b"collections.defaultdict", b"collections.OrderedDict"}
)
_CHOICES: Final = frozenset({b"Optional", b"Union"})
_WRAPPERS: Final = frozenset(
    {b"Annotated", b"Final", b"ClassVar", b"Required", b"NotRequired", b"ReadOnly", b"InitVar"}
)
_NO_CLASS: Final = frozenset({b"Type", b"type", b"Callable", b"Literal"})
_NO_NAMES: Final = _CHOICES | _WRAPPERS | _NO_CLASS | {b"None"}


class Form:
    """The first element of a value's row; the others follow in the order given.

    Not an enumeration: in Python 3.11, reading a member of one takes five times as long, and every name reads some.
    """

    NAME: Final = 0  # symbol, scope, position: a name where it is read
    ATTRIBUTE: Final = 1  # value, name
    CALL: Final = 2  # value of the callee; if it is written: arguments (place and value), name of the place or empty
    SUPER: Final = 3  # symbol of `super`, scope, value of the class given or NOTHING
    GETATTR: Final = 4  # symbol of `getattr`, value, name
    CLASS_OF: Final = 5  # symbol of `type`, value
    LITERAL: Final = 6  # name of the builtin class
    ITEMS: Final = 7  # name of the builtin class, keys, values, place: a display of a list, tuple, set or dict
    ITEM: Final = 8  # value, key or None
    EITHER: Final = 9  # values
    LAMBDA: Final = 10  # first byte
    TYPE_NAME: Final = 11  # dotted name inside a string annotation
    IMPORT: Final = 12  # level, module, imported name or empty
    DEFINITION: Final = 13  # def_no
    PARAMETER: Final = 14  # def_no, position, kind, value of its type, value of its default, name
    ELEMENT: Final = 15  # value: the target of a loop over it
    ENTERED: Final = 16  # value: the target of `with`
    RAISED: Final = 17  # value: the name that `except` binds
    PART: Final = 18  # value, path of an unpacked target
    ASSIGNED: Final = 19  # value, value of the declared type: what an assignment binds
    DELETED: Final = 20  # the name is not bound any more
    OVERRIDDEN: Final = 21  # def_no of a class: its `super()`
    SUM: Final = 22  # values of the left and the right operand
    UNKNOWN: Final = 23  # something that cannot be followed
    LIMIT: Final = 24  # something that is not followed because a limit was hit
    COMPREHENSION: Final = 25  # name of the builtin class, first byte, place
    SLICE: Final = 26  # value


class BoundExpression(NamedTuple):
    """The expression a target is bound to: cells of a row of `cst_assigns`, and its value (`number`)."""

    shape: int
    dotted: int
    start: int
    end: int
    call_no: int = NOTHING
    def_no: int = NOTHING
    number: int = NOTHING


def nothing_bound(w: Walk) -> BoundExpression:
    """The absence of an expression: nothing is bound, or nothing that is written in the source."""
    return BoundExpression(w.pool[b"none"], NOTHING, NOTHING, NOTHING)


def bound_expression(w: Walk, node: Node) -> BoundExpression:
    """`node` as the expression a target is bound to; the walk visits it later."""
    node = unparenthesized(node)
    return BoundExpression(
        w.pool[shape(node)], called_name(w, node), node.start_byte, node.end_byte, number=expression_value(w, node)
    )


def next_bound_expression(w: Walk, node: Node) -> BoundExpression:
    """The same if the walk visits it next, so that the number of the call or lambda is known."""
    bound = bound_expression(w, node)
    kind = w.pool.texts[bound.shape]
    if kind == b"call":
        return bound._replace(call_no=w.call_count)
    return bound._replace(def_no=len(w.def_qualnames)) if kind == b"lambda" else bound


def new_value(w: Walk, *row: Any) -> int:
    """Add a value: its form and the rest of its row."""
    w.values.append(row)
    return len(w.values) - 1


def bind_value(w: Walk, symbol: int, position: int, number: int) -> None:
    """Record that a name is bound to a value, from this position on."""
    w.binding_sites.setdefault(symbol, []).append(BindingSite(position, w.block, number))


def name_value(w: Walk, start: int, end: int, symbol: int = NOTHING) -> int:
    """The value of the name that is read between `start` and `end`."""
    known = w.name_values.get(start)
    if known is not None:
        return known
    if start == end:
        return NOTHING
    if symbol == NOTHING:
        symbol = w.scopes.symbol(w.scope, w.pool[w.text[start:end]])
    number = w.name_values[start] = new_value(w, Form.NAME, symbol, w.scope, start)
    return number


def expression_value(w: Walk, node: Node, depth: int = 0) -> int:
    """The value of an expression in the current scope of the walk."""
    kind = node.kind_id
    if kind == g.IDENTIFIER:
        return name_value(w, node.start_byte, node.end_byte)
    build = _BUILDERS.get(kind)
    if build is None:
        return NOTHING
    if depth > _MAX_DEPTH:
        return limit_value(w)
    key = node.id
    known = w.node_values.get(key)
    if known is None:
        limits_before = w.limit_count
        known = build(w, node, depth + 1)
        # The value of an inner node is kept unless it hit a limit: as an outermost node, it may be followed further.
        if depth == 0 or (known != NOTHING and w.limit_count == limits_before):
            w.node_values[key] = known
    return known


def limit_value(w: Walk) -> int:
    """The value of something that is not followed because a limit was hit."""
    w.limit_count += 1
    return new_value(w, Form.LIMIT)


def type_value(w: Walk, node: Node, depth: int = 0) -> int:
    """The value of the class that an annotation names, or of the classes of a union."""
    kind = node.kind_id
    if depth > _MAX_DEPTH:
        return NOTHING
    if kind in (g.IDENTIFIER, g.ATTRIBUTE):
        return expression_value(w, node)
    if kind in (g.TYPE, g.PARENTHESIZED):
        inside = significant_children(node)
        return type_value(w, inside[0], depth + 1) if len(inside) == 1 else NOTHING
    if kind in (g.STRING, g.CONCATENATED_STRING):
        return _quoted_type(w, string_value(node, w.text))
    if kind in (g.BINARY_OPERATOR, g.UNION_TYPE):
        return _either(w, [type_value(w, part, depth + 1) for part in significant_children(node)])
    if kind in (g.GENERIC_TYPE, g.SUBSCRIPT):
        return _generic_type(w, node, depth)
    return NOTHING


def _generic_type(w: Walk, node: Node, depth: int) -> int:
    """`Base[arguments]`."""
    base, *arguments = significant_children(node)
    if len(arguments) == 1 and arguments[0].kind_id == g.TYPE_PARAMETER:
        arguments = significant_children(arguments[0])
    name = w.text_of(base).rpartition(b".")[2]
    if name in _CHOICES:
        return _either(w, [type_value(w, argument, depth + 1) for argument in arguments])
    if name in _WRAPPERS:
        return type_value(w, arguments[0], depth + 1) if arguments else NOTHING
    return NOTHING if name in _NO_CLASS else type_value(w, base, depth + 1)


def _quoted_type(w: Walk, text: bytes | None) -> int:
    names = [name.partition(b"[")[0].strip() for name in (text or b"").split(b"|")]
    return _either(
        w, [new_value(w, Form.TYPE_NAME, name) for name in names if _DOTTED.fullmatch(name) and name not in _NO_NAMES]
    )


def _either(w: Walk, values: list[int]) -> int:
    """One of several values."""
    known = [each for each in values if each != NOTHING]
    if len(known) <= 1:
        return known[0] if known else NOTHING
    return new_value(w, Form.EITHER, tuple(known))


def _attribute(w: Walk, node: Node, depth: int) -> int:
    names = []
    while node.kind_id == g.ATTRIBUTE:
        children = node.children
        names.append(w.text_of(children[-1]))
        node = unparenthesized(unstarred(children[0]))
    base = expression_value(w, node, depth) if len(names) <= _MAX_DEPTH else limit_value(w)
    if base == NOTHING:
        return NOTHING
    for name in reversed(names):
        base = new_value(w, Form.ATTRIBUTE, base, name)
    return base


def _call(w: Walk, node: Node, depth: int) -> int:
    children = node.children
    callee = unparenthesized(unstarred(children[0]))
    if callee.kind_id == g.IDENTIFIER:
        special = _SPECIAL_CALLS.get(w.text_of(callee))
        if special is not None and children[-1].kind_id == g.ARGUMENT_LIST:
            number = special(w, significant_children(children[-1]), depth)
            if number != NOTHING:
                return number
    if w.text_of(callee) in _IMPORTERS and children[-1].kind_id == g.ARGUMENT_LIST:
        number = _import_by_name(w, significant_children(children[-1]))
        if number != NOTHING:
            return number
    called = expression_value(w, callee, depth)
    if called == NOTHING:
        return NOTHING
    arguments = _arguments(w, children[-1], depth)
    passes = any(w.values[number][0] != Form.LITERAL for _, number in arguments)
    is_new = w.text_of(callee) in _CONTAINERS
    return new_value(
        w, Form.CALL, called, arguments, w.place(node.start_byte, node.end_byte) if passes or is_new else b""
    )


def _arguments(w: Walk, node: Node, depth: int) -> tuple[tuple[bytes, int], ...]:
    """The arguments of a call that have a value, each with its place: a position, a keyword, `*position` or `**`.

    The position of an argument after a starred one is not known: its place is `+position`, which is the first possible.
    """
    found: list[tuple[bytes, int]] = []
    if node.kind_id == g.GENERATOR:
        return ((b"0", expression_value(w, node, depth)),)
    position, starred = 0, False
    for argument in node.named_children[:_MAX_ITEMS]:
        kind = argument.kind_id
        if argument.is_extra or kind == g.ERROR:
            continue
        given = argument
        if kind == g.KEYWORD_ARGUMENT:
            place, given = w.text_of(argument.children[0]), argument.children[-1]
        elif kind == g.DICTIONARY_SPLAT:
            place, given = b"**", argument.children[-1]
        elif kind == g.LIST_SPLAT:
            place, given, starred = b"*%d" % position, argument.children[-1], True
        else:
            place = (b"+%d" if starred else b"%d") % position
            position += not starred
        number = expression_value(w, unparenthesized(given), depth) if given.kind_id not in g.LITERALS else NOTHING
        if number != NOTHING:
            found.append((place, number))
    return tuple(found)


def _import_by_name(w: Walk, arguments: list[Node]) -> int:
    """`import_module("name")`."""
    name = string_value(unparenthesized(arguments[0]), w.text) if len(arguments) == 1 else None
    if name is None or not _DOTTED.fullmatch(name):
        return NOTHING
    return new_value(w, Form.IMPORT, 0, name, b"")


def add_call_value(w: Walk, node: Node, callee: Node, arguments: Node) -> None:
    """Record a call that is written; `setattr` with a constant name is an assignment."""
    number = expression_value(w, node)
    if number != NOTHING and w.values[number][0] == Form.CALL:
        w.call_values.append(number)
    if callee.kind_id == g.IDENTIFIER and w.text_of(callee) == b"setattr" and arguments.kind_id == g.ARGUMENT_LIST:
        given = significant_children(arguments)
        name = string_value(unparenthesized(given[1]), w.text) if len(given) == 3 else None
        base = expression_value(w, given[0]) if name is not None and _DOTTED.fullmatch(name) else NOTHING
        value = expression_value(w, given[2]) if base != NOTHING else NOTHING
        if name is not None and value != NOTHING:
            w.attribute_stores.append((base, name, new_value(w, Form.ASSIGNED, value, NOTHING), False))


def _super(w: Walk, arguments: list[Node], depth: int) -> int:
    symbol = w.scopes.symbol(w.scope, w.pool[b"super"])
    given = expression_value(w, arguments[0], depth) if arguments else NOTHING
    if arguments and given == NOTHING:
        return NOTHING
    return new_value(w, Form.SUPER, symbol, w.scope, given)


def _getattr(w: Walk, arguments: list[Node], depth: int) -> int:
    name = _attribute_name(w, unparenthesized(arguments[1])) if len(arguments) > 1 else None
    of = expression_value(w, arguments[0], depth) if name is not None else NOTHING
    if of == NOTHING:
        return NOTHING
    found = new_value(w, Form.GETATTR, w.scopes.symbol(w.scope, w.pool[b"getattr"]), of, name)
    has_default = len(arguments) == 3 and arguments[2].kind_id not in g.LITERALS
    return _either(w, [found, expression_value(w, arguments[2], depth)]) if has_default else found


def _attribute_name(w: Walk, node: Node) -> bytes | None:
    """The name that a string is; of `"start" + x` and `f"start{x}"`, the start and a star."""
    name, more = string_value(node, w.text), b""
    if node.kind_id == g.BINARY_OPERATOR and w.text_of(node.children[1]) in (b"+", b"%"):
        left = string_value(node.children[0], w.text)
        name, more = (left.partition(b"%")[0] if left is not None else None), b"*"
    elif node.kind_id == g.STRING and (opening := _FORMATTED.match(w.text, node.start_byte, node.end_byte)):
        name, more = opening[1], b"*"
    return name + more if name is not None and _DOTTED.fullmatch(name) and b"." not in name else None


def _class_of(w: Walk, arguments: list[Node], depth: int) -> int:
    if len(arguments) == 3 and arguments[1].kind_id == g.TUPLE:  # a class that is made has the members of its bases
        return _either(w, [expression_value(w, base, depth) for base in significant_children(arguments[1])])
    of = expression_value(w, arguments[0], depth) if len(arguments) == 1 else NOTHING
    if of == NOTHING:
        return NOTHING
    return new_value(w, Form.CLASS_OF, w.scopes.symbol(w.scope, w.pool[b"type"]), of)


_SPECIAL_CALLS: Final[Mapping[bytes, Callable[[Walk, list[Node], int], int]]] = {
    b"super": _super,
    b"getattr": _getattr,
    b"type": _class_of,
}


def _display(w: Walk, node: Node, depth: int) -> int:
    """A display of a list, tuple, set or dict. The positions of elements after a starred one are not known.

    If it is very long, its last value is a limit.
    """
    keys: list[object] = []
    values: list[int] = []
    spread: list[tuple[bool, int]] = []
    elements = significant_children(node)
    for at, element in enumerate(elements[:_MAX_ITEMS]):
        if element.kind_id == g.PAIR:
            key, item = element.children[0], element.children[-1]
            keys.append(constant_key(w, key))
            values.append(expression_value(w, item, depth) if item.kind_id not in g.LITERALS else NOTHING)
        else:
            splat = element.kind_id in (g.LIST_SPLAT, g.DICTIONARY_SPLAT)
            keys.append(None if splat else at)
            values.append(NOTHING if splat or element.kind_id in g.LITERALS else expression_value(w, element, depth))
            if splat:
                spread.append((element.kind_id == g.DICTIONARY_SPLAT, expression_value(w, element.children[-1], depth)))
    if len(elements) > _MAX_ITEMS:
        keys.append(None)
        values.append(limit_value(w))
    place = w.place(node.start_byte, node.end_byte)
    return new_value(w, Form.ITEMS, _DISPLAYS[node.kind_id], tuple(keys), tuple(values), place, tuple(spread))


def constant_key(w: Walk, node: Node) -> object:
    """The key that a constant expression is: a string or a small number; None for anything else."""
    text = w.text_of(node)
    if node.kind_id == g.INTEGER and text.isdigit() and len(text) < 10:
        return int(text)
    if node.kind_id == g.UNARY_OPERATOR and text[:1] == b"-" and text[1:].isdigit() and len(text) < 10:
        return int(text)
    return string_value(node, w.text)


def _item(w: Walk, node: Node, depth: int) -> int:
    container, *keys = significant_children(node)
    number = expression_value(w, container, depth)
    if number == NOTHING:
        return NOTHING
    if len(keys) == 1 and keys[0].kind_id == g.SLICE:
        return _slice(w, number, keys[0])
    return new_value(w, Form.ITEM, number, constant_key(w, keys[0]) if len(keys) == 1 else None)


def _slice(w: Walk, number: int, node: Node) -> int:
    """`value[start:stop]`: of a display with constant bounds, a display."""
    row = w.values[number]
    bounds = w.text_of(node).split(b":")
    if row[0] == Form.ITEMS and row[1] != b"dict" and not row[5] and len(bounds) == 2:
        texts = [bound.strip() for bound in bounds]
        if all(_BOUND.fullmatch(text) for text in texts):
            part = slice(*(int(text) if text else None for text in texts))
            values = row[3][part]
            return new_value(
                w, Form.ITEMS, row[1], tuple(range(len(values))), values, w.place(node.start_byte, node.end_byte), ()
            )
    return new_value(w, Form.SLICE, number)


def _conditional(w: Walk, node: Node, depth: int) -> int:
    inside = significant_children(node)
    return _either(w, [expression_value(w, part, depth) for part in (inside[0], inside[-1])])


def _sum(w: Walk, node: Node, depth: int) -> int:
    """`a + b` or `a % b`, which has the class of `a` if that is a sequence or a string."""
    children = node.children
    if len(children) != 3 or w.text_of(children[1]) not in (b"+", b"%"):
        return NOTHING
    left = expression_value(w, children[0], depth)
    right = expression_value(w, children[2], depth) if w.text_of(children[1]) == b"+" else NOTHING
    return new_value(w, Form.SUM, left, right) if left != NOTHING or right != NOTHING else NOTHING


def _literal(w: Walk, node: Node, depth: int) -> int:
    name = _LITERAL_CLASSES.get(node.kind_id)
    if name == b"str":
        prefix = w.text[node.start_byte : node.start_byte + 2].lower().partition(b"'")[0].partition(b'"')[0]
        name = b"bytes" if b"b" in prefix else name
    return new_value(w, Form.LITERAL, name) if name else NOTHING


def _comprehension(w: Walk, node: Node, depth: int) -> int:
    place = w.place(node.start_byte, node.end_byte)
    return new_value(w, Form.COMPREHENSION, _COMPREHENSIONS[node.kind_id], node.start_byte, place)


def _last_child(w: Walk, node: Node, depth: int) -> int:
    """The value of `x` in `await x`, `name := x` and `(x)`."""
    inside = significant_children(node)
    return expression_value(w, inside[-1], depth) if inside else NOTHING


_DISPLAYS: Final = {
    g.LIST: b"list",
    g.TUPLE: b"tuple",
    g.EXPRESSION_LIST: b"tuple",
    g.PATTERN_LIST: b"tuple",
    g.SET: b"set",
    g.DICTIONARY: b"dict",
}
_LITERAL_CLASSES: Final = {
    g.STRING: b"str",
    g.CONCATENATED_STRING: b"str",
    g.INTEGER: b"int",
    g.kind("float"): b"float",
    g.kind("true"): b"bool",
    g.kind("false"): b"bool",
}
_COMPREHENSIONS: Final = {
    g.kind("list_comprehension"): b"list",
    g.kind("set_comprehension"): b"set",
    g.kind("dictionary_comprehension"): b"dict",
    g.GENERATOR: b"",
}
_BUILDERS: Final[Mapping[int, Callable[[Walk, Node, int], int]]] = {
    g.ATTRIBUTE: _attribute,
    g.CALL: _call,
    g.SUBSCRIPT: _item,
    g.LAMBDA: lambda w, node, _: new_value(w, Form.LAMBDA, node.start_byte),
    g.kind("conditional_expression"): _conditional,
    g.kind("boolean_operator"): _conditional,
    g.BINARY_OPERATOR: _sum,
    g.kind("await"): _last_child,
    g.NAMED_EXPRESSION: _last_child,
    g.PARENTHESIZED: _last_child,
    **dict.fromkeys(_DISPLAYS, _display),
    **dict.fromkeys(_LITERAL_CLASSES, _literal),
    **dict.fromkeys(_COMPREHENSIONS, _comprehension),
}
