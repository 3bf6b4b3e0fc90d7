"""What the source says about a place in it: whose code it is, and in which form it makes a call.

A trace tells places; the graph tells names. `SourceFile` gives a place the name of the function whose code it is, gives
code objects the names of their definitions, as the graph names them, and says of a call which of the `Form`s it has.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from bench.accuracy.tracer import Callee, Span, span_of

_Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
_Lines: TypeAlias = tuple[int, int]

_EVERYWHERE: Span = (0, sys.maxsize, 0, 0)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.AugAssign)
_ITERATION = frozenset({"__iter__", "__next__", "__aiter__", "__anext__"})
_WITH = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__"})


class Form(StrEnum):
    """How the source calls, in the order of the report."""

    NAME = "name call"
    SELF = "self/cls method"
    SUPER = "super()"
    MODULE = "module attribute"
    OTHER = "attribute of other object"
    CLASS = "class instantiation"
    RESULT = "call of a call/subscript result"
    INSTANCE = "object with __call__"
    RENAMED = "under another name (parameter, alias, wrapper)"
    PROPERTY = "property"
    DECORATOR = "decorator"
    WITH = "with"
    ITERATION = "iteration"
    PROTOCOL = "operator or other protocol"
    BARE = "class without __init__ in the tree"
    THROUGH_C = "callback through code outside the tree"


class _Body(NamedTuple):
    """The code of a function, a lambda or the module."""

    span: Span
    name: str
    is_lambda: bool
    variables: Mapping[str, bool]
    """The names it binds: whether as a variable, or else by definition or import."""


class SourceFile:
    """One file of the tree."""

    def __init__(self, module: str, text: bytes, modules: Collection[str], is_package: bool) -> None:
        tree = ast.parse(text)
        self.module = module
        self.names = {module}
        """The module and everything defined in it."""
        self.decorated: set[str] = set()
        self._functions: dict[tuple[int, str], str] = {}
        self._bodies: list[_Body] = []
        self._nodes: dict[Span, list[ast.expr | ast.stmt]] = {}
        self._attributes: dict[tuple[int, int], ast.Attribute] = {}
        self._decorators: set[Span] = set()
        self._iterated: set[Span] = set()
        self._modules: set[str] = set()
        """The dotted names, as written in the file, that stand for modules."""
        self._bodies.append(_Body(_EVERYWHERE, module, False, _variables(tree.body, ())))
        self._define(module, tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.expr | ast.stmt):
                self._index(node)
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                self._iterated.add(span_of(node.iter))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._modules.update(_imported_modules(node, module, modules, is_package))

    def owner(self, span: Span) -> str:
        """The function or lambda whose code stands there, or the module."""
        return self._around(span)[0].name

    def callee(self, code: Callee) -> str | None:
        """The name of the definition a code object was made from."""
        if code.span is None:
            return self._functions.get((code.line, code.name))
        innermost = self._around(code.span)[0]
        return innermost.name if innermost.is_lambda else None

    def form(self, span: Span, callee: str, direct: bool) -> Form:
        """How the code at a place called `callee`; `direct` if it is what stands before the parentheses."""
        name = callee.rpartition(".")[2]
        call = self._call(span)
        if call is not None and direct:
            return self._call_form(call, name)
        if span in self._decorators:
            return Form.DECORATOR
        if name in _WITH:
            return Form.WITH
        if name in _ITERATION and (call is None or span in self._iterated):
            return Form.ITERATION
        if call is not None and _last_name(call.func) == name:  # something written in C stands between
            return self._call_form(call, name)
        if (name.startswith("__") and name.endswith("__")) or self._is_operator(span):
            return Form.PROTOCOL
        return Form.PROPERTY if call is None and self._attribute(span) else Form.THROUGH_C

    def lines(self, span: Span) -> _Lines:
        """The lines that a call at this place may be said to be on: from its start to where the call is made."""
        nodes = [*self._nodes.get(span, ()), *filter(None, [self._attribute(span)])]
        for node in nodes:
            if isinstance(node, ast.Call):
                return node.lineno, node.func.end_lineno or node.lineno
            if isinstance(node, ast.For | ast.AsyncFor):
                return node.lineno, node.iter.end_lineno or node.lineno
            if isinstance(node, ast.With | ast.AsyncWith):
                return node.lineno, node.items[-1].context_expr.end_lineno or node.lineno
        return nodes[0].lineno if nodes else span[0], span[1]

    def _define(self, container: str, body: Iterable[ast.AST]) -> None:
        """Name the definitions in the code of `container`, and those inside them."""
        lambdas = 0
        for node in sorted(_definitions(body), key=lambda node: (node.lineno, node.col_offset)):
            lambdas += isinstance(node, ast.Lambda)
            name = f"{container}.<lambda{lambdas}>" if isinstance(node, ast.Lambda) else f"{container}.{node.name}"
            self.names.add(name)
            inside: list[ast.expr] | list[ast.stmt] = [node.body] if isinstance(node, ast.Lambda) else node.body
            if not isinstance(node, ast.Lambda):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                self._decorators.update(map(span_of, node.decorator_list))
                self.decorated.update([name] if node.decorator_list else [])
                if not isinstance(node, ast.ClassDef):
                    self._functions[first, node.name] = name
            if not isinstance(node, ast.ClassDef):
                variables = _variables(inside, _parameters(node.args))
                self._bodies.append(_Body(_body_span(inside), name, isinstance(node, ast.Lambda), variables))
            self._define(name, inside)

    def _index(self, node: ast.expr | ast.stmt) -> None:
        span = span_of(node)
        self._nodes.setdefault(span, []).append(node)
        if isinstance(node, ast.Attribute):
            self._attributes[span[1], span[3]] = node

    def _call(self, span: Span) -> ast.Call | None:
        return next((node for node in self._nodes.get(span, ()) if isinstance(node, ast.Call)), None)

    def _attribute(self, span: Span) -> ast.Attribute | None:
        """By its end: the interpreter lets an attribute on a line of its own begin there."""
        return self._attributes.get((span[1], span[3]))

    def _around(self, span: Span) -> list[_Body]:
        """The functions around a place, innermost first, and the module."""
        return sorted((body for body in self._bodies if _covers(body.span, span)), key=lambda body: _size(body.span))

    def _is_variable(self, name: str, span: Span) -> bool:
        """Whether a name is a parameter or assigned where it is bound, and not only defined or imported."""
        return next((body.variables[name] for body in self._around(span) if name in body.variables), False)

    def _is_operator(self, span: Span) -> bool:
        return any(isinstance(node, _OPERATORS) for node in self._nodes.get(span, ()))

    def _call_form(self, call: ast.Call, name: str) -> Form:
        written = _last_name(call.func)
        if name == "__init__" != written:
            return Form.CLASS
        if name == "__new__" != written:
            return Form.PROTOCOL
        if name == "__call__" != written:
            return Form.INSTANCE
        if written is None:
            return Form.RESULT
        if written != name:
            return Form.RENAMED
        if isinstance(call.func, ast.Attribute):
            return self._receiver_form(call.func.value)
        return Form.RENAMED if self._is_variable(written, span_of(call)) else Form.NAME

    def _receiver_form(self, receiver: ast.expr) -> Form:
        if isinstance(receiver, ast.Name) and receiver.id in ("self", "cls"):
            return Form.SELF
        if isinstance(receiver, ast.Call) and _last_name(receiver.func) == "super":
            return Form.SUPER
        return Form.MODULE if ast.unparse(receiver) in self._modules else Form.OTHER


def _definitions(nodes: Iterable[ast.AST]) -> Iterator[_Definition]:
    """The definitions among the code of `nodes`: what is inside one belongs to it, except what is evaluated outside."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, _DEFINITIONS):
            yield node
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            pending += (child for child in ast.iter_child_nodes(node) if child not in body)
        else:
            pending += ast.iter_child_nodes(node)


def _variables(body: Iterable[ast.AST], parameters: Iterable[str]) -> dict[str, bool]:
    """The names that code binds, and whether as variables; not those of functions and classes in it."""
    bound = dict.fromkeys(parameters, True)
    pending = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                bound.setdefault((alias.asname or alias.name).partition(".")[0], False)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.setdefault(node.name, False)
        if not isinstance(node, _DEFINITIONS):
            pending += ast.iter_child_nodes(node)
    return bound


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    found = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return (argument.arg for argument in found if argument is not None)


def _body_span(body: list[ast.expr] | list[ast.stmt]) -> Span:
    """What a body covers, the decorators of its first statement included."""
    line, _, column, _ = span_of(body[0])
    decorators = getattr(body[0], "decorator_list", None)
    if decorators:
        line, column = decorators[0].lineno, 0
    _, end_line, _, end_column = span_of(body[-1])
    return line, end_line, column, end_column


def _covers(outer: Span, inner: Span) -> bool:
    return (outer[0], outer[2]) <= (inner[0], inner[2]) and (inner[1], inner[3]) <= (outer[1], outer[3])


def _size(span: Span) -> tuple[int, int]:
    return span[1] - span[0], span[3] - span[2]


def _last_name(expression: ast.expr) -> str | None:
    if isinstance(expression, ast.Name):
        return expression.id
    return expression.attr if isinstance(expression, ast.Attribute) else None


def _imported_modules(
    statement: ast.Import | ast.ImportFrom, module: str, modules: Collection[str], is_package: bool
) -> Iterator[str]:
    """The names under which a statement makes modules known."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            parts = (alias.asname or alias.name).split(".")
            yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        return
    package = module.split(".") if is_package else module.split(".")[:-1]
    base = package[: len(package) - statement.level + 1] if statement.level else []
    for alias in statement.names:
        if ".".join([*base, *filter(None, [statement.module]), alias.name]) in modules:
            yield alias.asname or alias.name
