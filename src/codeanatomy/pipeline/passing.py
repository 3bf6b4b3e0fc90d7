"""What others see otherwise than before, by the names of modules, and which files pass that on.

A change of a name can alter what the indexer says of a file that knows its module if the file speaks of the name, or of
something defined under it. Nothing else in a file can tell, but for two: what a decorator gives or a base hands down is
in no interface, and what is imported under another name, or with all others, is not spoken of by its own. The files
that have one of these say so to the next.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from codeanatomy.repo.reading import read_optional
from codeanatomy.repo.scan import MAX_FILE_BYTES

ALL: Final = "*"
"""In a place of a name: every one, whatever it is called."""

_SPEAKS_FOR_ALL: Final = frozenset({"__all__", "__dir__", "__getattr__", "__path__"})
_WORD: Final = re.compile(r"\w+")


class Seen:
    """The names that are seen otherwise, by module, with the path that is to blame."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._paths: dict[str, str] = {}

    def modules(self) -> set[str]:
        """The modules that have such names."""
        return set(self._names)

    def add(self, module: str, path: str, names: Iterable[str] = (ALL,)) -> bool:
        """Whether any of these names is new."""
        new = {ALL if name in _SPEAKS_FOR_ALL or name.startswith(ALL) else name for name in names} - self.names(module)
        if new:
            self._names.setdefault(module, set()).update(new)
            self._paths[module] = min(path, self._paths.get(module, path))
        return bool(new)

    def names(self, module: str) -> set[str]:
        """The names of a module that are seen otherwise."""
        return self._names.get(module, set())

    def path(self, module: str) -> str:
        """The file that is to blame."""
        return self._paths[module]


class Texts:
    """The files of a repository as texts: which words are in them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._words = cache(self._words_of)

    def has_one_of(self, path: str, names: set[str]) -> bool:
        """Whether a file has one of these words."""
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


class Handed(NamedTuple):
    """A name of a file that is what something else makes it; all names of that, if the name is `*`.

    `words` say what makes it, `looked_at` are the modules that were looked at to tell; None if that is not known.
    """

    name: str
    words: frozenset[str]
    looked_at: frozenset[str] | None


class Passing(NamedTuple):
    """The names of a file that something else makes what they are."""

    module: str
    path: str
    handed: Sequence[Handed]

    def names(self, seen: Seen) -> set[str]:
        """The names of this file that are another thing now that others are `seen` otherwise."""
        found = set(seen.names(self.module))
        elsewhere = seen.modules() - {self.module}
        anything = {name for module in elsewhere for name in seen.names(module)}
        for each in self.handed:
            names = anything
            if each.looked_at is not None:
                names = {name for module in elsewhere & each.looked_at for name in seen.names(module)}
            if each.name == ALL:
                found |= names
            elif ALL in names or not each.words.isdisjoint(names):
                found.add(each.name)
        while more := {each.name for each in self.handed if not each.words.isdisjoint(found)} - found:
            found |= more
        return found


def handed_on(facts: Mapping[str, Any], looked_at: Mapping[int, frozenset[str]] | None) -> list[Handed]:
    """What decorators, bases, star imports and imports under another name make of the names of a content."""
    top_level = {each["def_no"]: each["qualname"].partition(".")[0] for each in facts["cst_defs"] or ()}

    def looked(ask_no: int | None) -> frozenset[str] | None:
        return None if looked_at is None or ask_no is None else looked_at.get(ask_no, frozenset())

    found = [
        Handed(top_level[each["def_no"]], frozenset(_WORD.findall(each["text"])), looked(each["ask_no"]))
        for dataset in ("cst_decorators", "cst_bases")
        for each in facts[dataset] or ()
    ]
    for each in facts["cst_imports"] or ():
        if each["is_star"]:
            found.append(Handed(ALL, frozenset(), looked(each["module_ask_no"])))
        elif each["name"] and each["asname"] and not each["in_function"]:
            found.append(Handed(each["asname"], frozenset({each["name"]}), looked(each["ask_no"])))
    return found
