"""The fixpoint of value flow, round by round.

In round n every pass is evaluated over what the slots hold after round n - 1; all that they write is added at once. So
what a slot holds after round n depends on the passes alone, whatever the order in which they are evaluated, and on any
number of workers. It ends when a round adds nothing. A pass is evaluated again only in rounds in which a slot that it
read holds more than before: otherwise it would write the same.

Too many
    A slot that would hold more than `MAX_VALUES` values after a round holds *too many* from then on: what it held
    before that round, the value `LIMIT`, and nothing else any more. That is a function of the rounds, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from codeanatomy.resolve.flow import Write, writes_of
from codeanatomy.resolve.index import Index
from codeanatomy.resolve.resolver import RECURSION_LIMIT, Resolver
from codeanatomy.resolve.slots import Flow, entry_of
from codeanatomy.resolve.values import LIMIT, Found, How, Trail, Value

MAX_VALUES: Final = 32
"""The number of values that a slot can hold."""

_K = TypeVar("_K", bound=Hashable)


class Evaluation(NamedTuple):
    """What a pass wrote in a round, and what that depends on: it is the same in later rounds until a slot grows."""

    round: int
    writes: tuple[Write, ...]
    trail: Trail


Evaluate = Callable[[_K], tuple[tuple[Write, ...], Trail]]
"""What a pass writes over what the slots hold now."""


@dataclass
class Solution(Generic[_K]):
    """What slots hold, and how it came to that: the evaluations of each pass, in order."""

    contents: dict[str, Found] = field(default_factory=dict)
    history: dict[_K, list[Evaluation]] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    rounds: int = 0


def solve(passes: Iterable[_K], solution: Solution[_K], evaluate: Evaluate[_K], grew: Callable[[], None]) -> None:
    """Solve from scratch into an empty `solution`, whose contents `evaluate` reads; `grew` is called every round."""
    readers: dict[str, set[_K]] = {}
    pending: Collection[_K] = list(passes)
    while pending:
        added: dict[str, Found] = {}
        for key in pending:
            writes, trail = evaluate(key)
            before = solution.history.setdefault(key, [])
            before.append(Evaluation(solution.rounds, writes, trail))
            for entry in trail:
                if entry.startswith("="):
                    readers.setdefault(entry, set()).add(key)
            for slot, value, how in writes:
                _add(added.setdefault(slot, {}), value, how)
        solution.rounds += 1
        changed = add_round(solution.contents, solution.full, added)
        grew()
        pending = {key: None for slot in sorted(changed) for key in _sorted(readers.get(entry_of(slot), ()))}


PassKey = tuple[str, int]
"""A pass: its file, and its number among those of the file."""


def flow_of(index: Index, file_ids: Iterable[str] | None = None) -> Solution[PassKey]:
    """Value flow through all files of an index, from scratch."""
    solution: Solution[PassKey] = Solution()
    resolver = Resolver(index, Flow(solution.contents, is_complete=False))
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))

    def evaluate(key: PassKey) -> tuple[tuple[Write, ...], Trail]:
        file = index.files[key[0]]
        return writes_of(resolver, file, index.names(file).passes[key[1]])

    files = [index.files[each] for each in (file_ids if file_ids is not None else sorted(index.files))]
    keys = [(file.file_id, number) for file in files for number in range(len(index.names(file).passes))]
    solve(keys, solution, evaluate, resolver.slots_changed)
    return solution


def _sorted(keys: Collection[_K]) -> list[_K]:
    return sorted(keys, key=repr) if len(keys) > 1 else list(keys)


def _add(found: Found, value: Value, how: int) -> None:
    known = found.get(value)
    if known is None or how < known:
        found[value] = how


def add_round(contents: dict[str, Found], full: set[str], added: Mapping[str, Found]) -> set[str]:
    """Add to slots what one round wrote; returns the slots that hold more than before."""
    changed: set[str] = set()
    for slot, values in added.items():
        if slot in full:
            continue
        held = contents.get(slot, {})
        new = {value: how | How.FLOW for value, how in values.items() if (how | How.FLOW) < held.get(value, _NEVER)}
        if not new:
            continue
        changed.add(slot)
        if len(held.keys() | new.keys()) > MAX_VALUES:
            full.add(slot)
            new = {LIMIT: How.FLOW}
        contents[slot] = {**held, **dict(sorted(new.items(), key=value_order))}
    return changed


_NEVER: Final = 1 << 30


def value_order(item: tuple[Value, Any]) -> str:
    """A total order of values."""
    return repr(item[0])
