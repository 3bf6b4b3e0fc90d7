"""Answers as rows of `answers`: for each question of a file, its candidates in a total order.

Terms
    question     what a file asks: of its source (`asks`), or of a symbol that an indexer found in it (`symbol_asks`).
    candidate    one thing a question can mean: what it names (`target_id`), and what a call of it runs (`call_id`).
    answer       the candidates of a question and the trail: the modules that were looked at.
    named        a candidate that the question names directly, not through a variable or a return value.
    agreement    how what the indexer says of a site compares with the answer to the question of the source there.
    outcome      a hash of all candidates of a question: equal outcomes mean equal answers, trails aside.

Steps for one file
    1. Each question of the source is evaluated (`Resolver.evaluate`), when it is first needed.
    2. Each value becomes candidates (`_CandidatesOfValues`): a property also stands for what it returns, a class for
       its constructor. Candidates are sorted, and of those that mean the same the surest is kept.
    3. Each question of a symbol is answered the same way, once for all files, and compared with the answers to the
       questions of the source at its site.
    4. A question without candidates that looked only at its own file gets no row: no change elsewhere can give it one.

Rows depend on the index alone, not on the batch or on what was asked before.
Tested by tests/resolve; with an index, by tests/pipeline/test_indexing.py.
"""

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
from codeanatomy.resolve.index import ModuleFile
from codeanatomy.resolve.resolver import RECURSION_LIMIT, Resolver
from codeanatomy.resolve.values import (
    LIMIT,
    Absent,
    Class,
    Container,
    ContainerMethod,
    Decorated,
    External,
    ExternalInstance,
    Function,
    How,
    Instance,
    Limit,
    Module,
    Partial,
    Symbol,
    Trail,
    Value,
    Variable,
)

_STATUS_ORDER: Final = {"internal": 0, "external": 1, "absent": 2, "limit": 3}

_METHODS: Final = (
    (How.FLOW, "flow", 0.75),
    (How.ANNOTATION, "annotation", 0.8),
    (How.RETURN, "returns", 0.85),
    (How.ASSIGNMENT, "assignment", 0.9),
    (How.MRO, "mro", 0.95),
    (How.STAR, "star_import", 1.0),
    (How.IMPORT, "import", 1.0),
)


class Candidate(NamedTuple):
    """One thing a question can mean.

    Its fields are columns of `answers`; their names are part of the stored outcome.
    """

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


class Answer(NamedTuple):
    """The candidates of a question, in order, and the modules that were looked at."""

    candidates: list[Candidate]
    trail: Trail


_NO_ANSWER: Final = Answer([], frozenset())

Asked = Mapping[str, Collection[int] | None]
"""Which questions to answer: by file id, the numbers of some questions, or None for all."""


def answer_files(resolver: Resolver, files: pa.RecordBatch, asked: Asked | None = None) -> pa.RecordBatch:
    """Answer all questions of a batch of files, or those `asked`; it has `file_id`, `asks` and `symbol_asks`."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    rows: list[tuple[Any, ...]] = []
    symbol_answers: dict[str, Answer] = {}  # a symbol means the same in every file
    columns = (files[name].to_pylist() for name in ("file_id", "asks", "symbol_asks"))
    for file_id, asks, symbol_asks in zip(*columns, strict=True):
        file = resolver.index.files[file_id]
        numbers = asked[file_id] if asked is not None else None
        answers = _SourceAnswers(resolver, file, asks or ())
        for ask in asks or ():
            if numbers is None or ask["ask_no"] in numbers:
                rows += _answer_rows(file, ask, answers[ask["ask_no"]])
        for ask in symbol_asks or ():
            if numbers is not None and ask["ask_no"] not in numbers:
                continue
            of_call, of_name = answers[ask["call_ask_no"]], answers[ask["name_ask_no"]]
            symbol = symbol_answers.get(ask["question"])
            if symbol is None:
                symbol = symbol_answers[ask["question"]] = answer_question(resolver, file, ask["question"])
            rows += _answer_rows(file, ask, _with_agreement(symbol, of_call, of_name))
    *values, trails = zip(*rows, strict=True) if rows else ((),) * len(ANSWERS.columns)
    schema = ANSWERS.schema()
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, _trail_array(trails, schema[-1].type)], schema=schema)


class _SourceAnswers(dict[int | None, Answer]):
    """The answers to the questions of a file's source, by number; each is found when it is first needed."""

    def __init__(self, resolver: Resolver, file: ModuleFile, asks: Iterable[Mapping[str, Any]]) -> None:
        super().__init__()
        self._resolver = resolver
        self._file = file
        self._questions = {ask["ask_no"]: ask["question"] for ask in asks}

    def __missing__(self, number: int | None) -> Answer:
        question = self._questions.get(number)
        answer = _NO_ANSWER if question is None else answer_question(self._resolver, self._file, question)
        self[number] = answer
        return answer


def answer_question(resolver: Resolver, file: ModuleFile, question: str) -> Answer:
    """The answer to one question of a file."""
    found, trail = resolver.evaluate(file, question)
    described = _CandidatesOfValues(resolver)
    candidates = {c for value, how in found.items() for c in described.of(value, how)}
    is_passed = any(how & How.FLOW and value is not LIMIT for value, how in found.items())
    if is_passed or any(c.status == "limit" for c in candidates):
        # What is absent may be among what was not evaluated, or set somewhere else.
        candidates = {c for c in candidates if c.status != "absent"}
    return Answer(_without_duplicates(sorted(candidates, key=_sort_key)), trail | described.looked_at)


def _trail_array(trails: Sequence[Trail], kind: pa.DataType) -> pa.Array:
    """Trails as sorted lists; each distinct one is converted once, for there are few."""
    numbers: dict[Trail, int] = {}
    indices = [numbers.setdefault(trail, len(numbers)) for trail in trails]
    return pa.array([_trail_entries(trail) for trail in numbers], kind).take(pa.array(indices, pa.int32()))


def _trail_entries(trail: Trail) -> list[str]:
    """The entries of a trail, without `?name` where `name` is there too: reading a module implies its existence."""
    return sorted(
        entry for entry in trail if not (entry.startswith("?") and entry[1:] in trail) and not entry.startswith("=.")
    )


def _answer_rows(file: ModuleFile, ask: Mapping[str, Any], answer: Answer) -> list[tuple[Any, ...]]:
    candidates, trail = answer
    if not candidates and trail <= {file.module}:
        return []  # no change elsewhere can give it a candidate
    named_count = sum(c.is_named for c in candidates)
    called_count = len({c.call_id for c in candidates if c.call_id})
    outcome = sha256(repr(candidates).encode()).hexdigest()[:24]
    first = (file.file_id, file.path, ask["ask_no"], ask["question"])
    last = (named_count, called_count, outcome, trail)
    if not candidates:
        return [(*first, 0, "unknown", *_NO_CANDIDATE, *last)]
    return [(*first, position, *candidate, *last) for position, candidate in enumerate(candidates)]


_NO_CANDIDATE: Final = (None, None, None, False, None, None, None, 0.0, None, None)
_LIMITED: Final = Candidate(
    "limit", "limit", None, None, is_named=False, call_id=None, set_id=None, method=None, confidence=0.0
)


def _with_agreement(symbol: Answer, of_call: Answer, of_name: Answer) -> Answer:
    """A symbol's candidates, each compared with the answers of the source for the call and the name at its site."""
    called = _KnownTargets(of_call.candidates, called=True)
    named = _KnownTargets(of_name.candidates, called=False)
    compared = [
        each._replace(
            call_agreement=called.agreement(each.status, each.call_id, each.target_name),
            name_agreement=named.agreement(each.status, each.target_id, each.target_name),
        )
        for each in symbol.candidates
    ]
    return Answer(compared, symbol.trail | of_call.trail | of_name.trail)


class _KnownTargets:
    """What a call runs (`called`), or what a name is, by the answer of the source."""

    def __init__(self, candidates: Iterable[Candidate], *, called: bool) -> None:
        self._nodes: set[str] = set()
        self._external_names: set[str] = set()
        for each in candidates:
            nodes = (each.call_id, *_property_nodes(each)) if called else (each.target_id if each.is_named else None,)
            known = {node for node in nodes if node}
            if each.status == "internal":
                self._nodes |= known
            if each.status == "external" and each.target_name and known:
                self._external_names.add(_last_name(each.target_name))

    def agreement(self, status: str, node: str | None, name: str | None) -> str:
        """How a target compares with these; what is outside the repository is compared by its last name."""
        is_outside = status != "internal"
        if node in self._nodes or (is_outside and name and _last_name(name) in self._external_names):
            return "agrees"
        return "contradicts" if self._nodes or (self._external_names and is_outside) else "adds"


def _property_nodes(candidate: Candidate) -> tuple[str | None, ...]:
    """What runs when a property is read or assigned to."""
    return (candidate.target_id, candidate.set_id) if candidate.kind == "property" else ()


def _last_name(name: str) -> str:
    return name.rpartition(".")[2]


def _sort_key(candidate: Candidate) -> tuple[Any, ...]:
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
    """The first, which is the surest, of the candidates that mean the same."""
    kept: dict[tuple[Any, ...], Candidate] = {}
    for candidate in ordered:
        kept.setdefault((candidate.is_named, candidate.kind, candidate.target_id), candidate)
    return list(kept.values())


class _CandidatesOfValues:
    """Turns values into candidates; `looked_at` has the modules that this looked at."""

    def __init__(self, resolver: Resolver) -> None:
        self.looked_at: frozenset[str] = frozenset()
        self._resolver = resolver

    def of(self, value: Value, how: int, *, is_read: bool = False) -> list[Candidate]:
        """The candidates of a value; `is_read` if it is what reading a property returned."""
        method, confidence = _method_and_confidence(value, how)
        new = Candidate("internal", "", None, None, not how & How.ALIAS, None, None, method, confidence)
        if isinstance(value, Function):
            return self._of_function(value, new, is_read=is_read)
        if isinstance(value, Class):
            target = definition_id(value.file_id, value.key)
            constructor = self._method_id(value, "__init__", "__new__") or target
            return [new._replace(kind="class", target_id=target, call_id=constructor)]
        if isinstance(value, Instance):
            target = definition_id(value.cls.file_id, value.cls.key)
            call = self._method_id(value.cls, "__call__")
            return [new._replace(kind="instance", target_id=target, is_named=False, call_id=call)]
        if isinstance(value, Module):
            files = self._resolver.index.modules.get(value.name)
            if not files:
                return [new._replace(kind="module", target_id=name_id(value.name), target_name=value.name)]
            return [new._replace(kind="module", target_id=module_id(file.file_id)) for file in files]
        if isinstance(value, Decorated):
            kind = "class" if isinstance(value.value, Class) else "function"
            return [new._replace(kind=kind, target_id=definition_id(value.value.file_id, value.value.key))]
        if isinstance(value, Partial):
            return self._of_partial(value, how)
        if isinstance(value, Variable):
            return [new._replace(kind="variable", target_id=binding_id(value.file_id, value.key))]
        return _candidates_without_definition(value, new)

    def _of_function(self, value: Function, new: Candidate, *, is_read: bool) -> list[Candidate]:
        """A function, or a property and what reading it returns."""
        target = definition_id(value.file_id, value.key)
        if value.kind == "d":
            return [new._replace(kind="descriptor", target_id=target)]
        if not value.is_property:
            return [new._replace(kind="function", target_id=target, call_id=target)]
        setter_key = self._resolver.property_setter(value)
        setter = definition_id(value.file_id, setter_key) if setter_key else None
        found = [new._replace(kind="property", target_id=target, set_id=setter)]
        if not is_read:
            returned, trail = self._resolver.call_result(value)
            self.looked_at |= trail
            for each, how in returned.items():
                found += [c._replace(is_named=False) for c in self.of(each, how | How.RETURN, is_read=True)]
        return found

    def _of_partial(self, value: Partial, how: int) -> list[Candidate]:
        """What a call of a partial application runs."""
        resolver = self._resolver
        file = resolver.index.files[value.file_id]
        found, trail = resolver.search(lambda: resolver.argument(file, value.site, "0"))
        self.looked_at |= trail
        return [
            candidate._replace(is_named=False)
            for each, each_how in found.items()
            if not isinstance(each, Partial)
            for candidate in self.of(each, how | each_how)
        ]

    def _method_id(self, cls: Class, *names: str) -> str | None:
        """The node of the first of these methods that a class has in the repository."""
        for name in names:
            found, trail = self._resolver.class_member(cls, name)
            self.looked_at |= trail
            for value in found:
                if isinstance(value, Function):
                    return definition_id(value.file_id, value.key)
        return None


def _candidates_without_definition(value: Value, new: Candidate) -> list[Candidate]:
    """The candidates of a value that has no definition in the repository."""
    if isinstance(value, Container):
        value = ExternalInstance(value.class_name)
        if not value.class_name:
            return []
    if isinstance(value, ContainerMethod):
        value = External(f"{value.container.class_name}.{value.name}")
    if isinstance(value, External):
        kind = "builtin" if value.name.startswith(BUILTIN) else "name"
        target = name_id(value.name)
        return [new._replace(status="external", kind=kind, target_id=target, target_name=value.name, call_id=target)]
    if isinstance(value, ExternalInstance):
        target, name = name_id(value.class_name), value.class_name
        return [new._replace(status="external", kind="instance", target_id=target, target_name=name, is_named=False)]
    if isinstance(value, Symbol):
        target = symbol_id(value.symbol)
        can_be_called = value.kind not in ("variable", "field", "module", "local", "parameter")
        dotted = symbols.dotted(value.symbol)
        call = target if can_be_called else None
        return [new._replace(status=value.status, kind=value.kind, target_id=target, target_name=dotted, call_id=call)]
    if isinstance(value, Limit):
        return [_LIMITED]
    if isinstance(value, Absent):
        target = name_id(value.name)
        return [new._replace(status="absent", kind="name", target_id=target, target_name=value.name, call_id=target)]
    return []


def _method_and_confidence(value: Value, how: int) -> tuple[str, float]:
    """The least certain thing it took to find a value, and how sure that makes it."""
    for flag, name, confidence in _METHODS:
        if how & flag:
            return name, confidence
    if isinstance(value, Symbol):
        return "symbol", 1.0
    is_builtin = isinstance(value, External) and value.name.startswith(BUILTIN)
    return ("builtin" if is_builtin else "scope"), 1.0
