"""A tree of links to the files of a snapshot, laid out by module: all that an indexer gets to see of a repository.

Nothing is copied. What is not in the snapshot is not there: no configuration, no ignored directory, no link that leads
out of the tree. Source roots are folded into one, so that the indexer gives a file the module name we give it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codeanatomy.repo.modules import ModuleName

_SUFFIX = {".pyw": ".py"}
"""Indexers know modules by their suffix, and pass over what is hidden: such names are linked under another."""


class Mirror:
    """Links to files, in as many trees as there are files that claim the same place."""

    def __init__(self, repository: Path, place: Path) -> None:
        self._repository = repository
        self._place = place
        self._files: set[tuple[int, Path]] = set()
        self._folders: set[tuple[int, Path]] = set()
        self.trees: list[Path] = []
        self.links: dict[str, Path] = {}

    def add(self, modules: Iterable[ModuleName]) -> None:
        """Link the files of `modules`; of files that claim one place, the first comes into the first tree."""
        for module in sorted(modules, key=lambda module: module.path):
            inside = _place_in_tree(module)
            number = next(number for number in range(len(self._files) + 1) if self._is_free(number, inside))
            tree = self._place / str(number)
            if number == len(self.trees):
                self.trees.append(tree)
            link = tree / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self._repository / module.path)
            self._files.add((number, inside))
            self._folders.update((number, above) for above in inside.parents)
            self.links[module.path] = link

    def _is_free(self, number: int, place: Path) -> bool:
        """Whether nothing is at a place of a tree, and no file where a directory above it has to be."""
        if (number, place) in self._files or (number, place) in self._folders:
            return False
        return not any((number, above) in self._files for above in place.parents)


def _place_in_tree(module: ModuleName) -> Path:
    relative = Path(module.path).relative_to(module.root) if module.root else Path(module.path)
    package = module.module_fqn.partition(".")[0]
    top = relative.parts[0]
    if len(relative.parts) > 1 and top == f"{package}-stubs":  # PEP 561: the stubs of `package`
        relative = Path(package, *relative.parts[1:])
    shown = Path(*(f"_{part}" if part.startswith(".") else part for part in relative.parts))
    return shown.with_suffix(_SUFFIX.get(shown.suffix, shown.suffix))
