"""Which semantic documents a change can alter, wave by wave.

Motivation
    A type index sees through types: a change can alter what it says of files that import the changed one only through
    others. Indexing all transitive dependents would be safe, and far too much.

Terms
    document    what the index says of one file. Its fingerprint covers everything that rows are made from.
    interface   what a document says of the module's own names, a line each: the name, its kind, the names it is
                defined in terms of.
    mention     a dotted name that a document refers to.
    wave        the files that are indexed next.

Steps
    1. The first wave is the changed files, and files that another module now hides or shows.
    2. The names that changed are collected: exports, interface lines that differ, names derived from those
       (`propagation`), names that are defined in terms of those.
    3. The next wave is the files that mention, or looked at, a module with a changed name and contain that name.
    4. Steps 2 and 3 repeat until a wave is empty. A document that is as it was propagates nothing.

    An index that always reports all documents (SCIP) needs no waves: they are all compared with the stored ones.

Tested by the step cases with an index, their kill switches, and bench/mutations.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.impact.dependents import Dependency, Lookups, direct_dependents
from codeanatomy.impact.evidence import Evidence, StoredTable
from codeanatomy.impact.propagation import ALL, ChangedNames, DerivedNames, NameChange, canonical, derived_names
from codeanatomy.impact.snapshots import ModuleChanges, SnapshotChanges, parents
from codeanatomy.index import symbols

IDENTITY = ("file_id", "path", "provider", "status", "detail", "fingerprint", "interface", "mentions")
_DEFINED = ("file_id", "scip_symbol_information")


@dataclass(frozen=True)
class DocumentChanges:
    """The documents that differ from those of the last build.

    Of some only the mentions or the interface changed: their files are not rebuilt. `changed` has the others. `why` has
    the dependency through which a file was asked about, `redefined` the modules whose symbols are defined differently.
    """

    rows: pa.Table = field(default_factory=DOCUMENTS.schema().empty_table)
    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    why: Mapping[str, Dependency] = field(default_factory=dict)
    redefined: tuple[tuple[str, str], ...] = ()
    indexed: int = 0
    depth: int = 0

    @property
    def replaced(self) -> frozenset[str]:
        """Ids of the files whose stored document is replaced or deleted."""
        return frozenset(self.rows["file_id"].to_pylist()) | self.gone


@dataclass(frozen=True)
class Wave:
    """The files to index next, and how the change got there."""

    files: frozenset[str]
    indexed: frozenset[str] = frozenset()
    names: ChangedNames = field(default_factory=ChangedNames)
    derived: tuple[DerivedNames, ...] = ()
    why: Mapping[str, Dependency] = field(default_factory=dict)
    depth: int = 0


class Propagation:
    """The waves of one change."""

    def __init__(self, evidence: Evidence, stored: StoredTable, *, all_at_once: bool) -> None:
        """With an index that reports all documents `all_at_once`, there is one wave: every file."""
        changes = evidence.changes
        modules = {*_modules_of(changes), *evidence.modules.existence}
        self._evidence = evidence
        self._all_at_once = all_at_once
        self.stored = StoredDocuments(stored, changes, modules)
        self.path_of = {file.file_id: path for path, file in changes.after.items()}

    def first_wave(self) -> Wave:
        """The files whose documents change because of what the files are themselves."""
        changes, evidence = self._evidence.changes, self._evidence
        if self._all_at_once:
            every = frozenset(file.file_id for file in changes.after.values() if file.content_id)
            return Wave(every, why=direct_dependents(changes, evidence.modules, evidence.lookups).files)
        names = ChangedNames().plus(_moved_modules(changes, evidence.modules))
        files = {changes.after[path].file_id for path in changes.rebuilt() if changes.after[path].content_id}
        files |= {file.file_id for file in changes.after.values() if file.module.module_fqn in names.modules()}
        names = names.plus(self._exported_changes())
        return self._reach(Wave(frozenset(files), names=self.stored.spread(names)))

    def next_wave(self, wave: Wave, documents: pa.Table) -> Wave:
        """The files that the documents of a wave lead to."""
        indexed = wave.indexed | wave.files
        if self._all_at_once:
            return replace(wave, files=frozenset(), indexed=indexed)
        derived = (*wave.derived, *self._derived_names(documents))
        names = wave.names.plus(self._interface_changes(wave.files, documents))
        while (
            more := names.plus(NameChange(each.module, each.path, each.affected(names)) for each in derived)
        ) != names:
            names = self.stored.spread(more)
        return self._reach(replace(wave, files=frozenset(), indexed=indexed, names=names, derived=derived))

    def _reach(self, wave: Wave) -> Wave:
        """The wave, with the files that know a module with a changed name and contain that name."""
        others = self.path_of.keys() - wave.indexed - wave.files
        found: dict[str, Dependency] = {}
        for file_id, module, name in sorted(self.stored.knowing(wave.names.modules(), self._evidence.lookups)):
            if file_id in others and file_id not in found:
                names = wave.names.names(module)
                if name in names or self._evidence.words.has_one_of(self.path_of[file_id], names):
                    found[file_id] = Dependency(module, wave.names.paths[module])
        return replace(wave, files=wave.files | found.keys(), why={**found, **wave.why}, depth=wave.depth + bool(found))

    def _exported_changes(self) -> Iterator[NameChange]:
        after = self._evidence.changes.after
        for export in self._evidence.exports:
            if export.path in after:
                yield NameChange(after[export.path].module.module_fqn, export.path, [export.name.partition(".")[0]])
        for path in self._with_type_aliases():
            yield NameChange(after[path].module.module_fqn, path)

    def _with_type_aliases(self) -> list[str]:
        """The modified files that have, or had, a type alias: no interface shows what it stands for."""
        changes = self._evidence.changes
        contents = {
            path: {side[path].content_id for side in (changes.before, changes.after) if path in side}
            for path in changes.files.modified
        }
        every = {each for of_path in contents.values() for each in of_path if each}
        aliases = {
            content
            for content, row in self._evidence.facts.by_content(every, ["cst_defs"]).items()
            if any(each["kind"] == "type_alias" for each in row["cst_defs"] or ())
        }
        return [path for path, of_path in contents.items() if not aliases.isdisjoint(of_path)]

    def _interface_changes(self, files: Collection[str], documents: pa.Table) -> Iterator[NameChange]:
        before = self.stored.rows_of(files)
        for row in documents.select(list(IDENTITY)).to_pylist():
            if (file_id := row["file_id"]) in files:
                path = self.path_of[file_id]
                module = self._evidence.changes.after[path].module.module_fqn
                yield NameChange(module, path, redefined_names(before.get(file_id), row))

    def _derived_names(self, documents: pa.Table) -> Iterator[DerivedNames]:
        """The derived names of the files of `documents`."""
        changes = self._evidence.changes
        ids = [each for each in documents["file_id"].to_pylist() if each in self.path_of]
        files = [changes.after[self.path_of[file_id]] for file_id in ids]
        contents = {file.content_id for file in files if file.content_id}
        columns = ["cst_decorators", "cst_bases", "cst_imports", "cst_defs"]
        known = self._evidence.facts.by_content(contents, columns)
        changed = {changes.after[path].file_id for path in changes.rebuilt()}  # their questions have other numbers now
        looked_at = self._looked_at({file.file_id for file in files} - changed)
        for file in files:
            if file.content_id and file.content_id in known:
                of_file = None if file.file_id in changed else looked_at.get(file.file_id, {})
                names = derived_names(known[file.content_id], of_file)
                yield DerivedNames(file.module.module_fqn, file.path, names)

    def _looked_at(self, file_ids: Collection[str]) -> dict[str, dict[int, frozenset[str]]]:
        """The modules that each question of these files looked at."""
        found: dict[str, dict[int, frozenset[str]]] = {}
        for row in self._evidence.answers.read(["file_id", "ask_no", "trail"], file_ids).to_pylist():
            if row["trail"]:
                trail = frozenset(entry.removeprefix("?") for entry in row["trail"])
                found.setdefault(row["file_id"], {})[row["ask_no"]] = trail
        return found

    def differing(self, documents: pa.Table) -> list[str]:
        """Ids of the files whose documents differ from the stored ones; `documents` has at least `IDENTITY`."""
        after = {row["file_id"]: row for row in documents.select(list(IDENTITY)).to_pylist()}
        before = self.stored.rows_of(after)
        return sorted(each for each, row in after.items() if before.get(each) != row)

    def compare(self, wave: Wave, indexed: Collection[str], documents: pa.Table) -> DocumentChanges:
        """What changed, with the last wave behind: `documents` are those of `indexed` that differ."""
        changes = self._evidence.changes
        deleted = frozenset(changes.before[path].file_id for path in changes.gone())
        before = self.stored.rows_of({*wave.indexed, *deleted, GLOBAL_OWNER})
        after = {row["file_id"]: row for row in documents.select(list(IDENTITY)).to_pylist()}
        expected = wave.indexed | {GLOBAL_OWNER} if self._all_at_once else wave.indexed
        undecodable = {each for each in expected - set(indexed) if each in before}
        found = DocumentChanges(
            rows=documents,
            changed=frozenset(each for each, row in after.items() if _meaning(before.get(each)) != _meaning(row)),
            gone=deleted | undecodable,
            why=wave.why,
            indexed=len(wave.indexed),
            depth=wave.depth,
        )
        return replace(found, redefined=tuple(self._redefined_symbols(found, before)))

    def _redefined_symbols(
        self, found: DocumentChanges, before: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        """The modules of symbols that are defined differently, with the paths of the files that define them."""
        owners = found.replaced - {GLOBAL_OWNER}
        old, new = defined_symbols(self.stored.definitions(owners)), defined_symbols(found.rows)
        for file_id in sorted(owners):
            path = self.path_of.get(file_id) or (before[file_id]["path"] if file_id in before else "")
            for symbol, *_ in old.get(file_id, set()) ^ new.get(file_id, set()):
                if module := symbols.module_of(symbol):
                    yield module, path


class StoredDocuments:
    """The documents of the last build, read as far as they are asked for."""

    def __init__(self, table: StoredTable, changes: SnapshotChanges, modules: Collection[str]) -> None:
        self._table = table
        self._changes = changes
        self._modules = modules
        self._place_of: dict[str, tuple[str, str]] = {}
        self._read: dict[str, Mapping[str, Any] | None] = {}

    def rows_of(self, file_ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        """What identifies the documents of these files; those without one are left out."""
        if unread := set(file_ids) - self._read.keys():
            rows = {row["file_id"]: row for row in self._table.read(IDENTITY, unread).to_pylist()}
            self._read |= {file_id: rows.get(file_id) for file_id in unread}
        return {file_id: row for file_id in file_ids if (row := self._read[file_id]) is not None}

    def definitions(self, file_ids: Collection[str]) -> pa.Table:
        """The symbols that these files define."""
        return self._table.read(_DEFINED, file_ids)

    def knowing(self, modules: Collection[str], lookups: Lookups) -> Iterator[tuple[str, str, str]]:
        """The files that mention a name of one of `modules`, or looked at one: its id, the module, the name if any."""
        if not modules:
            return
        file_ids, names = self._mentions
        wanted = [name for name in names.unique().to_pylist() if self._place(name)[0] in modules]
        is_wanted = pc.is_in(names, pa.array(wanted, pa.string()))
        found = (file_ids.filter(is_wanted).to_pylist(), names.filter(is_wanted).to_pylist())
        for file_id, name in zip(*found, strict=True):
            yield file_id, *self._place(name)
        for file_id, entry in lookups.of([entry for module in modules for entry in (module, f"?{module}")]):
            yield file_id, entry.removeprefix("?"), ""

    def spread(self, names: ChangedNames) -> ChangedNames:
        """`names`, and those defined in terms of them: no document tells the type of everything in its file."""
        level = {(module, name) for module in names.modules() for name in names.names(module)}
        while level:
            users = {user for module, name in level for user in self._users_of(module, name)}
            level = {(module, name) for module, _, (name,) in users if canonical(name) not in names.names(module)}
            names = names.plus(users)
        return names

    def _users_of(self, module: str, name: str) -> Iterator[NameChange]:
        users = self._users.get(module, {})
        for found in users.values() if name == ALL else [users.get(name, set())]:
            yield from found

    @cached_property
    def _rows(self) -> pa.Table:
        """All of them; read only if some name changed."""
        return self._table.read(IDENTITY).combine_chunks()

    @cached_property
    def _users(self) -> dict[str, dict[str, set[NameChange]]]:
        """By module and name in it, the names that are defined in terms of it."""
        found: dict[str, dict[str, set[NameChange]]] = {}
        for path, interface in zip(*(self._rows[name].to_pylist() for name in ("path", "interface")), strict=True):
            own = self._changes.before[path].module.module_fqn if path else ""
            for line in interface or ():
                defined, _, *others = line.split(" ")
                for module, name in map(self._place, others):
                    if name and (module, name) != (own, defined):
                        found.setdefault(module, {}).setdefault(name, set()).add(NameChange(own, path, (defined,)))
        return found

    @cached_property
    def _mentions(self) -> tuple[pa.Array, pa.Array]:
        """Files and the dotted names that they mention, side by side."""
        lists = self._rows["mentions"].combine_chunks()
        return self._rows["file_id"].take(pc.list_parent_indices(lists)).combine_chunks(), pc.list_flatten(lists)

    def _place(self, name: str) -> tuple[str, str]:
        """The module, of those there are or were, that a dotted name is in, and its name there."""
        known = self._place_of.get(name)
        if known is None:
            module = next((each for each in (name, *parents(name)) if each in self._modules), "")
            known = self._place_of[name] = module, name[len(module) + 1 :].partition(".")[0] if module else ""
        return known


def redefined_names(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> set[str]:
    """The names of a module that its interface describes differently now."""
    if before is None:
        return {ALL}
    return {each.partition(" ")[0] for each in set(before["interface"] or ()) ^ set(after["interface"] or ())}


def defined_symbols(documents: pa.Table) -> dict[str, set[tuple[Any, ...]]]:
    """What answers depend on of the symbols that documents define, by file."""
    fields = ("symbol", "kind", "def_key", "binding_key")
    rows = zip(*(documents[name].to_pylist() for name in _DEFINED), strict=True)
    return {file_id: {tuple(each[name] for name in fields) for each in defined or ()} for file_id, defined in rows}


def _moved_modules(changes: SnapshotChanges, modules: ModuleChanges) -> Iterator[NameChange]:
    """The modules that came, went or are in another file, and those below them, which that hides or shows."""
    moved = {module: min(paths) for module, paths in modules.existence.items()}
    for module in {*moved, *_modules_of(changes)}:
        if package := next((each for each in (module, *parents(module)) if each in moved), None):
            yield NameChange(module, moved[package])


def _modules_of(changes: SnapshotChanges) -> Iterable[str]:
    return (file.module.module_fqn for side in (changes.before, changes.after) for file in side.values())


def _meaning(row: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """What identifies everything that a document says about its file."""
    return (row["status"], row["detail"], row["fingerprint"]) if row else None
