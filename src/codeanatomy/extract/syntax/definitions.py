"""Functions, classes, lambdas and type aliases: their names, parameters, bases, decorators and scopes.

Decorators, defaults and class arguments are evaluated in the scope of the definition. So are annotations, unless the
definition has type parameters: those have a scope of their own, around the annotations and the body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING, key_of
from codeanatomy.extract.literals import string_value
from codeanatomy.extract.scopes.table import PARAMETER
from codeanatomy.extract.shapes import called_name, dotted_name, significant_children, unparenthesized
from codeanatomy.extract.syntax.assignments import Binding, add_stored_name, bind_target, push_result
from codeanatomy.extract.syntax.type_annotations import Annotated, annotation
from codeanatomy.extract.values.forms import Form, bind_value, expression_value, new_value, nothing_bound, type_value
from codeanatomy.extract.values.implicit_calls import add_implicit_call
from codeanatomy.extract.values.structure import Definition
from codeanatomy.extract.walk import Handler, NewScope, Walk

_ANONYMOUS: Final = b"<missing>"
_TRANSPARENT: Final = frozenset(
    {b"property", b"staticmethod", b"classmethod", b"setter", b"getter", b"deleter", b"abstractmethod", b"overload"}
    | {b"wraps", b"contextmanager", b"asynccontextmanager", b"dataclass", b"cached_property", b"lru_cache", b"cache"}
)
"""Decorators that need no look: the name stays what it is. Only a shortcut; others are looked up."""
_SEMICOLON: Final = re.compile(rb"[ \t\f]*;")


def decorated_definition(w: Walk, node: Node) -> None:
    """Decorators, which are evaluated before the definition, and the definition."""
    inside = significant_children(node)
    decorators = [
        unparenthesized(expression)
        for child in inside
        if child.kind_id == g.DECORATOR
        for expression in significant_children(child)
    ]
    definition = inside[-1]
    if definition.kind_id == g.CLASS_DEFINITION:
        w.stack.append((class_definition, definition, decorators))
    elif definition.kind_id == g.FUNCTION_DEFINITION:
        w.stack.append((function_definition, definition, decorators))
    w.stack += decorators[::-1]


def function_definition(w: Walk, node: Node, decorators: Sequence[Node] = ()) -> None:
    """`def name[T](parameters) -> returns: body`."""
    child_of = _first_child_by_kind(node)
    enclosing = w.scope
    name_node = child_of.get(g.IDENTIFIER)
    returns = child_of.get(g.TYPE)
    body = child_of.get(g.BLOCK)
    name = _bind_definition_name(w, node, name_node, b"def")
    def_no = len(w.def_qualnames)
    body_parent = _type_parameter_scope(w, node, name, child_of)
    scope = w.open_scope(NewScope(b"function", body_parent, name, def_no), node)
    head = _Head(
        kind=b"method" if w.scopes.kinds[enclosing] == b"class" else b"function",
        name=name,
        name_node=name_node,
        own_scope=scope,
        decorators=decorators,
        returns=returns,
        is_async=node.children[0].kind_id == g.ASYNC,
        body=body,
    )
    _add_definition(w, node, head)
    _push_body(w, node, body, scope, body_parent)
    if returns is not None:
        w.return_types[def_no] = type_value(w, returns) if body_parent == enclosing else NOTHING
        w.stack.append((annotation, returns, Annotated(b"return", def_no, def_no)))
    if g.PARAMETERS in child_of:
        _push_parameters(w, child_of[g.PARAMETERS], def_no, scope)
    _push_type_parameters(w, child_of, body_parent)


def class_definition(w: Walk, node: Node, decorators: Sequence[Node] = ()) -> None:
    """`class name[T](arguments): body`."""
    child_of = _first_child_by_kind(node)
    name_node = child_of.get(g.IDENTIFIER)
    body = child_of.get(g.BLOCK)
    name = _bind_definition_name(w, node, name_node, b"class")
    def_no = len(w.def_qualnames)
    body_parent = _type_parameter_scope(w, node, name, child_of, class_name=name)
    scope = w.open_scope(NewScope(b"class", body_parent, name, def_no, class_name=name), node)
    arguments = significant_children(child_of[g.ARGUMENT_LIST]) if g.ARGUMENT_LIST in child_of else []
    enclosing, w.scope = w.scope, body_parent
    _add_bases(w, arguments, def_no)
    w.scope = enclosing
    head = _Head(
        kind=b"class",
        name=name,
        name_node=name_node,
        own_scope=scope,
        decorators=decorators,
        base_count=len(arguments),
        body=body,
    )
    _add_definition(w, node, head)
    _push_body(w, node, body, scope, body_parent)
    w.stack += arguments[::-1]
    _push_type_parameters(w, child_of, body_parent)


def lambda_expression(w: Walk, node: Node) -> None:
    """`lambda parameters: body`."""
    enclosing = w.scope
    def_no = len(w.def_qualnames)
    container = w.scope_defs[enclosing]
    number = w.lambda_counts[container] = w.lambda_counts.get(container, 0) + 1
    w.lambdas[node.start_byte] = def_no
    scope = w.open_scope(NewScope(b"lambda", enclosing, b"lambda", def_no), node)
    _add_definition(w, node, _Head(b"lambda", b"<lambda%d>" % number, None, scope))
    children = node.children
    mark = (_mark_generator, len(w.defs) - 1, scope)
    w.stack += [enclosing, mark, (push_result, b"return", [children[-1]]), scope]
    if children[1].kind_id == g.LAMBDA_PARAMETERS:
        _push_parameters(w, children[1], def_no, scope)


def type_alias_statement(w: Walk, node: Node) -> None:
    """`type Name[T] = value`, whose value is evaluated lazily, in a scope of its own."""
    w.statement_end = node.end_byte
    left, *rest = significant_children(node)
    inside = significant_children(left)
    named = inside[0] if inside else left
    child_of = _first_child_by_kind(named) if named.kind_id == g.GENERIC_TYPE else {named.kind_id: named}
    name_node = child_of.get(g.IDENTIFIER)
    if name_node is None:  # not in the source
        w.stack += rest[::-1]
        return
    enclosing = w.scope
    start, end = name_node.start_byte, name_node.end_byte
    name = w.text[start:end]
    symbol = w.scopes.bind(enclosing, w.pool[name], b"type_alias", (start, end))
    add_stored_name(w, w.pool[name], b"store", symbol, (start, end))
    body_parent = _type_parameter_scope(w, node, name, child_of)
    scope = w.open_scope(NewScope(b"type_alias", body_parent, name, len(w.def_qualnames)), node)
    _add_definition(w, node, _Head(b"type_alias", name, name_node, scope))
    w.stack += [enclosing, *rest[::-1], scope]
    _push_type_parameters(w, child_of, body_parent)


def docstring(w: Walk, block: Node | None, def_no: int) -> tuple[int, int]:
    """Add the docstring that a body starts with, and return its span."""
    body = (block.named_child(at) for at in range(block.named_child_count)) if block is not None else ()
    first = next((child for child in body if child is not None and not child.is_extra), None)
    if first is None or first.kind_id != g.EXPRESSION_STATEMENT:
        return NOTHING, NOTHING
    inside = significant_children(first)
    literal = unparenthesized(inside[0]) if len(inside) == 1 else first
    value = string_value(literal, w.text)
    if value is None or first.children[-1].kind_id == g.COMMA:
        return NOTHING, NOTHING
    start, end = literal.start_byte, literal.end_byte
    w.cells.rows["docstrings"].add(def_no=def_no, bstart=start, bend=end, text=w.pool[value])
    return start, end


def _first_child_by_kind(node: Node) -> dict[int, Node]:
    """The first child of each kind."""
    return {child.kind_id: child for child in reversed(node.children)}


def _bind_definition_name(w: Walk, node: Node, name_node: Node | None, site: bytes) -> bytes:
    """Bind the name of a definition, and return it; a placeholder if the source has none."""
    if name_node is None or name_node.start_byte == name_node.end_byte:
        return _ANONYMOUS
    start, end = name_node.start_byte, name_node.end_byte
    name = w.text[start:end]
    symbol = w.scopes.bind(w.scope, w.pool[name], site, (start, end))
    # It is bound at the end: decorators, defaults and bases still see what the name was bound to before.
    bind_value(w, symbol, node.end_byte, new_value(w, Form.DEFINITION, len(w.def_qualnames)))
    return name


class _Head(NamedTuple):
    """A definition without its body."""

    kind: bytes
    name: bytes
    name_node: Node | None
    own_scope: int
    decorators: Sequence[Node] = ()
    base_count: int = 0
    returns: Node | None = None
    is_async: bool = False
    body: Node | None = None


def _add_definition(w: Walk, node: Node, head: _Head) -> None:
    """One row of `cst_defs`, and those of its decorators and docstring."""
    pool = w.pool
    def_no = len(w.def_qualnames)
    container = w.scope_defs[w.scope]
    qualname = w.qualify(w.def_qualnames[container] if container != NOTHING else b"", head.name)
    w.def_qualnames.append(qualname)
    ordinal = w.ordinal("def", qualname)
    dotted = [called_name(w, decorator) for decorator in head.decorators]
    w.definitions.append(
        Definition(
            head.kind,
            head.name,
            key_of(b"%b#%d" % (qualname, ordinal)).encode(),
            container,
            head.own_scope,
            tuple(pool.texts[each] for each in dotted if each != NOTHING),
            _signature(w, node, head),
        )
    )
    for position, decorator in enumerate(head.decorators):
        _add_decorator(w, decorator, def_no, position, dotted[position])
    overridden = NOTHING
    if head.kind == b"method" and container in w.classes_with_bases:
        overridden = new_value(w, Form.ATTRIBUTE, new_value(w, Form.OVERRIDDEN, container), head.name)
    doc_start, doc_end = docstring(w, head.body, def_no)
    returns, name_node = head.returns, head.name_node
    w.defs.add(
        scope_no=w.scope,
        own_scope_no=head.own_scope,
        kind=pool[head.kind],
        name=pool[head.name],
        qualname=pool[qualname],
        ordinal=ordinal,
        bstart=node.start_byte,
        bend=node.end_byte,
        name_bstart=name_node.start_byte if name_node is not None else NOTHING,
        name_bend=name_node.end_byte if name_node is not None else NOTHING,
        decorators=len(head.decorators),
        bases=head.base_count,
        returns=w.source_text(returns),
        is_async=head.is_async,
        is_generator=0,
        doc_bstart=doc_start,
        doc_bend=doc_end,
        overrides_ask_no=overridden,
    )


def _add_decorator(w: Walk, node: Node, def_no: int, position: int, dotted: int) -> None:
    """One row of `cst_decorators`, and the call that a decorator is."""
    number = expression_value(w, node)
    add_implicit_call(w, b"decorator", node, number)
    name = w.pool.texts[dotted].rpartition(b".")[2] if dotted != NOTHING else b""
    if number != NOTHING and name not in _TRANSPARENT:
        place = w.place(node.start_byte, node.end_byte)
        w.decorations.setdefault(def_no, []).insert(0, (number, place))
    if node.kind_id == g.CALL:
        number = expression_value(w, unparenthesized(node.children[0]))
    w.cells.rows["cst_decorators"].add(
        def_no=def_no,
        position=position,
        bstart=node.start_byte,
        bend=node.end_byte,
        text=w.source_text(node),
        dotted=dotted,
        ask_no=number,
    )


def _signature(w: Walk, node: Node, head: _Head) -> bytes:
    """The decorators and the head of a definition, as they are written."""
    colon = next((child for child in reversed(node.children) if child.kind_id == g.COLON), None) if head.body else None
    end = colon.start_byte if colon is not None else node.end_byte
    texts = [w.text_of(each) for each in head.decorators]
    return b"\n".join([*texts, w.text[node.start_byte : end].strip()])


def functions_of_scopes(w: Walk) -> list[int]:
    """For each scope, the function or lambda whose code it is part of; a class body is part of the enclosing one."""
    functions = []
    for number in w.scope_defs:
        while number != NOTHING and w.definitions[number].kind == b"class":
            number = w.definitions[number].container  # noqa: PLW2901 - outwards
        functions.append(number)
    return functions


def _add_bases(w: Walk, arguments: Sequence[Node], def_no: int) -> None:
    """Rows of `cst_bases`."""
    if arguments:
        w.classes_with_bases.add(def_no)
    for position, argument in enumerate(arguments):
        keyword = NOTHING
        given = argument
        if argument.kind_id == g.KEYWORD_ARGUMENT:
            named, given = argument.children[0], argument.children[-1]
            keyword = w.pool[w.text_of(named)]
        elif argument.kind_id in (g.LIST_SPLAT, g.DICTIONARY_SPLAT):
            given = argument.children[-1]
            keyword = w.pool[b"*" if argument.kind_id == g.LIST_SPLAT else b"**"]
        base = given = unparenthesized(given)
        while base.kind_id == g.SUBSCRIPT:
            base = base.children[0]
        number = expression_value(w, base)
        name = w.pool.texts[keyword] if keyword != NOTHING else b""
        w.base_values.append((def_no, number, position, name))
        w.cells.rows["cst_bases"].add(
            def_no=def_no,
            position=position,
            keyword=keyword,
            bstart=given.start_byte,
            bend=given.end_byte,
            text=w.source_text(argument),
            dotted=dotted_name(w, base),
            ask_no=number,
        )


def _push_body(w: Walk, node: Node, body: Node | None, scope: int, body_parent: int) -> None:
    """Push the body of the definition just added. Its scope was opened last, after that of its type parameters."""
    opened = [len(w.scope_rows) - back for back in ((1,) if body_parent == w.scope else (1, 2))]
    finish = (_finish_body, node, len(w.defs) - 1, opened, scope)
    w.stack += [w.scope, finish, scope] if body is None else [w.scope, finish, body, scope]


def _finish_body(w: Walk, node: Node, def_row: int, scope_rows: Sequence[int], scope: int) -> None:
    """After the body: correct the end of the definition and of its scopes, and mark a generator."""
    if w.statement_end > node.start_byte:
        closing = _SEMICOLON.match(w.text, w.statement_end)
        end = closing.end() if closing else w.statement_end
        w.defs.set(def_row, "bend", end)
        for row in scope_rows:
            w.scope_rows.set(row, "bend", end)
    _mark_generator(w, def_row, scope)


def _mark_generator(w: Walk, def_row: int, scope: int) -> None:
    """After the body: record whether it yields."""
    w.defs.set(def_row, "is_generator", scope in w.generator_scopes)


def _push_parameters(w: Walk, node: Node, def_no: int, scope: int) -> None:
    """Push the parameters of a function, each with its position and kind."""
    inside = significant_children(node)
    slash = next((at for at, child in enumerate(inside) if child.kind_id == g.POSITIONAL_SEPARATOR), 0)
    entries: list[Any] = []
    after_star = False
    for at, child in enumerate(inside):
        named = child.children[0] if child.kind_id == g.TYPED_PARAMETER else child
        kind = b"keyword_only" if after_star else b"positional_only" if at < slash else b"positional_or_keyword"
        if named.kind_id == g.POSITIONAL_SEPARATOR:
            continue
        if named.kind_id == g.KEYWORD_SEPARATOR:
            after_star = True
            continue
        if named.kind_id == g.LIST_SPLAT_PATTERN:
            after_star = True
            kind = b"var_positional"
        elif named.kind_id == g.DICTIONARY_SPLAT_PATTERN:
            kind = b"var_keyword"
        entries.append((_add_parameter, child, _Parameter(def_no, len(entries), kind, scope, w.scope)))
    w.stack += entries[::-1]


class _Parameter(NamedTuple):
    """Which parameter of which function: its body is the scope `body`, its defaults are evaluated in `enclosing`."""

    def_no: int
    position: int
    kind: bytes
    body: int
    enclosing: int


def _add_parameter(w: Walk, node: Node, parameter: _Parameter) -> None:
    """One row of `cst_params`, the binding of the parameter, and its annotation."""
    children = node.children
    named, annotated, default = node, None, None
    if node.kind_id in _WITH_DEFAULT:
        named, default = children[0], children[-1]
    if node.kind_id in _WITH_TYPE:
        named = children[0]
        annotated = next((child for child in children if child.kind_id == g.TYPE), None)
    if default is not None:
        w.stack += [w.scope, default, parameter.enclosing]
    if named.kind_id in _SPLATS:
        named = named.children[-1]
    if named.kind_id != g.IDENTIFIER:  # Python 2 could unpack a parameter
        w.stack += [w.scope, (bind_target, named, Binding(b"assign", nothing_bound(w))), parameter.body]
        return
    start, end = named.start_byte, named.end_byte
    name = w.pool[w.text[start:end]]
    symbol = w.scopes.bind(parameter.body, name, b"parameter", (start, end), PARAMETER)
    declared_type = type_value(w, annotated) if annotated is not None else NOTHING
    here, w.scope = w.scope, parameter.enclosing
    default_value = expression_value(w, default) if default is not None else NOTHING
    w.scope = here
    bind_value(
        w, symbol, start, new_value(w, Form.PARAMETER, *parameter[:3], declared_type, default_value, w.pool.texts[name])
    )
    w.parameters.setdefault(parameter.def_no, []).append((w.pool.texts[name], parameter.kind))
    w.cells.rows["cst_params"].add(
        def_no=parameter.def_no,
        position=parameter.position,
        name=name,
        kind=w.pool[parameter.kind],
        bstart=start,
        bend=end,
        default=w.source_text(default),
        annotation=w.source_text(annotated),
    )
    if annotated is not None:
        what = Annotated(b"parameter", w.param_count, parameter.def_no, parameter.position, target=name)
        w.stack.append((annotation, annotated, what))
    w.param_count += 1


def _type_parameter_scope(
    w: Walk, node: Node, name: bytes, child_of: Mapping[int, Node], class_name: bytes = b""
) -> int:
    """The parent of the scope of a definition's body: the scope of its type parameters, if it has any."""
    if g.TYPE_PARAMETER not in child_of:
        return w.scope
    return w.open_scope(NewScope(b"type_params", w.scope, name, class_name=class_name), node)


def _push_type_parameters(w: Walk, child_of: Mapping[int, Node], body_parent: int) -> None:
    """Push the type parameters, and the scope in which what follows them is evaluated."""
    if g.TYPE_PARAMETER in child_of:
        w.stack += [(_type_parameter, child) for child in reversed(significant_children(child_of[g.TYPE_PARAMETER]))]
        w.stack.append(body_parent)


def _type_parameter(w: Walk, node: Node) -> None:
    """`T`, `T: bound`, `*T` or `**T`; a bound is evaluated lazily, in a scope of its own."""
    named, bound = node, None
    while named.kind_id in _TYPE_WRAPPERS:
        inside = significant_children(named)
        if named.kind_id == g.CONSTRAINED_TYPE:
            bound = inside[-1]
        named = inside[0]
    if named.kind_id != g.IDENTIFIER:
        w.stack.append(named)
        return
    start, end = named.start_byte, named.end_byte
    name = w.text[start:end]
    w.scopes.bind(w.scope, w.pool[name], b"type_param", (start, end))
    if bound is not None:
        scope = w.open_scope(NewScope(b"type_bound", w.scope, name), bound)
        w.stack += [w.scope, bound, scope]


_WITH_DEFAULT: Final = frozenset({g.DEFAULT_PARAMETER, g.TYPED_DEFAULT_PARAMETER})
_WITH_TYPE: Final = frozenset({g.TYPED_PARAMETER, g.TYPED_DEFAULT_PARAMETER})
_SPLATS: Final = frozenset({g.LIST_SPLAT_PATTERN, g.DICTIONARY_SPLAT_PATTERN})
_TYPE_WRAPPERS: Final = frozenset({g.TYPE, g.CONSTRAINED_TYPE, g.SPLAT_TYPE})

HANDLERS: Final[Mapping[int, Handler]] = {
    g.kind("decorated_definition"): decorated_definition,
    g.FUNCTION_DEFINITION: function_definition,
    g.CLASS_DEFINITION: class_definition,
    g.LAMBDA: lambda_expression,
    g.kind("type_alias_statement"): type_alias_statement,
}
