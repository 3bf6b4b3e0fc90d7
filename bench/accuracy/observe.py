"""Run one case's program and say which calls it makes. A process of its own; `check_cases` starts it.

Two ways of looking, because neither shows everything:

- The source is rewritten before it is compiled: in `f(x)` the callee passes through a function that notes whose code
  makes the call and what is called. Decorators and classes that are raised are noted likewise, and definitions note
  the name of their code object.
- `sys.setprofile` shows what is entered without being written as a call: properties, `with`, iteration. A function
  entered in any other way (an operator, a callback from C) is not a written call; it is told `aside`. A generator or
  coroutine that goes on is none at all.

A call of what `functools.partial` made is a call of the function inside. A method of a generator or coroutine (`send`)
has no name in the contract and is not told.

Standard input is a JSON object: `top`, the directory of the program; `modules`, the module name of each path;
`outside`, the expected callees that are not part of the program. Standard output is another: `calls`, `aside`, `error`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import functools
import importlib
import io
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import FileFinder, SourceFileLoader
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, Final

_BUILTIN: Final = "<builtin>."
_DEFINE, _CALLS, _DECORATES = "__observe_define__", "__observe_call__", "__observe_decorator__"
_RAISES = "__observe_raise__"

_WITH: Final = frozenset({"__enter__", "__exit__", "__aenter__", "__aexit__"})
_ITERATION: Final = frozenset({"__iter__", "__next__", "__aiter__", "__anext__"})
_ITERATES: Final = frozenset({"GET_ITER", "FOR_ITER", "GET_AITER", "GET_ANEXT", "SEND"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"})
_TRANSPARENT: Final = (FunctionType, staticmethod, classmethod, type(functools.lru_cache(lambda: None)))
_NAMELESS: Final = (GeneratorType, CoroutineType, AsyncGeneratorType)
_LAZY: Final = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def definitions(container: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[Definition, str]]:
    """Every definition in the code of `container`, and inside those, with its qualified name."""
    pending = list(nodes)
    lambdas: list[ast.Lambda] = []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            lambdas.append(node)
            pending.append(node.args)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{container}.{node.name}"
            yield node, name
            yield from definitions(name, node.body)
            pending += (child for child in ast.iter_child_nodes(node) if child not in node.body)
        else:
            pending += ast.iter_child_nodes(node)
    for number, node in enumerate(sorted(lambdas, key=lambda node: (node.lineno, node.col_offset)), 1):
        name = f"{container}.<lambda{number}>"
        yield node, name
        yield from definitions(name, [node.body])


class _Rewriter(ast.NodeTransformer):
    """Make the code of a module note its calls and definitions."""

    def __init__(self, module: str, tree: ast.Module) -> None:
        self._names = dict(definitions(module, [tree]))
        self._caller = module

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = self._decorators(node.decorator_list)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        name = self._names[node]
        self.visit(node.args)
        node.body = self._body(name, [node.body])[0]
        return ast.Call(_hook(_DEFINE, ast.Constant(name)), [node], [])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _hook(_CALLS, ast.Constant(self._caller), node.func)
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        node.exc, node.cause = (
            raised and _hook(_RAISES, ast.Constant(self._caller), raised) for raised in (node.exc, node.cause)
        )
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        name = self._names[node]
        body, node.body = node.body, []
        self.generic_visit(node)
        node.body = self._body(name, body)
        node.decorator_list = [*self._decorators(node.decorator_list), _hook(_DEFINE, ast.Constant(name))]
        return node

    def _body(self, name: str, nodes: list[Any]) -> list[Any]:
        around, self._caller = self._caller, name
        visited = [self.visit(node) for node in nodes]
        self._caller = around
        return visited

    def _decorators(self, visited: Iterable[ast.expr]) -> list[ast.expr]:
        return [_hook(_DECORATES, ast.Constant(self._caller), decorator) for decorator in visited]


def _hook(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Observer:
    """What was seen so far. Code objects and callees are told apart by identity, so all of them are kept."""

    def __init__(self, modules: Mapping[str, str], outside: Iterable[str]) -> None:
        self.calls: set[tuple[str, str]] = set()
        self.aside: set[tuple[str, str]] = set()
        self._modules = modules
        self._tops = {module.partition(".")[0] for module in modules.values()}
        self._outside = {_identity(callee): (name, callee) for name in outside for callee in _resolve(name)}
        self._defined: dict[int, str] = {}
        self._around: dict[int, CodeType | str] = {}
        self._kept: list[CodeType] = []

    def compile(self, source: bytes, path: str) -> CodeType:
        """The code of a file of the program, which notes what it does."""
        module = self._modules[path]
        tree = ast.parse(source, path)
        rewritten = ast.fix_missing_locations(_Rewriter(module, tree).visit(tree))
        code: CodeType = compile(rewritten, path, "exec", dont_inherit=True)
        self._around[id(code)] = module
        pending = [code]
        while pending:
            outer = pending.pop()
            self._kept.append(outer)
            inner = [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
            self._around.update((id(constant), outer) for constant in inner)
            pending += inner
        return code

    def define(self, name: str) -> Callable[[FunctionType], FunctionType]:
        def note(function: FunctionType) -> FunctionType:
            self._defined[id(function.__code__)] = self._around[id(function.__code__)] = name
            return function

        return note

    def call(self, caller: str, callee: Any) -> Any:
        name = self._name(callee)
        if name is not None:
            self.calls.add((caller, name))
        return callee

    def decorator(self, caller: str, decorator: Any) -> Any:
        name = self._name(decorator)
        if name is not None and name.partition(".")[0] in self._tops:
            self.calls.add((caller, name))
        return decorator

    def raised(self, caller: str, raised: Any) -> Any:
        return self.decorator(caller, raised) if isinstance(raised, type) else raised

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        callee = self._defined.get(id(frame.f_code))
        around = frame.f_back
        if event != "call" or callee is None or around is None:
            return
        caller: CodeType | str | None = around.f_code
        while isinstance(caller, CodeType):  # a class body or a comprehension is part of what is around it
            caller = self._around.get(id(caller))
        if caller is None:
            return
        name = frame.f_code.co_name
        operation = dis.opname[around.f_code.co_code[around.f_lasti]]
        counts = (
            name in _WITH
            or (name in _ITERATION and operation in _ITERATES)
            or (operation in _ATTRIBUTES and not name.startswith("__"))
        )
        if counts:
            self.calls.add((caller, callee))
        elif name.startswith("__") or not frame.f_code.co_flags & _LAZY:
            self.aside.add((caller, callee))

    def _name(self, callee: Any) -> str | None:
        """The qualified name by which the contract knows a callee; None if its call is not to be listed."""
        while isinstance(callee, functools.partial):
            callee = callee.func
        if isinstance(callee, BuiltinFunctionType) and isinstance(callee.__self__, _NAMELESS):
            return None
        if isinstance(callee, type):
            if callee.__module__.partition(".")[0] not in self._tops:
                return self._outside_name(callee)
            return self._function_name(_class_attribute(callee, "__init__"))
        function = callee.__func__ if isinstance(callee, MethodType) else callee
        known = self._function_name(function)
        if known is None and type(callee).__module__.partition(".")[0] in self._tops:
            known = self._function_name(_class_attribute(type(callee), "__call__"))
        return known or self._outside_name(callee)

    def _function_name(self, function: Any) -> str | None:
        """The name of a function of the program, maybe under transparent decorators."""
        while isinstance(function, _TRANSPARENT):
            known = self._defined.get(id(function.__code__)) if isinstance(function, FunctionType) else None
            if known is not None:
                return known
            function = getattr(function, "__wrapped__", None)
        return None

    def _outside_name(self, callee: Any) -> str:
        """The expected name, or some name that says what it is."""
        expected = self._outside.get(_identity(callee))
        if expected is not None:
            return expected[0]
        owner = getattr(callee, "__module__", None) or type(getattr(callee, "__self__", callee)).__name__
        return f"{owner}.{getattr(callee, '__qualname__', type(callee).__name__)}"


def _resolve(name: str) -> Iterator[Any]:
    """What a name outside of the program stands for, if it is there."""
    parts = name.removeprefix(_BUILTIN).split(".")
    found: Any = builtins
    if not name.startswith(_BUILTIN):
        for at in range(len(parts), 0, -1):
            with contextlib.suppress(ImportError):
                found = importlib.import_module(".".join(parts[:at]))
                parts = parts[at:]
                break
        else:
            return
    with contextlib.suppress(AttributeError):
        for part in parts:
            found = getattr(found, part)
        yield found


def _class_attribute(cls: type, name: str) -> Any:
    """What a class or the first of its bases has under a name, as it was put there."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _identity(callee: Any) -> object:
    """The same for a method whichever instance it is taken from, different for different callees."""
    if isinstance(callee, MethodType):
        return id(callee.__func__)
    if isinstance(callee, MethodWrapperType):
        return id(getattr(callee.__objclass__, callee.__name__))
    owner = getattr(callee, "__self__", None)
    if not isinstance(callee, BuiltinFunctionType) or owner is None or isinstance(owner, ModuleType):
        return id(callee)
    if isinstance(owner, type):
        return owner.__qualname__, callee.__name__
    candidates = (vars(base).get(callee.__name__) for base in type(owner).__mro__)
    return id(next(found for found in candidates if found is not None and not isinstance(found, FunctionType)))


def observe(top: Path, modules: Mapping[str, str], outside: Iterable[str]) -> dict[str, object]:
    """Import `main` from `top` and watch."""
    observer = _Observer({str(top / path): module for path, module in modules.items()}, outside)
    roots = [str(path) for path in (top, top / "src") if path.is_dir()]

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            path = self.get_filename(fullname)
            return observer.compile(self.get_data(path), path)

    def finder(path: str) -> FileFinder:
        if not path.startswith(str(top)):
            raise ImportError(path)
        return FileFinder(path, (Loader, [".py"]))

    for name in [name for name in sys.modules if name.partition(".")[0] in observer._tops]:
        del sys.modules[name]
    sys.path[:0] = roots
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()
    hooks = {
        _DEFINE: observer.define,
        _CALLS: observer.call,
        _DECORATES: observer.decorator,
        _RAISES: observer.raised,
    }
    for name, hook in hooks.items():
        setattr(builtins, name, hook)
    error = ""
    with contextlib.redirect_stdout(io.StringIO()):
        sys.setprofile(observer.profile)
        try:
            importlib.import_module("main")
        except BaseException:  # the program's, whatever it is
            error = traceback.format_exc()
        finally:
            sys.setprofile(None)
    return {"calls": sorted(observer.calls), "aside": sorted(observer.aside - observer.calls), "error": error}


def main() -> None:
    request = json.load(sys.stdin)
    sys.path.pop(0)  # where this module was found
    result = observe(Path(request["top"]), request["modules"], request["outside"])
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
