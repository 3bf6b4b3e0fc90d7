"""A tree of links to the files of a snapshot, laid out by module: all that an indexer gets to see of a repository.

Nothing is copied, unless the caller puts copies in the place of links. What is not in the snapshot is not there: no
configuration, no ignored directory, no link that leads out of the tree. Source roots are folded into one, so that the
indexer gives a file the module name we give it.

A file that is too deep, or whose path is too long, is left out. How much is too much depends on the file alone, as far
as it can: a mirror's own path is longer than that of the repository, or shorter, and should make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from codeanatomy.index.provider import Failed
from codeanatomy.repo.modules import ModuleName

DEEPEST: Final = 100
"""The deepest path: indexers, and functions that delete a tree, fail on thousands of folders."""

LONGEST: Final = 2048
"""Bytes of a path; of the 4096 that Linux allows, the rest is for where the mirror is."""

_SUFFIX = {".pyw": ".py"}
"""Indexers know modules by their suffix, and pass over what is hidden: such names are linked under another."""


class Mirror:
    """Links to files, in several trees where files claim the same path; `left_out` has the reasons for other files."""

    def __init__(self, repository: Path, place: Path, put: Callable[[str, Path], None] | None = None) -> None:
        """`put` makes the entry of a file, by its path in the repository, at a place in the mirror."""
        self._repository = repository
        self._place = place
        self._put = put or self._link
        self._files: set[tuple[int, Path]] = set()
        self._folders: set[tuple[int, Path]] = set()
        self.trees: list[Path] = []
        self.links: dict[str, Path] = {}
        self.left_out: dict[str, str] = {}

    def add(self, modules: Iterable[ModuleName]) -> None:
        """Link the files of `modules`; of files that claim one place, the first comes into the first tree."""
        for module in sorted(modules, key=lambda module: module.path):
            inside = _place_in_tree(module)
            if reason := _misfit(inside):
                self.left_out[module.path] = reason
                continue
            number = next(number for number in range(len(self._files) + 1) if self._is_free(number, inside))
            link = self._place / str(number) / inside
            try:
                link.parent.mkdir(parents=True, exist_ok=True)
                self._put(module.path, link)
            except OSError as error:
                self.left_out[module.path] = error.strerror or type(error).__name__
                continue
            if number == len(self.trees):
                self.trees.append(self._place / str(number))
            self._files.add((number, inside))
            self._folders.update((number, above) for above in inside.parents)
            self.links[module.path] = link

    def names(self, modules: Iterable[ModuleName]) -> dict[str, str]:
        """The names of modules, by their place in the mirror."""
        return {str(self.links[each.path]): each.module_fqn for each in modules if each.path in self.links}

    def failures(self, asked: Collection[str] | None) -> Iterator[Failed]:
        """The files that are left out, of all or of those that are asked about."""
        return (Failed(path, why) for path, why in self.left_out.items() if asked is None or path in asked)

    def _link(self, path: str, link: Path) -> None:
        link.symlink_to(self._repository / path)

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


def _misfit(place: Path) -> str | None:
    """Why a place cannot be in a tree, if it cannot."""
    if len(place.parts) - 1 > DEEPEST:
        return f"it is more than {DEEPEST} folders deep"
    if len(bytes(place)) > LONGEST:
        return f"its path is longer than {LONGEST} bytes"
    return None
