"""Processes that are killed at random moments: nothing is lost, and the next command leaves nothing behind.

    python -m bench.kills [--each N] [--seed S] [--only NAME]

Real commands (the first build, `build --full`, an update, `gc`, `rollback`, `publish`) run on a small repository, each
in a process of its own, which is killed (SIGKILL) at a moment drawn evenly from the time the command takes. Then:

- the builds that were published before open, and have the rows they had (but for those that `gc` was to drop);
- the same command, run again, works;
- a build on top of that has, row for row, what it has where nothing was killed, and that is equal to one from scratch;
- no process is left, nothing in the temporary directory, which is the command's own, nothing beside what was published,
  and no file in the state that no build and no log entry accounts for.

What is wrong is printed with the moment of the kill; the exit code is 1. A whole run writes bench/KILLS.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

from deltalake import DeltaTable
from pyspark.sql import SparkSession

import codeanatomy as ca
from bench.builds import CORPORA
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import FACTS, STORED_TABLES
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.query.publish import MANIFEST
from codeanatomy.store.builds import BuildRecord, current_build, list_builds
from codeanatomy.store.lease import hold_lease
from codeanatomy.store.location import locate_state
from codeanatomy.store.owners import OWNER_DIGESTS
from codeanatomy.store.retention import collect_garbage
from codeanatomy.store.state import OWN_FILES, State, open_state, state_exists
from codeanatomy.store.tables import data_files, read_arrow

RESULTS = Path(__file__).parent / "KILLS.md"
EACH = 20
PATIENCE = 20.0
"""Seconds that other processes of a command have to end after it was killed."""

_MARK = "CODEANATOMY_KILLS"
_PRELOAD = ("codeanatomy.extract", "codeanatomy.store.filewriter")
_LOG_FILES = re.compile(r"\d{20}(\.checkpoint[\w.]*\.parquet|\.json)|_last_checkpoint")

VERSIONS: tuple[Mapping[str, str], ...] = (
    {
        "shop/__init__.py": "from .cart import Cart\n",
        "shop/cart.py": "from .prices import price_of\n\nclass Cart:\n    def sum(self):\n        return price_of(1)\n",
        "shop/prices.py": "import decimal\n\n\ndef price_of(item):\n    return decimal.Decimal(item)\n",
        "run.py": "from shop import *\n\nCart().sum()\n",
    },
    {"shop/prices.py": "def price_of(item):\n    return item\n", "shop/extra.py": "x = 1\n"},
    {"shop/cart.py": "class Cart:\n    def total(self):\n        return 2\n"},
)
"""The repository, and what is written into it before each further build."""

EDITED: Mapping[str, str] = {
    "shop/prices.py": "from .extra import x\n\n\ndef price_of(item):\n    return x\n",
    "shop/more.py": "import os\n\n\ndef more():\n    return os.getcwd()\n",
}
"""What is written into it before an update that is killed."""


@dataclass(frozen=True)
class Command:
    """A command that is killed: its arguments, and what is done to the repository before."""

    arguments: Callable[[Scene], Sequence[str]]
    edits: Mapping[str, str] = field(default_factory=dict)
    first: bool = False
    """Whether there is no state yet."""
    drops: bool = False
    """Whether it is to drop builds."""


@dataclass(frozen=True)
class Scene:
    """A copy of the repository with its builds, and the temporary directory of the command."""

    home: Path

    @property
    def repo(self) -> Path:
        return self.home / "repo"

    @property
    def temporary(self) -> Path:
        return self.home / "tmp"

    @property
    def out(self) -> Path:
        return self.home / "out" / "graph"

    @property
    def state(self) -> State:
        return open_state(locate_state(self.repo, None, {}))

    def contents(self) -> dict[str, str]:
        """What names all rows of each build that is there."""
        return contents(self.state) if state_exists(locate_state(self.repo, None, {})) else {}

    @property
    def mark(self) -> str:
        """By which processes are known that the command started."""
        return f"{_MARK}={self.home.absolute()}"


COMMANDS: Mapping[str, Command] = {
    "first build": Command(lambda scene: ["build", str(scene.repo)], first=True),
    "build --full": Command(lambda scene: ["build", str(scene.repo), "--full"], EDITED),
    "update": Command(lambda scene: ["build", str(scene.repo)], EDITED),
    "gc": Command(lambda scene: ["gc", str(scene.repo), "--keep", "1"], drops=True),
    "rollback": Command(lambda scene: ["rollback", list_builds(scene.state)[0].build_id, str(scene.repo)]),
    "publish": Command(lambda scene: ["publish", str(scene.repo), "--out", str(scene.out)]),
}


@dataclass
class Tally:
    """What the kills of a command came to."""

    seconds: float = 0.0
    moments: list[float] = field(default_factory=list)
    finished: int = 0
    """Runs that were over before the moment came, and were started again."""
    published: int = 0
    """Kills after which the build was there already."""
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    """Kill, write and print; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=EACH, metavar="N", help=f"kills of each command ({EACH})")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="other moments")
    parser.add_argument("--only", choices=list(COMMANDS), action="append", help="only this command")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here")
    options = parser.parse_args()
    tallies: dict[str, Tally] = {}
    with open_engine(EngineSettings(preload=_PRELOAD)) as spark:
        home = CORPORA / "kills"
        shutil.rmtree(home, ignore_errors=True)
        template = prepared(home / "template", spark)
        for name in options.only or COMMANDS:
            chance = Random(f"{options.seed} {name}")
            tallies[name] = attacked(name, options.each, chance, template, home / "scene", spark)
        shutil.rmtree(home)
    report = _report(tallies)
    if options.out or (options.each >= EACH and not options.only):
        (options.out or RESULTS).write_text(report, encoding="utf-8")
    print(report)
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


def prepared(home: Path, spark: SparkSession) -> Scene:
    """A scene to copy: a build of every version, and a publication of the last."""
    scene = Scene(home)
    for version in VERSIONS:
        _write(scene.repo, version)
        ca.build(ca.BuildRequest(scene.repo, index="none"), spark=spark)
    scene.temporary.mkdir()
    _finish("publish", scene)
    return scene


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def attacked(name: str, kills: int, chance: Random, template: Scene, home: Path, spark: SparkSession) -> Tally:
    """Kill a command so many times, each time on a new copy of the scene."""
    tally = Tally()
    scene = _set_up(name, template, home)
    began = time.monotonic()
    tally.wrong += _finish(name, scene)
    tally.seconds = time.monotonic() - began
    tally.wrong += _unequal(scene, spark)
    sound = _rows(scene.state)
    while len(tally.moments) < kills:
        moment = chance.uniform(0, tally.seconds)
        scene = _set_up(name, template, home)
        before = scene.contents()
        if not killed(name, scene, moment):
            tally.finished += 1
            continue
        tally.moments.append(moment)
        after = scene.contents()
        tally.published += bool(after.keys() - before.keys())
        wrong = list(lost(before, after, drops=COMMANDS[name].drops))
        if not (scene.out / MANIFEST).is_file():
            wrong.append("what was published before is lost")
        wrong += _finish(name, scene)
        wrong += lost(before, scene.contents(), drops=COMMANDS[name].drops)
        wrong += left_behind(scene)
        wrong += _otherwise(sound, scene, spark)
        tally.wrong += [f"{name} killed after {moment:.2f} s: {each}" for each in wrong]
        told = f"{name} {len(tally.moments)}: killed after {moment:.2f} of {tally.seconds:.2f} s"
        print(f"{told}: {'; '.join(wrong) or 'fine'}", flush=True)
    return tally


def _set_up(name: str, template: Scene, home: Path) -> Scene:
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(template.home, home)
    scene = Scene(home)
    _write(scene.repo, COMMANDS[name].edits)
    if COMMANDS[name].first:
        shutil.rmtree(scene.repo / ".codeanatomy")
    return scene


def started(name: str, scene: Scene) -> subprocess.Popen[bytes]:
    """The command, in a process of its own."""
    environment = {
        **os.environ,
        "TMPDIR": str(scene.temporary.absolute()),
        "CODEANATOMY_INDEX": "none",
        _MARK: str(scene.home.absolute()),
    }
    command = [sys.executable, "-m", "codeanatomy.cli.main", *COMMANDS[name].arguments(scene), "--quiet"]
    # Into files, as a pipe would be held open by whatever outlives the command.
    with tempfile.TemporaryFile() as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def killed(name: str, scene: Scene, moment: float) -> bool:
    """Whether the command was still running at the moment, when it was killed."""
    process = started(name, scene)
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def _finish(name: str, scene: Scene) -> list[str]:
    """Run the command to its end; what is wrong with that."""
    code = started(name, scene).wait()
    return [f"the next {name} ended with exit code {code}"] if code else []


def contents(state: State) -> dict[str, str]:
    """What names all rows of each build."""
    return {build.build_id: _digest(state, build) for build in list_builds(state)}


def _digest(state: State, build: BuildRecord) -> str:
    digest = sha256()
    for table in (FACTS, *STORED_TABLES, OWNER_DIGESTS):
        rows = read_arrow(state, table, build.tables[table.name].version).to_pylist()
        digest.update(f"{table.name}\n{sorted(map(repr, rows))}\n".encode())
    return digest.hexdigest()


def lost(before: Mapping[str, str], now: Mapping[str, str], *, drops: bool) -> Iterator[str]:
    """The builds that are not there any more, though they should, or have other rows."""
    wanted = set(list(before)[-1:]) if drops else set(before)
    for build_id in sorted(wanted - now.keys()):
        yield f"build {build_id} is lost"
    for build_id in sorted(before.keys() & now.keys()):
        if before[build_id] != now[build_id]:
            yield f"build {build_id} has other rows"


def _unequal(scene: Scene, spark: SparkSession) -> Iterator[str]:
    """How a build of what is there now differs from one from scratch."""
    request = ca.BuildRequest(scene.repo, index="none")
    ca.build(request, spark=spark)
    for name, table in ca.verify(request, spark=spark).tables.items():
        if not table.equal:
            yield f"{name} is not that of a build from scratch"


def _otherwise(sound: Mapping[str, Collection[str]], scene: Scene, spark: SparkSession) -> Iterator[str]:
    """How a build of what is there now differs from that of the same tree where nothing was killed."""
    ca.build(ca.BuildRequest(scene.repo, index="none"), spark=spark)
    for name, rows in _rows(scene.state).items():
        if rows != sound[name]:
            yield f"{name} is not that of a build that was not killed"


def _rows(state: State) -> dict[str, Collection[str]]:
    """What the last build has in each table; facts are a set, as those of other trees may be among them."""
    build = current_build(state)

    def texts(table: Dataset) -> list[str]:
        return sorted(map(repr, read_arrow(state, table, build.tables[table.name].version).to_pylist()))

    return {FACTS.name: set(texts(FACTS)), **{table.name: texts(table) for table in (*STORED_TABLES, OWNER_DIGESTS)}}


# What is left behind.


def left_behind(scene: Scene) -> Iterator[str]:
    """What nobody will ever remove: processes, temporary files, files of the state or beside what was published."""
    for process in processes(scene.mark, PATIENCE):
        yield f"a process is left: {process}"
    for place in sorted(scene.temporary.iterdir()):
        yield f"{place.name} is left in the temporary directory"
    if scene.out.parent.exists():
        for place in sorted({*scene.out.parent.iterdir()} - {scene.out}):
            yield f"{place.name} is left beside what was published"
    for path in unaccounted(scene.state):
        yield f"{path} is left in the state"


def processes(mark: str, patience: float) -> list[str]:
    """The processes that have the mark in their environment, once those that are about to end had time to."""
    ends = time.monotonic() + patience
    while (found := list(_marked(mark))) and time.monotonic() < ends:
        time.sleep(0.2)
    return found


def _marked(mark: str) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield f"{process.name} {Path(words[0]).name}"
        except OSError:  # it ended, or belongs to somebody else
            continue


def unaccounted(state: State) -> list[str]:
    """The files of a local state that are there after a garbage collection and that nothing accounts for."""
    with hold_lease(state.location) as lease:
        collect_garbage(state, lease, keep=10)
    builds = list_builds(state)
    root = state.location.local_path
    known = {str(file) for file in _data_files(state, builds)}
    names = {build.build_id for build in builds}
    found = (path for path in sorted(root.rglob("*")) if path.is_file() or path.is_symlink())
    return [
        path.relative_to(root).as_posix()
        for path in found
        if str(path) not in known and not _is_expected(path.relative_to(root), names)
    ]


def _data_files(state: State, builds: Collection[BuildRecord]) -> Iterator[Path]:
    folders = sorted(Path(state.location.tables_uri).iterdir())
    for table in (each for each in folders if DeltaTable.is_deltatable(str(each))):
        versions = {build.tables[table.name].version for build in builds if table.name in build.tables}
        for version in {*versions, DeltaTable(table).version()}:
            yield from map(Path, data_files(state, table.name, version))


def _is_expected(path: Path, builds: Collection[str]) -> bool:
    top, *inside = path.parts
    if not inside:
        return top in OWN_FILES
    if top == "tables":
        return len(inside) == 3 and inside[1] == "_delta_log" and _LOG_FILES.fullmatch(inside[2]) is not None
    return top == "runs" and inside[0] in builds


def _report(tallies: Mapping[str, Tally]) -> str:
    rows = [
        f"| `{name}` | {tally.seconds:.1f} | {len(tally.moments)} "
        f"| {min(tally.moments):.1f} to {max(tally.moments):.1f} | {tally.published} | {len(tally.wrong)} |"
        for name, tally in tallies.items()
        if tally.moments
    ]
    wrong = [f"- {each}" for tally in tallies.values() for each in tally.wrong]
    return "\n".join(
        [
            "# Processes that are killed\n",
            f"`{' '.join(['python -m bench.kills', *sys.argv[1:]])}` on {os.cpu_count()} cores, Python "
            f"{platform.python_version()}. Each command is killed (SIGKILL) at moments drawn evenly from the time it "
            "takes. After each kill the published builds have the rows they had, the same command works, nothing is "
            "left of the killed one, and a build on top has the rows that it has where nothing was killed, which are "
            "those of a build from scratch; else something is wrong.\n",
            "| command | seconds | kills | after seconds | with the build published | wrong |",
            "|---|---|---|---|---|---|",
            *rows,
            *(["", *wrong] if wrong else []),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
