"""What changed between two snapshots: files, and the modules that others may have looked at.

Glossary
    trail      the modules an answer looked at; `?m` where only whether `m` exists mattered.
    reachable  a module is, from a changed file, if an answer that looked at it may have become another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from codeanatomy.repo.diff import FileChanges, diff_files
from codeanatomy.repo.modules import ModuleName
from codeanatomy.resolve.index import Contents


class KnownFile(NamedTuple):
    """A file of a snapshot; `state` is its content, or all that is known of one that was not read."""

    path: str
    file_id: str
    content_id: str | None
    state: str
    module: ModuleName


Snapshot = Mapping[str, KnownFile]
"""Files by path."""


@dataclass(frozen=True)
class SnapshotChanges:
    """Files that differ between two snapshots."""

    before: Snapshot
    after: Snapshot
    files: FileChanges
    moved_modules: tuple[str, ...]
    """Files as they were, but with another module name, because a package came or went above them."""

    def rebuilt(self) -> list[str]:
        """Paths of the new snapshot whose rows are made anew, whatever others answer."""
        changes = self.files
        return sorted({*changes.added, *changes.modified, *changes.renamed, *self.moved_modules})

    def gone(self) -> list[str]:
        """Paths of the old snapshot that have no rows any more."""
        return sorted({*self.files.deleted, *self.files.renamed.values()})


def snapshot_changes(before: Snapshot, after: Snapshot) -> SnapshotChanges:
    """Compare two snapshots."""
    files = diff_files(
        {path: file.state for path, file in before.items()},
        {path: file.state for path, file in after.items()},
        unread={file.state for file in after.values() if file.content_id is None},
    )
    touched = {*files.added, *files.modified, *files.renamed}
    moved = (path for path in after.keys() & before.keys() if after[path].module != before[path].module)
    return SnapshotChanges(before, after, files, tuple(sorted(set(moved) - touched)))


@dataclass
class ModuleChanges:
    """Modules that changed, each with the paths that are to blame.

    `existence` has those that came, went, or are claimed by other files than before; `contents` those whose files hold
    something else for others.
    """

    existence: dict[str, set[str]] = field(default_factory=dict)
    contents: dict[str, set[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any module changed."""
        return bool(self.existence or self.contents)

    def add(self, module: str, path: str) -> None:
        """A file of this module holds something else."""
        self.contents.setdefault(module, set()).add(path)

    def entries(self) -> list[str]:
        """The entries of trails that a change of these modules meets."""
        return sorted({*self.contents, *self.existence, *(f"?{module}" for module in self.existence)})

    def causes(self, trail: Iterable[str]) -> set[str]:
        """The paths whose change meets a trail."""
        causes: set[str] = set()
        for entry in trail:
            if entry.startswith("?"):
                causes |= self.existence.get(entry[1:], set())
            else:
                causes |= self.existence.get(entry, set()) | self.contents.get(entry, set())
        return causes


def module_changes(changes: SnapshotChanges, contents: Contents) -> ModuleChanges:
    """The modules that the changed files can be seen through."""
    found = ModuleChanges()
    before, after = changes.before, changes.after
    for path in changes.files.modified:
        if _held(before[path], contents) != _held(after[path], contents):
            found.add(after[path].module.module_fqn, path)
    packages = [_packages(side) for side in (before, after)]
    for path in (*changes.rebuilt(), *changes.gone()):
        sides = [side[path].module for side in (before, after) if path in side]
        if len(sides) == 2 and sides[0] == sides[1]:
            continue
        for module in sides:
            found.existence.setdefault(module.module_fqn, set()).add(path)
            for parent in parents(module.module_fqn):
                if (parent in packages[0]) != (parent in packages[1]):
                    found.existence.setdefault(parent, set()).add(path)
    return found


def _held(file: KnownFile, contents: Contents) -> object:
    """What others can see of a file."""
    return contents(file.content_id) if file.content_id is not None else None


def _packages(files: Snapshot) -> set[str]:
    """Modules that have others below them."""
    packages: set[str] = set()
    for file in files.values():
        for parent in parents(file.module.module_fqn):
            if parent in packages:
                break
            packages.add(parent)
    return packages


def parents(module: str) -> Iterable[str]:
    """The packages a module is in, the nearest first."""
    parent = module.rpartition(".")[0]
    while parent:
        yield parent
        parent = parent.rpartition(".")[0]
