"""The accuracy ledger: precision and recall of the call graph on the hand-written cases, with every miss by name.

    python -m bench.accuracy.ledger [--json FILE] [--flow] [--index] [CASE or CATEGORY …]

Cases that need general flow of values are counted apart. A call is found when the pair of names is; where it is written
does not matter, for the cases are small.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy.cases import Call, Case, load_cases
from bench.accuracy.small_graphs import small_graphs


@dataclass(frozen=True)
class Outcome:
    """What the graph says of one case; `methods` tells how each call was found."""

    case: Case
    found: frozenset[Call]
    methods: dict[Call, str]

    @property
    def missing(self) -> frozenset[Call]:
        """Calls that the program makes and the graph has not."""
        return self.case.calls - self.found

    @property
    def surplus(self) -> frozenset[Call]:
        """Calls that the graph has and the program does not make."""
        return self.found - self.case.calls


@dataclass(frozen=True)
class Score:
    """Precision and recall over some cases."""

    cases: int
    right: int
    missing: int
    surplus: int
    whole: int

    @property
    def precision(self) -> float:
        """The share of the graph's calls that are calls."""
        return self.right / (self.right + self.surplus) if self.right + self.surplus else 1.0

    @property
    def recall(self) -> float:
        """The share of the calls that the graph has."""
        return self.right / (self.right + self.missing) if self.right + self.missing else 1.0


def measure(cases: Sequence[Case], *, index: bool = False) -> tuple[Outcome, ...]:
    """What the graph says of each case, with a semantic index or without."""
    names = {f"{case.category}/{case.name}": case for case in cases}
    programs = {name: case.files for name, case in names.items()}
    with small_graphs(programs, index=index) as (connection, program_of):
        rows = connection.execute("SELECT file_id, caller, callee, method FROM calls ORDER BY ALL").fetchall()
    found: dict[str, dict[Call, str]] = {name: {} for name in names}
    for file_id, caller, callee, method in rows:
        found[program_of[file_id]].setdefault((caller, callee), method)
    return tuple(Outcome(case, frozenset(found[name]), found[name]) for name, case in names.items())


def score(outcomes: Iterable[Outcome]) -> Score:
    """Precision and recall over `outcomes`."""
    outcomes = list(outcomes)
    return Score(
        len(outcomes),
        sum(len(o.found & o.case.calls) for o in outcomes),
        sum(len(o.missing) for o in outcomes),
        sum(len(o.surplus) for o in outcomes),
        sum(not o.missing and not o.surplus for o in outcomes),
    )


def main() -> None:
    """Print the ledger."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chosen", nargs="*", help="cases or categories; all by default")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--flow", action="store_true", help="list the misses of cases that need flow, too")
    parser.add_argument("--index", action="store_true", help="with pyrefly's index, which takes minutes")
    options = parser.parse_args()
    cases = [
        c
        for c in load_cases()
        if not options.chosen or {c.category, c.name, f"{c.category}/{c.name}"} & {*options.chosen}
    ]
    outcomes = measure(cases, index=options.index)
    plain = [o for o in outcomes if not o.case.needs_flow]
    flow = [o for o in outcomes if o.case.needs_flow]
    _print_misses([*plain, *(flow if options.flow else ())])
    _print_scores({"no flow needed": score(plain), "flow needed": score(flow)})
    _print_categories(outcomes)
    _print_methods(plain)
    if options.json:
        options.json.write_text(json.dumps({"plain": vars(score(plain)), "flow": vars(score(flow))}, indent=1))


def _print_misses(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        where = f"{outcome.case.category}/{outcome.case.name}"
        for sign, calls in (("missing", outcome.missing), ("surplus", outcome.surplus)):
            for caller, callee in sorted(calls):
                print(f"{sign}  {where}: {caller} -> {callee}  {outcome.methods.get((caller, callee), '')}")


def _print_scores(scores: dict[str, Score]) -> None:
    print(f"\n{'':24}{'cases':>8}{'whole':>8}{'calls':>8}{'precision':>11}{'recall':>9}")
    for name, s in scores.items():
        calls = s.right + s.missing
        print(f"{name:24}{s.cases:8}{s.whole:8}{calls:8}{s.precision:11.4f}{s.recall:9.4f}")


def _print_categories(outcomes: Sequence[Outcome]) -> None:
    print()
    categories = sorted({o.case.category for o in outcomes})
    _print_scores({c: score(o for o in outcomes if o.case.category == c) for c in categories})


def _print_methods(outcomes: Iterable[Outcome]) -> None:
    """Precision by how a call was found, on the cases that need no flow."""
    right, wrong = Counter[str](), Counter[str]()
    for outcome in outcomes:
        for call, method in outcome.methods.items():
            (right if call in outcome.case.calls else wrong)[method] += 1
    print(f"\n{'method':16}{'calls':>8}{'precision':>11}")
    for method in sorted(right | wrong):
        total = right[method] + wrong[method]
        print(f"{method:16}{total:8}{right[method] / total:11.4f}")


if __name__ == "__main__":
    main()
