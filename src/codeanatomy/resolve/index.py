"""The index that questions are answered from: what the files of a snapshot define, by module and by name.

It is built from the scan and from two columns of the facts (`CONTENT_COLUMNS`). What a content defines is read and
decoded when it is first looked up, so that an index costs only what is read of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER


@dataclass(frozen=True, slots=True, eq=False)
class ModuleFile:
    """A file as a module. Compared by identity: an index has one object for each file."""

    file_id: str
    path: str
    content_id: str | None
    module: str
    is_init: bool
    is_stub: bool

    def package(self) -> str:
        """The package that relative imports start from."""
        return self.module if self.is_init else self.module.rpartition(".")[0]


@dataclass(frozen=True, slots=True)
class Slot:
    """What a name (or a base, or a return) can be: terms to evaluate in its file.

    `binding_key` and `kind` tell what binds it, if a scope does; `stars_before` counts the star imports above that
    binding.
    """

    alternatives: tuple[str, ...]
    binding_key: str | None
    kind: str | None
    stars_before: int = 0


class SymbolDefinition(NamedTuple):
    """Where a symbol is defined: a definition or a binding of a file; an attribute of an object has neither key."""

    file_id: str
    def_key: str | None
    binding_key: str | None
    kind: str


@dataclass(slots=True)
class ClassNames:
    """What a class defines: its bases, its members, the attributes of its instances (`attributes`)."""

    qualname: str
    bases: list[Slot] = field(default_factory=list)
    metaclass: Slot | None = None
    members: dict[str, Slot] = field(default_factory=dict)
    attributes: dict[str, Slot] = field(default_factory=dict)
    setters: dict[str, Slot] = field(default_factory=dict)


class Parameters(NamedTuple):
    """The parameters of a function, each with a mark: `*`, `**`, `!` (only by keyword), `/` (only by position) or none.

    The first of a method is its receiver: a class (`owner`), or an instance of it.
    """

    owner: str | None
    is_class: bool
    names: tuple[str, ...]
    marks: tuple[str, ...]


class Argument(NamedTuple):
    """Something that is passed: to a position, a keyword, a name or a key, and the terms of what it can be."""

    place: str
    terms: tuple[str, ...]


class Pass(NamedTuple):
    """A row of `sym_passes`: what is called or written to, and what is passed."""

    kind: str
    site: str | None
    target: tuple[str, ...]
    arguments: tuple[Argument, ...]


_PLACE: Final = re.compile(r" (?:\(|&)([0-9a-f]+)")
_NO_PARAMETERS: Final = Parameters(None, is_class=False, names=(), marks=())


@dataclass
class FileNames:
    """What a file defines: the names of its module, its classes, and what its functions return, by their keys."""

    names: dict[str, Slot] = field(default_factory=dict)
    classes: dict[str, ClassNames] = field(default_factory=dict)
    returns: dict[str, Slot] = field(default_factory=dict)
    return_types: dict[str, Slot] = field(default_factory=dict)
    yields: dict[str, Slot] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    stars: list[Slot] = field(default_factory=list)
    exports: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    read_passes: Callable[[], Iterable[tuple[Any, ...]]] = field(default=tuple, compare=False)

    def says_the_same(self, other: FileNames) -> bool:
        """Whether others can see no difference: names are bound to the same, at places where the same is passed."""
        return self == other and self._visible_passes == other._visible_passes

    @cached_property
    def _visible_passes(self) -> dict[str, Pass]:
        """The passes at the places that terms of slots name, and at those that these name in turn."""
        slots = [*self.names.values(), *self.returns.values(), *self.return_types.values(), *self.yields.values()]
        for cls in self.classes.values():
            slots += (*cls.bases, *cls.members.values(), *cls.attributes.values(), *cls.setters.values())
        pending = [term for slot in slots for term in slot.alternatives]
        visible: dict[str, Pass] = {}
        while pending:
            for place in _PLACE.findall(pending.pop()):
                passed = self.sites.get(place)
                if passed is not None and place not in visible:
                    visible[place] = passed
                    pending += (*passed.target, *(term for each in passed.arguments for term in each.terms))
        return visible

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """What the file passes on."""
        return tuple(_pass(*row) for row in self.read_passes())

    @cached_property
    def sites(self) -> dict[str, Pass]:
        """What is passed at the places that have a name."""
        return {each.site: each for each in self.passes if each.site is not None}

    def parameters(self, function: str) -> Parameters:
        """The parameters of a function, by its key."""
        signature = self.signatures.get(function)
        return _parameters(signature) if signature is not None else _NO_PARAMETERS

    @cached_property
    def returns_parameters(self) -> frozenset[str]:
        """The functions that can return what they are given."""
        return frozenset(
            key for key, slot in self.returns.items() if any(term.startswith(f"v:{key}:") for term in slot.alternatives)
        )


Contents = Callable[[str], FileNames | None]
"""What a content defines, by its id; None if there are no facts of it."""


class ContentNames:
    """What contents define, decoded from the columns `CONTENT_COLUMNS` of their facts when it is looked up."""

    def __init__(self, facts: pa.Table) -> None:
        self._row_of = {content: row for row, content in enumerate(facts["content_id"].to_pylist())}
        self._decoded: dict[str, FileNames] = {}
        self._values = _ListColumn(facts["sym_values"], _ValueRow._fields)
        self._exports = _ListColumn(facts["all_names"], _EXPORT_FIELDS)
        self._passes = _ListColumn(facts["sym_passes"], _PASS_FIELDS)

    def __call__(self, content_id: str) -> FileNames | None:
        """What one content defines."""
        row = self._row_of.get(content_id)
        if row is None or content_id in self._decoded:
            return self._decoded.get(content_id)
        names = FileNames()
        for value in self._values.rows(row):
            _add_slot(names, _ValueRow._make(value))
        names.exports += self._exports.rows(row)
        names.read_passes = partial(self._passes.rows, row)
        self._decoded[content_id] = names
        return names


CONTENT_COLUMNS: Final = ("content_id", "sym_values", "sym_passes", "all_names")


class Index:
    """The modules of a snapshot and what their files define."""

    def __init__(self, files: pa.Table, contents: Contents, documents: pa.Table | None = None) -> None:
        """An index of files, of what their contents define, and of the symbols that an indexer defines.

        `files` has the columns of `ModuleFile`; `documents` has `file_id` and `scip_symbol_information`.
        """
        self.symbols = SymbolDefinitions(documents) if documents is not None else None
        self._contents = contents
        self._names: dict[str | None, FileNames] = {None: FileNames()}
        self.files: dict[str, ModuleFile] = {}
        self.modules: dict[str, tuple[ModuleFile, ...]] = {}
        self.packages: set[str] = set()
        self._read_files(files)

    def _read_files(self, files: pa.Table) -> None:
        columns = [files[name].to_pylist() for name in ("file_id", "path", "content_id", "module_fqn")]
        flags = [files[name].to_pylist() for name in ("is_init", "is_stub")]
        claims: dict[str, list[ModuleFile]] = {}
        for file in map(ModuleFile, *columns, *flags):
            self.files[file.file_id] = file
            claims.setdefault(file.module, []).append(file)
            parent = file.module.rpartition(".")[0]
            while parent and parent not in self.packages:
                self.packages.add(parent)
                parent = parent.rpartition(".")[0]
        for module, claimants in claims.items():
            packages = {f.path.rpartition("/")[0] for f in claimants if f.is_init}
            # Python finds a package before the module of that name beside it.
            found = [f for f in claimants if f.path.rpartition(".")[0] not in packages]
            self.modules[module] = tuple(sorted(found, key=lambda f: (f.is_stub, not f.is_init, f.path)))

    def is_module(self, name: str) -> bool:
        """Whether the repository has this module, or a package of that name."""
        return name in self.modules or name in self.packages

    def names(self, file: ModuleFile) -> FileNames:
        """What a file defines; nothing if it could not be read."""
        known = self._names.get(file.content_id)
        if known is None and file.content_id is not None:
            known = self._names[file.content_id] = self._contents(file.content_id) or FileNames()
        return known or FileNames()


class SymbolDefinitions:
    """Where the symbols of documents are defined, decoded when they are looked up: few of them ever are."""

    def __init__(self, documents: pa.Table) -> None:
        lists = documents["scip_symbol_information"].combine_chunks()
        structs = lists.flatten()
        self._symbols = structs.field("symbol")
        owners = documents["file_id"].combine_chunks().take(pc.list_parent_indices(lists))
        self._fields = [owners, *(structs.field(name) for name in ("def_key", "binding_key", "kind"))]
        self._definitions: dict[str, list[SymbolDefinition]] = {}

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for number, symbol in enumerate(self._symbols.to_pylist()):
            rows.setdefault(symbol, []).append(number)
        return rows

    def of(self, symbol: str) -> list[SymbolDefinition]:
        """The definitions of a symbol in files of the repository, by file id."""
        if symbol not in self._definitions:
            rows = self._rows.get(symbol, ())
            definitions = (SymbolDefinition(*(field[row].as_py() for field in self._fields)) for row in rows)
            in_files = (each for each in definitions if each.file_id != GLOBAL_OWNER)
            self._definitions[symbol] = sorted(in_files, key=lambda each: each.file_id)
        return self._definitions[symbol]


class _ListColumn:
    """A column of lists of structs, decoded one list at a time."""

    def __init__(self, column: pa.ChunkedArray, fields: tuple[str, ...]) -> None:
        lists = column.combine_chunks()
        self._ends = [0, *pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0)).to_pylist()]
        structs = lists.flatten()
        self._fields = [structs.field(name) for name in fields]

    def rows(self, number: int) -> Iterator[tuple[Any, ...]]:
        """The structs of one list, as tuples."""
        start, end = self._ends[number], self._ends[number + 1]
        return zip(*(field.slice(start, end - start).to_pylist() for field in self._fields), strict=True)


class _ValueRow(NamedTuple):
    """The columns of a row of `sym_values` that the index reads."""

    slot: str
    def_key: str
    qualname: str
    name: str
    binding_key: str | None
    value: str | None
    kind: str | None
    stars_before: int


_EXPORT_FIELDS: Final = ("op", "name", "ref")
_PASS_FIELDS: Final = ("kind", "site", "target", "value")


def _pass(kind: str, site: str | None, target: str | None, value: str | None) -> Pass:
    lines = (line.split("\t") for line in value.split("\n")) if value else ()
    arguments = tuple(Argument(place, tuple(terms.split(" | "))) for place, terms in lines)
    return Pass(kind, site, tuple(target.split(" | ")) if target else (), arguments)


@lru_cache(maxsize=4096)
def _parameters(text: str) -> Parameters:
    """Parameters as `sym_values` has them: `c:KEY(),self,name,*args`."""
    receiver, *marked = text.split(",")
    names = tuple(name.lstrip("*!/") for name in marked)
    marks = tuple(name[: len(name) - len(bare)] for name, bare in zip(marked, names, strict=True))
    owner = receiver.removesuffix("()")[2:] if receiver != "-" else None
    return Parameters(owner, not receiver.endswith("()"), names, marks)


def _add_slot(names: FileNames, row: _ValueRow) -> None:
    """Add what one row of `sym_values` says."""
    slot = Slot(tuple(row.value.split(" | ")) if row.value else (), row.binding_key, row.kind, row.stars_before)
    if row.slot == "global":
        names.names[row.name] = slot
    elif row.slot == "star":
        names.stars.append(slot)
    elif row.slot == "returns":
        names.returns[row.def_key] = slot
    elif row.slot == "return_type":
        names.return_types[row.def_key] = slot
    elif row.slot == "parameters":
        names.signatures[row.def_key] = row.value or ""
    elif row.slot == "yields":
        names.yields[row.def_key] = slot
    else:
        owner = names.classes.get(row.def_key)
        if owner is None:
            owner = names.classes[row.def_key] = ClassNames(row.qualname)
        _add_class_slot(owner, row, slot)


def _add_class_slot(names: ClassNames, row: _ValueRow, slot: Slot) -> None:
    if row.slot == "base":
        names.bases.append(slot)
    elif row.slot == "metaclass":
        names.metaclass = slot
    elif row.slot != "class":
        slots = {"member": names.members, "attribute": names.attributes, "setter": names.setters}[row.slot]
        before = slots.get(row.name)  # a class attribute that is also assigned from outside
        is_last = row.slot == "member" and row.binding_key is None and slot.kind == "variable"
        slots[row.name] = slot if before is None else _replaced(before, slot) if is_last else _joined(before, slot)


def _replaced(first: Slot, second: Slot) -> Slot:
    """A slot that another always replaces; the name keeps its binding."""
    return Slot(second.alternatives, first.binding_key, first.kind)


def _joined(first: Slot, second: Slot) -> Slot:
    return Slot((*first.alternatives, *second.alternatives), first.binding_key or second.binding_key, first.kind)
