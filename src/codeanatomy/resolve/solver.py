"""The fixpoint of value flow, round by round, from scratch or from what an earlier solution knows.

Rounds
    In round n every pass is evaluated over what the slots hold after round n - 1; all that they write is added at once.
    So what a slot holds after round n depends on the passes alone, whatever the order in which they are evaluated, and
    on any number of workers. It ends when a round adds nothing. A pass is evaluated again only in rounds before which a
    slot that it read has changed: otherwise it would write the same.

Too many
    A slot that would hold more than `MAX_VALUES` values after a round holds *too many* from then on: what it held
    before that round, the value `LIMIT`, and nothing else any more. That is a function of the rounds, too.

From an earlier solution
    The same rounds are gone through, and the new solution equals one from scratch in every evaluation of every round.
    But only passes that are *live* are looked at: those that are stale (their content or what their trail has of
    modules changed) from the start, others from the round on in which a slot that they read differs from what it was in
    that round of the earlier solution. All others do what they did. Slots are *touched* from the round on in which a
    live pass writes something else to them than before; what they hold follows from the writes of live passes and from
    the earlier writes of all others. A live pass that is not stale is evaluated only if what it reads is nothing that
    one of its earlier evaluations has read.

    What rested on a caller that is gone is not derived again, around circles neither, and what rests on others still
    is. Nothing is taken away step by step, so there is nothing that could be forgotten or taken away twice. From
    scratch is the case of an empty earlier solution, where all passes are stale.

Tested by tests/resolve/test_flow.py: order, bounds, and random programs and edits against solutions from scratch.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from codeanatomy.resolve.flow import PassEvaluator, Written
from codeanatomy.resolve.index import Index, ModuleFile
from codeanatomy.resolve.resolver import RECURSION_LIMIT, Resolver
from codeanatomy.resolve.slots import Flow
from codeanatomy.resolve.solution import (
    Evaluation,
    FilePasses,
    Held,
    PassKey,
    Solution,
    add,
    grown,
    is_same,
    overlaid,
    reindexed,
)
from codeanatomy.resolve.values import EMPTY, Found

_NEVER: Final = 1 << 30


class _Contents(Mapping[str, Found]):
    """What slots hold in the round that is gone through: touched ones by themselves, others as they did before."""

    def __init__(self, previous: Solution) -> None:
        self.touched: dict[str, Found] = {}
        self.round_no = 0
        self._previous = previous

    def get(self, slot: str, default: Any = None) -> Any:
        """What a slot holds."""
        found = self.touched.get(slot)
        return found if found is not None else (self._previous.held_in(slot, self.round_no) or default)

    def __getitem__(self, slot: str) -> Found:
        return self.touched.get(slot) or self._previous.held_in(slot, self.round_no)

    def __iter__(self) -> Iterator[str]:
        return iter(self.touched.keys() | self._previous.held.keys())

    def __len__(self) -> int:
        return len(self.touched.keys() | self._previous.held.keys())


class _Rounds:
    """The rounds of one solution.

    `evaluate` tells what a pass writes over `contents`; `grew` is called with the slots that have changed there.
    """

    def __init__(self, previous: Solution) -> None:
        self.contents = _Contents(previous)
        self.evaluate: Callable[[PassKey], Written]
        self.grew: Callable[[Collection[str]], None]
        self._previous = previous
        self._is_update = bool(previous.files)
        self._stale: Collection[PassKey] = ()
        self._live: dict[PassKey, list[Evaluation]] = {}
        self._readers: dict[str, set[PassKey]] = {}
        self._held: dict[str, Held] = {}
        self._full: dict[str, int] = {}
        self._shared: dict[Any, Any] = {}

    def run(self, stale: Collection[PassKey], gone: Collection[PassKey]) -> None:
        """Go through all rounds."""
        self._stale = stale
        for key in chain(stale, gone):
            self._live[key] = []
        pending: Iterable[PassKey] = stale
        round_no = 0
        while pending or round_no <= self._previous.rounds:
            self.contents.round_no = round_no
            written: dict[str, Found] = {}
            for key in pending:
                evaluation = self._evaluation(key, round_no)
                self._live[key].append(evaluation)
                self._listen(key, evaluation)
                for slot, value, how in evaluation.writes:
                    add(written.setdefault(slot, {}), value, how)
            self._touch(written, round_no)
            round_no += 1
            pending = self._add_round(written, round_no)

    def solution(self, files: dict[str, FilePasses]) -> Solution:
        """What was found out; the passes of other files are gone."""
        before, live = self._previous, self._live
        sides = [(key, before.history.get(key, ()), evaluations) for key, evaluations in live.items()]
        evaluated = dict(before.evaluated)
        for _, old, new in sides:
            for by, evaluations in ((-1, old), (1, new)):
                for each in evaluations:
                    evaluated[each.round] = evaluated.get(each.round, 0) + by
        return Solution(
            overlaid(before.contents, {slot: held[-1][1] if held else {} for slot, held in self._held.items()}),
            overlaid(before.held, self._held),
            overlaid(before.full, {slot: self._full.get(slot, 0) for slot in self._held}),
            overlaid(before.history, live),
            reindexed(before.writers, ((key, _written(old), _written(new)) for key, old, new in sides)),
            reindexed(before.readers, ((key, _read(old), _read(new)) for key, old, new in sides)),
            {round_no: count for round_no, count in evaluated.items() if count},
            files,
            before.stored_with_entries,
        )

    def _evaluation(self, key: PassKey, round_no: int) -> Evaluation:
        """The evaluation of a pass in this round, from the earlier solution if it read the same."""
        if key not in self._stale:
            for known in self._previous.history[key]:
                if all(
                    is_same(self.contents.get(slot, EMPTY), self._previous.held_in(slot, known.round))
                    for slot in known.read
                ):
                    return known._replace(round=round_no)
        writes, trail, read = self.evaluate(key)
        share = self._shared.setdefault
        return Evaluation(round_no, writes, share(read, read), share(trail, trail))

    def _listen(self, key: PassKey, evaluation: Evaluation) -> None:
        for slot in evaluation.read:
            self._readers.setdefault(slot, set()).add(key)

    def _touch(self, written: Mapping[str, Found], round_no: int) -> None:
        """Touch the slots to which live passes write something else in a round than they did."""
        if not self._is_update:
            for slot in written.keys() - self._held.keys():
                self._held[slot] = []
            return
        for key, evaluations in self._live.items():
            before = set(self._previous.writes_in(key, round_no))
            last = evaluations[-1] if evaluations else None
            for write in before.symmetric_difference(last.writes if last and last.round == round_no else ()):
                if write.slot not in self._held:
                    self._touch_slot(write.slot, round_no)

    def _touch_slot(self, slot: str, round_no: int) -> None:
        previous = self._previous
        self._held[slot] = [each for each in previous.held.get(slot, ()) if each[0] <= round_no]
        self.contents.touched[slot] = previous.held_in(slot, round_no)
        if previous.full.get(slot, _NEVER) <= round_no:
            self._full[slot] = previous.full[slot]

    def _add_round(self, written: Mapping[str, Found], round_no: int) -> Collection[PassKey]:
        """Add to slots what was written before this round; returns the live passes that have read what has changed."""
        previous = self._previous
        slots: Iterable[str] = self._held if self._is_update else written
        changed: set[str] = set()
        differing: list[str] = []
        for slot in slots:
            added = self._all_written(slot, written.get(slot, EMPTY), round_no - 1)
            has_grown = bool(added) and self._grow(slot, added, round_no)
            if has_grown:
                changed.add(slot)
            if self._is_update and (
                has_grown != previous.grew_before(slot, round_no)
                or not is_same(self.contents.touched[slot], previous.held_in(slot, round_no))
            ):
                differing.append(slot)
        for slot in differing:  # not before all slots have what was written to them: that depends on who is live
            self._wake_readers(slot, round_no)
        if self._is_update:
            self.contents.round_no = round_no
            others = self._readers.keys() - self._held.keys()
            changed.update(slot for slot in others if previous.grew_before(slot, round_no))
        self.grew(changed)
        return dict.fromkeys(key for slot in changed for key in self._readers.get(slot, ()))

    def _all_written(self, slot: str, by_live: Found, round_no: int) -> Found:
        """What was written to a slot in a round by live passes, and by those that did what they did before."""
        previous = self._previous
        others = previous.writers.get(slot)
        if not others:
            return by_live
        found = dict(by_live)
        for key in others - self._live.keys():
            for write in previous.writes_in(key, round_no):
                if write.slot == slot:
                    add(found, write.value, write.how)
        return found

    def _grow(self, slot: str, added: Found, round_no: int) -> bool:
        """Add to a slot what was written before this round; returns whether it holds more than before."""
        if slot in self._full:
            return False
        after = grown(self.contents.touched.get(slot, EMPTY), added)
        if after is None:
            return False
        found, is_full = after
        if is_full:
            self._full[slot] = round_no
        self.contents.touched[slot] = found
        self._held[slot].append((round_no, found))
        return True

    def _wake_readers(self, slot: str, round_no: int) -> None:
        """The passes that have read a slot which holds something else now than it did are live from this round on."""
        for key in self._previous.readers.get(slot, ()):
            if key not in self._live:
                before = [each for each in self._previous.history[key] if each.round < round_no]
                self._live[key] = before
                for evaluation in before:
                    self._listen(key, evaluation)


def _written(evaluations: Iterable[Evaluation]) -> set[str]:
    return {write.slot for each in evaluations for write in each.writes}


def _read(evaluations: Iterable[Evaluation]) -> set[str]:
    return {slot for each in evaluations for slot in each.read}


def flow_of(index: Index) -> Solution:
    """Value flow through all files of an index."""
    return flow_after(Solution(), index, index.files.keys(), ())


def flow_after(
    previous: Solution, index: Index, changed_files: Collection[str], changed_entries: Collection[str]
) -> Solution:
    """Value flow through all files of an index, from the solution before some of them changed, came or went.

    `changed_entries` are the entries of trails that stand for what others can see of the change.
    """
    changed = [index.files[each] for each in changed_files if each in index.files]
    others = {
        each: passes._replace(module=index.files[each].module)
        for each, passes in previous.files.items()
        if each not in changed_files
    }
    files = others | {file.file_id: _file_passes(index, file) for file in changed}
    sides = [frozenset(chain.from_iterable(each.assigned for each in side)) for side in _sides(previous, files)]
    entries = {*changed_entries, *(f"=.{name}" for name in sides[0] ^ sides[1])}
    before = previous.keys_of(changed_files)
    now = {(file.file_id, number): None for file in changed for number in range(files[file.file_id].number)}
    stale = now | dict.fromkeys(previous.with_entries(entries) - before)
    rounds = _Rounds(previous)
    resolver = Resolver(index, Flow(rounds.contents, sides[1]))
    evaluator = PassEvaluator(resolver)
    rounds.evaluate = lambda key: _written_by(evaluator, index, key)
    rounds.grew = evaluator.slots_changed
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    with _collector_paused():
        rounds.run(stale, before - now.keys())
    return rounds.solution(files)


def _sides(previous: Solution, files: Mapping[str, FilePasses]) -> tuple[Iterable[FilePasses], Iterable[FilePasses]]:
    return previous.files.values(), files.values()


def _written_by(evaluator: PassEvaluator, index: Index, key: PassKey) -> Written:
    file = index.files[key[0]]
    return evaluator.writes_of(file, index.names(file).passes[key[1]])


def _file_passes(index: Index, file: ModuleFile) -> FilePasses:
    passes = index.names(file).passes
    assigned = (argument.place for each in passes if each.kind == "attribute" for argument in each.arguments)
    return FilePasses(len(passes), frozenset(assigned), file.module)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Let the garbage collector wait: there are many small values, none of them in a cycle, and it looks at all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # these two make what is there old, so that the next collection does not look at it
            gc.unfreeze()
            gc.enable()
