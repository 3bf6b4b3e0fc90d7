"""Real histories, replayed: is a build on top of the last one, row for row, a build from scratch?

    python -m bench.history [--only NAME] [--releases N] [--small-steps N] [--sample]
                            [--index pyrefly|scip] [--strategy NAME] [--through engine|watch] [--resume]
    python -m bench.history --git PATH [--commits N]

Consecutive releases of real packages (`releases.txt`), or the last commits of a git repository, are put into one
directory one after the other, as an upgrade or a checkout would do it: files that stay the same are not touched. With
`--small-steps`, each release is reached in so many steps that change a few places each, as commits do. After
each, the graph is built on top of the last build, and `verify` builds it from scratch and compares every table. The
first version of a history has nothing to build on: it is built and not compared. Digests are carried from build to
build, so the rows on disk are read back as well and held against what the build says of them.

Everything runs in one process that stays (`pipeline/warm.py`); builds from scratch use nothing of what it keeps. With
`--through`, builds are made by commands through an engine process, or by a `watch` that runs while files are written:
it may build several times on the way, and the figures are those of the last build.
`ratio` is the build on top of the last one to the build from scratch, without the time to publish the latter. Any
difference ends in exit code 1, the first differing rows are shown, and the tree and the state are kept. A whole run
writes bench/HISTORY.md; a part of one is only printed, unless `--out` is given. A run starts clean; with `--resume`,
histories that a killed run of the same code has finished are not replayed again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import codeanatomy as ca
from bench import commands
from bench.builds import CORPORA
from bench.resolution import scip_python
from bench.versions import RELEASES, Release, Version, commits, fetch, in_small_steps, put, releases, unpacked
from codeanatomy.catalogue.tables import DOCUMENTS, SCIP_DOCUMENTS, STORED_TABLES
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline.inputs import gather
from codeanatomy.pipeline.warm import Warm
from codeanatomy.repo.git import head_commit
from codeanatomy.store.builds import current_build
from codeanatomy.store.digests import NO_ROWS, digest_from, digest_sums, hash_columns
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import open_state
from codeanatomy.store.tables import read_table

RESULTS = Path(__file__).parent / "HISTORY.md"
SCRATCH = CORPORA / "history"
SAMPLE = ("flask", 4)
COMMITS = 30

_PRELOAD = ("codeanatomy.extract", "codeanatomy.store.filewriter")
_CHANGES = ("added", "modified", "deleted", "renamed")

Way = Callable[[ca.BuildRequest, "Warm"], AbstractContextManager[Callable[[], object]]]
"""How builds are made: gives a function that brings the graph of a request up to date."""


@dataclass(frozen=True)
class Step:
    """A version, built on top of the one before it and compared with a build from scratch."""

    version: str
    mode: str
    files: int
    added: int
    modified: int
    deleted: int
    renamed: int
    impacted: int
    rebuilt: int
    unchanged_rows: int
    """Files that were rebuilt and came out with the rows they had."""
    seconds: float
    full_seconds: float
    differing: int
    """Rows that only one of the two builds has."""
    misstated: tuple[str, ...]
    """Tables whose rows on disk are not those the build says they are."""

    @property
    def equal(self) -> bool:
        return not self.differing and not self.misstated

    @property
    def changed(self) -> int:
        return self.added + self.modified + self.deleted + self.renamed

    @property
    def impacted_share(self) -> float:
        return self.impacted / self.files if self.files else 0.0

    @property
    def ratio(self) -> float:
        return self.seconds / self.full_seconds


@dataclass(frozen=True)
class Replay:
    """A history that was replayed."""

    name: str
    first: str
    """The version the others build on."""
    steps: tuple[Step, ...]

    @property
    def equal(self) -> bool:
        return all(step.equal for step in self.steps)


@dataclass(frozen=True)
class History:
    """Versions of one tree, in order; they are read when they are needed."""

    name: str
    versions: Callable[[], Iterator[Version]]


class FullClock:
    """Listens to a build from scratch: the time from its start to its publication."""

    began: float | None = None
    seconds = 0.0

    def stage(self, name: str) -> None:
        now = time.monotonic()
        self.began = self.began or now
        self.seconds = now - self.began

    def advance(self, done: int, total: int, unit: str) -> None:
        pass


_FIGURES = ("steps", "files", "changed", "impacted", "ratio", "seconds", "from scratch", "differing rows")
_COLUMNS: Mapping[str, Callable[[Step], str]] = {
    "version": lambda step: step.version,
    "files": lambda step: f"{step.files:,}",
    "added": lambda step: str(step.added),
    "modified": lambda step: str(step.modified),
    "deleted": lambda step: str(step.deleted),
    "renamed": lambda step: str(step.renamed),
    "impacted": lambda step: str(step.impacted),
    "rebuilt": lambda step: str(step.rebuilt),
    "to the same rows": lambda step: str(step.unchanged_rows),
    "mode": lambda step: step.mode,
    "seconds": lambda step: f"{step.seconds:.1f}",
    "from scratch": lambda step: f"{step.full_seconds:.1f}",
    "ratio": lambda step: f"{step.ratio:.2f}",
    "differing rows": lambda step: f"{step.differing:,}",
}


def main() -> int:
    """Replay what was asked for, write and print; 1 if anything differs."""
    options = _options()
    if options.index == "scip":  # found on PATH by builds
        os.environ["PATH"] = f"{Path(scip_python()).parent}{os.pathsep}{os.environ['PATH']}"
    missing: list[str] = []
    histories = [_of_git(options.git, options.commits)] if options.git else list(_of_releases(options, missing))
    request = {"index": options.index, **({"strategy": options.strategy} if options.strategy else {})}
    key = _key(options)
    finished = _finished(key) if options.resume else {}
    replays = []
    with open_engine(EngineSettings(preload=_PRELOAD)) as spark:
        warm = Warm(spark)
        for history in histories:
            if history.name in finished:
                _say(f"{history.name}: replayed before")
                replays.append(finished[history.name])
                continue
            home, way = SCRATCH / history.name, _WAYS[options.through]
            replays.append(replay(history, home, request, warm, way=way, session_options=True))
            _remember(replays[-1], key)
    report = _report(replays, missing)
    out = options.out or (RESULTS if _is_whole(options) else None)
    if out:
        out.write_text(report, encoding="utf-8")
    print(report)
    return 0 if replays and all(each.equal for each in replays) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(releases()), action="append", help="only this package")
    parser.add_argument("--releases", type=int, metavar="N", help="only the first N releases of each package")
    parser.add_argument(
        "--small-steps", type=int, default=1, metavar="N", help="reach each release in N steps, all but the last small"
    )
    parser.add_argument("--sample", action="store_true", help=f"{SAMPLE[1]} releases of {SAMPLE[0]}")
    parser.add_argument(
        "--git", type=Path, metavar="PATH", help="replay commits of this repository, which is only read"
    )
    parser.add_argument("--commits", type=int, default=COMMITS, metavar="N", help=f"so many of them ({COMMITS})")
    parser.add_argument("--index", default="none", help="the semantic index to build with (none)")
    parser.add_argument("--strategy", help="the strategy to build with")
    parser.add_argument("--through", choices=list(_WAYS), default="process", help="who builds (process)")
    parser.add_argument("--resume", action="store_true", help="keep what a killed run of the same code has finished")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here")
    options = parser.parse_args()
    if options.sample:
        options.only, options.releases = [SAMPLE[0]], SAMPLE[1]
    return options


def _is_whole(options: argparse.Namespace) -> bool:
    part = options.only or options.releases or options.git
    return not (part or options.small_steps > 1 or options.through != "process")


def _of_releases(options: argparse.Namespace, missing: list[str]) -> Iterator[History]:
    """The packages asked for, fetched; `missing` is told what could not be."""
    for name, listed in releases().items():
        if options.only and name not in options.only:
            continue
        there = [each for each in listed[: options.releases] if _there(each, missing)]
        if len(there) > 1:
            yield History(name, partial(_unpacked, there, options.small_steps))


def _unpacked(fetched: Sequence[Release], steps: int) -> Iterator[Version]:
    return in_small_steps((unpacked(each.version, fetch(each)) for each in fetched), steps)


def _there(release: Release, missing: list[str]) -> bool:
    try:
        fetch(release)
    except subprocess.CalledProcessError as error:
        missing.append(f"{release.name} {release.version}")
        _say(f"{missing[-1]}: not fetched: {(error.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return False
    return True


def _of_git(repository: Path, count: int) -> History:
    return History(f"git-{repository.resolve().name}", partial(commits, repository, count))


@contextmanager
def _in_process(asked: ca.BuildRequest, warm: Warm) -> Iterator[Callable[[], object]]:
    yield partial(warm.build, asked)


@contextmanager
def _by_commands(asked: ca.BuildRequest, warm: Warm) -> Iterator[Callable[[], object]]:
    with commands.engine() as environment:
        yield partial(commands.run, "build", *_place(asked), "--index", asked.index, environment=environment)


@contextmanager
def _by_watching(asked: ca.BuildRequest, warm: Warm) -> Iterator[Callable[[], object]]:
    with (
        commands.engine() as environment,
        commands.watching(*_place(asked), index=asked.index, environment=environment) as wait,
    ):
        yield wait


def _place(asked: ca.BuildRequest) -> tuple[object, ...]:
    return asked.repo, "--state", asked.state


_WAYS: Mapping[str, Way] = {"process": _in_process, "engine": _by_commands, "watch": _by_watching}


def replay(
    history: History,
    home: Path,
    request: Mapping[str, Any],
    warm: Warm,
    *,
    way: Way = _in_process,
    session_options: bool = False,
) -> Replay:
    """Build every version in `home` on top of the last and compare; `home` is kept only if something differs.

    `session_options`: have the session run as one that was opened for a tree of this size.
    """
    shutil.rmtree(home, ignore_errors=True)
    tree = home / "tree"
    tree.mkdir(parents=True)
    asked = ca.BuildRequest(tree, state=str(home / "state"), **request)
    versions = history.versions()
    before = first = next(versions)
    put(tree, None, first)
    if session_options:
        _tune(warm.spark, asked)
    steps: list[Step] = []
    with way(asked, warm) as build:
        build()
        built = _last_build(asked)
        _say(f"{history.name} {first.name}: {built['files']['total']} files, full {built['seconds']:.1f} s")
        for version in versions:
            put(tree, before, version)
            step, verified = _step(version.name, asked, build, warm.spark)
            _say(f"{history.name} {_told(step)}")
            if all(earlier.equal for earlier in steps):
                _show(verified)
            steps.append(step)
            before = version
    done = Replay(history.name, first.name, tuple(steps))
    if done.equal:
        shutil.rmtree(home)
    return done


def _tune(spark: SparkSession, asked: ca.BuildRequest) -> None:
    inputs = gather(asked, locate_state(asked.repo, asked.state, {}), None)
    for option, value in inputs.settings.sql_conf().items():
        spark.conf.set(option, value)


def _last_build(asked: ca.BuildRequest) -> dict[str, Any]:
    return ca.builds(ca.Repository(asked.repo, asked.state))[0].as_json()


def _step(
    version: str, asked: ca.BuildRequest, build: Callable[[], object], spark: SparkSession
) -> tuple[Step, ca.Verification]:
    before = _last_build(asked)
    build()
    last = _last_build(asked)
    if last["build_id"] == before["build_id"]:
        files = {**dict.fromkeys(last["files"], 0), "total": last["files"]["total"]}
        last |= {"mode": "noop", "files": files, "seconds": 0.0}
    clock = FullClock()
    verified = ca.verify(asked, listener=clock, spark=spark)
    files = last["files"]
    step = Step(
        version=version,
        mode=last["mode"],
        files=files["total"],
        added=files["added"],
        modified=files["modified"],
        deleted=files["deleted"],
        renamed=files["renamed"],
        impacted=files["impacted"],
        rebuilt=files["rebuilt"],
        unchanged_rows=files.get("unchanged_rows", 0),
        seconds=last["seconds"],
        full_seconds=clock.seconds,
        differing=sum(table.only_incremental + table.only_full for table in verified.tables.values()),
        misstated=tuple(_misstated(asked, spark)),
    )
    return step, verified


def _misstated(asked: ca.BuildRequest, spark: SparkSession) -> Iterator[str]:
    """Tables whose rows, read from disk, have another digest than the build says."""
    state = open_state(locate_state(asked.repo, asked.state, {}))
    pins = current_build(state).tables
    digested = {table: table for table in STORED_TABLES}
    if DOCUMENTS.name in pins:
        digested[DOCUMENTS] = SCIP_DOCUMENTS
    measured = [
        read_table(spark, state, table, pins[table.name].version)
        .select(F.lit(table.name).alias("table_name"), *hash_columns(rows))
        .groupBy("table_name")
        .agg(*digest_sums())
        for table, rows in digested.items()
    ]
    found = {row["table_name"]: digest_from(row) for row in reduce(DataFrame.unionAll, measured).collect()}
    for table in digested:
        if found.get(table.name, NO_ROWS) != pins[table.name].digest:
            yield table.name


def _told(step: Step) -> str:
    counts = ", ".join(f"{count} {kind}" for kind in _CHANGES if (count := getattr(step, kind))) or "no change"
    outcome = f"{step.differing:,} ROWS DIFFER" if step.differing else "equal"
    if step.misstated:
        outcome += f", STORED OTHER ROWS THAN STATED: {', '.join(step.misstated)}"
    return (
        f"{step.version}: {step.files} files, {counts}; {step.impacted} impacted, {step.rebuilt} rebuilt "
        f"({step.unchanged_rows} to the same rows); {step.mode} {step.seconds:.1f} s, from scratch "
        f"{step.full_seconds:.1f} s, ratio {step.ratio:.2f}; {outcome}"
    )


def _show(verified: ca.Verification) -> None:
    for name, table in verified.tables.items():
        if not table.equal:
            _say(f"  {name}: {table.only_incremental:,} rows only in the build, {table.only_full:,} only from scratch")
            for row in table.examples:
                _say("    " + ", ".join(f"{column}={value!r}" for column, value in row.items() if value is not None))


def _report(replays: Sequence[Replay], missing: Sequence[str]) -> str:
    asked = (Path(word).name if "/" in word else word for word in sys.argv[1:])
    command = " ".join(["python -m bench.history", *asked])
    steps = [step for each in replays for step in each.steps]
    everything = [f"all {len(replays)}", f"{len(steps) + len(replays)} versions", *_figures(steps)]
    parts = [
        "# Real histories, replayed\n",
        f"`{command}` on {os.cpu_count()} cores, Python {platform.python_version()}, one warm session. Each version is "
        "built on top of the one before it and compared, row for row, with a build from scratch; that is a step. The "
        "first of a history is what the second builds on. Times vary with the machine; ratios say more.\n",
        *([f"Not fetched, and left out: {', '.join(missing)}.\n"] if missing else []),
        *_header(["history", "versions", *_FIGURES]),
        *(_line([each.name, _span(each), *_figures(each.steps)]) for each in replays),
        _line(everything),
        "\nFiles are the most that a version has; changed files, the impacted share of all files and the ratio are "
        "medians over the steps; seconds are sums over them.\n",
        *(
            f"{each.name} {step.version}: what is stored is not what the build says of {', '.join(step.misstated)}.\n"
            for each in replays
            for step in each.steps
            if step.misstated
        ),
    ]
    for each in replays:
        parts += [f"## {each.name}\n", *_header(list(_COLUMNS))]
        parts += [_line([show(step) for show in _COLUMNS.values()]) for step in each.steps]
        parts.append("")
    return "\n".join(parts)


def _figures(steps: Sequence[Step]) -> list[str]:
    """What `_FIGURES` name."""
    if not steps:
        return ["0", *[""] * (len(_FIGURES) - 1)]
    return [
        str(len(steps)),
        f"{max(step.files for step in steps):,}",
        f"{median(step.changed for step in steps):g}",
        f"{median(step.impacted_share for step in steps):.1%}",
        f"{median(step.ratio for step in steps):.2f}",
        f"{sum(step.seconds for step in steps):,.0f}",
        f"{sum(step.full_seconds for step in steps):,.0f}",
        f"{sum(step.differing for step in steps):,}",
    ]


def _span(each: Replay) -> str:
    last = each.steps[-1].version if each.steps else each.first
    return f"{len(each.steps) + 1}: {each.first} to {last}"


def _header(names: Sequence[str]) -> list[str]:
    return [_line(names), "|" + "---|" * len(names)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _finished(key: str) -> dict[str, Replay]:
    """What an earlier run of the same code, asked for the same, has replayed."""
    found = {}
    for file in SCRATCH.glob("*.json"):
        known = json.loads(file.read_text(encoding="utf-8"))
        if known["key"] == key:
            steps = (Step(**{**step, "misstated": tuple(step["misstated"])}) for step in known["steps"])
            found[known["name"]] = Replay(known["name"], known["first"], tuple(steps))
    return found


def _remember(done: Replay, key: str) -> None:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    part = SCRATCH / f"{done.name}.part"
    part.write_text(json.dumps({"key": key, **asdict(done)}), encoding="utf-8")
    part.rename(part.with_suffix(".json"))


def _key(options: argparse.Namespace) -> str:
    """Names the code and what it is asked for."""
    package = Path(ca.__file__).parent
    sources = [*sorted(package.rglob("*.py")), *sorted(package.rglob("*.sql")), Path(__file__), RELEASES]
    head = head_commit(options.git) if options.git else None
    wanted = (
        (options.index, options.strategy, options.through),
        (options.releases, options.small_steps, head, options.commits),
    )
    asked = repr(wanted).encode()
    return hashlib.sha256(b"\0".join([asked, *(file.read_bytes() for file in sources)])).hexdigest()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
