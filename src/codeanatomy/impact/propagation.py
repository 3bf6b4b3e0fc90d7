"""How a change of meaning propagates from name to name and from file to file.

The meaning of a name can change in a file that did not change: its base class or decorator lives elsewhere, or it is
imported under another name. A type index does not report such changes in the interface of the file, so they are
followed here by names.

Terms
    changed name   a name of a module that means something else than in the last build.
    derived name   a name whose meaning comes from other names: it is decorated, inherits, or is an import's alias.

A file is affected by a changed name only if its text contains that name, or a name derived from it.
Tested in tests/impact/test_propagation.py, and by the step cases with an index.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from codeanatomy.repo.reading import MAX_FILE_BYTES, read_optional

ALL: Final = "*"
"""In place of a name: every name of the module."""

_STANDS_FOR_ALL: Final = frozenset({"__all__", "__dir__", "__getattr__", "__path__"})
_WORD: Final = re.compile(r"\w+")


def canonical(name: str) -> str:
    """The name, or `*` for one that decides what every name of its module is."""
    return ALL if name in _STANDS_FOR_ALL or name.startswith(ALL) else name


class NameChange(NamedTuple):
    """Names of a module that changed, and the path of the file that changed them."""

    module: str
    path: str
    names: Iterable[str] = (ALL,)


@dataclass(frozen=True)
class ChangedNames:
    """The names that changed, by module, and the first path (in their order) that changed one."""

    by_module: Mapping[str, frozenset[str]] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    def modules(self) -> set[str]:
        """The modules that have changed names."""
        return set(self.by_module)

    def names(self, module: str) -> frozenset[str]:
        """The changed names of a module."""
        return self.by_module.get(module, frozenset())

    def plus(self, changes: Iterable[NameChange]) -> ChangedNames:
        """These names and more; the same object if there is no new one."""
        by_module, paths = dict(self.by_module), dict(self.paths)
        for module, path, names in changes:
            known = by_module.get(module, frozenset())
            new = {canonical(name) for name in names} - known
            if new:
                by_module[module] = known | new
                paths[module] = min(path, paths.get(module, path))
        return self if by_module == self.by_module else ChangedNames(by_module, paths)


class DerivedName(NamedTuple):
    """A name of a file whose meaning comes from others; every name it star-imports, if the name is `*`.

    `words` are the names in the expression it comes from. `looked_at` are the modules in which they were looked up;
    None if that is not known.
    """

    name: str
    words: frozenset[str]
    looked_at: frozenset[str] | None


class DerivedNames(NamedTuple):
    """The derived names of a file."""

    module: str
    path: str
    names: Sequence[DerivedName]

    def affected(self, changed: ChangedNames) -> set[str]:
        """Names of this file whose meaning changes because of `changed`."""
        found = set(changed.names(self.module))
        elsewhere = changed.modules() - {self.module}
        anywhere = {name for module in elsewhere for name in changed.names(module)}
        for each in self.names:
            names = anywhere
            if each.looked_at is not None:
                names = {name for module in elsewhere & each.looked_at for name in changed.names(module)}
            if each.name == ALL:
                found |= names
            elif ALL in names or not each.words.isdisjoint(names):
                found.add(each.name)
        while more := {each.name for each in self.names if not each.words.isdisjoint(found)} - found:
            found |= more
        return found


def derived_names(facts: Mapping[str, Any], looked_at: Mapping[int, frozenset[str]] | None) -> list[DerivedName]:
    """The names that decorators, bases, star imports and aliased imports of a content give a meaning to.

    `looked_at` has the modules that each question of the content looked at; None if that is not known.
    """
    top_level = {each["def_no"]: each["qualname"].partition(".")[0] for each in facts["cst_defs"] or ()}

    def modules_of(ask_no: int | None) -> frozenset[str] | None:
        return None if looked_at is None or ask_no is None else looked_at.get(ask_no, frozenset())

    found = [
        DerivedName(top_level[each["def_no"]], frozenset(_WORD.findall(each["text"])), modules_of(each["ask_no"]))
        for dataset in ("cst_decorators", "cst_bases")
        for each in facts[dataset] or ()
    ]
    for each in facts["cst_imports"] or ():
        if each["is_star"]:
            found.append(DerivedName(ALL, frozenset(), modules_of(each["module_ask_no"])))
        elif each["name"] and each["asname"] and not each["in_function"]:
            found.append(DerivedName(each["asname"], frozenset({each["name"]}), modules_of(each["ask_no"])))
    return found


class SourceWords:
    """Which words are in the text of each file of a repository; read when first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._words = cache(self._words_of)

    def has_one_of(self, path: str, names: frozenset[str]) -> bool:
        """Whether a file contains one of these words; true if it cannot be told."""
        words = self._words(path)
        return ALL in names or words is None or not words.isdisjoint(names)

    def _words_of(self, path: str) -> frozenset[str] | None:
        """The words of a file, as Python reads them; None if it cannot be read."""
        content = read_optional(self._root / path, MAX_FILE_BYTES)
        if content is None:
            return None
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None
        return frozenset(_WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text)))
