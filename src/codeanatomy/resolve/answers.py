"""Answers as rows: each question of a file, each candidate, in a total order."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import pyarrow as pa

from codeanatomy.catalogue.ids import binding_id, definition_id, module_id, name_id, symbol_id
from codeanatomy.catalogue.tables import ANSWERS
from codeanatomy.index import symbols
from codeanatomy.resolve.builtins import BUILTIN
from codeanatomy.resolve.index import Index, ModuleFile
from codeanatomy.resolve.resolver import Resolver
from codeanatomy.resolve.values import (
    Absent,
    Class,
    External,
    ExternalInstance,
    Function,
    How,
    Instance,
    Limit,
    Module,
    Symbol,
    Trail,
    Value,
    Variable,
)

_RECURSION: Final = 10_000
"""Frames: enough for the searches that run inside each other, and for whoever calls."""

_STATUS_ORDER: Final = {"internal": 0, "external": 1, "absent": 2, "limit": 3}

_METHODS: Final = (
    (How.ANNOTATION, "annotation", 0.8),
    (How.RETURN, "returns", 0.85),
    (How.ASSIGNMENT, "assignment", 0.9),
    (How.MRO, "mro", 0.95),
    (How.STAR, "star_import", 1.0),
    (How.IMPORT, "import", 1.0),
)


class Candidate(NamedTuple):
    """One thing a question can mean."""

    status: str
    kind: str
    target_id: str | None
    target_name: str | None
    is_named: bool
    call_id: str | None
    set_id: str | None
    method: str | None
    confidence: float
    call_agreement: str | None = None
    name_agreement: str | None = None


class Solved(NamedTuple):
    """The candidates of a question, in order, and the modules that were looked at."""

    candidates: list[Candidate]
    trail: Trail


_NOTHING: Final = Solved([], frozenset())


Asked = Mapping[str, Collection[int] | None]
"""Some questions of files, by number, or all (None), by file id."""


def answer_files(resolver: Resolver, files: pa.RecordBatch, asked: Asked | None = None) -> pa.RecordBatch:
    """Answer the questions of a batch of files, which has `file_id`, `asks` and `symbol_asks`: all, or the `asked`."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION))
    index = resolver.index
    rows: list[tuple[Any, ...]] = []
    symbols_solved: dict[str, Solved] = {}  # a symbol means the same whoever asks
    columns = (files[name].to_pylist() for name in ("file_id", "asks", "symbol_asks"))
    for file_id, asks, symbol_asks in zip(*columns, strict=True):
        file = index.files[file_id]
        numbers = asked[file_id] if asked is not None else None
        solved = _OwnQuestions(resolver, file, asks or ())
        for ask in asks or ():
            if numbers is None or ask["ask_no"] in numbers:
                rows += _rows(file, ask, solved[ask["ask_no"]])
        for ask in symbol_asks or ():
            if numbers is not None and ask["ask_no"] not in numbers:
                continue
            called, named = solved[ask["call_ask_no"]], solved[ask["name_ask_no"]]
            symbol = symbols_solved.get(ask["question"])
            if symbol is None:
                symbol = symbols_solved[ask["question"]] = _solved(resolver, index, file, ask["question"])
            rows += _rows(file, ask, _compared(symbol, called, named))
    *values, trails = zip(*rows, strict=True) if rows else ((),) * len(ANSWERS.columns)
    schema = ANSWERS.schema()
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _lists(trails, schema[-1].type)], schema=schema)


class _OwnQuestions(dict[int | None, Solved]):
    """What the questions of a file's source come to, by number; each is worked out when it is first needed."""

    def __init__(self, resolver: Resolver, file: ModuleFile, asks: Iterable[Mapping[str, Any]]) -> None:
        super().__init__()
        self._resolver = resolver
        self._file = file
        self._questions = {ask["ask_no"]: ask["question"] for ask in asks}

    def __missing__(self, number: int | None) -> Solved:
        question = self._questions.get(number)
        solved = _NOTHING if question is None else _solved(self._resolver, self._resolver.index, self._file, question)
        self[number] = solved
        return solved


def _lists(trails: Sequence[Trail], kind: pa.DataType) -> pa.Array:
    """Sets of names as sorted lists; the same few occur over and over."""
    numbers: dict[Trail, int] = {}
    indices = [numbers.setdefault(trail, len(numbers)) for trail in trails]
    return pa.array([_sorted(trail) for trail in numbers], kind).take(pa.array(indices, pa.int32()))


def _sorted(trail: Trail) -> list[str]:
    """The entries of a trail; that a module exists is no more than what is in it."""
    return sorted(entry for entry in trail if not (entry.startswith("?") and entry[1:] in trail))


def _solved(resolver: Resolver, index: Index, file: ModuleFile, question: str) -> Solved:
    found, trail = resolver.evaluate(file, question)
    described = _Candidates(resolver, index)
    candidates = {c for value, how in found.items() for c in described.of(value, how)}
    if any(c.status == "limit" for c in candidates):  # what was not found may be where nobody looked
        candidates = {c for c in candidates if c.status != "absent"}
    return Solved(_without_duplicates(sorted(candidates, key=_order)), trail | described.looked_at)


def _rows(file: ModuleFile, ask: Mapping[str, Any], solved: Solved) -> list[tuple[Any, ...]]:
    ordered, trail = solved
    if not ordered and trail <= {file.module}:
        return []  # nothing that happens elsewhere can change that
    named = sum(c.is_named for c in ordered)
    called = len({c.call_id for c in ordered if c.call_id})
    outcome = sha256(repr(ordered).encode()).hexdigest()[:24]
    owner = (file.file_id, file.path, ask["ask_no"], ask["question"])
    if not ordered:
        return [(*owner, 0, "unknown", *_NO_CANDIDATE, 0, 0, outcome, trail)]
    return [(*owner, place, *candidate, named, called, outcome, trail) for place, candidate in enumerate(ordered)]


_NO_CANDIDATE: Final = (None, None, None, False, None, None, None, 0.0, None, None)
_LIMITED: Final = Candidate(
    "limit", "limit", None, None, is_named=False, call_id=None, set_id=None, method=None, confidence=0.0
)


def _compared(symbol: Solved, called: Solved, named: Solved) -> Solved:
    """A symbol's candidates, each held against the own answers of the call and the name it stands on."""
    runs = _Known(called.candidates, called=True)
    names = _Known(named.candidates, called=False)
    compared = [
        each._replace(
            call_agreement=runs.agreement(each.status, each.call_id, each.target_name),
            name_agreement=names.agreement(each.status, each.target_id, each.target_name),
        )
        for each in symbol.candidates
    ]
    return Solved(compared, symbol.trail | called.trail | named.trail)


class _Known:
    """What own answers say a call runs, or a name is."""

    def __init__(self, candidates: Iterable[Candidate], *, called: bool) -> None:
        self._targets: set[str] = set()
        self._names: set[str] = set()
        for each in candidates:
            nodes = (each.call_id, *_property_nodes(each)) if called else (each.target_id if each.is_named else None,)
            known = {node for node in nodes if node}
            if each.status == "internal":
                self._targets |= known
            if each.status == "external" and each.target_name and known:
                self._names.add(_last_name(each.target_name))

    def agreement(self, status: str, node: str | None, name: str | None) -> str:
        """How a target goes with that; of what is not in the repository, the last name counts."""
        if node in self._targets or (status != "internal" and name and _last_name(name) in self._names):
            return "agrees"
        return "contradicts" if self._targets or (self._names and status != "internal") else "adds"


def _property_nodes(candidate: Candidate) -> tuple[str | None, ...]:
    """What runs when a property is read or assigned to."""
    return (candidate.target_id, candidate.set_id) if candidate.kind == "property" else ()


def _last_name(name: str) -> str:
    return name.rpartition(".")[2]


def _order(candidate: Candidate) -> tuple[Any, ...]:
    return (
        not candidate.is_named,
        _STATUS_ORDER[candidate.status],
        candidate.target_id or "",
        candidate.kind,
        candidate.call_id or "",
        -candidate.confidence,
        candidate.method or "",
        candidate.set_id or "",
    )


def _without_duplicates(ordered: Sequence[Candidate]) -> list[Candidate]:
    """The surest of the candidates that mean the same."""
    kept: dict[tuple[Any, ...], Candidate] = {}
    for candidate in ordered:
        kept.setdefault((candidate.is_named, candidate.kind, candidate.target_id), candidate)
    return list(kept.values())


class _Candidates:
    """The candidates that values stand for; `looked_at` has the modules that this took."""

    def __init__(self, resolver: Resolver, index: Index) -> None:
        self.looked_at: frozenset[str] = frozenset()
        self._resolver = resolver
        self._index = index

    def of(self, value: Value, how: int, *, is_read: bool = False) -> list[Candidate]:
        """The candidates of a value that was found like that; `is_read` if it is what a property returns."""
        method, confidence = _method(value, how)
        new = Candidate("internal", "", None, None, not how & How.ALIAS, None, None, method, confidence)
        if isinstance(value, Function):
            return self._of_function(value, new, is_read=is_read)
        if isinstance(value, Class):
            target = definition_id(value.file_id, value.key)
            constructor = self._method_of(value, "__init__", "__new__") or target
            return [new._replace(kind="class", target_id=target, call_id=constructor)]
        if isinstance(value, Instance):
            target = definition_id(value.of.file_id, value.of.key)
            call = self._method_of(value.of, "__call__")
            return [new._replace(kind="instance", target_id=target, is_named=False, call_id=call)]
        if isinstance(value, Module):
            files = self._index.modules.get(value.name)
            if not files:
                return [new._replace(kind="module", target_id=name_id(value.name), target_name=value.name)]
            return [new._replace(kind="module", target_id=module_id(file.file_id)) for file in files]
        if isinstance(value, Variable):
            return [new._replace(kind="variable", target_id=binding_id(value.file_id, value.key))]
        return _outside(value, new)

    def _of_function(self, value: Function, new: Candidate, *, is_read: bool) -> list[Candidate]:
        """A function, or a property and what reading it returns."""
        target = definition_id(value.file_id, value.key)
        if value.letter == "d":
            return [new._replace(kind="descriptor", target_id=target)]
        if value.letter != "p":
            return [new._replace(kind="function", target_id=target, call_id=target)]
        key = self._resolver.setter(value)
        setter = definition_id(value.file_id, key) if key else None
        found = [new._replace(kind="property", target_id=target, set_id=setter)]
        if not is_read:
            returned, trail = self._resolver.called(value)
            self.looked_at |= trail
            for each, how in returned.items():
                found += [c._replace(is_named=False) for c in self.of(each, how | How.RETURN, is_read=True)]
        return found

    def _method_of(self, of: Class, *names: str) -> str | None:
        """The node of the first of these methods that a class has in the repository."""
        for name in names:
            found, trail = self._resolver.member(of, name)
            self.looked_at |= trail
            for value in found:
                if isinstance(value, Function):
                    return definition_id(value.file_id, value.key)
        return None


def _outside(value: Value, new: Candidate) -> list[Candidate]:
    """The candidates of a value that no definition of the repository is known for."""
    if isinstance(value, External):
        kind = "builtin" if value.name.startswith(BUILTIN) else "name"
        target = name_id(value.name)
        return [new._replace(status="external", kind=kind, target_id=target, target_name=value.name, call_id=target)]
    if isinstance(value, ExternalInstance):
        target = name_id(value.of)
        return [
            new._replace(status="external", kind="instance", target_id=target, target_name=value.of, is_named=False)
        ]
    if isinstance(value, Symbol):
        target = symbol_id(value.symbol)
        runs = value.kind not in ("variable", "field", "module", "local", "parameter")
        name = symbols.dotted(value.symbol)
        call = target if runs else None
        return [new._replace(status=value.status, kind=value.kind, target_id=target, target_name=name, call_id=call)]
    if isinstance(value, Limit):
        return [_LIMITED]
    if isinstance(value, Absent):
        target = name_id(value.name)
        return [new._replace(status="absent", kind="name", target_id=target, target_name=value.name, call_id=target)]
    return []


def _method(value: Value, how: int) -> tuple[str, float]:
    """What it took to find a value, and how sure that makes it."""
    for flag, name, confidence in _METHODS:
        if how & flag:
            return name, confidence
    if isinstance(value, Symbol):
        return "symbol", 1.0
    is_builtin = isinstance(value, External) and value.name.startswith(BUILTIN)
    return ("builtin" if is_builtin else "scope"), 1.0
