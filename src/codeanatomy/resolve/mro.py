"""Method resolution orders (MRO): the order in which a class and its bases are searched. C3, as Python computes it.

An MRO is a linked list. The MRO of a class with one base is the class followed by the MRO of the base, which is shared
and not copied; lookups in the shared part are remembered there. So a long chain of classes costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

from codeanatomy.resolve.index import ClassNames, ModuleFile
from codeanatomy.resolve.values import LIMIT, Class, Value

_CACHE_STRIDE: Final = 16
"""One entry in so many remembers lookups that went past it: short MROs are searched as fast without."""


class MroEntry:
    """An entry of an MRO, and with it the MRO from that entry on.

    A class of the repository has its file and what it defines (`names`); any other value has neither.
    """

    __slots__ = ("_lookups", "file", "length", "names", "rest", "value")

    def __init__(
        self,
        value: Value,
        rest: MroEntry | None = None,
        file: ModuleFile | None = None,
        names: ClassNames | None = None,
    ) -> None:
        self.value = value
        self.file = file
        self.names = names
        self.rest = rest
        self.length: int = rest.length + 1 if rest else 1
        self._lookups: dict[tuple[str, Hashable], MroEntry | None] = {}

    def __iter__(self) -> Iterator[MroEntry]:
        """Iterate over the entry and those after it."""
        entry: MroEntry | None = self
        while entry is not None:
            yield entry
            entry = entry.rest

    def followed_by(self, rest: MroEntry | None) -> MroEntry:
        """The same class with another rest."""
        return MroEntry(self.value, rest, self.file, self.names)

    def first(self, test: str, argument: Any = None) -> MroEntry | None:
        """The first entry from here on that passes one of `_TESTS`, such as having a `member` of that name."""
        passes = _TESTS[test]
        passed: list[MroEntry] = []
        found: MroEntry | None = None
        for entry in self:
            if (test, argument) in entry._lookups:
                found = entry._lookups[test, argument]
                break
            if passes(entry, argument):
                found = entry
                break
            if entry.length % _CACHE_STRIDE == 0:
                passed.append(entry)
        for entry in passed:
            entry._lookups[test, argument] = found
        return found


_TESTS: Final[dict[str, Callable[[MroEntry, Any], bool]]] = {
    "member": lambda entry, name: name in entry.names.members if entry.names else entry.value is LIMIT,
    "attribute": lambda entry, name: entry.names is not None and name in entry.names.attributes,
    "metaclass": lambda entry, _: entry.names is not None and entry.names.metaclass is not None,
    "class": lambda entry, cls: bool(entry.value == cls),
    "outside": lambda entry, _: not isinstance(entry.value, Class),
}


def linearize(entry: MroEntry, base_mros: Sequence[MroEntry]) -> MroEntry:
    """The MRO of a class whose bases have these MROs.

    Python refuses bases that cannot be merged, and a class among its own bases. Here such bases are searched depth
    first, in the order in which they are written, so that such code has a graph too.
    """
    if len(base_mros) == 1:
        return entry.followed_by(base_mros[0])
    merged, rest = _merge_c3(base_mros) or (_depth_first(base_mros), None)
    for each in reversed(merged):
        rest = each.followed_by(rest)
    return entry.followed_by(rest)


def without_class(mro: MroEntry, cls: Class) -> MroEntry | None:
    """The MRO of a base of `cls` without `cls` itself, which is in it only if the class is among its own bases."""
    rest = None
    for entry in reversed([entry for entry in mro if entry.value != cls]):
        rest = entry.followed_by(rest)
    return rest


def _merge_c3(mros: Sequence[MroEntry]) -> tuple[list[MroEntry], MroEntry | None] | None:
    """C3: the entries that come first, and the rest that all remaining MROs share; None if they cannot be merged."""
    bases: MroEntry | None = None
    for mro in reversed(mros):
        bases = mro.followed_by(bases)
    pending = [*mros, *([bases] if bases else [])]
    in_tails = Counter(entry.value for mro in pending for entry in mro.rest or ())
    merged: list[MroEntry] = []
    while pending and any(mro is not pending[0] for mro in pending):
        head = next((mro for mro in pending if not in_tails[mro.value]), None)
        if head is None:
            return None
        merged.append(head)
        remaining = []
        for mro in pending:
            if mro is not head and mro.value != head.value:
                remaining.append(mro)
            elif mro.rest is not None:
                in_tails[mro.rest.value] -= 1
                remaining.append(mro.rest)
        pending = remaining
    return merged, (pending[0] if pending else None)


def _depth_first(mros: Sequence[MroEntry]) -> list[MroEntry]:
    entries: dict[Value, MroEntry] = {}
    for mro in mros:
        for entry in mro:
            entries.setdefault(entry.value, entry)
    return list(entries.values())
