"""Semantic documents in an update: ask the indexer about the files whose documents a change can alter.

An indexer sees through types, so that a change can alter what it says of files that import the changed one only through
others. Asking about all of those would be safe, and far too much. Instead, while the **interface** of a module changed
(what the indexer says others can see, and what our own exports are), the files that mention the module, or looked at
it, are asked about; then those of the modules whose interface changed in turn. A document that says what it said before
changes nothing.

What a decorator gives, a base hands down or a star import brings is in no interface: a file that gets one of these from
a changed module passes the change on. So does a changed file with a type alias, whose value is in none either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS
from codeanatomy.impact.snapshots import ModuleChanges, SnapshotChanges, parents
from codeanatomy.index import symbols
from codeanatomy.pipeline.facts import KnownFacts
from codeanatomy.pipeline.indexing import indexing, read_documents_here
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.lookups import Lookups
from codeanatomy.store.builds import Build
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow

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
    last: Build,
    inputs: BuildInputs,
    files: pa.Table,
    changes: SnapshotChanges,
    modules: ModuleChanges,
    exporting: Collection[str],
    lookups: Lookups,
    facts: KnownFacts,
) -> Documents:
    """Ask about every file whose document can have changed; `exporting` files offer other names than before."""
    stored = _Stored(state, last, {*_modules_of(changes), *modules.existence})
    by_path = {path: file.file_id for path, file in changes.after.items()}
    path_of = {file_id: path for path, file_id in by_path.items()}
    made = Documents(gone=frozenset(changes.before[path].file_id for path in changes.gone()))
    rows: dict[str, dict[str, Any]] = {}
    tables: list[pa.Table] = []
    asked: set[str] = set()
    passed_on = _found_elsewhere(changes, modules)
    waiting = {by_path[path] for path in changes.rebuilt() if changes.after[path].content_id}
    waiting |= {file.file_id for file in changes.after.values() if file.module.module_fqn in passed_on}
    exporting = {*exporting, *_with_aliases(changes, facts)}
    passed_on |= {changes.after[path].module.module_fqn: path for path in exporting if path in changes.after}
    sees = inputs.provider is not None and inputs.provider.sees_through_imports

    def reached() -> set[str]:
        found = set()
        for file_id, module in stored.mentioning(passed_on, lookups):
            if file_id in path_of and file_id not in asked | waiting:
                found.add(file_id)
                made.why.setdefault(file_id, (module, passed_on[module]))
        made.depth += bool(found)
        return found

    if sees:
        waiting |= reached()
    while waiting:
        asked |= waiting
        table = _documents(inputs, files, facts, {path_of[each] for each in waiting}, made)
        tables.append(table)
        for row in table.select(_IDENTITY).to_pylist():
            rows[row["file_id"]] = row
        if not sees:
            break
        for file_id in waiting & rows.keys():
            before = stored.row(file_id)
            if before is None or before["interface"] != rows[file_id]["interface"]:
                path = path_of[file_id]
                passed_on.setdefault(changes.after[path].module.module_fqn, path)
        passed_on |= stored.passing_on(waiting, passed_on, facts, changes, path_of)
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


def _documents(
    inputs: BuildInputs, files: pa.Table, facts: KnownFacts, paths: Collection[str], made: Documents
) -> pa.Table:
    with indexing(inputs, paths) as started:
        if started is None:
            raise AssertionError("an update without an indexer asks for no documents")
        rows = read_documents_here(files, facts, started)
        made.seconds += started.seconds
    return rows


class _Stored:
    """The documents of the last build."""

    def __init__(self, state: State, last: Build, modules: Collection[str]) -> None:
        self._state = state
        self._modules = modules
        self._last = last
        version = last.tables[DOCUMENTS.name].version
        rows = read_arrow(state, DOCUMENTS, version, _IDENTITY)
        self._rows = {row["file_id"]: row for row in rows.to_pylist()}

    def row(self, file_id: str) -> Mapping[str, Any] | None:
        """What a document is."""
        return self._rows.get(file_id)

    def mentioning(self, modules: Mapping[str, str], lookups: Lookups) -> Iterable[tuple[str, str]]:
        """The files that mention one of `modules`, or looked at it, present or absent."""
        for file_id, row in sorted(self._rows.items()):
            for name in row["mentions"] or ():
                if (module := self._module_of[name]) in modules:
                    yield file_id, module
        for file_id, entry in lookups.of([entry for module in modules for entry in (module, f"?{module}")]):
            yield file_id, entry.removeprefix("?")

    @cached_property
    def _module_of(self) -> dict[str, str]:
        """The modules, of those there are or were, that each dotted name is, or is in."""
        found = {}
        for name in {name for row in self._rows.values() for name in row["mentions"] or ()}:
            found[name] = next((module for module in (name, *parents(name)) if module in self._modules), "")
        return found

    def passing_on(
        self,
        file_ids: Collection[str],
        modules: Mapping[str, str],
        facts: KnownFacts,
        changes: SnapshotChanges,
        path_of: Mapping[str, str],
    ) -> dict[str, str]:
        """The modules of those files that get a decorator, a base or a star import's names from one of `modules`."""
        contents = {file_id: changes.after[path_of[file_id]].content_id for file_id in file_ids}
        known = facts.by_content({c for c in contents.values() if c}, ["cst_decorators", "cst_bases", "cst_imports"])
        asks = {content: _asks_that_pass_on(row) for content, row in known.items()}
        passing = {each: asks[c] for each, c in contents.items() if c and asks.get(c)}
        if not passing:
            return {}
        found = {}
        for path in changes.rebuilt():  # its questions have other numbers than the answers there are
            module = changes.after[path].module.module_fqn
            if passing.pop(changes.after[path].file_id, None) and module not in modules and modules:
                found[module] = path
        columns = ["file_id", "ask_no", "trail"]
        answers = read_arrow(self._state, ANSWERS, self._last.tables[ANSWERS.name].version, columns, owners=passing)
        for row in answers.to_pylist():
            if row["ask_no"] in passing[row["file_id"]]:
                path = path_of[row["file_id"]]
                module = changes.after[path].module.module_fqn
                looked_at = {entry.removeprefix("?") for entry in row["trail"] or ()}
                if module not in modules and not looked_at.isdisjoint(modules):
                    found[module] = path
        return found

    def symbols(self, file_ids: Collection[str]) -> dict[str, set[tuple[Any, ...]]]:
        """The symbols that these files define, as the last build has them."""
        columns = ["file_id", "scip_symbol_information"]
        version = self._last.tables[DOCUMENTS.name].version
        return defined_symbols(read_arrow(self._state, DOCUMENTS, version, columns, owners=file_ids))


def _asks_that_pass_on(facts: Mapping[str, Any]) -> set[int]:
    """The questions whose answers others see, though no interface tells."""
    asks = {each["ask_no"] for name in ("cst_decorators", "cst_bases") for each in facts[name] or ()}
    asks |= {each["module_ask_no"] for each in facts["cst_imports"] or () if each["is_star"]}
    return {ask for ask in asks if ask is not None}


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
