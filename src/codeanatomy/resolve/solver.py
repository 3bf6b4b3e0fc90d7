"""The fixpoint of value flow, round by round, from scratch or from what an earlier solution knows.

Rounds
    In round n every pass is evaluated over what the slots hold after round n - 1; all that they write is added at once.
    So what a slot holds after round n depends on the passes alone, whatever the order in which they are evaluated, and
    on any number of workers. It ends when a round adds nothing. A pass is evaluated again only in rounds in which a
    slot that it read holds more than before: otherwise it would write the same.

Too many
    A slot that would hold more than `MAX_VALUES` values after a round holds *too many* from then on: what it held
    before that round, the value `LIMIT`, and nothing else any more. That is a function of the rounds, too.

From an earlier solution (`previous`)
    The same rounds are gone through, from nothing. But an evaluation is taken from the earlier solution if the pass is
    not *stale* (its content and what its trail has of modules did not change) and everything that it read holds now
    what it held then. So the new solution equals one from scratch in every evaluation of every round: what rested on a
    caller that is gone is not derived again, around circles neither, and what rests on others still is. Nothing is
    taken away step by step, so there is nothing that could be forgotten or taken away twice.

    Most edits change nothing that is passed. If the stale passes write in each round what was written before, slots
    hold what they held, and nothing else needs a look (`solve_unchanged`).

    What a slot held in which round is remembered as a digest (`Solution.versions`). Attributes are read by name along
    MROs; an evaluation is taken to have read all of them that belong to a module of its trail.

Tested by tests/resolve/test_flow.py: order, bounds, and random programs and edits against solutions from scratch.
"""

from __future__ import annotations

import gc
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from codeanatomy.resolve.flow import Write, writes_of
from codeanatomy.resolve.index import Index, ModuleFile
from codeanatomy.resolve.resolver import RECURSION_LIMIT, Resolver
from codeanatomy.resolve.slots import Flow, entry_of, file_of, is_attribute
from codeanatomy.resolve.values import EMPTY, LIMIT, Found, How, Trail, Value

MAX_VALUES: Final = 16
"""The number of values that a slot can hold."""

_NEVER: Final = 1 << 30
_K = TypeVar("_K", bound=Hashable)

Written = tuple[tuple[Write, ...], Trail]
"""What a pass writes, and what that depends on."""


class Evaluation(NamedTuple):
    """What a pass wrote in a round, and what that depends on: it is the same in later rounds until a slot grows."""

    round: int
    writes: tuple[Write, ...]
    trail: Trail


@dataclass
class Solution(Generic[_K]):
    """What slots hold, and how it came to that: the evaluations of each pass, in order.

    `full` are the slots that hold too many. `versions` has a digest of what was read under each entry of a trail (a
    slot, or the attributes of a module) by the round after which it was so; `held` has what slots held.
    """

    contents: dict[str, Found] = field(default_factory=dict)
    held: dict[str, list[tuple[int, Found]]] = field(default_factory=dict)
    history: dict[_K, list[Evaluation]] = field(default_factory=dict)
    full: set[str] = field(default_factory=set)
    versions: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """The number of rounds that it took."""
        return max((evaluations[-1].round + 1 for evaluations in self.history.values()), default=0)

    changed_names: dict[str, set[int]] = field(default_factory=dict)
    """The rounds after which an attribute of a name changed, by its entry of a trail."""

    def changed_after(self, entry: str, round_no: int) -> bool:
        """Whether what an entry of a trail stands for changed at the end of a round."""
        if entry.startswith("=."):
            return round_no in self.changed_names.get(entry, ())
        versions = self.versions.get(entry, ())
        at = bisect_right(versions, round_no, key=itemgetter(0))
        return bool(at) and versions[at - 1][0] == round_no

    def contents_after(self, slot: str, round_no: int) -> Found:
        """What a slot held after a round."""
        held = self.held.get(slot, ())
        at = bisect_right(held, round_no, key=itemgetter(0))
        return held[at - 1][1] if at else EMPTY

    def version(self, entry: str, after_round: int) -> int:
        """The digest of what an entry of a trail stood for after a round; 0 if that was nothing."""
        versions = self.versions.get(entry)
        if not versions:
            return 0
        at = bisect_right(versions, after_round, key=itemgetter(0))
        return versions[at - 1][1] if at else 0

    def changed_slots(self, other: Solution[_K]) -> set[str]:
        """The slots that hold something else than in another solution."""
        slots = self.contents.keys() | other.contents.keys()
        return {slot for slot in slots if self.contents.get(slot) != other.contents.get(slot)}

    def changed_entries(self, other: Solution[_K]) -> set[str]:
        """The entries of the trails of answers that may differ between two solutions.

        These are the slots that hold something else, and of attributes the modules that they belong to: an answer names
        every module in which it looked for an attribute, so attributes need no entries of their own.
        """
        last = {entry: versions[-1][1] for entry, versions in self.versions.items()}
        before = {entry: versions[-1][1] for entry, versions in other.versions.items()}
        return {entry for entry in last.keys() | before.keys() if last.get(entry, 0) != before.get(entry, 0)}


@dataclass(frozen=True)
class Problem(Generic[_K]):
    """The passes to solve for.

    `evaluate` tells what a pass writes over the contents of `solution`; `grew` is called with the entries of trails
    that stand for what has changed there.
    `module_of` is the module of a file. After `at_round`, evaluation reads what the slots of the previous solution held
    after a round.
    """

    passes: Collection[_K]
    solution: Solution[_K]
    evaluate: Callable[[_K], Written]
    grew: Callable[[Collection[str]], None]
    module_of: Callable[[str], str]
    at_round: Callable[[int], None]


def solve(
    problem: Problem[_K], previous: Solution[_K] | None = None, stale: Collection[_K] = frozenset()
) -> Solution[_K]:
    """Solve into the empty solution of the problem; with what a `previous` one knows of passes that are not `stale`."""
    solution = problem.solution
    readers: dict[str, set[_K]] = {}
    pending: Collection[_K] = problem.passes
    round_no = 0
    while pending:
        added: dict[str, Found] = {}
        for key in pending:
            known = _known(key, round_no, solution, previous) if previous is not None and key not in stale else None
            writes, trail = known if known is not None else problem.evaluate(key)
            solution.history.setdefault(key, []).append(Evaluation(round_no, writes, trail))
            for entry in trail:
                if entry.startswith("="):
                    readers.setdefault(entry, set()).add(key)
            for slot, value, how in writes:
                _add(added.setdefault(slot, {}), value, how)
        round_no += 1
        changed = _add_round(solution, added)
        _add_versions(solution, changed, round_no, problem.module_of)
        entries = {entry_of(slot) for slot in changed}
        problem.grew(entries)
        pending = dict.fromkeys(key for entry in entries for key in readers.get(entry, ()))
    return solution


def solve_unchanged(
    problem: Problem[_K], previous: Solution[_K], stale: Collection[_K], gone: Collection[_K]
) -> Solution[_K] | None:
    """The solution if what the `stale` passes write in each round is what those that are `gone` or stale wrote before.

    Then slots hold in each round what they held before, and no other pass makes a difference: only the stale ones are
    evaluated, over what slots held in each round. That is so for most edits. None if they write anything else.

    The contents of the problem's solution are set to those of each round; other parts of it are not used.
    """
    before: dict[int, set[Write]] = {}
    for key in {*stale, *gone}:
        for evaluation in previous.history.get(key, ()):
            before.setdefault(evaluation.round, set()).update(evaluation.writes)
    history: dict[_K, list[Evaluation]] = {}
    round_no = 0
    pending: set[_K] = set(stale)
    last = max((rounds[-1][0] for rounds in previous.held.values()), default=0)
    while round_no <= last:
        problem.at_round(round_no)
        after: set[Write] = set()
        for key in pending:
            writes, trail = problem.evaluate(key)
            history.setdefault(key, []).append(Evaluation(round_no, writes, trail))
            after.update(writes)
        if after != before.pop(round_no, set()):
            return None
        round_no += 1
        pending = {key for key, evaluations in history.items() if _reads_change(evaluations, round_no, previous)}
    if before:
        return None
    kept = {key: evaluations for key, evaluations in previous.history.items() if key not in stale and key not in gone}
    return replace(previous, history=kept | history)


def _reads_change(evaluations: Iterable[Evaluation], round_no: int, solution: Solution[_K]) -> bool:
    """Whether a slot that a pass read in an earlier round changed at the end of the last one."""
    entries = {entry for each in evaluations for entry in each.trail if entry.startswith("=")}
    return any(solution.changed_after(entry, round_no) for entry in entries)


def _known(key: _K, round_no: int, solution: Solution[_K], previous: Solution[_K]) -> Written | None:
    """What the previous solution knows a pass to write over what the slots hold now; None if it does not know."""
    for evaluation in previous.history.get(key, ()):
        if all(
            solution.version(entry, round_no) == previous.version(entry, evaluation.round) for entry in evaluation.trail
        ):
            return evaluation.writes, evaluation.trail
    return None


def _add(found: Found, value: Value, how: int) -> None:
    known = found.get(value)
    if known is None or how < known:
        found[value] = how


def _add_round(solution: Solution[_K], added: Mapping[str, Found]) -> set[str]:
    """Add to slots what one round wrote; returns the slots that hold more than before."""
    changed: set[str] = set()
    for slot, values in added.items():
        if slot in solution.full:
            continue
        held = solution.contents.get(slot, {})
        new = {value: how | How.FLOW for value, how in values.items() if (how | How.FLOW) < held.get(value, _NEVER)}
        if not new:
            continue
        changed.add(slot)
        if len(held.keys() | new.keys()) > MAX_VALUES:
            solution.full.add(slot)
            new = {LIMIT: How.FLOW}
        solution.contents[slot] = {**held, **dict(sorted(new.items(), key=_value_order))}
    return changed


def _value_order(item: tuple[Value, Any]) -> str:
    return repr(item[0])


def _add_versions(
    solution: Solution[_K], changed: Iterable[str], round_no: int, module_of: Callable[[str], str]
) -> None:
    """Remember what the entries of trails that stand for changed slots stand for now.

    The attributes of a module have the sum of the digests of their slots.
    """
    for slot in changed:
        digest = _digest(slot, solution.contents[slot])
        versions = solution.versions.setdefault(f"={slot}", [])
        before = versions[-1][1] if versions else 0
        versions.append((round_no, digest))
        solution.held.setdefault(slot, []).append((round_no, solution.contents[slot]))
        if is_attribute(slot):
            solution.changed_names.setdefault(entry_of(slot), set()).add(round_no)
            of_module = solution.versions.setdefault(module_of(file_of(slot)), [])
            total = (of_module[-1][1] if of_module else 0) - before + digest
            if of_module and of_module[-1][0] == round_no:
                of_module[-1] = (round_no, total)
            else:
                of_module.append((round_no, total))


def _digest(slot: str, held: Found) -> int:
    return int.from_bytes(sha256(repr((slot, held)).encode()).digest()[:12], "big")


PassKey = tuple[str, int]
"""A pass: its file, and its number among those of the file."""


def flow_of(
    index: Index, previous: Solution[PassKey] | None = None, stale: Collection[PassKey] = frozenset()
) -> Solution[PassKey]:
    """Value flow through all files of an index."""
    solution: Solution[PassKey] = Solution()
    files = list(index.files.values())
    assigned = _assigned_names(index, files)
    resolver = Resolver(index, Flow(solution.contents, assigned))
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))

    def evaluate(key: PassKey) -> Written:
        file = index.files[key[0]]
        return writes_of(resolver, file, index.names(file).passes[key[1]])

    keys = [(file.file_id, number) for file in files for number in range(len(index.names(file).passes))]

    def at_round(round_no: int) -> None:
        nonlocal resolver
        if previous is not None:
            resolver = Resolver(index, Flow(_Round(previous, round_no), assigned))

    def module_of(file_id: str) -> str:
        return index.files[file_id].module

    problem = Problem(keys, solution, evaluate, resolver.slots_changed, module_of, at_round)
    with _collector_paused():
        if previous is not None and _has_modules(index, previous):
            present = set(keys)
            new = (present - previous.history.keys()) | (present & set(stale))
            unchanged = solve_unchanged(problem, previous, new, previous.history.keys() - present)
            if unchanged is not None:
                return unchanged
            resolver = Resolver(index, Flow(solution.contents, assigned))
            problem = replace(problem, grew=resolver.slots_changed)
        return solve(problem, previous, stale)


def _has_modules(index: Index, previous: Solution[PassKey]) -> bool:
    """Whether the files that have attributes in a previous solution still are the modules that they were."""
    files = (index.files.get(file_of(slot)) for slot in previous.held if is_attribute(slot))
    return all(file is not None and file.module in previous.versions for file in files)


class _Round(Mapping[str, Found]):
    """What the slots of a solution held after a round."""

    def __init__(self, solution: Solution[Any], round_no: int) -> None:
        self._solution = solution
        self._round_no = round_no

    def __getitem__(self, slot: str) -> Found:
        found = self._solution.contents_after(slot, self._round_no)
        if not found:
            raise KeyError(slot)
        return found

    def __iter__(self) -> Iterator[str]:
        return (slot for slot in self._solution.held if slot in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Let the garbage collector wait: there are many small values, none of them in a cycle, and it looks at all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def stale_passes(
    previous: Solution[PassKey], changed_files: Collection[str], changed_entries: Collection[str]
) -> set[PassKey]:
    """The passes that must be evaluated again: of changed files, and those whose trail met a changed module."""
    entries = frozenset(changed_entries)
    return {
        key
        for key, evaluations in previous.history.items()
        if key[0] in changed_files or any(not entries.isdisjoint(each.trail) for each in evaluations)
    }


def _assigned_names(index: Index, files: Iterable[ModuleFile]) -> set[str]:
    """The names of attributes that files set on something that they do not define."""
    passes = (each for file in files for each in index.names(file).passes if each.kind == "attribute")
    return {argument.place for each in passes for argument in each.arguments}
