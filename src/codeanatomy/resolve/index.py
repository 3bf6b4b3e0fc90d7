"""What the files of a snapshot hold, by module and by name, in the form questions are answered from.

Built from the scan and from two columns of the facts. A file's part is fetched and decoded when it is first looked
into, so that an index costs what is read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER


@dataclass(frozen=True, slots=True, eq=False)
class ModuleFile:
    """A file as a module; an index has one of each, so that it is equal to itself alone."""

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
    """What stands under a name: alternatives to evaluate, and the binding, if a scope has one."""

    alternatives: tuple[str, ...]
    binding_key: str | None
    kind: str | None
    stars_before: int = 0


class SymbolPlace(NamedTuple):
    """Where a symbol is defined: the definition or the binding it stands for; an attribute of an object has neither."""

    file_id: str
    def_key: str | None
    binding_key: str | None
    kind: str


@dataclass(slots=True)
class ClassNames:
    """What a class and its instances hold."""

    qualname: str
    bases: list[Slot] = field(default_factory=list)
    metaclass: Slot | None = None
    members: dict[str, Slot] = field(default_factory=dict)
    attributes: dict[str, Slot] = field(default_factory=dict)
    setters: dict[str, Slot] = field(default_factory=dict)


@dataclass(slots=True)
class FileNames:
    """What a file holds: names of its module, its classes, what its functions give."""

    names: dict[str, Slot] = field(default_factory=dict)
    classes: dict[str, ClassNames] = field(default_factory=dict)
    returns: dict[str, Slot] = field(default_factory=dict)
    return_types: dict[str, Slot] = field(default_factory=dict)
    yields: dict[str, Slot] = field(default_factory=dict)
    stars: list[Slot] = field(default_factory=list)
    exports: list[tuple[str, str | None, str | None]] = field(default_factory=list)


Contents = Callable[[str], FileNames | None]
"""What a content holds, by its id; nothing if there are no facts of it."""


class ContentNames:
    """What contents hold, decoded from the columns `CONTENT_COLUMNS` of their facts when first asked for."""

    def __init__(self, facts: pa.Table) -> None:
        self._row_of = {content: row for row, content in enumerate(facts["content_id"].to_pylist())}
        self._values = _Lists(facts["sym_values"], _SLOT_FIELDS)
        self._exports = _Lists(facts["all_names"], _EXPORT_FIELDS)

    def __call__(self, content_id: str) -> FileNames | None:
        """What one of them holds."""
        row = self._row_of.get(content_id)
        if row is None:
            return None
        held = FileNames()
        for value in self._values.rows(row):
            _add(held, *value)
        held.exports += self._exports.rows(row)
        return held


CONTENT_COLUMNS: Final = ("content_id", "sym_values", "all_names")


class Index:
    """The modules of a snapshot and what their files hold."""

    def __init__(self, files: pa.Table, contents: Contents, documents: pa.Table | None = None) -> None:
        """What is read: the files as modules, what their contents hold, and the symbols that indexers define.

        `files` has the columns of `ModuleFile`; `documents` has `file_id` and `scip_symbol_information`.
        """
        self.symbols = Symbols(documents) if documents is not None else None
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
        """What a file holds; nothing, if it could not be read."""
        known = self._names.get(file.content_id)
        if known is None and file.content_id is not None:
            known = self._names[file.content_id] = self._contents(file.content_id) or FileNames()
        return known or FileNames()


class Symbols:
    """Where the symbols of documents are defined, decoded when asked for: few of them ever are."""

    def __init__(self, documents: pa.Table) -> None:
        lists = documents["scip_symbol_information"].combine_chunks()
        structs = lists.flatten()
        self._symbols = structs.field("symbol")
        owners = documents["file_id"].combine_chunks().take(pc.list_parent_indices(lists))
        self._fields = [owners, *(structs.field(name) for name in ("def_key", "binding_key", "kind"))]
        self._places: dict[str, list[SymbolPlace]] = {}

    @cached_property
    def _rows(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for number, symbol in enumerate(self._symbols.to_pylist()):
            rows.setdefault(symbol, []).append(number)
        return rows

    def places(self, symbol: str) -> list[SymbolPlace]:
        """The files that define it, in order."""
        if symbol not in self._places:
            rows = self._rows.get(symbol, ())
            places = (SymbolPlace(*(field[row].as_py() for field in self._fields)) for row in rows)
            ours = (place for place in places if place.file_id != GLOBAL_OWNER)
            self._places[symbol] = sorted(ours, key=lambda place: place.file_id)
        return self._places[symbol]


class _Lists:
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


_SLOT_FIELDS: Final = ("slot", "def_key", "qualname", "name", "binding_key", "value", "kind", "stars_before")
_EXPORT_FIELDS: Final = ("op", "name", "ref")


def _add(
    held: FileNames,
    slot: str,
    key: str,
    qualname: str,
    name: str,
    binding_key: str | None,
    value: str | None,
    kind: str | None,
    stars_before: int,
) -> None:
    """Put one row of `sym_values` where it is looked for."""
    stands = Slot(tuple(value.split(" | ")) if value else (), binding_key, kind, stars_before)
    if slot == "global":
        held.names[name] = stands
    elif slot == "star":
        held.stars.append(stands)
    elif slot == "returns":
        held.returns[key] = stands
    elif slot == "return_type":
        held.return_types[key] = stands
    elif slot == "yields":
        held.yields[key] = stands
    else:
        owner = held.classes.get(key)
        if owner is None:
            owner = held.classes[key] = ClassNames(qualname)
        if slot == "base":
            owner.bases.append(stands)
        elif slot == "metaclass":
            owner.metaclass = stands
        elif slot != "class":
            holder = {"member": owner.members, "attribute": owner.attributes, "setter": owner.setters}[slot]
            before = holder.get(name)  # a class attribute that is also assigned from outside
            holder[name] = stands if before is None else _joined(before, stands)


def _joined(first: Slot, second: Slot) -> Slot:
    return Slot((*first.alternatives, *second.alternatives), first.binding_key or second.binding_key, first.kind)
