"""Compare extraction with the interpreter that runs it: syntax with `ast`, scopes and names with `symtable`.

    python -m tests.extract.oracle [FILE_OR_DIRECTORY ...]

Without arguments it reads the standard library and the installed packages. It prints every disagreement; one with a
known reason (see `KNOWN` and docs/extraction.md) is counted apart, any other makes it fail. A file that this
interpreter cannot compile is counted and left out: there is nothing to compare with.
"""

from __future__ import annotations

import ast
import io
import re
import symtable
import sys
import sysconfig
import tokenize
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codeanatomy.extract import extract_batch

# Until PEP 701 positions inside f-strings are not to be trusted.
_F_STRING_POSITIONS = sys.version_info >= (3, 12)
# Since PEP 709 list, set and dict comprehensions are not scopes of their own.
_INLINED = {"listcomp", "setcomp", "dictcomp"} if sys.version_info >= (3, 12) else set()

_FLAGS = (
    "is_local",
    "is_global",
    "is_declared_global",
    "is_nonlocal",
    "is_free",
    "is_cell",
    "is_parameter",
    "is_imported",
    "is_annotated",
    "is_assigned",
    "is_referenced",
)

# Names that the interpreter puts into its tables for itself.
_INTERNAL_NAMES = {"__classdict__", "__type_params__", "__static_attributes__", "__firstlineno__"}


@dataclass(frozen=True)
class Disagreement:
    """One thing the two readings of a source do not share."""

    what: str
    detail: str
    interpreter: Any
    extraction: Any
    line: int = 0

    def __str__(self) -> str:
        return f"{self.what} {self.detail}: interpreter {self.interpreter}, extraction {self.extraction}"


@dataclass(frozen=True)
class Scope:
    """A scope as both sides can tell it."""

    kind: str
    name: str
    line: int
    symbols: dict[str, frozenset[str]]
    children: list[Scope] = field(default_factory=list)


@dataclass(frozen=True)
class Known:
    """A reason for a disagreement, and exactly which ones it explains."""

    reason: str
    explains: Callable[[Disagreement, bytes], bool]


_DOT_THEN_DEDENT = re.compile(rb"^([ \t]+).*\(\w+\.\r?\n(?!\1)", re.MULTILINE)

KNOWN: tuple[Known, ...] = (
    Known(
        "the parser ends a block where a line inside parentheses ends in a dot and the next is indented less",
        lambda _, source: _DOT_THEN_DEDENT.search(source) is not None,
    ),
    Known(
        "the parser does not know defaults of type parameters",
        lambda _, source: any(getattr(node, "default_value", None) for node in ast.walk(ast.parse(source))),
    ),
)


def compare(source: bytes) -> list[Disagreement] | None:
    """Every disagreement about `source`; None if the interpreter cannot compile it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            text = _decoded(source)
            table = symtable.symtable(_without_future_annotations(tree, text), "?", "exec")
    except (SyntaxError, ValueError, UnicodeError, RecursionError, MemoryError):
        return None
    facts = extract_batch(["?"], [source]).to_pylist()[0]
    found = [
        Disagreement("syntax error", error["message"], None, error["line_start"], error["line_start"])
        for error in facts["parse_errors"]
    ]
    found += _compare_syntax(tree, source, text, facts)
    found += _compare_scopes(_scope_of_table(table), _scope_of_facts(facts), "")
    return found if not found or _compiles(source) else None


def _compiles(source: bytes) -> bool:
    """Whether the compiler accepts what the parser did."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "?", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _decoded(source: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    return source.decode(encoding)


# -- syntax ---------------------------------------------------------------------------------------------------------


class _Places:
    """Byte offsets of `ast` positions."""

    def __init__(self, source: bytes, text: str) -> None:
        has_bom = source.startswith(b"\xef\xbb\xbf")
        starts = [3 if has_bom else 0]
        for line in text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts

    def span(self, node: Any) -> tuple[int, int]:
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def line(self, offset: int) -> int:
        return sum(start <= offset for start in self._starts)


def _compare_syntax(tree: ast.Module, source: bytes, text: str, facts: Mapping[str, Any]) -> list[Disagreement]:
    places = _Places(source, text)
    uncertain = [] if _F_STRING_POSITIONS else [places.span(n) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr)]
    found = []
    for what, interpreter, extraction in (
        ("name", _ast_names(tree, places), _fact_names(facts)),
        ("attribute", _ast_attributes(tree, places), _fact_attributes(facts)),
        ("call", _ast_calls(tree, places), _fact_calls(facts)),
        ("definition", _ast_defs(tree, places), _fact_defs(facts)),
        ("parameter", _ast_params(tree, places), _fact_params(facts)),
        ("import", _ast_imports(tree, places), _fact_imports(facts)),
        ("annotation", _ast_annotations(tree, places), _fact_annotations(facts)),
    ):
        left, right = (_without_uncertain_spans(rows, uncertain) for rows in (interpreter, extraction))
        found += [Disagreement(what, "missing", row, None, places.line(row[0])) for row in (left - right).elements()]
        found += [Disagreement(what, "extra", None, row, places.line(row[0])) for row in (right - left).elements()]
    return found


def _without_uncertain_spans(rows: Iterable[tuple[Any, ...]], uncertain: list[tuple[int, int]]) -> Counter[Any]:
    """Rows, those inside an f-string reduced to what is not a position."""
    counted: Counter[Any] = Counter()
    for row in rows:
        inside = next((span for span in uncertain if span[0] <= row[0] and row[1] <= span[1]), None)
        counted[row if inside is None else (inside[0], *(cell for cell in row if not _is_position(cell)))] += 1
    return counted


def _is_position(cell: object) -> bool:
    if isinstance(cell, tuple):
        return any(map(_is_position, cell))
    return isinstance(cell, int) and not isinstance(cell, bool)


_CONTEXTS = {ast.Load: "load", ast.Store: "store", ast.Del: "del"}


def _nfkc(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def _ast_names(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield (*places.span(node), node.id, _CONTEXTS[type(node.ctx)])


def _fact_names(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_name_refs"]:
        if not row["is_attribute"]:
            yield row["bstart"], row["bend"], _nfkc(row["name"]), row["ctx"]


def _ast_attributes(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield (*places.span(node), node.attr, _CONTEXTS[type(node.ctx)], _dotted(node.value))


def _fact_attributes(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_name_refs"]:
        if row["is_attribute"]:
            base = row["base"] and _nfkc(row["base"])
            yield row["bstart"], row["bend"], _nfkc(row["name"]), row["ctx"], base


def _dotted(node: ast.expr) -> str | None:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else None


def _ast_calls(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield (
                *places.span(node),
                places.span(node.func),
                _dotted(node.func),
                f"{sum(not isinstance(a, ast.Starred) for a in node.args)} positional",
                any(isinstance(a, ast.Starred) for a in node.args),
                ",".join(k.arg for k in node.keywords if k.arg is not None),
                any(k.arg is None for k in node.keywords),
            )


def _fact_calls(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_callsites"]:
        yield (
            row["bstart"],
            row["bend"],
            (row["callee_bstart"], row["callee_bend"]),
            row["dotted"] and _nfkc(row["dotted"]),
            f"{row['arg_count']} positional",
            row["has_star"],
            ",".join(map(_nfkc, row["keywords"])),
            row["has_double_star"],
        )


_DEFINITIONS: tuple[type, ...] = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
if sys.version_info >= (3, 12):
    _DEFINITIONS += (ast.TypeAlias,)


def _ast_defs(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            is_def = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            bases = [*node.bases, *(k.value for k in node.keywords)] if isinstance(node, ast.ClassDef) else []
            name = getattr(node, "name", None)
            yield (
                *places.span(node),
                type(node).__name__.removeprefix("Async"),
                name.id if isinstance(name, ast.Name) else name,
                isinstance(node, ast.AsyncFunctionDef),
                tuple(places.span(d) for d in node.decorator_list) if is_def else (),
                tuple(sorted(map(places.span, (b.value if isinstance(b, ast.Starred) else b for b in bases)))),
                _encodable(ast.get_docstring(node, clean=False)) if is_def else None,
                _yields(node),
            )


def _fact_defs(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    kinds = {"class": "ClassDef", "lambda": "Lambda", "type_alias": "TypeAlias"}
    decorators, bases = (_spans_by_def(facts, name) for name in ("cst_decorators", "cst_bases"))
    values = {row["def_no"]: row["text"] for row in facts["docstrings"]}
    for row in facts["cst_defs"]:
        number = row["def_no"]
        yield (
            row["bstart"],
            row["bend"],
            kinds.get(row["kind"], "FunctionDef"),
            None if row["kind"] == "lambda" else _nfkc(row["name"]),
            row["is_async"],
            tuple(decorators.get(number, ())),
            tuple(sorted(bases.get(number, ()))),
            values.get(number),
            row["is_generator"],
        )


def _spans_by_def(facts: Mapping[str, Any], dataset: str) -> dict[int, list[tuple[int, int]]]:
    spans: dict[int, list[tuple[int, int]]] = {}
    for row in facts[dataset]:
        spans.setdefault(row["def_no"], []).append((row["bstart"], row["bend"]))
    return spans


def _encodable(text: str | None) -> str | None:
    return None if text is None else text.encode(errors="replace").decode()


def _yields(node: Any) -> bool:
    """Whether a function's own body yields."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    pending: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    while pending:
        inner = pending.pop()
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            return True
        if isinstance(inner, ast.Lambda):
            pending += [*inner.args.defaults, *(d for d in inner.args.kw_defaults if d)]
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [*inner.decorator_list, *inner.args.defaults, *(d for d in inner.args.kw_defaults if d)]
        elif isinstance(inner, ast.ClassDef):
            pending += [*inner.decorator_list, *inner.bases]
        else:
            pending += ast.iter_child_nodes(inner)
    return False


def _ast_params(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.arguments):
            continue
        positional = [*node.posonlyargs, *node.args]
        defaults = dict(zip(reversed(positional), reversed(node.defaults), strict=False))
        defaults |= {arg: value for arg, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value}
        for kind, args in (
            ("positional_only", node.posonlyargs),
            ("positional_or_keyword", node.args),
            ("var_positional", [node.vararg]),
            ("keyword_only", node.kwonlyargs),
            ("var_keyword", [node.kwarg]),
        ):
            for arg in filter(None, args):
                start, end = places.span(arg)
                has_annotation = arg.annotation is not None
                yield start, end if not has_annotation else start, arg.arg, kind, has_annotation, arg in defaults


def _fact_params(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_params"]:
        has_annotation = row["annotation"] is not None
        yield (
            row["bstart"],
            row["bend"] if not has_annotation else row["bstart"],
            _nfkc(row["name"]),
            row["kind"],
            has_annotation,
            row["default"] is not None,
        )


def _ast_imports(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (*places.span(alias), "import", alias.name, "0", None, alias.asname, places.span(node))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = None if alias.name == "*" else alias.name
                level = str(node.level)
                yield (*places.span(alias), "from", node.module, level, name, alias.asname, places.span(node))


def _fact_imports(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_imports"]:
        yield (
            row["bstart"],
            row["bend"],
            row["kind"],
            row["module"] and _nfkc(row["module"]),
            str(row["level"]),
            row["name"] and _nfkc(row["name"]),
            row["asname"] and _nfkc(row["asname"]),
            (row["stmt_bstart"], row["stmt_bend"]),
        )


def _ast_annotations(tree: ast.Module, places: _Places) -> Iterator[tuple[Any, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation:
            yield (*places.span(node.annotation), "parameter")
        elif isinstance(node, ast.AnnAssign):
            yield (*places.span(node.annotation), "variable")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            yield (*places.span(node.returns), "return")


def _fact_annotations(facts: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    for row in facts["cst_type_exprs"]:
        yield row["bstart"], row["bend"], row["role"]


# -- scopes ---------------------------------------------------------------------------------------------------------


def _without_future_annotations(tree: ast.Module, text: str) -> str:
    """The source with its `from __future__` turned into an ordinary import of the same name.

    Under the future import `symtable` leaves annotations out; for extraction their names are references all the same.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True) if tree.body else []
    if any(isinstance(n, ast.ImportFrom) and n.module == "__future__" for n in tree.body):
        return re.sub(r"^(\s*from\s+)__future__(?=\s+import\b)", r"\1__futur3__", "".join(lines), flags=re.MULTILINE)
    return text.removeprefix("\ufeff")


def _scope_of_table(table: symtable.SymbolTable) -> Scope:
    symbols = {}
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if not name.startswith(".") and name not in _INTERNAL_NAMES:
            flags = {flag for flag in _FLAGS if flag != "is_cell" and getattr(symbol, flag)()}
            scope = symbol._Symbol__scope  # type: ignore[attr-defined]
            if scope == symtable.CELL:
                flags.add("is_cell")
            if scope in (symtable.LOCAL, symtable.CELL) and table.get_type() != "module":
                flags.discard("is_global")  # `symtable` takes any scope called `top` for the module
            symbols[name] = frozenset(flags)
    kind = getattr(table.get_type(), "value", table.get_type())
    return Scope(
        kind, table.get_name(), table.get_lineno(), symbols, [_scope_of_table(c) for c in table.get_children()]
    )


def _scope_of_facts(facts: Mapping[str, Any]) -> Scope:
    kinds = {
        "module": "module",
        "class": "class",
        "type_params": "type parameters" if sys.version_info >= (3, 13) else "type parameter",
        "type_alias": "type alias",
        "type_bound": "type variable" if sys.version_info >= (3, 13) else "TypeVar bound",
    }
    symbols: dict[int, dict[str, frozenset[str]]] = {}
    mangling: dict[int, str] = {}
    around_class = {row["parent_no"] for row in facts["sym_scopes"] if row["kind"] == "class"}
    for row in facts["sym_scopes"]:
        number, parent = row["scope_no"], row["parent_no"]
        symbols[number] = {}
        is_class = row["kind"] == "class" or (row["kind"] == "type_params" and number in around_class)
        mangling[number] = row["name"] if is_class else mangling.get(parent, "")
    for row in facts["sym_bindings"]:
        if row["site_kind"] == "implicit" and row["scope_no"] != 0:
            continue  # a class's `__class__`: the interpreter does not list it
        flags = frozenset(flag for flag in _FLAGS if row[flag])
        symbols[row["scope_no"]][_mangled(row["name"], mangling[row["scope_no"]])] = flags
    scopes: dict[int, Scope] = {}
    for row in facts["sym_scopes"]:
        number, parent = row["scope_no"], row["parent_no"]
        line = 0 if row["kind"] == "module" else row["line_start"]
        scopes[number] = Scope(kinds.get(row["kind"], "function"), _nfkc(row["name"]), line, symbols[number])
        if parent is not None:
            scopes[parent].children.append(scopes[number])
    return scopes[0]


def _mangled(name: str, class_name: str) -> str:
    stripped = class_name.lstrip("_")
    if stripped and name.startswith("__") and not name.endswith("__"):
        name = f"_{stripped}{name}"
    return _nfkc(name)


def _inlined(scope: Scope) -> tuple[list[Scope], dict[str, set[str]]]:
    """Children of a scope, with comprehensions the interpreter inlines replaced by theirs, and the names of those."""
    children: list[Scope] = []
    names: dict[str, set[str]] = {}
    for child in scope.children:
        if child.name in _INLINED and child.kind == "function":
            inner, inner_names = _inlined(child)
            children += inner
            for name, flags in [*child.symbols.items(), *inner_names.items()]:
                names.setdefault(name, set()).update(flags)
        else:
            children.append(child)
    return children, names


def _compare_scopes(interpreter: Scope, extraction: Scope, path: str) -> list[Disagreement]:
    path = f"{path}/{extraction.name}:{extraction.line}"
    children, inlined = _inlined(extraction)
    found = []
    for name in sorted({*interpreter.symbols, *extraction.symbols}):
        left, right = interpreter.symbols.get(name), extraction.symbols.get(name)
        if name in inlined:
            if right is None:
                continue  # a name of an inlined comprehension
            if left is not None and right - left == {"is_cell"}:
                continue  # no closure is needed for an inlined comprehension
            if left is not None and right == {"is_free"} and left - right <= inlined[name]:
                continue  # the name passes through this scope to a comprehension
        if left != right:
            sides = [None if side is None else ",".join(sorted(side)) for side in (left, right)]
            found.append(Disagreement("symbol", f"{path} {name}", *sides, extraction.line))
    theirs, ours = _grouped(interpreter.children), _grouped(children)
    for key in sorted({*theirs, *ours}):
        left_group, right_group = theirs.get(key, []), ours.get(key, [])
        if len(left_group) != len(right_group):
            found.append(Disagreement("scope", f"{path} {key}", len(left_group), len(right_group), key[2]))
        for left_scope, right_scope in zip(left_group, right_group, strict=False):
            found += _compare_scopes(left_scope, right_scope, path)
    return found


def _grouped(scopes: Sequence[Scope]) -> dict[tuple[str, str, int], list[Scope]]:
    """Scopes that only their contents tell apart, in an order both sides share."""
    groups: dict[tuple[str, str, int], list[Scope]] = {}
    for scope in scopes:
        groups.setdefault((scope.kind, scope.name, scope.line), []).append(scope)
    for group in groups.values():
        group.sort(key=lambda scope: sorted((n, sorted(f - {"is_cell"})) for n, f in scope.symbols.items()))
    return groups


# -- files ----------------------------------------------------------------------------------------------------------


def default_roots() -> list[Path]:
    """The standard library and the installed packages."""
    return [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]


def python_files(roots: Iterable[Path]) -> list[Path]:
    """Every Python file below the roots, in order, once."""
    files: dict[Path, None] = {}
    for root in roots:
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            files[path] = None
    return list(files)


def explanation(disagreement: Disagreement, source: bytes) -> str | None:
    """The known reason for a disagreement."""
    return next((known.reason for known in KNOWN if known.explains(disagreement, source)), None)


def main(arguments: Sequence[str]) -> int:
    """Compare and report; 1 if there is a disagreement without a known reason."""
    compared = uncompiled = unexplained = 0
    reasons: Counter[str] = Counter()
    for path in python_files(map(Path, arguments) if arguments else default_roots()):
        source = path.read_bytes()
        disagreements = compare(source)
        if disagreements is None:
            uncompiled += 1
            continue
        compared += 1
        for disagreement in disagreements:
            reason = explanation(disagreement, source)
            print(f"{path}:{disagreement.line}: {disagreement}" + (f" [{reason}]" if reason else ""))
            if reason:
                reasons[reason] += 1
            else:
                unexplained += 1
    print(f"{compared} files compared, {uncompiled} that this interpreter cannot compile")
    for reason, count in reasons.most_common():
        print(f"{count} disagreements: {reason}")
    print(f"{unexplained} disagreements without a known reason")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
