"""Read pyrefly's report of one module into a document.

A report identifies functions and classes by numbers that are valid in one run only; the `definitions` of each module
have their names. So a document is read together with the definitions of every module that it mentions, which are
cached.

What a report has:
    definitions           functions, classes, fields and variables, with their inferred types: what others can see
    call_graphs           for each call (and each operator, loop, …) what it can run; for names, what they would run
    type_of_expressions   not read: `call_graphs` has more about calls
    errors.json           diagnostics of the type checker

Locations are `line:column-line:column`, from 1, columns in bytes of UTF-8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from codeanatomy.index import symbols
from codeanatomy.index.documents import (
    CALL,
    DEFINITION,
    READ,
    Diagnostic,
    Document,
    Occurrence,
    Relationship,
    Sites,
    Symbol,
    fingerprint_of,
)

_MODULE_ID: Final = re.compile(rb'"module_id":(\d+)')
_CLASS_ID: Final = re.compile(rb'"module_id":(\d+),"module_name":"[^"]*","class_id":(\d+)')
_DOTTED: Final = re.compile(rb"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_DOTTED_TEXT: Final = re.compile(_DOTTED.pattern.decode())
_TYPE_VARIABLE: Final = re.compile(r"@\d+")
_IMPLICIT: Final = frozenset({"for-decorated-target", "with-enter", "for-iter", "generator-iter"})
_SEARCHED: Final = "\n  Looked in these locations"
_INSIDE: Final = frozenset(
    {"location", "name_location", "module_id", "class_id", "function_id", "func_def_index", "captured_variables"}
)
"""Keys of a definition that other files cannot see, or that are valid in one run only."""


class Report:
    """The report of one run, read on demand."""

    def __init__(self, folder: Path, names: Mapping[str, str]) -> None:
        """`names` gives our module name for each link of the mirror; pyrefly has none for what cannot be imported."""
        self._folder = folder / "report"
        listed = json.loads((self._folder / "pyrefly.pysa.json").read_bytes())["modules"]
        self._names = names
        self._modules = {entry["module_id"]: entry for entry in listed.values()}
        self._entries = {_file(entry): entry for entry in sorted(listed.values(), key=self._goes_by_our_name)}
        self._definitions: dict[int, _Names] = {}

    def _goes_by_our_name(self, entry: Mapping[str, Any]) -> tuple[bool, str]:
        """Order of entries of one file, the right one last; a relative import at the top loads it as `.name` too."""
        name: str = entry["module_name"]
        return name == self._names.get(_file(entry)), name

    def document(self, link: str, sites: Sites) -> Document:
        """What the report says about the file behind a link of the mirror."""
        return _Reader(self, self._entries[link], sites).read()

    def module_name(self, module_id: int) -> str:
        """The dotted name of a module."""
        entry = self._modules[module_id]
        return self._names.get(_file(entry), entry["module_name"])

    def is_ours(self, module_id: int) -> bool:
        """Whether a module is in the repository."""
        return "FileSystem" in self._modules[module_id]["source_path"]

    def names(self, module_id: int) -> _Names:
        """What the classes and functions of a module are called."""
        known = self._definitions.get(module_id)
        if known is None:
            body = json.loads(self.read("definitions", self._modules[module_id]))
            known = self._definitions[module_id] = _Names(self.module_name(module_id), body)
        return known

    def read(self, part: str, entry: Mapping[str, Any]) -> bytes:
        """One part of a module's report."""
        name: str = entry["info_filename"]
        return (self._folder / part / name).read_bytes()

    def types(self, entry: Mapping[str, Any]) -> bytes:
        """The types of a module's expressions; nothing if they were not reported."""
        try:
            return self.read("type_of_expressions", entry)
        except FileNotFoundError:
            return b""

    def errors(self, entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Diagnostics of a module."""
        return self._errors.get(_file(entry), ())

    @cached_property
    def _errors(self) -> dict[str, list[Mapping[str, Any]]]:
        grouped: dict[str, list[Mapping[str, Any]]] = {}
        for error in json.loads((self._folder / "errors.json").read_bytes())["errors"]:
            grouped.setdefault(error["module_path"].get("FileSystem", ""), []).append(error)
        return grouped


class _Names:
    """Symbols of the classes and functions of one module, by the numbers of the report, and their dotted names.

    Functions that dataclasses and named tuples generate are `unwritten`: they are not in the source.
    """

    def __init__(self, module: str, body: Mapping[str, Any]) -> None:
        self.module = symbols.namespace(module)
        self.dotted = {self.module: module}
        self.classes: dict[int, str] = {}
        self.functions: dict[str, str] = {}
        self.owners: dict[str, int] = {}
        self.unwritten = {
            number for number, each in body["function_definitions"].items() if "name_location" not in each
        }
        classes = ((int(number), each) for number, each in body["class_definitions"].items())
        functions = body["function_definitions"].items()
        found = [
            *((_start(each.get("name_location")), "class", number, each) for number, each in classes),
            *((_start(each.get("name_location")), "function", number, each) for number, each in functions),
        ]
        ordinals: dict[tuple[str, str, str], int] = {}
        for _, kind, number, each in sorted(found, key=lambda item: item[:2]):  # what is around comes first
            parent = self._parent(each["parent"])
            ordinal = ordinals.get((parent, kind, each["name"]), 0)
            ordinals[parent, kind, each["name"]] = ordinal + 1
            if kind == "class":
                symbol = self.classes[number] = symbols.class_in(parent, each["name"], ordinal)
            else:
                symbol = self.functions[number] = symbols.function_in(parent, each["name"], ordinal)
                if isinstance(each["parent"], dict) and "Class" in each["parent"]:
                    self.owners[number] = each["parent"]["Class"]["class_id"]
            self.dotted[symbol] = f"{self.dotted[parent]}.{each['name']}"

    def top_level(self, symbol: str) -> str:
        """The name of the module that a definition is, or is in."""
        return self.dotted[symbol].removeprefix(f"{self.dotted[self.module]}.").partition(".")[0]

    def _parent(self, parent: Any) -> str:
        if isinstance(parent, dict) and "Class" in parent:
            return self.classes.get(parent["Class"]["class_id"], self.module)
        if isinstance(parent, dict) and "Function" in parent:
            return self.functions.get(f"F:{parent['Function']['func_def_index']}", self.module)
        return self.module


def numbering(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """What the numbers of the classes and functions of a module stand for."""
    names = _Names("", definitions)
    functions = {
        number: (symbol, names.owners.get(number), number in names.unwritten)
        for number, symbol in names.functions.items()
    }
    return {**functions, **{str(number): symbol for number, symbol in names.classes.items()}}


class _Reader:
    """Reads one module."""

    def __init__(self, report: Report, entry: Mapping[str, Any], sites: Sites) -> None:
        self._report = report
        self._entry = entry
        self._sites = sites
        self._own = report.names(entry["module_id"])
        self._document = Document(marks_calls=True)

    def read(self) -> Document:
        """The document."""
        calls, definitions = (self._report.read(part, self._entry) for part in ("call_graphs", "definitions"))
        body = json.loads(definitions)
        self._read_definitions(body)
        self._read_calls(json.loads(calls)["call_graphs"])
        self._document.diagnostics += [
            Diagnostic(*self._span(error["location"]), "error", error["kind"], _without_folders(error["message"]))
            for error in self._report.errors(self._entry)
        ]
        self._document.mentions |= self._mentioned(calls, definitions, self._report.types(self._entry))
        self._document.interface = self._interface(body)
        return self._document

    def _mentioned(self, calls: bytes, definitions: bytes, types: bytes) -> set[str]:
        """The modules and classes that are spoken of, and the names in types of expressions."""
        found = {each.decode() for each in set(_DOTTED.findall(types))}
        for part in (calls, definitions, types):
            found |= {self._report.module_name(int(each)) for each in set(_MODULE_ID.findall(part))}
            found |= self._dotted((int(module), int(number)) for module, number in set(_CLASS_ID.findall(part)))
        return found

    def _dotted(self, numbers: Iterable[tuple[int, int | str]]) -> set[str]:
        """The dotted names of classes and functions of the repository, by module and number."""
        found = set()
        for module, number in numbers:
            if self._report.is_ours(module):
                names = self._report.names(module)
                symbol = names.classes.get(number) if isinstance(number, int) else names.functions.get(number)
                found |= {names.dotted[symbol]} if symbol else set()
        return found

    # Definitions.

    def _read_definitions(self, body: Mapping[str, Any]) -> None:
        for number, each in body["function_definitions"].items():
            symbol = self._own.functions[number]
            kind = "method" if number in self._own.owners else "function"
            if number in self._own.unwritten:
                continue
            self._define(symbol, kind, self._own.dotted[symbol], each["name_location"], _signatures(each))
            overridden = each.get("overridden_base_method")
            if overridden:
                self._relate(symbol, self._function(overridden), is_reference=True)
        for number, each in body["class_definitions"].items():
            symbol = self._own.classes[int(number)]
            qname = self._own.dotted[symbol]
            self._define(symbol, "class", qname, each.get("name_location"), None)
            for base in each.get("bases", ()):
                self._relate(symbol, self._class(base), is_reference=False)
            for name, field in each.get("fields", {}).items():
                own = symbols.variable_in(symbol, name)
                self._define(own, "field", f"{qname}.{name}", field.get("location"), _type(field))
        for name, each in body["global_variables"].items():
            symbol = symbols.variable_in(self._own.module, name)
            qname = f"{self._own.dotted[self._own.module]}.{name}"
            self._define(symbol, "variable", qname, each.get("location"), _type(each))

    def _define(self, symbol: str, kind: str, qname: str, location: str | None, signature: str | None) -> None:
        if location is None:
            return
        self._document.symbols.append(Symbol(symbol, kind, qname.rpartition(".")[2], qname, signature))
        self._document.occurrences.append(Occurrence(*self._span(location), symbol, DEFINITION))

    def _relate(self, symbol: str, other: str, *, is_reference: bool) -> None:
        self._document.relationships.append(Relationship(symbol, other, is_reference, is_implementation=True))

    # Calls and names.

    def _read_calls(self, graphs: Mapping[str, Mapping[str, Any]]) -> None:
        calls = dict(zip(self._sites.call_spans, self._sites.calls, strict=True))
        names = {site.bend: site for site in self._sites.refs}
        for sites in graphs.values():
            for place, entry in sites.items():
                location, _, rest = place.partition("|")
                artificial, _, form = rest.partition("|")
                ((kind, body),) = entry.items()
                span = self._span(location)
                if kind == "Call" and not artificial:
                    call = calls.get(span)
                    if call is not None:
                        self._add_call(call.bstart, call.bend, body)
                elif kind == "Call" and form in _IMPLICIT:
                    for symbol, _ in self._targets(body):
                        self._add(*span, symbol, CALL, implicit=True)
                elif kind == "Identifier" or (kind == "AttributeAccess" and not artificial):
                    name = names.get(span[1])
                    if name is not None:
                        self._add_name(name.bstart, name.bend, body)

    def _add_call(self, bstart: int, bend: int, body: Mapping[str, Any]) -> None:
        for symbol, is_named in self._targets(body):
            self._add(bstart, bend, symbol, CALL | READ if is_named else CALL)
        for made in self._made(body):
            self._add(bstart, bend, made, READ)

    def _add_name(self, bstart: int, bend: int, body: Mapping[str, Any]) -> None:
        for target in (*body.get("property_getters", ()), *body.get("property_setters", ())):
            symbol = self._target(target)
            if symbol is not None:  # seen from its class, a property is not run
                self._add(bstart, bend, symbol, CALL | READ if "implicit_receiver" in target else READ, implicit=True)
        called = body.get("if_called", {})
        for symbol in filter(None, (*self._made(called), *self._named(called))):
            self._add(bstart, bend, symbol, READ)
        for target in body.get("global_targets", ()):
            module = self._report.module_name(target["module_id"])
            self._document.mentions.add(f"{module}.{target['name']}")
            self._add(bstart, bend, symbols.variable_in(symbols.namespace(module), target["name"]), READ)

    def _named(self, body: Mapping[str, Any]) -> Iterator[str | None]:
        """Functions that the called expression names; that an object has `__call__` does not make it one."""
        return (self._target(each) for each in body.get("call_targets", ()) if not each.get("implicit_dunder_call"))

    def _targets(self, body: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
        """What runs, and whether the callee names it.

        Of a class that is called, `__init__` or `__new__` of the repository, or failing these the class itself.
        """
        for target in body.get("call_targets", ()):
            symbol = self._target(target)
            if symbol is not None:
                yield symbol, not target.get("implicit_dunder_call")
        for made, constructors in self._made(body).items():
            ours = [each for each in constructors if self._is_written_here(each)]
            yield min(((each["function_name"], self._function(each)) for each in ours), default=("", made))[1], False

    def _is_written_here(self, function: Mapping[str, Any]) -> bool:
        module = function["module_id"]
        return self._report.is_ours(module) and function["function_id"] not in self._report.names(module).unwritten

    def _made(self, body: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
        """The classes that a call makes instances of, if that is what it does, with what each runs for it.

        A target without a receiver is the one class's; if there is no receiver at all, the class that has the method is
        meant, unless that is `object`, which has them all.
        """
        made: dict[str, list[Mapping[str, Any]]] = {}
        others = []
        for target in (*body.get("init_targets", ()), *body.get("new_targets", ())):
            function = _function_of(target)
            if "receiver_class" in target:
                made.setdefault(self._class(target["receiver_class"]), []).extend([function] if function else ())
            elif function is not None:
                others.append(function)
        if not made:
            made = {owner: [] for owner in map(self._class_with, others) if owner not in (None, _OBJECT)}
        if len(made) == 1:
            made[next(iter(made))] += others
        return made

    def _class_with(self, function: Mapping[str, Any]) -> str | None:
        names = self._report.names(function["module_id"])
        owner = names.owners.get(function["function_id"])
        return None if owner is None else names.classes[owner]

    def _target(self, target: Mapping[str, Any]) -> str | None:
        function = _function_of(target)
        return None if function is None else self._function(function)

    def _function(self, function: Mapping[str, Any]) -> str:
        names = self._report.names(function["module_id"])
        known = names.functions.get(function["function_id"])
        if known is None:
            return symbols.function_in(names.module, function["function_name"])
        self._document.mentions.add(names.dotted[known])
        return known

    def _class(self, described: Mapping[str, Any]) -> str:
        names = self._report.names(described["module_id"])
        return names.classes.get(described["class_id"]) or symbols.class_in(names.module, described["class_name"])

    def _add(self, bstart: int, bend: int, symbol: str, role: int, *, implicit: bool = False) -> None:
        self._document.occurrences.append(Occurrence(bstart, bend, symbol, role, implicit))

    def _span(self, location: str) -> tuple[int, int]:
        start, _, end = location.partition("-")
        return self._offset(start), self._offset(end)

    def _offset(self, place: str) -> int:
        line, _, column = place.partition(":")
        return self._sites.offset(int(line), int(column))

    def _interface(self, body: Mapping[str, Any]) -> list[str]:
        """What other files can see: each name of the module, a hash of its definition, and the names it mentions."""
        by_name: dict[str, dict[str, Any]] = {}
        for number, each in body["function_definitions"].items():
            symbol = self._own.functions[number]
            by_name.setdefault(self._own.top_level(symbol), {})[symbol] = each
        for number, each in body["class_definitions"].items():
            symbol = self._own.classes[int(number)]
            by_name.setdefault(self._own.top_level(symbol), {})[symbol] = each
        for name, each in body["global_variables"].items():
            by_name.setdefault(name, {})[symbols.variable_in(self._own.module, name)] = each
        found = []
        for name, definitions in by_name.items():
            mentioned = _Mentioned()
            portable = {symbol: _portable(each, mentioned) for symbol, each in definitions.items()}
            text = _TYPE_VARIABLE.sub("@_", json.dumps(portable, sort_keys=True))
            in_types = {each for type_text in mentioned.types for each in _DOTTED_TEXT.findall(type_text)}
            found.append(" ".join((name, fingerprint_of(text), *sorted(in_types | self._dotted(mentioned.defined)))))
        return found


class _Mentioned:
    """What definitions mention: classes and functions, by module and number, and types."""

    def __init__(self) -> None:
        self.defined: set[tuple[int, int | str]] = set()
        self.types: set[str] = set()

    def add(self, described: Mapping[str, Any]) -> None:
        """Add the definition or type that `described` is."""
        number = described.get("class_id", described.get("function_id"))
        if number is not None and "module_id" in described:
            self.defined.add((described["module_id"], number))
        if isinstance(text := described.get("string"), str):
            self.types.add(text)


_OBJECT: Final = symbols.class_in(symbols.namespace("builtins"), "object")


def _function_of(target: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The function that a target names, with or without its overrides."""
    what = target["target"]
    if not isinstance(what, dict):
        return None
    found: Mapping[str, Any] | None = what.get("Function") or what.get("Overrides")
    return found


def _file(entry: Mapping[str, Any]) -> str:
    """The link of a module in the mirror; empty if it is none of ours."""
    link: str = entry["source_path"].get("FileSystem", "")
    return link


def _without_folders(message: str) -> str:
    """A message without the list of folders that were searched, which are those of this run."""
    return message.partition(_SEARCHED)[0]


def _start(location: str | None) -> tuple[int, int]:
    """Where a location begins; what is not in the source comes last."""
    if location is None:
        return 1 << 30, 0
    line, _, column = location.partition("-")[0].partition(":")
    return int(line), int(column)


def _type(described: Mapping[str, Any]) -> str | None:
    text = described.get("type", {}).get("string")
    return None if text is None else _TYPE_VARIABLE.sub("@_", text)


def _signatures(function: Mapping[str, Any]) -> str:
    """The signature of a function, or of each of its overloads."""
    return "\n".join(_signature(each) for each in function["undecorated_signatures"])


def _signature(signature: Mapping[str, Any]) -> str:
    parameters = signature["parameters"]
    listed = parameters.get("List") if isinstance(parameters, dict) else None
    shown = "..." if listed is None else ", ".join(_parameter(*each.popitem()) for each in map(dict, listed))
    returns = signature.get("return_annotation", {}).get("string", "Unknown")
    return _TYPE_VARIABLE.sub("@_", f"({shown}) -> {returns}")


def _parameter(kind: str, described: Mapping[str, Any]) -> str:
    stars = {"VarArg": "*", "Kwargs": "**"}.get(kind, "")
    annotation = described.get("annotation", {}).get("string", "Unknown")
    default = "" if stars or described.get("required") else " = ..."
    return f"{stars}{described.get('name', '_')}: {annotation}{default}"


def _portable(described: Any, mentioned: _Mentioned) -> Any:
    """A definition of a report without numbers and locations of this run; adds to what is `mentioned`.

    Decorators and the classes of a union are sorted, because their order means nothing.
    """
    if isinstance(described, list):
        return [_portable(each, mentioned) for each in described]
    if not isinstance(described, dict):
        return described
    mentioned.add(described)
    found: dict[str, Any] = {}
    for key, value in described.items():
        if key == "fields":  # which may be called anything
            found[key] = {name: _portable(field, mentioned) for name, field in value.items()}
        elif key == "decorator_callees":
            found[key] = [_in_order(value[place], mentioned) for place in sorted(value, key=_start)]
        elif key == "classes":
            found[key] = _in_order(value, mentioned)
        elif key not in _INSIDE:
            found[key] = _portable(value, mentioned)
    return found


def _in_order(listed: Iterable[Any], mentioned: _Mentioned) -> list[Any]:
    return sorted((_portable(each, mentioned) for each in listed), key=lambda each: json.dumps(each, sort_keys=True))
