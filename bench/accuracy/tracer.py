"""Runs inside the traced process: pytest under `sys.setprofile`, noting which code calls which.

python tracer.py TREE OUT [PYTEST ARGUMENT ...]

It is run as a script by an interpreter that knows only pytest, and so imports nothing but the standard library.

The profiler says which code began to run and where its caller stood, to the instruction and so to the expression. Two
things it cannot say: whether `f(x)` called the function `f` is, or a C function which called another; and who called
a generator function, since its body first runs when somebody asks for an item. Therefore the files of the tree are
compiled with each call `f(x)` changed to `site(f, 17)(x)`, where `site` notes what `f` is and gives it back. No frame
is added to the call, and every expression keeps its place.

What was seen is written as JSON, in terms of places in files; names are given to them elsewhere.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import json
import random
import sys
import threading
from importlib.machinery import SourceFileLoader
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_OPTIMIZED
from pathlib import Path
from types import BuiltinMethodType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar

PARAMETERS = 40
"""At most so many parameter sets of one test are run."""

_SITE = "__call_site__"
_LAZY = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_WRAPPERS = (FunctionType, type(functools.lru_cache(len)))
_RESUME = dis.opmap["RESUME"]

_Function = TypeVar("_Function", ast.FunctionDef, ast.AsyncFunctionDef)

Span: TypeAlias = tuple[int, int, int, int]
"""First line, last line, first column, last column; columns in bytes, as `ast` and code objects have them."""


class Place(NamedTuple):
    """An expression or statement."""

    path: str
    span: Span


class Callee(NamedTuple):
    """A function of the tree: where its code begins, its own name, and for a lambda what its code spans."""

    path: str
    line: int
    name: str
    span: Span | None


class Recorder:
    """What was seen so far. Code objects are kept, so that their ids stay theirs."""

    def __init__(self, tree: Path) -> None:
        self.prefix = f"{tree}/"
        self.codes: dict[int, CodeType] = {}
        self.inside: dict[int, bool] = {}
        self.sites: dict[Place, int] = {}
        self.executed: set[int] = set()
        self.targets: set[tuple[int, int]] = set()
        """Site and code: the site called a function, method, class or object that runs this code."""
        self.created: set[tuple[int, int]] = set()
        """Site and code: the site called a generator function, or what an outside decorator made of a function."""
        self.waiting: dict[int, int] = {}
        """How many of a code's generators were created at a site and have not begun to run."""
        self.classes: dict[tuple[int, int], type] = {}
        """Site and class: the site made an object without any `__init__` or `__new__` of the tree."""
        self.events: set[tuple[int, int, int]] = set()
        """Caller's code, its instruction, callee's code."""
        self.externals: set[tuple[int, int, str]] = set()
        self.callbacks: set[int] = set()
        self.orphans: set[int] = set()
        """Generator functions that ran and whose caller was not seen."""

    def is_inside(self, code: CodeType) -> bool:
        """Whether the code is of a file in the tree."""
        known = self.inside.get(id(code))
        if known is None:
            self.codes[id(code)] = code
            known = self.inside[id(code)] = code.co_filename.startswith(self.prefix)
        return known

    def at_site(self, called: Any, site: int) -> Any:
        """Note what is about to be called at a site."""
        self.executed.add(site)
        function: Any = called.__func__ if type(called) is MethodType else called
        if issubclass(type(function), type):
            self._class(site, function)
        else:
            code = _code(function) or _code(_defined(type(function), "__call__"))
            if code is not None and self.is_inside(code):
                self._target(site, code)
            else:
                self._wrapped(site, function)
        return called

    def _target(self, site: int, code: CodeType, wrapped: bool = False) -> None:
        self.targets.add((site, id(code)))
        if wrapped or code.co_flags & _LAZY:
            self.created.add((site, id(code)))
        if code.co_flags & _LAZY:
            self.waiting[id(code)] = self.waiting.get(id(code), 0) + 1

    def _wrapped(self, site: int, function: Any) -> None:
        """Calling `lru_cache(f)`, or what `contextmanager` makes of `f`, counts as calling `f`."""
        while type(function) in _WRAPPERS:
            function = getattr(function, "__wrapped__", None)
            code = _code(function)
            if code is not None and self.is_inside(code):
                self._target(site, code, wrapped=True)
                return

    def _class(self, site: int, called: type) -> None:
        makers = [code for code in _makers(called) if self.is_inside(code)]
        for code in makers:
            self._target(site, code)
        if not makers:
            self.classes[site, id(called)] = called

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call; given to `sys.setprofile`."""
        if event == "c_call":
            if self.is_inside(frame.f_code):
                self.externals.add((id(frame.f_code), frame.f_lasti, _c_name(arg)))
        elif event == "call":
            self._call(frame)

    def _call(self, frame: FrameType) -> None:
        callee, caller = frame.f_code, frame.f_back
        from_inside = caller is not None and self.is_inside(caller.f_code)
        if not self.is_inside(callee):
            if caller is not None and from_inside and callee is not Recorder.at_site.__code__:
                name = f"{frame.f_globals.get('__name__')}.{callee.co_qualname}"
                self.externals.add((id(caller.f_code), caller.f_lasti, name))
        elif _is_function(callee) and not (callee.co_flags & _LAZY and self._began_elsewhere(frame)):
            if caller is not None and from_inside:
                self.events.add((id(caller.f_code), caller.f_lasti, id(callee)))
            else:
                self.callbacks.add(id(callee))

    def _began_elsewhere(self, frame: FrameType) -> bool:
        """Whether a generator goes on, or its call was noted at a site; what runs now is then no call."""
        code = frame.f_code
        operation, argument = code.co_code[frame.f_lasti : frame.f_lasti + 2]
        if operation != _RESUME or argument & 3:
            return True
        if self.waiting.get(id(code), 0):
            self.waiting[id(code)] -= 1
            return True
        if code.co_name.startswith("__") and code.co_name.endswith(
            "__"
        ):  # called by the interpreter, which asks for the first item at once
            return False
        self.orphans.add(id(code))
        return True

    def result(self) -> dict[str, Any]:
        """Everything seen, for JSON."""
        places = list(self.sites)
        calls = {(places[site], self._callee(code), True) for site, code in self.created}
        for caller, instruction, callee in self.events:
            place = self._place(caller, instruction)
            direct = (self.sites.get(place), callee) in self.targets
            calls.add((place, self._callee(callee), direct))
        return {
            "calls": sorted(calls, key=repr),
            "classes": [(places[site], name) for (site, _), c in self.classes.items() if (name := self._home(c))],
            "externals": [(self._place(code, at), name) for code, at, name in sorted(self.externals)],
            "callbacks": sorted(map(self._callee, self.callbacks), key=repr),
            "orphans": sorted(map(self._callee, self.orphans), key=repr),
            "executed": [places[site] for site in sorted(self.executed)],
        }

    def _place(self, code_id: int, instruction: int) -> Place:
        code = self.codes[code_id]
        line, end_line, column, end_column = list(code.co_positions())[instruction // 2]
        line = line or code.co_firstlineno
        return Place(self._path(code.co_filename), (line, end_line or line, column or 0, end_column or 0))

    def _callee(self, code_id: int) -> Callee:
        code = self.codes[code_id]
        span = _span(code) if code.co_name == "<lambda>" else None
        return Callee(self._path(code.co_filename), code.co_firstlineno, code.co_name, span)

    def _path(self, filename: str) -> str:
        return filename.removeprefix(self.prefix)

    def _home(self, called: type) -> tuple[str, str] | None:
        """File and qualified name of a class of the tree."""
        filename = str(getattr(sys.modules.get(called.__module__), "__file__", None))
        if not filename.startswith(self.prefix):
            return None
        return self._path(filename), called.__qualname__.replace("<locals>.", "")


class _Sites(ast.NodeTransformer):
    """Wraps what each call calls. Annotations are left alone: they may be turned back into text."""

    def __init__(self, path: str, sites: dict[Place, int]) -> None:
        self.path = path
        self.sites = sites

    def visit_Call(self, node: ast.Call) -> ast.Call:
        site = self.sites.setdefault(Place(self.path, span_of(node)), len(self.sites))
        self.generic_visit(node)
        wrapped = ast.Call(ast.Name(_SITE, ast.Load()), [node.func, ast.Constant(site)], [])
        for part in (wrapped, wrapped.func, wrapped.args[1]):
            ast.copy_location(part, node.func)
        node.func = wrapped
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._function(node)

    def _function(self, node: _Function) -> _Function:
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node


def span_of(node: ast.expr | ast.stmt) -> Span:
    """Where a node stands."""
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0


def _is_function(code: CodeType) -> bool:
    """Whether it is the code of a function or lambda; not of a module, class body or comprehension."""
    named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
    return named and bool(code.co_flags & CO_OPTIMIZED) and code.co_name != "__del__"


def _makers(called: type) -> list[CodeType]:
    """The code that runs when a class is called: of its metaclass, `__new__` and `__init__`, if written in Python."""
    found = [_defined(type(called), "__call__"), _defined(called, "__new__"), _defined(called, "__init__")]
    return [code for code in map(_code, found) if code is not None]


def _defined(owner: type, name: str) -> Any:
    """What a class or the nearest of its bases defines under a name."""
    return next((base.__dict__[name] for base in owner.__mro__ if name in base.__dict__), None)


def _code(function: Any) -> CodeType | None:
    plain = function.__func__ if type(function) in (staticmethod, classmethod) else function
    return plain.__code__ if type(plain) is FunctionType else None


def _c_name(function: Any) -> str:
    """`module.qualname` of a function or method written in C."""
    qualname = function.__qualname__
    if isinstance(function, BuiltinMethodType):
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            return f"{function.__module__}.{qualname}"
        home = owner if isinstance(owner, type) else type(owner)
    else:
        home = getattr(function, "__objclass__", type(function))
    return f"{home.__module__}.{qualname}"


def _span(code: CodeType) -> Span:
    """What the instructions of a code cover together."""
    spans = [(a, b, c, d) for a, b, c, d in code.co_positions() if a and b and c is not None and d]
    if not spans:
        return code.co_firstlineno, code.co_firstlineno, 0, 0
    line, column = min((a, c) for a, _, c, _ in spans)
    end_line, end_column = max((b, d) for _, b, _, d in spans)
    return line, end_line, column, end_column


def _install(recorder: Recorder) -> None:
    """Compile the tree's files with their calls wrapped; never from or into a cache."""
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        if not path.startswith(recorder.prefix):
            return usual(self, fullname)
        tree = ast.parse(self.get_data(path))
        wrapped = _Sites(path.removeprefix(recorder.prefix), recorder.sites).visit(tree)
        code: CodeType = compile(wrapped, path, "exec", dont_inherit=True)
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]
    sys.dont_write_bytecode = True
    setattr(builtins, _SITE, recorder.at_site)


class _FewerParameters:
    """A pytest plugin that spreads over a test's parameter sets instead of running thousands of them."""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        groups: dict[str, list[Any]] = {}
        for item in items:
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [item for group in groups.values() for item in group[:: -(-len(group) // PARAMETERS)]]


def main(tree: str, out: str, *arguments: str) -> int:
    """Run pytest in `tree` and write what was seen to `out`."""
    recorder = Recorder(Path(tree).resolve())
    source = recorder.prefix + "src"
    sys.path[0] = source if Path(source).is_dir() else recorder.prefix
    _install(recorder)
    random.seed(0)
    import pytest  # noqa: PLC0415 - a traced package may be one that pytest itself uses

    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)
    try:
        status = pytest.main(["--assert=plain", "-p", "no:cacheprovider", *arguments], [_FewerParameters()])
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    Path(out).write_text(json.dumps(recorder.result()), encoding="utf-8")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
