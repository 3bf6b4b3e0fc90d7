"""Which unchanged files depend on modules that changed: those whose answers looked at one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.impact.snapshots import ModuleChanges, SnapshotChanges


@dataclass(frozen=True)
class Lookups:
    """Which files of the last build looked at which modules, present or absent: rows of `module_lookups`."""

    rows: pa.Table

    def of(self, entries: Collection[str] | None = None) -> Iterable[tuple[str, str]]:
        """The files that looked at one of these entries (at any, if None), and the entry."""
        rows = self.rows
        if entries is not None:
            rows = rows.filter(pc.is_in(rows["looked_at"], pa.array(sorted(entries), pa.string())))
        return zip(rows["file_id"].to_pylist(), rows["looked_at"].to_pylist(), strict=True)


class Dependency(NamedTuple):
    """What a file looked at, and the path of the changed file that this leads to."""

    looked_at: str
    caused_by: str


@dataclass(frozen=True)
class Dependents:
    """Unchanged files that depend on a change, by id, and the length of the longest chain of files to one."""

    files: Mapping[str, Dependency] = field(default_factory=dict)
    depth: int = 0
    are_rebuilt: bool = False
    """Whether all of them are rebuilt, whatever their answers are."""


def direct_dependents(changes: SnapshotChanges, modules: ModuleChanges, lookups: Lookups) -> Dependents:
    """The files that looked at a changed module."""
    unchanged = _unchanged_modules(changes)
    found: dict[str, Dependency] = {}
    for file_id, entry in lookups.of(modules.entries()):
        if file_id in unchanged:
            dependency = Dependency(entry, min(modules.causes([entry])))
            found[file_id] = min(dependency, found.get(file_id, dependency))
    return Dependents(found, int(bool(found)))


def transitive_dependents(changes: SnapshotChanges, modules: ModuleChanges, lookups: Lookups) -> Dependents:
    """The files that reach a changed module through any number of files."""
    unchanged = _unchanged_modules(changes)
    dependents: dict[str, list[str]] = {}
    for file_id, entry in lookups.of():
        if file_id in unchanged:
            dependents.setdefault(entry.removeprefix("?"), []).append(file_id)
    causes = {entry.removeprefix("?"): min(modules.causes([entry])) for entry in modules.entries()}
    found: dict[str, Dependency] = {}
    level, depth = set(causes), 0
    while level:
        reached = {file_id: module for module in sorted(level) for file_id in dependents.get(module, ())}
        new = {file_id: module for file_id, module in reached.items() if file_id not in found}
        found |= {file_id: Dependency(module, causes[module]) for file_id, module in new.items()}
        level = {unchanged[file_id] for file_id in new} - causes.keys()
        for file_id, module in new.items():
            causes.setdefault(unchanged[file_id], causes[module])
        depth += bool(new)
    direct = direct_dependents(changes, modules, lookups).files
    return Dependents({**found, **direct}, depth, are_rebuilt=True)


def _unchanged_modules(changes: SnapshotChanges) -> dict[str, str]:
    """The modules of the files that did not change, by file id."""
    changed = {*changes.rebuilt(), *changes.gone()}
    changed_ids = {changes.before[path].file_id for path in changed if path in changes.before}
    return {file.file_id: file.module.module_fqn for file in changes.after.values() if file.file_id not in changed_ids}
