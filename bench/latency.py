"""How long a change takes until it is in the graph, for people and for programs, next to other tools.

    python -m bench.latency [--only flask] [--rounds 3] [--ways cold warm process peers] [--index pyrefly] [--out FILE]

Three trees (source releases from PyPI, as git repositories), and the changes that people make to them. Ways to build:

    cold      a process of the command line for each build, no engine process
    warm      the same, through an engine process (`codeanatomy engine start`)
    process   one Python process that stays, with one Spark session
    peers     other tools that make a graph of Python code, installed from npm below `.corpora/peers`

Every way has its own copy of the tree; in each round all of them see the same changes, in turns, each on top of those
before it. Builds have no type index unless one is asked for. Commands that only read are measured after the no-op.
Only times are compared, not what the graphs of other tools hold; scip-python has no updates, so only its whole index is
measured. Writes bench/LATENCY.md (with an index, bench/LATENCY-INDEX.md): ratios first, for the seconds are the
machine's.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import commands
from bench.builds import CORPORA, source_release
from bench.resolution import CRASHES_SCIP

RESULTS = Path(__file__).parent / "LATENCY.md"
INDEX_RESULTS = RESULTS.with_name("LATENCY-INDEX.md")
FULL, NOOP, SWITCH = "full", "no-op", "branch switch"
PEERS = CORPORA / "peers"
NO_PACKAGES = PEERS / "no-packages.json"
"""What scip-python is told of installed packages: that there are none."""
LINE_OF_OUTPUT = 160
GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")


@dataclass(frozen=True)
class Tree:
    """A repository in two releases, and where it is changed: (path, text) of what is replaced or added to."""

    name: str
    releases: tuple[str, str]
    function: tuple[str, str]
    statement: str  # of the function's body, at the end of which another is added
    few: tuple[str, str]
    many: tuple[str, str]
    deleted: str
    called: str

    @property
    def questions(self) -> dict[str, tuple[str, ...]]:
        """Commands that only read."""
        return {
            "`status`": ("status",),
            "`sql`": ("sql", "SELECT count(*) FROM cpg_edges"),
            "`callers`": ("callers", self.called),
        }

    def changes(self, number: int) -> dict[str, Callable[[Path], None]]:
        """What is done to the tree, in this order, in one round."""
        path, function = self.function
        folder = path.rpartition("/")[0]
        return {
            FULL: _nothing,
            NOOP: _nothing,
            "comment": lambda root: _append(root / path, f"\n# comment {number}\n"),
            "body": lambda root: _replace(root / path, self.statement, f"{self.statement}; seen = {number}"),
            "signature": lambda root: _replace(root / path, function, f"{function}extra_{number}, "),
            "rename, few files": lambda root: _rename(root, self.few, number),
            "rename, many files": lambda root: _rename(root, self.many, number),
            "new file": lambda root: (root / f"{folder}/added_{number}.py").write_text("import os\nprint(os.sep)\n"),
            "deleted file": lambda root: (root / self.deleted).unlink(),
            SWITCH: lambda root: _switch(root, "other"),
        }


TREES = (
    Tree(
        "flask",
        ("3.0.3", "3.1.0"),
        ("src/flask/helpers.py", "def get_flashed_messages(\n    "),
        "flashes = request_ctx.flashes",
        ("src/flask/helpers.py", "def get_load_dotenv("),
        ("src/flask/app.py", "class Flask("),
        "src/flask/debughelpers.py",
        "url_for",
    ),
    Tree(
        "scrapy",
        ("2.12.0", "2.13.0"),
        ("scrapy/utils/misc.py", "def md5sum("),
        "m = hashlib.md5()",
        ("scrapy/utils/python.py", "def is_listlike("),
        ("scrapy/spiders/__init__.py", "class Spider("),
        "scrapy/utils/ftp.py",
        "md5sum",
    ),
    Tree(
        "django",
        ("5.2.7", "5.2.8"),
        ("django/utils/text.py", "def slugify("),
        "value = str(value)",
        ("django/utils/html.py", "def linebreaks("),
        ("django/db/models/base.py", "\n    def save("),
        "django/utils/termcolors.py",
        "slugify",
    ),
)


def _nothing(root: Path) -> None:
    pass


def _append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    if old not in text:
        raise ValueError(f"{file} has no {old!r}")
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def _rename(root: Path, where: tuple[str, str], number: int) -> None:
    path, text = where
    _replace(root / path, text, f"{text[:-1]}_{number}{text[-1]}")


def _switch(root: Path, branch: str) -> None:
    subprocess.run([*GIT, "checkout", "--quiet", "--force", branch], cwd=root, check=True)


@dataclass(frozen=True)
class Built:
    """One build: seconds, and how many files were rebuilt, if that is told."""

    seconds: float
    rebuilt: int | None = None


@dataclass(frozen=True)
class Way:
    """A way to bring a graph up to date: what forgets it, and what builds or updates it."""

    name: str
    forget: Callable[[Path], None]
    build: Callable[[Path], Built]
    updates: bool = True
    ask: Callable[[Path, Sequence[str]], Built] | None = None


@dataclass
class Report:
    """What was measured, with which index, and what could not be."""

    index: str
    times: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    rebuilt: dict[tuple[str, str], int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def note(self, tree: str, way: str, change: str, built: Built) -> None:
        """Add one build."""
        self.times.setdefault((tree, change, way), []).append(built.seconds)
        if built.rebuilt is not None:
            self.rebuilt[tree, change] = built.rebuilt
        print(f"{tree:8} {way:24} {change:20} {built.seconds:7.2f} s  {built.rebuilt or ''}", flush=True)


def main() -> None:
    """Measure all ways in turns, then print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[tree.name for tree in TREES])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--index", choices=("none", "pyrefly"), default="none")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here")
    options = parser.parse_args()
    report = Report(options.index)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="latency-")))
        ways = [way for each in options.ways for way in stack.enter_context(WAYS[each](report))]
        trees = [tree for tree in TREES if not options.only or tree.name in options.only]
        for tree in trees:
            _measure(tree, ways, options.rounds, scratch, report)
    text = _text(report, [tree.name for tree in trees], [way.name for way in ways], options.rounds)
    out = options.out or (RESULTS if options.index == "none" else INDEX_RESULTS)
    out.write_text(text, encoding="utf-8")
    print(text)


def _measure(tree: Tree, ways: Sequence[Way], rounds: int, scratch: Path, report: Report) -> None:
    origin = _repository(tree)
    roots = {way.name: scratch / tree.name / way.name.replace("/", "_") for way in ways}
    for root in roots.values():
        subprocess.run([*GIT, "clone", "--quiet", "--branch", "main", str(origin), str(root)], check=True)
        subprocess.run([*GIT, "branch", "--quiet", "other", "origin/other"], cwd=root, check=True)
    failed: set[str] = set()
    for number in range(rounds):
        for change, do in tree.changes(number).items():
            for way in ways:
                if way.name in failed or (change != FULL and not way.updates):
                    continue
                root = roots[way.name]
                if change == FULL:
                    _switch(root, "main")
                    subprocess.run([*GIT, "clean", "--quiet", "-fd"], cwd=root, check=True)
                    way.forget(root)
                do(root)
                try:
                    report.note(tree.name, way.name, change, way.build(root))
                except subprocess.CalledProcessError as error:
                    failed.add(way.name)
                    said = (error.stderr or error.stdout or b"").decode(errors="replace").strip().splitlines()
                    last = said[-1][:LINE_OF_OUTPUT] if said else "no output"
                    report.remarks.append(f"{way.name} failed on {tree.name} ({change}): {last}")
                    print(report.remarks[-1], flush=True)
            if change == NOOP:
                for question, words in tree.questions.items():
                    for way in ways:
                        if way.ask:
                            report.note(tree.name, way.name, question, way.ask(roots[way.name], words))


def _repository(tree: Tree) -> Path:
    """The two releases as branches `main` and `other` of one repository, without the file that crashes a peer."""
    origin = CORPORA / "latency" / tree.name
    if not (origin / ".git" / "done").exists():
        shutil.rmtree(origin, ignore_errors=True)
        origin.mkdir(parents=True)
        subprocess.run([*GIT, "init", "--quiet", "--initial-branch", "main"], cwd=origin, check=True)
        for branch, version in zip(("main", "other"), tree.releases, strict=True):
            if branch != "main":
                subprocess.run([*GIT, "checkout", "--quiet", "-b", branch], cwd=origin, check=True)
                subprocess.run([*GIT, "rm", "--quiet", "-r", "."], cwd=origin, check=True)
            ignored = shutil.ignore_patterns(".codeanatomy")
            shutil.copytree(source_release(tree.name, version), origin, dirs_exist_ok=True, ignore=ignored)
            (origin / CRASHES_SCIP).unlink(missing_ok=True)
            subprocess.run([*GIT, "add", "--all", "--force"], cwd=origin, check=True)
            subprocess.run([*GIT, "commit", "--quiet", "--message", version], cwd=origin, check=True)
        (origin / ".git" / "done").touch()
    return origin.absolute()


def _state(root: Path) -> Path:
    """Beside the tree, so that no other tool sees it."""
    return root.with_name(f"{root.name}.state")


def _forget_state(root: Path) -> None:
    shutil.rmtree(_state(root), ignore_errors=True)


def _command_line(name: str, index: str, environment: Mapping[str, str]) -> Way:
    """Builds by a process of the command line."""

    def build(root: Path) -> Built:
        began = time.monotonic()
        result = commands.run("build", root, "--state", _state(root), "--index", index, environment=environment)
        return Built(time.monotonic() - began, result["files"]["rebuilt"])

    def ask(root: Path, words: Sequence[str]) -> Built:
        began = time.monotonic()
        commands.run(*words, root, "--state", _state(root), environment=environment)
        return Built(time.monotonic() - began)

    return Way(name, _forget_state, build, ask=ask)


@contextmanager
def _cold(report: Report) -> Iterator[list[Way]]:
    yield [_command_line("cold command", report.index, commands.NO_ENGINE)]


@contextmanager
def _warm(report: Report) -> Iterator[list[Way]]:
    with commands.engine() as environment:
        yield [_command_line("warm command", report.index, environment)]


@contextmanager
def _process(report: Report) -> Iterator[list[Way]]:
    from codeanatomy import BuildRequest  # noqa: PLC0415 - the other ways load no Spark here
    from codeanatomy.engine.session import open_engine  # noqa: PLC0415
    from codeanatomy.engine.settings import EngineSettings  # noqa: PLC0415
    from codeanatomy.pipeline.warm import Warm  # noqa: PLC0415

    settings = EngineSettings(long_run=True, preload=("codeanatomy.extract", "codeanatomy.store.filewriter"))
    with open_engine(settings) as spark, Warm(spark) as warm:

        def built(root: Path) -> Built:
            began = time.monotonic()
            result = warm.build(BuildRequest(root, state=str(_state(root)), index=report.index))
            return Built(time.monotonic() - began, result.files["rebuilt"])

        yield [Way("in process", _forget_state, built)]


@dataclass(frozen=True)
class Peer:
    """A tool on npm: how it makes its graph for the first time, and how it brings it up to date."""

    package: str
    first: tuple[str, ...]
    again: tuple[str, ...] | None
    keeps: str

    @property
    def home(self) -> Path:
        """Where it is installed."""
        return PEERS / self.package.replace("/", "_").replace("@", "_")

    def way(self) -> Way:
        """The installed tool; nothing of it is left running, and it reports to nobody."""
        program = next(self.home.absolute().glob("node_modules/.bin/" + self.package.rpartition("/")[2]))

        def build(root: Path) -> Built:
            arguments = self.again if self.again and (root / self.keeps).exists() else self.first
            quiet = {"CI": "1", "DO_NOT_TRACK": "1", "NO_COLOR": "1", "CODEGRAPH_TELEMETRY": "0"}
            began = time.monotonic()
            subprocess.run(
                [str(program), *arguments],
                cwd=root,
                check=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **quiet},
            )
            return Built(time.monotonic() - began)

        def forget(root: Path) -> None:
            for kept in root.glob(self.keeps):
                shutil.rmtree(kept) if kept.is_dir() else kept.unlink()

        return Way(self.package, forget, build, updates=self.again is not None)


OTHERS = (
    Peer("@optave/codegraph", ("build", "."), ("build", "."), ".codegraph"),
    Peer("@colbymchenry/codegraph", ("init", "--yes", "."), ("sync", "."), ".codegraph"),
    Peer(
        "@sourcegraph/scip-python",
        ("index", ".", "--project-name", "p", "--project-version", "1", "--environment", str(NO_PACKAGES.absolute())),
        None,
        "index.scip",
    ),
)


@contextmanager
def _peers(report: Report) -> Iterator[list[Way]]:
    PEERS.mkdir(parents=True, exist_ok=True)
    NO_PACKAGES.write_text("[]")
    found = []
    for peer in OTHERS:
        try:
            if not peer.home.exists():
                peer.home.mkdir(parents=True)
                command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(peer.home), peer.package]
                subprocess.run(command, check=True, capture_output=True)
            found.append(peer.way())
        except (OSError, StopIteration, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or str(error).encode() or b"no program in it"
            line = said.decode(errors="replace").strip().splitlines()[0][:LINE_OF_OUTPUT]
            report.remarks.append(f"{peer.package}: not installed, {line}")
            shutil.rmtree(peer.home, ignore_errors=True)
    yield found


WAYS: Mapping[str, Callable[[Report], AbstractContextManager[list[Way]]]] = {
    "cold": _cold,
    "warm": _warm,
    "process": _process,
    "peers": _peers,
}


def _text(report: Report, trees: Sequence[str], ways: Sequence[str], rounds: int) -> str:
    lines = [
        "# Latency: from a change to the graph\n",
        f"`make bench-latency`, {rounds} rounds in turns on {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, index: {report.index}; load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f}. Trust the ratios.\n",
        *(f"- {remark}" for remark in report.remarks),
        *([""] if report.remarks else []),
    ]
    for tree in trees:
        present = [way for way in ways if any(key[0] == tree and key[2] == way for key in report.times)]
        changes = list(dict.fromkeys(key[1] for key in report.times if key[0] == tree))
        header = f"| | files rebuilt | {' | '.join(present)} |"
        rule = "|---|---" + "|---" * len(present) + "|"
        lines += [f"## {tree}\n", f"Medians, as ratios to {present[0]}:\n", header, rule]
        lines += [_row(report, tree, change, present, _ratio) for change in changes]
        lines += ["\nSeconds, median (best):\n", header, rule]
        lines += [_row(report, tree, change, present, _seconds) for change in changes]
        lines.append("")
    return "\n".join(lines)


def _row(
    report: Report, tree: str, change: str, ways: Sequence[str], cell: Callable[[list[float], list[float]], str]
) -> str:
    base = report.times.get((tree, change, ways[0]), [])
    cells = [cell(report.times.get((tree, change, way), []), base) for way in ways]
    return f"| {change} | {report.rebuilt.get((tree, change), '')} | {' | '.join(cells)} |"


def _ratio(times: list[float], base: list[float]) -> str:
    return f"{median(times) / median(base):.2f}" if times and base else ""


def _seconds(times: list[float], base: list[float]) -> str:
    return f"{median(times):.2f} ({min(times):.2f})" if times else ""


if __name__ == "__main__":
    main()
