"""Random edits of trees of real code: does an update miss an answer, does an answer depend on what else was asked?

    python -m bench.splices [--steps N] [--seed S] [--walk W] [--longest N] [--builds N] [--index pyrefly]

A walk starts with some modules of installed packages and edits them, step by step (`bench.splicing`). After each step
the analysis of an update is held against everything asked from scratch, and answers are asked for alone and in other
orders (`bench.analyses`); all of that in this process. With `--builds`, so many of the steps are real builds as well,
on one warm session, each compared row for row with a build from scratch.

A step that goes wrong is printed with the command that repeats it and with the smallest trees that show it, which are
kept below `.corpora/splices`; the exit code is 1. A whole run writes bench/SPLICES.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

import codeanatomy as ca
from bench import versions
from bench.analyses import Difference, Ledger
from bench.builds import CORPORA
from bench.splicing import EDITS, LONGEST, Library, Splicer, Tree, parsed
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline.request import Strategy
from codeanatomy.pipeline.warm import Warm

RESULTS = Path(__file__).parent / "SPLICES.md"
SCRATCH = CORPORA / "splices"
STEPS = 2000
STEPS_OF_A_WALK = 25
BUILDS_OF_A_WALK = 20
SHRINKING_SECONDS = 60
SHRUNK = 3
"""So many failures of a run are made small; more say nothing new and take their time."""

STRATEGIES = (*[Strategy.HYBRID] * 4, Strategy.SYMBOL_CLOSURE, Strategy.IMPORT_CLOSURE)

_PRELOAD = ("codeanatomy.extract", "codeanatomy.store.filewriter")


@dataclass(frozen=True)
class Step:
    """A step of a walk: what was done, and the trees before and after."""

    walk: int
    number: int
    done: list[tuple[str, str]]
    before: Tree
    after: Tree

    def __str__(self) -> str:
        return f"walk {self.walk} step {self.number}: " + "; ".join(f"{kind}: {told}" for kind, told in self.done)


@dataclass
class Tally:
    """What a run came to."""

    kinds: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    files: int = 0
    questions: int = 0
    kept: int = 0
    failures: int = 0
    """Steps that went wrong."""
    missed: int = 0
    order_dependent: int = 0
    builds: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return bool(self.missed or self.order_dependent or self.differing or not self.steps)


def main() -> int:
    """Walk, write and print; 1 if an answer was missed or depends on the order, or a build differs."""
    options = _options()
    began = time.monotonic()
    tally = Tally()
    engine = open_engine(EngineSettings(preload=_PRELOAD)) if options.builds else nullcontext()
    with engine as spark:
        warm = Warm(spark) if spark else None
        for number in _walks(options):
            builds = BUILDS_OF_A_WALK if sum(tally.builds.values()) < options.builds else 0
            builds = min(builds, options.builds - sum(tally.builds.values()))
            walk(number, options, tally, warm if builds else None, builds)
    tally.seconds = time.monotonic() - began
    report = _report(tally, options)
    if options.out or _is_whole(options):
        (options.out or RESULTS).write_text(report, encoding="utf-8")
    print(report)
    return 1 if tally.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"in all ({STEPS})")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="other walks")
    parser.add_argument("--walk", type=int, metavar="W", help="only this walk, as far as its first --steps steps")
    parser.add_argument("--longest", type=int, default=LONGEST, metavar="N", help=f"links of a chain ({LONGEST})")
    parser.add_argument("--builds", type=int, default=0, metavar="N", help="so many steps are real builds as well")
    parser.add_argument("--index", default="none", help="the semantic index of those builds (none)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here")
    return parser.parse_args()


def _is_whole(options: argparse.Namespace) -> bool:
    return options.walk is None and options.steps >= STEPS and options.longest >= LONGEST


def _walks(options: argparse.Namespace) -> Sequence[int]:
    if options.walk is not None:
        return [options.walk]
    return range(-(-options.steps // STEPS_OF_A_WALK))


def steps_of(number: int, seed: int, count: int, longest: int = LONGEST) -> Iterator[Step]:
    """The steps of a walk, the same every time; the first one makes the tree."""
    splicer = Splicer(Random(f"{seed} {number}"), Library(), longest)
    tree = splicer.tree()
    yield Step(number, 0, [], {}, tree)
    for step in range(1, count + 1):
        after, done = splicer.step(tree)
        yield Step(number, step, done, tree, after)
        tree = after


def walk(number: int, options: argparse.Namespace, tally: Tally, warm: Warm | None, builds: int) -> None:
    """Take the steps of a walk and compare after each."""
    home = SCRATCH / "walk"
    shutil.rmtree(home, ignore_errors=True)
    count = min(options.steps, STEPS_OF_A_WALK) if options.walk is None else options.steps
    ledger: Ledger | None = None
    for step in steps_of(number, options.seed, count, options.longest):
        put(home / "tree", step.before, step.after)
        chance = Random(f"{options.seed} {number} {step.number}")
        if ledger is None:
            ledger = Ledger(home / "tree", home / "ledger")
        else:
            _examine(ledger, step, chance, options, tally)
        if warm is not None and step.number <= builds:
            _build(home, step, options.index, tally, warm)
    shutil.rmtree(home)


def _examine(ledger: Ledger, step: Step, chance: Random, options: argparse.Namespace, tally: Tally) -> None:
    began = time.monotonic()
    examined = ledger.advance(chance, chance.choice(STRATEGIES))
    tally.steps += 1
    tally.kinds.update(kind for kind, _ in step.done)
    tally.files = max(tally.files, examined.files)
    tally.questions += examined.questions
    tally.kept += examined.kept
    tally.failures += bool(examined.failed)
    tally.missed += len(examined.missed)
    tally.order_dependent += len(examined.order_dependent)
    outcome = f"{examined.files} files, {examined.kept} of {examined.questions} kept"
    if not examined.failed:
        print(f"{step}: {outcome}, {time.monotonic() - began:.1f} s", flush=True)
        return
    print(f"{step}: {outcome}: FAILED", flush=True)
    _tell(examined.failed)
    command = f"python -m bench.splices --seed {options.seed} --walk {step.walk} --steps {step.number}"
    print(f"    {command} --longest {options.longest}", flush=True)
    if tally.failures <= SHRUNK:
        _tell_smallest(step)


def _tell(failed: Sequence[Difference]) -> None:
    for each in failed[:5]:
        print(f"    {each.path}: {each.what}: {each.example}", flush=True)
    if len(failed) > 5:
        print(f"    and {len(failed) - 5} more", flush=True)


def _build(home: Path, step: Step, index: str, tally: Tally, warm: Warm) -> None:
    """Build the tree on top of the last build, and compare with a build from scratch."""
    request = ca.BuildRequest(home / "tree", state=str(home / "built"), index=index)
    result = warm.build(request)
    if not step.number:
        return
    tally.builds[str(result.mode)] += 1
    verified = ca.verify(request, spark=warm.spark)
    print(f"    {result.mode} build {result.seconds:.1f} s: {'equal' if verified.equal else 'DIFFERS'}", flush=True)
    if not verified.equal:
        tally.differing += 1
        for name, table in verified.tables.items():
            for row in table.examples if not table.equal else ():
                print(f"    {name}: {row}", flush=True)
        keep(f"built-{step.walk}-{step.number}", step.before, step.after)


def put(root: Path, before: Tree, after: Tree) -> None:
    """Turn the files at `root` from one tree into another; what is the same is not touched."""
    root.mkdir(parents=True, exist_ok=True)
    versions.put(root, _version(before), _version(after))


def _version(tree: Tree) -> versions.Version:
    blobs = {
        path: versions.Blob(sha256(content).hexdigest(), executable=False, read=partial(bytes, content))
        for path, content in tree.items()
    }
    return versions.Version("tree", blobs)


# Failures, made small.


def fails(before: Tree, after: Tree, home: Path) -> bool:
    """Whether an update from one tree to the other goes wrong, on a ledger of its own."""
    shutil.rmtree(home, ignore_errors=True)
    put(home / "tree", {}, before)
    ledger = Ledger(home / "tree", home / "ledger")
    put(home / "tree", before, after)
    return bool(ledger.advance(Random(0)).failed)


def _tell_smallest(step: Step) -> None:
    home = SCRATCH / "shrinking"
    if not fails(step.before, step.after, home):
        print("    only with the steps before it", flush=True)
        return
    before, after = smallest(step.before, step.after, partial(fails, home=home), SHRINKING_SECONDS)
    shutil.rmtree(home)
    print(f"    smallest: {keep(f'{step.walk}-{step.number}', before, after)}", flush=True)
    for path in sorted(before.keys() | after.keys())[:8]:
        states = "unchanged" if before.get(path) == after.get(path) else "changed" if path in before else "added"
        text = after.get(path, b"(deleted)").decode("utf-8", "replace").strip("\n")
        shown = text if len(text) < 400 else f"{text[:300]}\n… {len(text) - 300} more characters"
        print(f"    --- {path} ({states})\n" + "\n".join(f"    | {line}" for line in shown.split("\n")), flush=True)


def keep(name: str, before: Tree, after: Tree) -> Path:
    """Write two trees where they can be looked at."""
    place = SCRATCH / "failures" / name
    shutil.rmtree(place, ignore_errors=True)
    put(place / "before", {}, before)
    put(place / "after", {}, after)
    return place


def smallest(before: Tree, after: Tree, still: Callable[[Tree, Tree], bool], seconds: float) -> tuple[Tree, Tree]:
    """Trees that are `still` wrong, with as few files, changes and statements as can be found in the time."""
    ends = time.monotonic() + seconds
    pair = before, after

    def reduce_by(parts: list[_Part], without: Callable[[Tree, Tree, set[_Part]], tuple[Tree, Tree]]) -> None:
        nonlocal pair
        size = len(parts)
        while size and time.monotonic() < ends:
            for start in range(0, len(parts), size):
                smaller = without(*pair, set(parts[start : start + size]))
                if smaller != pair and time.monotonic() < ends and still(*smaller):
                    pair = smaller
            size //= 2

    paths = sorted({*before, *after})
    reduce_by([(path, "") for path in paths], _without_files)
    reduce_by([(path, "") for path in paths], _without_changes)
    blocks = [
        (path, block) for path in paths for block in dict.fromkeys([*_blocks(pair[0], path), *_blocks(pair[1], path)])
    ]
    reduce_by(blocks, _without_blocks)
    return pair


_Part = tuple[str, str]
"""A file, or a statement of it."""


def _without_files(before: Tree, after: Tree, parts: set[_Part]) -> tuple[Tree, Tree]:
    one, other = ({path: text for path, text in tree.items() if (path, "") not in parts} for tree in (before, after))
    return one, other


def _without_changes(before: Tree, after: Tree, parts: set[_Part]) -> tuple[Tree, Tree]:
    kept = {path: text for path, text in after.items() if (path, "") not in parts}
    return before, kept | {path: text for path, text in before.items() if (path, "") in parts}


def _without_blocks(before: Tree, after: Tree, parts: set[_Part]) -> tuple[Tree, Tree]:
    return _fewer(before, parts), _fewer(after, parts)


def _fewer(tree: Tree, parts: set[_Part]) -> Tree:
    fewer = dict(tree)
    for path in {path for path, _ in parts} & tree.keys():
        if (source := parsed(tree[path])) is not None:
            for start, end, _ in reversed(source.blocks):
                if (path, "\n".join(source.lines[start:end])) in parts:
                    del source.lines[start:end]
            fewer[path] = source.encoded()
    return fewer


def _blocks(tree: Tree, path: str) -> Iterator[str]:
    if path in tree and (source := parsed(tree[path])) is not None:
        yield from ("\n".join(source.lines[start:end]) for start, end, _ in source.blocks)


def _report(tally: Tally, options: argparse.Namespace) -> str:
    command = " ".join(["python -m bench.splices", *sys.argv[1:]])
    builds = ", ".join(f"{count} {mode}" for mode, count in sorted(tally.builds.items()))
    rows = [
        ("steps", f"{tally.steps:,}"),
        ("largest tree, in files", f"{tally.files:,}"),
        ("answers compared", f"{tally.questions:,}"),
        ("of these kept by the update", f"{tally.kept:,}"),
        ("steps that went wrong", f"{tally.failures:,}"),
        ("files with missed answers", f"{tally.missed:,}"),
        ("files with order-dependent answers", f"{tally.order_dependent:,}"),
        ("real builds", f"{sum(tally.builds.values()):,}" + (f" ({builds}; index: {options.index})" if builds else "")),
        ("of these with differing rows", f"{tally.differing:,}"),
        ("minutes", f"{tally.seconds / 60:.0f}"),
    ]
    return "\n".join(
        [
            "# Edits made of real code\n",
            f"`{command}` on {os.cpu_count()} cores, Python {platform.python_version()}. Trees of modules of installed "
            "packages are edited step by step. After each step, what an update would store is compared with everything "
            "asked from scratch; and all questions are asked again in a random order, the changed files and some "
            "others alone, and some questions alone: an answer or trail that is not the same is order-dependent.\n",
            "| | |\n|---|---|",
            *(f"| {name} | {value} |" for name, value in rows),
            "\n| kind of edit | times |\n|---|---|",
            *(f"| {kind} | {tally.kinds[kind]:,} |" for kind in EDITS),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
