"""A solution of value flow: what slots held in each round, and the evaluations of passes that led to it.

It is a value: what follows from it by an edit (`solver.flow_after`) is another one, which shares what did not change
(`Overlay`). It can be stored, and then be read where an edit reaches it (`flow_tables`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from codeanatomy.resolve.flow import Write
from codeanatomy.resolve.resolver import unfolded
from codeanatomy.resolve.slots import file_of, is_attribute
from codeanatomy.resolve.values import EMPTY, LIMIT, Found, How, Trail, Value

MAX_VALUES: Final = 32
"""The number of values that a slot can hold."""

_NEVER: Final = 1 << 30

PassKey = tuple[str, int]
"""A pass: its file, and its number among those of the file."""

Held = list[tuple[int, Found]]
"""What a slot held, with the round from which on it was so: in order, only where it changed."""

PassesBySlot = Mapping[str, Collection[PassKey]]

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


class Overlay(Mapping[_Key, _Item], Generic[_Key, _Item]):
    """A mapping with some items changed; one that is empty now is gone."""

    def __init__(self, base: Mapping[_Key, _Item], changes: Mapping[_Key, _Item]) -> None:
        self.base = base
        self.changes = changes

    def get(self, key: Any, default: Any = None) -> Any:
        """The item of a key."""
        if key in self.changes:
            return self.changes[key] or default
        return self.base.get(key, default)

    def __getitem__(self, key: _Key) -> _Item:
        found: _Item | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[_Key]:
        changed = (key for key, item in self.changes.items() if item)
        return chain((key for key in self.base if key not in self.changes), changed)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def overlaid(base: Mapping[_Key, _Item], changes: Mapping[_Key, _Item]) -> Mapping[_Key, _Item]:
    """A mapping with some items changed, of one layer at most."""
    if isinstance(base, Overlay):
        return Overlay(base.base, {**base.changes, **changes})
    return Overlay(base, changes) if base else {key: item for key, item in changes.items() if item}


class Evaluation(NamedTuple):
    """What a pass wrote in a round, and what that depends on: it is the same in later rounds until a slot grows.

    `read` has the slots that were read; `folded` is the trail, in which trails may be folded.
    """

    round: int
    writes: tuple[Write, ...]
    read: frozenset[str]
    folded: Trail

    @property
    def trail(self) -> Trail:
        """The entries of the trail."""
        return unfolded(self.folded)


class FilePasses(NamedTuple):
    """Of the passes of a file: their number, the names of the attributes that they set; and the module it is."""

    number: int
    assigned: frozenset[str]
    module: str


@dataclass
class Solution:
    """What slots hold, and how it came to that: the evaluations of each pass, in order.

    `full` has the slots that hold too many, with the round from which on. `writers` and `readers` are the passes that
    ever wrote or read a slot. `evaluated` has the number of evaluations of each round.
    """

    contents: Mapping[str, Found] = field(default_factory=dict)
    held: Mapping[str, Held] = field(default_factory=dict)
    full: Mapping[str, int] = field(default_factory=dict)
    history: Mapping[PassKey, list[Evaluation]] = field(default_factory=dict)
    writers: PassesBySlot = field(default_factory=dict)
    readers: PassesBySlot = field(default_factory=dict)
    evaluated: Mapping[int, int] = field(default_factory=dict)
    files: dict[str, FilePasses] = field(default_factory=dict)
    stored_with_entries: Callable[[Collection[str]], set[PassKey]] | None = None
    """The same as `with_entries` for passes of `history` that were stored and have not changed."""

    @property
    def rounds(self) -> int:
        """The number of rounds that it took."""
        return max(self.evaluated, default=-1) + 1

    def held_in(self, slot: str, round_no: int) -> Found:
        """What a slot held in a round."""
        held = self.held.get(slot)
        if not held:
            return EMPTY
        at = bisect_right(held, round_no, key=itemgetter(0))
        return held[at - 1][1] if at else EMPTY

    def grew_before(self, slot: str, round_no: int) -> bool:
        """Whether a slot changed just before a round."""
        return any(each == round_no for each, _ in self.held.get(slot, ()))

    def writes_in(self, key: PassKey, round_no: int) -> tuple[Write, ...]:
        """What a pass wrote in a round, if it was evaluated."""
        return next((each.writes for each in self.history.get(key, ()) if each.round == round_no), ())

    def keys_of(self, files: Iterable[str]) -> set[PassKey]:
        """The passes of files."""
        return {(each, number) for each in files if each in self.files for number in range(self.files[each].number)}

    def changed_slots(self, other: Solution) -> set[str]:
        """The slots that hold something else than in another solution."""
        sides = (self.contents, other.contents)
        bases = [side.base if isinstance(side, Overlay) else side for side in sides]
        changes = [side.changes if isinstance(side, Overlay) else {} for side in sides]
        slots = {slot for side in (changes if bases[0] is bases[1] else sides) for slot in side}
        return {slot for slot in slots if not is_same(self.contents.get(slot, EMPTY), other.contents.get(slot, EMPTY))}

    def changed_owners(self, before: Solution) -> set[str]:
        """The files with a pass whose evaluations are others than in the solution that this one was made from."""
        changes = self.history.changes if isinstance(self.history, Overlay) else self.history
        return {key[0] for key, each in changes.items() if each != before.history.get(key, [])}

    def with_entries(self, entries: Collection[str]) -> set[PassKey]:
        """The passes whose trail has one of these entries."""
        if not entries:
            return set()
        meets = _Meets(frozenset(entries))
        history, found = self.history, set()
        if self.stored_with_entries is not None:
            history = history.changes if isinstance(history, Overlay) else {}
            found = self.stored_with_entries(entries) - history.keys()
        return found | {key for key, each in history.items() if any(meets[evaluation.folded] for evaluation in each)}

    def changed_entries(self, other: Solution) -> set[str]:
        """The entries of the trails of answers that may differ between two solutions.

        These are the slots that hold something else, and of attributes the modules that they belong to: an answer names
        every module in which it looked for an attribute, so attributes need no entries of their own.
        """
        entries: set[str] = set()
        for slot in self.changed_slots(other):
            if is_attribute(slot):
                file_id = file_of(slot)
                entries |= {side.files[file_id].module for side in (self, other) if file_id in side.files}
            else:
                entries.add(f"={slot}")
        return entries


def is_same(first: Found, second: Found) -> bool:
    """Whether these are the same values in the same order: of too many, the first ones count."""
    return first is second or (first == second and list(first) == list(second))


def add(found: Found, value: Value, how: int) -> None:
    """Add a value that was found in some way; of two ways, the simpler one counts."""
    known = found.get(value)
    if known is None or how < known:
        found[value] = how


def grown(held: Found, added: Found) -> tuple[Found, bool] | None:
    """What a slot holds after more was added, and whether that is too many; None if it held all of it."""
    new = {value: how | How.FLOW for value, how in added.items() if (how | How.FLOW) < held.get(value, _NEVER)}
    if not new:
        return None
    is_full = len(held.keys() | new.keys()) > MAX_VALUES
    if is_full:
        new = {LIMIT: How.FLOW}
    return {**held, **dict(sorted(new.items(), key=_value_order))}, is_full


def _value_order(item: tuple[Value, int]) -> str:
    return repr(item[0])


def reindexed(index: PassesBySlot, changes: Iterable[tuple[PassKey, Collection[str], Collection[str]]]) -> PassesBySlot:
    """An index after changes: a pass, the slots that it was listed under, and those that it is to be listed under."""
    changed: dict[str, set[PassKey]] = {}
    for key, before, after in changes:
        for slot in {*before, *after}:
            if slot not in changed:
                changed[slot] = set(index.get(slot, ()))
            if slot in after:
                changed[slot].add(key)
            else:
                changed[slot].discard(key)
    return overlaid(index, changed)


class _Meets(dict[Trail, bool]):
    """Whether folded trails have one of some entries."""

    def __init__(self, entries: frozenset[str]) -> None:
        super().__init__()
        self._entries = entries

    def __missing__(self, folded: Trail) -> bool:
        inner: Iterable[Any] = (each for each in folded if not isinstance(each, str))
        found = not self._entries.isdisjoint(folded) or any(self[each] for each in inner)
        self[folded] = found
        return found
