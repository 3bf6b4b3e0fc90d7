"""Expressions: the names and attributes that are read, and the calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.literals import string_value
from codeanatomy.extract.scopes.table import MODULE_SCOPE
from codeanatomy.extract.shapes import MAX_DOTTED, shape, start_of, unparenthesized, unstarred
from codeanatomy.extract.syntax.exports import export_call
from codeanatomy.extract.values.forms import expression_value, name_value
from codeanatomy.extract.walk import Handler, Walk

_CALLEE_SHAPES: Final = frozenset({b"name", b"attribute", b"call", b"subscript", b"lambda"})


class Dotted(NamedTuple):
    """The last name of an expression, its span, and the expression as a dotted name; what it has not is `NOTHING`."""

    name: int
    start: int
    end: int
    dotted: int


_NAMELESS: Final = Dotted(NOTHING, NOTHING, NOTHING, NOTHING)


def identifier(w: Walk, node: Node) -> None:
    """A name that is read."""
    read_name(w, node.start_byte, node.end_byte)


def read_name(w: Walk, start: int, end: int) -> int:
    """Add the row of the name between `start` and `end`, which is read; returns its cell."""
    if start == end:  # the parser inserted a missing name
        return NOTHING
    text = w.text[start:end]
    name = w.pool[text]
    scope = w.scope
    symbol = w.scopes.use(scope, name)
    if text == b"super":
        w.scopes.use_super(scope)
    number = name_value(w, start, end, symbol)
    w.add_name_ref(
        scope_no=scope,
        name=name,
        ctx=w.pool[b"load"],
        base=NOTHING,
        binding_no=w.first_symbol + symbol,
        bstart=start,
        name_bstart=start,
        name_bend=end,
        type_no=w.type_no,
        ask_no=number,
    )
    return name


def attribute(w: Walk, node: Node) -> None:
    """An attribute that is read."""
    attribute_chain(w, node, b"load")


def attribute_chain(w: Walk, node: Node, ctx: bytes) -> Dotted:
    """Add the rows of a chain of attributes, outermost first, and push the expression it starts from."""
    text, pool = w.text, w.pool
    number = expression_value(w, node)
    start = start_of(w, node)
    chain: list[AttributeSpan] = []
    while node.kind_id == g.ATTRIBUTE:
        children = node.children
        member = children[-1]
        chain.append(AttributeSpan(start, member.start_byte, member.end_byte))
        node = unstarred(children[0])
        if node.kind_id == g.PARENTHESIZED:
            node = unparenthesized(node)
            start = node.start_byte
    if node.kind_id == g.IDENTIFIER:
        base_start, base_end = node.start_byte, node.end_byte
        base = pool[text[base_start:base_end]]
        dotted = [base]
        for _, name_start, name_end in reversed(chain):
            if base != NOTHING and name_start != name_end and len(dotted) < MAX_DOTTED:
                base = pool[b"%b.%b" % (pool.texts[base], text[name_start:name_end])]
            else:
                base = NOTHING
            dotted.append(base)
    else:
        dotted = [NOTHING] * (len(chain) + 1)
    for span, base in zip(chain, dotted[-2::-1], strict=True):
        add_attribute(w, ctx, base, span, number)
        if number != NOTHING:
            number = w.values[number][1]
        ctx = b"load"
    if node.kind_id == g.IDENTIFIER:
        read_name(w, base_start, base_end)
    else:
        w.stack.append(node)
    _, name_start, name_end = chain[0]
    return Dotted(pool[text[name_start:name_end]], name_start, name_end, dotted[-1])


class AttributeSpan(NamedTuple):
    """Where an attribute starts, and where its name is; it ends with its name."""

    start: int
    name_start: int
    name_end: int


def add_attribute(w: Walk, ctx: bytes, base: int, span: AttributeSpan, number: int = NOTHING) -> None:
    """The row of one attribute, whose value is `number`; none if the source misses its name."""
    start, name_start, name_end = span
    if name_start != name_end:
        w.add_name_ref(
            scope_no=w.scope,
            name=w.pool[w.text[name_start:name_end]],
            ctx=w.pool[ctx],
            base=base,
            binding_no=NOTHING,
            bstart=start,
            name_bstart=name_start,
            name_bend=name_end,
            type_no=w.type_no,
            ask_no=number,
        )


def call(w: Walk, node: Node) -> None:
    """A call: its callee and its arguments."""
    children = node.children
    callee, arguments = unparenthesized(unstarred(children[0])), children[-1]
    keywords = positional = stars = double_stars = 0
    call_no = w.call_count
    if arguments.kind_id == g.GENERATOR:
        positional = 1
        w.stack.append(arguments)
    else:
        inside = arguments.named_children
        w.stack += inside[::-1]
        for argument in inside:
            kind = argument.kind_id
            if kind == g.KEYWORD_ARGUMENT:
                name = argument.children[0]
                keyword = w.pool[w.text_of(name)]
                w.cells.keywords.append(keyword)
                keywords += 1
                _add_argument(w, call_no, NOTHING, keyword, argument.children[-1])
            elif kind == g.DICTIONARY_SPLAT:
                double_stars = 1
            elif w.text.startswith(b"*", argument.start_byte):
                stars = 1
            elif kind not in _NOT_ARGUMENTS:
                if kind in _ARGUMENTS:
                    _add_argument(w, call_no, NOTHING if stars else positional, NOTHING, argument)
                positional += 1
    start, end = start_of(w, node), node.end_byte
    scope = w.scope
    w.call_count += 1
    kind = callee.kind_id
    callee_start, callee_end = start_of(w, callee), callee.end_byte
    number = expression_value(w, callee)
    if kind == g.ATTRIBUTE:
        last = attribute_chain(w, callee, b"load")
        if scope == MODULE_SCOPE:
            export_call(w, last.dotted, arguments)
    elif kind == g.IDENTIFIER:
        callee_name = read_name(w, callee_start, callee_end)
        last = Dotted(callee_name, callee_start, callee_end, callee_name) if callee_name != NOTHING else _NAMELESS
    else:
        last = _NAMELESS
        w.stack.append(callee)
    callee_shape = shape(callee)
    w.add_callsite(
        scope_no=scope,
        bstart=start,
        bend=end,
        callee_bstart=callee_start,
        callee_bend=callee_end,
        callee_name_bstart=last.start,
        callee_name_bend=last.end,
        callee_shape=w.pool[callee_shape if callee_shape in _CALLEE_SHAPES else b"other"],
        callee_name=last.name,
        dotted=last.dotted,
        arg_count=positional,
        keywords=keywords,
        has_star=stars,
        has_double_star=double_stars,
        ask_no=number,
    )


def _add_argument(w: Walk, call_no: int, position: int, keyword: int, node: Node) -> None:
    """The row of an argument, if it is a name, an attribute or a plain string."""
    node = unparenthesized(node)
    kind = node.kind_id
    if kind not in _ARGUMENTS or node.start_byte == node.end_byte:
        return
    constant = NOTHING
    if kind not in (g.IDENTIFIER, g.ATTRIBUTE):
        value = string_value(node, w.text)
        if value is None or len(value) > _MAX_CONSTANT:
            return
        constant = w.pool[value]
    w.add_argument(
        call_no=call_no,
        position=position,
        keyword=keyword,
        bstart=node.start_byte,
        bend=node.end_byte,
        constant=constant,
    )


_ARGUMENTS: Final = frozenset({g.IDENTIFIER, g.ATTRIBUTE, g.STRING, g.CONCATENATED_STRING, g.PARENTHESIZED})
_MAX_CONSTANT: Final = 200
_NOT_ARGUMENTS: Final = frozenset({g.COMMENT, g.LINE_CONTINUATION, g.ERROR})


def keyword_argument(w: Walk, node: Node) -> None:
    """`name=value`: only the value is an expression."""
    w.stack.append(node.children[-1])


def string(w: Walk, node: Node) -> None:
    """A string literal: only an f-string (or t-string) has expressions inside."""
    if not w.text.startswith((b'"', b"'"), node.start_byte):
        w.stack += [child for child in reversed(node.named_children) if child.kind_id == g.INTERPOLATION]


def interpolation(w: Walk, node: Node) -> None:
    """`{expression}` of an f-string, in which `x:=5` is `x` in the format `=5`."""
    for child in reversed(node.named_children):
        w.stack.append(child.children[0] if child.kind_id == g.NAMED_EXPRESSION else child)


def ignore(w: Walk, node: Node) -> None:
    """There are no facts inside."""


HANDLERS: Final[Mapping[int, Handler]] = {
    g.IDENTIFIER: identifier,
    g.ATTRIBUTE: attribute,
    g.CALL: call,
    g.KEYWORD_ARGUMENT: keyword_argument,
    g.STRING: string,
    g.INTERPOLATION: interpolation,
} | dict.fromkeys(
    map(
        g.kind,
        (
            "comment",
            "line_continuation",
            "integer",
            "float",
            "true",
            "false",
            "none",
            "ellipsis",
            "type_conversion",
            "positional_separator",
            "keyword_separator",
        ),
    ),
    ignore,
)
