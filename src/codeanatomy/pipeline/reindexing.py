"""Semantic documents in an update: ask the indexer about the files whose documents a change can alter.

An indexer sees through types, so that a change can alter what it says of files that import the changed one only through
others. Asking about all of those would be safe, and far too much. Instead, while a name of a module is **seen**
otherwise (what the indexer says of it, or our own exports, changed), the files that know the module and speak of the
name are asked about; then those of the names that changed in turn. A document that says what it said before changes
nothing. `passing` has the details.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS
from codeanatomy.impact.exports import ChangedExport
from codeanatomy.impact.snapshots import ModuleChanges, SnapshotChanges, parents
from codeanatomy.index import symbols
from codeanatomy.pipeline.facts import KnownFacts
from codeanatomy.pipeline.indexing import Indexing, indexing
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.lookups import Lookups
from codeanatomy.pipeline.passing import ALL, Passing, Seen, Texts, handed_on
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow

Read = Callable[[Indexing, int], pa.Table]
"""Reads the documents of an indexer that was asked about so many files."""

_IDENTITY = ["file_id", "path", "provider", "status", "detail", "fingerprint", "interface", "mentions"]


@dataclass
class Documents:
    """The documents that were made again: `rows` are those that came out otherwise, `why` tells where that comes from.

    Of some, only what they mention or hand on changed: their files need not be rebuilt; `changed` has the others.
    `depth` is how many files in a row a change was passed on through.
    """

    rows: pa.Table = field(default_factory=DOCUMENTS.schema().empty_table)
    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    why: dict[str, tuple[str, str]] = field(default_factory=dict)
    asked: int = 0
    depth: int = 0
    seconds: float = 0.0

    @property
    def replaced(self) -> frozenset[str]:
        """Ids of the files whose document is another one, or gone."""
        return frozenset(self.rows["file_id"].to_pylist()) | self.gone


def reindex(
    state: State,
    last: BuildRecord,
    inputs: BuildInputs,
    changes: SnapshotChanges,
    modules: ModuleChanges,
    exports: Iterable[ChangedExport],
    lookups: Lookups,
    facts: KnownFacts,
    read: Read,
) -> Documents:
    """Ask about every file whose document can have changed; `exports` are offered otherwise than before."""
    stored = _Stored(state, last, changes, {*_modules_of(changes), *modules.existence})
    by_path = {path: file.file_id for path, file in changes.after.items()}
    path_of = {file_id: path for path, file_id in by_path.items()}
    made = Documents(gone=frozenset(changes.before[path].file_id for path in changes.gone()))
    stored.look_up({*made.gone, GLOBAL_OWNER})
    rows: dict[str, dict[str, Any]] = {}
    tables: list[pa.Table] = []
    asked: set[str] = set()
    passing: list[Passing] = []
    texts = Texts(inputs.root)
    seen = Seen()
    for module, path in _found_elsewhere(changes, modules).items():
        seen.add(module, path)
    waiting = {by_path[path] for path in changes.rebuilt() if changes.after[path].content_id}
    waiting |= {file.file_id for file in changes.after.values() if file.module.module_fqn in seen.modules()}
    for export in exports:
        if export.path in changes.after:
            seen.add(changes.after[export.path].module.module_fqn, export.path, [export.name.partition(".")[0]])
    for path in _with_aliases(changes, facts):
        seen.add(changes.after[path].module.module_fqn, path)
    sees = inputs.provider is not None and inputs.provider.sees_through_imports

    def reached() -> set[str]:
        found: set[str] = set()
        others = path_of.keys() - asked - waiting
        for file_id, module, name in sorted(stored.knowing(seen.modules(), lookups)):
            if file_id in others and file_id not in found:
                names = seen.names(module)
                if name in names or texts.has_one_of(path_of[file_id], names):
                    found.add(file_id)
                    made.why.setdefault(file_id, (module, seen.path(module)))
        made.depth += bool(found)
        return found

    if sees:
        stored.spread(seen)
        waiting |= reached()
    while waiting:
        asked |= waiting
        stored.look_up(waiting)
        table = _documents(inputs, {path_of[each] for each in waiting}, read, made)
        tables.append(table)
        for row in table.select(_IDENTITY).to_pylist():
            rows[row["file_id"]] = row
        if not sees:
            break
        for file_id in waiting & rows.keys():
            path = path_of[file_id]
            seen.add(changes.after[path].module.module_fqn, path, _redefined_names(stored.row(file_id), rows[file_id]))
        passing += stored.passing(table, facts, path_of)
        stored.spread(seen)
        while sum(seen.add(each.module, each.path, each.names(seen)) for each in passing):
            stored.spread(seen)
        waiting = reached()
    if tables:
        every = pa.concat_tables(tables)
        replaced = [each for each, row in rows.items() if stored.row(each) != row]
        made.rows = every.filter(pc.is_in(every["file_id"], pa.array(replaced, pa.string())))
        made.changed = frozenset(each for each in replaced if _said(stored.row(each)) != _said(rows[each]))
    made.gone |= {each for each in asked - rows.keys() if stored.row(each) is not None}  # undecodable by now
    made.asked = len(asked)
    for path, module in _redefined(stored, made, path_of):
        modules.add(module, path)
    return made


def _redefined_names(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> set[str]:
    """The names of a module that are something else, by what its document shows to others."""
    if before is None:
        return {ALL}
    return {each.partition(" ")[0] for each in set(before["interface"] or ()) ^ set(after["interface"] or ())}


def _found_elsewhere(changes: SnapshotChanges, modules: ModuleChanges) -> dict[str, str]:
    """The modules that came, went or are in another file, and those below them, which that hides or shows."""
    found = {module: min(paths) for module, paths in modules.existence.items()}
    below = {}
    for module in _modules_of(changes):
        if above := next((package for package in parents(module) if package in found), None):
            below[module] = found[above]
    return below | found


def _modules_of(changes: SnapshotChanges) -> Iterable[str]:
    return (file.module.module_fqn for side in (changes.before, changes.after) for file in side.values())


def _said(row: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    """What names all that a document says about its file."""
    return (row["status"], row["detail"], row["fingerprint"]) if row else None


def _documents(inputs: BuildInputs, paths: Collection[str], read: Read, made: Documents) -> pa.Table:
    with indexing(inputs, paths) as started:
        if started is None:
            raise AssertionError("an update without an indexer asks for no documents")
        rows = read(started, len(paths))
        made.seconds += started.seconds
    return rows


class _Stored:
    """The documents of the last build."""

    def __init__(self, state: State, last: BuildRecord, changes: SnapshotChanges, modules: Collection[str]) -> None:
        self._state = state
        self._changes = changes
        self._modules = modules
        self._last = last
        self._version = last.tables[DOCUMENTS.name].version
        self._place_of: dict[str, tuple[str, str]] = {}
        self._looked_up: dict[str, Mapping[str, Any]] = {}

    def look_up(self, file_ids: Collection[str]) -> None:
        """Have the documents of these files at hand."""
        rows = read_arrow(self._state, DOCUMENTS, self._version, _IDENTITY, owners=file_ids)
        self._looked_up |= {row["file_id"]: row for row in rows.to_pylist()}

    def row(self, file_id: str) -> Mapping[str, Any] | None:
        """What a document is that was looked up."""
        return self._looked_up.get(file_id)

    def knowing(self, modules: Collection[str], lookups: Lookups) -> Iterable[tuple[str, str, str]]:
        """The files that know one of `modules`, and by which name in it; no name if they looked at it, or miss it."""
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

    def spread(self, seen: Seen) -> None:
        """Let names be seen otherwise that are made of such: no document tells the type of everything in its file."""
        pending = [(module, name) for module in seen.modules() for name in seen.names(module)]
        while pending:
            module, name = pending.pop()
            makes = self._makes.get(module, {})
            for others in makes.values() if name == ALL else [makes.get(name, ())]:
                pending += [(other, made) for other, made, path in others if seen.add(other, path, [made])]

    @cached_property
    def _rows(self) -> pa.Table:
        """All of them; read only if something is seen otherwise."""
        return read_arrow(self._state, DOCUMENTS, self._version, _IDENTITY).combine_chunks()

    @cached_property
    def _makes(self) -> dict[str, dict[str, set[tuple[str, str, str]]]]:
        """By module and name in it, the names that are made of it: their modules, what they are called, and paths."""
        found: dict[str, dict[str, set[tuple[str, str, str]]]] = {}
        for path, interface in zip(*(self._rows[name].to_pylist() for name in ("path", "interface")), strict=True):
            own = self._changes.before[path].module.module_fqn if path else ""
            for line in interface or ():
                made, _, *others = line.split(" ")
                for module, name in map(self._place, others):
                    if name and (module, name) != (own, made):
                        found.setdefault(module, {}).setdefault(name, set()).add((own, made, path))
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

    def passing(self, documents: pa.Table, facts: KnownFacts, path_of: Mapping[str, str]) -> Iterable[Passing]:
        """What the files of `documents` pass on."""
        changes = self._changes
        files = [changes.after[path_of[file_id]] for file_id in documents["file_id"].to_pylist()]
        contents = {file.content_id for file in files if file.content_id}
        known = facts.by_content(contents, ["cst_decorators", "cst_bases", "cst_imports", "cst_defs"])
        changed = {changes.after[path].file_id for path in changes.rebuilt()}  # their questions have other numbers now
        looked_at = self._looked_at({file.file_id for file in files} - changed)
        for file in files:
            if file.content_id in known:
                looked = None if file.file_id in changed else looked_at.get(file.file_id, {})
                handed = handed_on(known[file.content_id], looked)
                yield Passing(file.module.module_fqn, path_of[file.file_id], handed)

    def _looked_at(self, file_ids: Collection[str]) -> dict[str, dict[int, frozenset[str]]]:
        """The modules that each question of these files looked at."""
        columns = ["file_id", "ask_no", "trail"]
        version = self._last.tables[ANSWERS.name].version
        found: dict[str, dict[int, frozenset[str]]] = {}
        for row in read_arrow(self._state, ANSWERS, version, columns, owners=file_ids).to_pylist():
            if row["trail"]:
                trail = frozenset(entry.removeprefix("?") for entry in row["trail"])
                found.setdefault(row["file_id"], {})[row["ask_no"]] = trail
        return found

    def symbols(self, file_ids: Collection[str]) -> dict[str, set[tuple[Any, ...]]]:
        """The symbols that these files define, as the last build has them."""
        columns = ["file_id", "scip_symbol_information"]
        return defined_symbols(read_arrow(self._state, DOCUMENTS, self._version, columns, owners=file_ids))


def _with_aliases(changes: SnapshotChanges, facts: KnownFacts) -> list[str]:
    """The changed files that have, or had, a type alias."""
    before, after = changes.before, changes.after
    contents = {
        path: {side[path].content_id for side in (before, after) if path in side} for path in changes.files.modified
    }
    known = facts.by_content({each for of_path in contents.values() for each in of_path if each}, ["cst_defs"])
    aliases = {
        content for content, row in known.items() if any(each["kind"] == "type_alias" for each in row["cst_defs"] or ())
    }
    return [path for path, of_path in contents.items() if not aliases.isdisjoint(of_path)]


def defined_symbols(documents: pa.Table) -> dict[str, set[tuple[Any, ...]]]:
    """What documents say of the symbols they define, as far as answers depend on it, by file."""
    fields = ("symbol", "kind", "def_key", "binding_key")
    return {
        file_id: {tuple(each[name] for name in fields) for each in said or ()}
        for file_id, said in zip(
            documents["file_id"].to_pylist(), documents["scip_symbol_information"].to_pylist(), strict=True
        )
    }


def _redefined(stored: _Stored, made: Documents, path_of: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The modules of symbols that are defined otherwise than before, with the files that do."""
    owners = made.replaced - {GLOBAL_OWNER}
    before, after = stored.symbols(owners), defined_symbols(made.rows)
    for file_id in sorted(owners):
        row = stored.row(file_id)
        path = path_of.get(file_id) or (row["path"] if row else "")
        for symbol, *_ in before.get(file_id, set()) ^ after.get(file_id, set()):
            if module := symbols.module_of(symbol):
                yield path, module
