"""Answers as rows: each question of a file, each candidate, in a total order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import pyarrow as pa

from codeanatomy.catalogue.tables import ANSWERS
from codeanatomy.index import symbols
from codeanatomy.resolve.builtins import BUILTIN
from codeanatomy.resolve.index import Index, ModuleFile
from codeanatomy.resolve.resolver import Resolver
from codeanatomy.resolve.values import (
    EMPTY,
    Absent,
    Class,
    External,
    ExternalInstance,
    Function,
    How,
    Instance,
    Module,
    Symbol,
    Trail,
    Value,
    Variable,
)

_RECURSION: Final = 10_000
_STATUS_ORDER: Final = {"internal": 0, "external": 1, "absent": 2}

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
    method: str
    confidence: float


def answer_files(resolver: Resolver, files: pa.RecordBatch) -> pa.RecordBatch:
    """Answer every question of a batch of files, which has `file_id` and `asks`."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION))
    index = resolver.index
    rows: list[tuple[Any, ...]] = []
    for file_id, asks in zip(files["file_id"].to_pylist(), files["asks"].to_pylist(), strict=True):
        file = index.files[file_id]
        for ask in asks or ():
            rows += _rows(resolver, index, file, ask["ask_no"], ask["question"])
    *columns, trails = zip(*rows, strict=True) if rows else ((),) * len(ANSWERS.columns)
    schema = ANSWERS.schema()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _lists(trails, schema[-1].type)], schema=schema)


def _lists(trails: Sequence[Trail], kind: pa.DataType) -> pa.Array:
    """Sets of names as sorted lists; the same few occur over and over."""
    numbers: dict[Trail, int] = {}
    indices = [numbers.setdefault(trail, len(numbers)) for trail in trails]
    return pa.array([sorted(trail) for trail in numbers], kind).take(pa.array(indices, pa.int32()))


def _rows(resolver: Resolver, index: Index, file: ModuleFile, number: int, question: str) -> list[tuple[Any, ...]]:
    found, trail = resolver.evaluate(file, question)
    looked_at = set(trail)
    candidates = {c for value, how in found.items() for c in _candidates(resolver, index, value, how, looked_at)}
    trail = frozenset(looked_at)
    ordered = _without_duplicates(sorted(candidates, key=_order))
    if not ordered and trail <= {file.module}:
        return []  # nothing that happens elsewhere can change that
    named = sum(c.is_named for c in ordered)
    called = len({c.call_id for c in ordered if c.call_id})
    outcome = sha256(repr(ordered).encode()).hexdigest()[:24]
    owner = (file.file_id, file.path, number, question)
    if not ordered:
        return [(*owner, 0, "unknown", *_NO_CANDIDATE, 0, 0, outcome, trail)]
    return [(*owner, place, *candidate, named, called, outcome, trail) for place, candidate in enumerate(ordered)]


_NO_CANDIDATE: Final = (None, None, None, False, None, None, None, 0.0)


def _order(candidate: Candidate) -> tuple[Any, ...]:
    return (
        not candidate.is_named,
        _STATUS_ORDER[candidate.status],
        candidate.target_id or "",
        candidate.kind,
        candidate.call_id or "",
        -candidate.confidence,
        candidate.method,
        candidate.set_id or "",
    )


def _without_duplicates(ordered: Sequence[Candidate]) -> list[Candidate]:
    """The surest of the candidates that mean the same."""
    kept: dict[tuple[Any, ...], Candidate] = {}
    for candidate in ordered:
        kept.setdefault((candidate.is_named, candidate.kind, candidate.target_id), candidate)
    return list(kept.values())


def _candidates(
    resolver: Resolver, index: Index, value: Value, how: int, looked_at: set[str], *, read: bool = False
) -> list[Candidate]:
    """The candidates a value stands for; `read` if it is what a property gives. Adds to the modules `looked_at`."""
    method, confidence = _method(value, how)
    named = not how & How.ALIAS

    def made(
        status: str,
        kind: str,
        target_id: str | None,
        *,
        name: str | None = None,
        is_named: bool = named,
        call: str | None = None,
        setter: str | None = None,
    ) -> Candidate:
        return Candidate(status, kind, target_id, name, is_named, call, setter, method, confidence)

    if isinstance(value, Function):
        target = f"d:{value.file_id}:{value.key}"
        if value.letter == "p":
            key = resolver.setter(value)
            itself = made("internal", "property", target, setter=f"d:{value.file_id}:{key}" if key else None)
            given, trail = resolver.called(value) if not read else (EMPTY, frozenset())
            looked_at |= trail
            return [
                itself,
                *(
                    candidate._replace(is_named=False)
                    for each, given_how in given.items()
                    for candidate in _candidates(resolver, index, each, given_how | How.RETURN, looked_at, read=True)
                ),
            ]
        if value.letter == "d":
            return [made("internal", "descriptor", target)]
        return [made("internal", "function", target, call=target)]
    if isinstance(value, Class):
        target = f"d:{value.file_id}:{value.key}"
        return [
            made(
                "internal",
                "class",
                target,
                call=_method_id(resolver, value, looked_at, "__init__", "__new__") or target,
            )
        ]
    if isinstance(value, Instance):
        target = f"d:{value.of.file_id}:{value.of.key}"
        return [
            made(
                "internal",
                "instance",
                target,
                is_named=False,
                call=_method_id(resolver, value.of, looked_at, "__call__"),
            )
        ]
    if isinstance(value, Module):
        files = index.modules.get(value.name)
        if not files:
            return [made("internal", "module", f"q:{value.name}", name=value.name)]
        return [made("internal", "module", f"m:{file.file_id}") for file in files]
    if isinstance(value, Variable):
        return [made("internal", "variable", f"b:{value.file_id}:{value.key}")]
    if isinstance(value, External):
        kind = "builtin" if value.name.startswith(BUILTIN) else "name"
        target = f"q:{value.name}"
        return [made("external", kind, target, name=value.name, call=target)]
    if isinstance(value, ExternalInstance):
        return [made("external", "instance", f"q:{value.of}", name=value.of, is_named=False)]
    if isinstance(value, Symbol):
        target = symbols.node_id(value.symbol)
        runs = value.kind not in ("variable", "field", "module", "local", "parameter")
        name = symbols.dotted(value.symbol)
        return [made(value.status, value.kind, target, name=name, call=target if runs else None)]
    if isinstance(value, Absent):
        target = f"q:{value.name}"
        return [made("absent", "name", target, name=value.name, call=target)]
    return []


def _method_id(resolver: Resolver, of: Class, looked_at: set[str], *names: str) -> str | None:
    """The node of the first of these methods that a class has in the repository."""
    for name in names:
        found, trail = resolver.member(of, name)
        looked_at |= trail
        for value in found:
            if isinstance(value, Function):
                return f"d:{value.file_id}:{value.key}"
    return None


def _method(value: Value, how: int) -> tuple[str, float]:
    """What it took to find a value, and how sure that makes it."""
    for flag, name, confidence in _METHODS:
        if how & flag:
            return name, confidence
    if isinstance(value, Symbol):
        return "symbol", 1.0
    is_builtin = isinstance(value, External) and value.name.startswith(BUILTIN)
    return ("builtin" if is_builtin else "scope"), 1.0
