"""What changed between two snapshots: files, and the modules that others may have looked at.

Terms
    trail   the modules an answer looked at; `?m` where only whether `m` exists mattered.
    entry   one element of a trail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from codeanatomy.repo.diff import FileChanges, diff_files
from codeanatomy.repo.files import Files, SourceFile
from codeanatomy.resolve.index import Contents, FileNames


@dataclass(frozen=True)
class SnapshotChanges:
    """Files that differ between two snapshots."""

    before: Files
    after: Files
    files: FileChanges
    moved_modules: tuple[str, ...]
    """Unchanged files with another module name, because a package came or went above them."""

    def rebuilt(self) -> list[str]:
        """Paths of the new snapshot that are rebuilt because of what they are themselves."""
        changes = self.files
        return sorted({*changes.added, *changes.modified, *changes.renamed, *self.moved_modules})

    def gone(self) -> list[str]:
        """Paths of the old snapshot that have no rows in the new one."""
        return sorted({*self.files.deleted, *self.files.renamed.values()})


def snapshot_changes(before: Files, after: Files) -> SnapshotChanges:
    """Compare two snapshots."""
    files = diff_files(
        {path: file.state for path, file in before.items()},
        {path: file.state for path, file in after.items()},
        unread={file.state for file in after.values() if file.content_id is None},
    )
    touched = {*files.added, *files.modified, *files.renamed}
    moved = (path for path in after.keys() & before.keys() if after[path].module != before[path].module)
    return SnapshotChanges(before, after, files, tuple(sorted(set(moved) - touched)))


@dataclass(frozen=True)
class ModuleChanges:
    """Modules that changed, each with the paths of the files that changed it.

    `existence` has modules that came, went, or belong to other files than before; `contents` has modules whose files
    define something else for others.
    """

    existence: Mapping[str, frozenset[str]] = field(default_factory=dict)
    contents: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any module changed."""
        return bool(self.existence or self.contents)

    def with_contents(self, changed: Iterable[tuple[str, str]]) -> ModuleChanges:
        """These changes, and files (module and path) that define something else for others."""
        contents = dict(self.contents)
        for module, path in changed:
            contents[module] = contents.get(module, frozenset()) | {path}
        return ModuleChanges(self.existence, contents)

    def entries(self) -> list[str]:
        """The entries of trails that a change of these modules meets."""
        return sorted({*self.contents, *self.existence, *(f"?{module}" for module in self.existence)})

    def causes(self, trail: Iterable[str]) -> set[str]:
        """The paths whose change meets a trail."""
        causes: set[str] = set()
        for entry in trail:
            if entry.startswith("?"):
                causes |= self.existence.get(entry[1:], frozenset())
            else:
                causes |= self.existence.get(entry, frozenset()) | self.contents.get(entry, frozenset())
        return causes


def module_changes(changes: SnapshotChanges, contents: Contents) -> ModuleChanges:
    """The modules through which other files can see the changed ones."""
    before, after = changes.before, changes.after
    redefined = [
        (after[path].module.module_fqn, path)
        for path in changes.files.modified
        if not _says_the_same(_held(before[path], contents), _held(after[path], contents))
    ]
    existence: dict[str, frozenset[str]] = {}
    packages = [_packages(side) for side in (before, after)]
    for path in (*changes.rebuilt(), *changes.gone()):
        sides = [side[path].module for side in (before, after) if path in side]
        if len(sides) == 2 and sides[0] == sides[1]:
            continue
        for module in sides:
            came_or_went = (
                each for each in parents(module.module_fqn) if (each in packages[0]) != (each in packages[1])
            )
            for name in (module.module_fqn, *came_or_went):
                existence[name] = existence.get(name, frozenset()) | {path}
    return ModuleChanges(existence).with_contents(redefined)


def _held(file: SourceFile, contents: Contents) -> FileNames | None:
    """What a file defines for others."""
    return contents(file.content_id) if file.content_id is not None else None


def _says_the_same(before: FileNames | None, after: FileNames | None) -> bool:
    return before is after or (before is not None and after is not None and before.says_the_same(after))


def _packages(files: Files) -> set[str]:
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
