"""The call graph against calls that happened: which of them it has, and which of its calls were seen.

python -m bench.accuracy.dynamic [--only NAME] [--misses N] [--unconfirmed N] [--json FILE] [--observe]

The test suites of a few small packages are run, in a process and a virtual environment of their own, under a profiler
(`tracer`). An observed call is a caller, a callee and a line; caller and callee are functions of the unpacked release,
its tests included. **Recall** is the share of the observed calls that the graph has, by the form of the call. Functions
that code outside the release calls back are no calls of the release: they are told, and not counted.

A suite does not run every line in every way, so an unseen call need not be wrong. **Confirmed** is, among the graph's
calls on lines whose code ran and made calls, the share that was observed: a lower bound of its precision.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import codeanatomy as ca
from bench.accuracy import tracer
from bench.accuracy.forms import Form, SourceFile
from bench.builds import CORPORA
from codeanatomy.repo.modules import module_names

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_CALLS = "SELECT caller, callee, path, line, confidence, method FROM calls"
_NOT_COUNTED = frozenset({Form.BARE, Form.THROUGH_C})
_PARTS = ("package", "tests")
_ORDER = {form: place for place, form in enumerate(Form)}
_SECONDS = 600


@dataclass(frozen=True)
class Suite:
    """A source release with its tests, pinned."""

    name: str
    version: str
    sha256: str
    tests: str = "tests"

    @property
    def title(self) -> str:
        return f"{self.name}-{self.version}"


SUITES = (
    Suite("cachetools", "6.2.1", "3f391e4bd8f8bf0931169baf7456cc822705f4e2a31f840d218f445b9a854201"),
    Suite("packaging", "25.0", "d443872c98d677bf60f6a1f2f8c1cb748e8fe762d2bf9d3148b5599295b0fc4f"),
    Suite("boltons", "25.0.0", "e110fbdc30b7b9868cb604e3f71d4722dd8f4dcb4a5ddd06028ba8f1ab0b5ace"),
)


@dataclass(frozen=True, order=True)
class Call:
    """A call that happened; the lines are those it may be said to be on."""

    path: str
    line: int
    last_line: int
    caller: str
    callee: str
    form: Form


@dataclass(frozen=True)
class Row:
    """A call of the graph."""

    caller: str
    callee: str
    path: str
    line: int
    confidence: float
    method: str


@dataclass(frozen=True)
class Observed:
    """What a suite showed."""

    calls: tuple[Call, ...]
    active: frozenset[tuple[str, str, int]]
    """Caller, file and line of code that ran and made a call."""
    internal: frozenset[str]
    decorated: frozenset[str]
    callbacks: int
    """Functions that were called from outside the tree."""
    orphans: int
    """Generator functions that ran and whose caller was not seen."""
    externals: int
    """Distinct calls of functions outside the tree."""
    unnamed: int
    """Calls whose callee has no definition in the source: made by `exec`, or under a line that moved."""


@dataclass
class Tally:
    """So many, of which so many."""

    total: int = 0
    hits: int = 0

    def add(self, hit: bool) -> None:
        self.total += 1
        self.hits += hit

    @property
    def share(self) -> str:
        return f"{100 * self.hits / self.total:.1f} %" if self.total else ""


@dataclass
class Comparison:
    """A graph against what was observed."""

    recall: dict[Form, dict[str, Tally]] = field(default_factory=dict)
    """By form and by where the call comes from and goes to: `package`, `tests` or `package to tests`."""
    confirmed: dict[str, Tally] = field(default_factory=dict)
    """By method of resolution."""
    misses: list[Call] = field(default_factory=list)
    unconfirmed: list[Row] = field(default_factory=list)
    decorated: int = 0
    """Unconfirmed rows whose callee is decorated: what ran may be the wrapper."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], action="append", help="only this package")
    parser.add_argument("--misses", type=int, default=0, metavar="N", help="list N observed calls the graph lacks")
    parser.add_argument("--unconfirmed", type=int, default=0, metavar="N", help="list N calls that were not seen")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE")
    parser.add_argument("--observe", action="store_true", help="only run the suites; build no graph")
    options = parser.parse_args()
    results = {}
    for suite in SUITES:
        if options.only and suite.name not in options.only:
            continue
        tree = fetch(suite)
        observed = observe(tree, trace(suite, tree))
        comparison = compare(observed, [] if options.observe else rows_of(tree), suite.tests)
        results[suite.title] = {"observed": summary(observed), **as_json(comparison)}
        print(report(suite, observed, comparison, built=not options.observe))
        print(listing("Not in the graph", comparison.misses, 0 if options.observe else options.misses), end="")
        print(listing("Not seen", comparison.unconfirmed, options.unconfirmed), end="", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


def fetch(suite: Suite) -> Path:
    """The unpacked source release; pip checks the hash before it opens the archive."""
    root = CORPORA / suite.title
    if not root.exists():
        CORPORA.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CORPORA) as scratch:
            wanted = Path(scratch, "requirements.txt")
            wanted.write_text(f"{suite.name}=={suite.version} --hash=sha256:{suite.sha256}\n", encoding="utf-8")
            options = ["--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", str(wanted), "--dest", scratch]
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *options], check=True)
            archive = Path(scratch, f"{suite.title}.tar.gz")
            if hashlib.sha256(archive.read_bytes()).hexdigest() != suite.sha256:
                raise RuntimeError(f"{archive.name} is not the pinned release")
            with tarfile.open(archive) as members:
                members.extractall(scratch, filter="data")
            Path(scratch, suite.title).rename(root)
    return root


def trace(suite: Suite, tree: Path) -> dict[str, Any]:
    """What the tracer saw; a trace is kept for as long as nothing it depends on changes."""
    inputs = [Path(tracer.__file__).read_bytes(), _REQUIREMENTS.read_bytes(), repr((suite, sys.version)).encode()]
    digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:16]
    kept = CORPORA / "traces" / f"{suite.title}-{digest}.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        for old in kept.parent.glob(f"{suite.title}-*"):
            old.unlink()
        _run_suite(suite, tree, kept)
    result: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return result


def _run_suite(suite: Suite, tree: Path, kept: Path) -> None:
    out = kept.with_suffix(".part").absolute()
    command = [str(_interpreter()), tracer.__file__, ".", str(out), "-q", "-o", "addopts=", suite.tests]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode not in (0, 1) or not out.exists():
        raise RuntimeError(f"the tests of {suite.title} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    if done.returncode:
        print(f"some tests of {suite.title} fail:\n{done.stdout[-2000:]}", file=sys.stderr)
    out.rename(kept)


def _interpreter() -> Path:
    """The Python of the tests' own virtual environment."""
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = CORPORA / f"tests-venv-{digest}"
    python = home.absolute() / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(_REQUIREMENTS)]
        subprocess.run([str(python), "-m", "pip", "install", *options], check=True)
        ready.touch()
    return python


def observe(tree: Path, traced: Mapping[str, Any]) -> Observed:
    """A trace in the names of the graph."""
    files = _sources(tree)
    calls: dict[tuple[str, str, str, int], Call] = {}
    unnamed = 0
    for (path, span), (callee_path, *callee), direct in traced["calls"]:
        name = files[callee_path].callee(tracer.Callee(callee_path, *callee)) if callee_path in files else None
        if name is None:
            unnamed += 1
            continue
        form = files[path].form(tuple(span), name, direct)
        _keep(calls, _call(files[path], path, span, name, form))
    for (path, span), (home, qualname) in traced["classes"]:
        _keep(calls, _call(files[path], path, span, f"{files[home].module}.{qualname}", Form.BARE))
    active = {
        (files[path].owner(tuple(span)), path, line)
        for path, span in traced["executed"]
        for line in _range(*files[path].lines(tuple(span)))
    }
    active |= {(call.caller, call.path, line) for call in calls.values() for line in _range(call.line, call.last_line)}
    return Observed(
        calls=tuple(sorted(calls.values())),
        active=frozenset(active),
        internal=frozenset(name for file in files.values() for name in file.names),
        decorated=frozenset(name for file in files.values() for name in file.decorated),
        callbacks=len(traced["callbacks"]),
        orphans=len(traced["orphans"]),
        externals=len({(path, span[0], name) for (path, span), name in traced["externals"]}),
        unnamed=unnamed,
    )


def _sources(tree: Path) -> dict[str, SourceFile]:
    paths = sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*.py"))
    named = module_names(paths)
    modules = {name.module_fqn for name in named}
    return {
        name.path: SourceFile(name.module_fqn, (tree / name.path).read_bytes(), modules, name.is_init) for name in named
    }


def _call(file: SourceFile, path: str, span: Sequence[int], callee: str, form: Form) -> Call:
    first, last, start, end = span
    place = (first, last, start, end)
    return Call(path, *file.lines(place), file.owner(place), callee, form)


def _keep(calls: dict[tuple[str, str, str, int], Call], call: Call) -> None:
    """Of two forms on one line, the plainer is kept."""
    key = (call.caller, call.callee, call.path, call.line)
    if key not in calls or _ORDER[call.form] < _ORDER[calls[key].form]:
        calls[key] = call


def _range(first: int, last: int) -> range:
    return range(first, last + 1)


def rows_of(tree: Path) -> list[Row]:
    """The graph's calls."""
    with tempfile.TemporaryDirectory() as state:
        ca.build(ca.BuildRequest(tree, state=state))
        return [Row(**row) for row in ca.open(tree, state=state).sql(_CALLS).to_pylist()]


def compare(observed: Observed, rows: Iterable[Row], tests: str = "tests") -> Comparison:
    """Each observed call sought in the graph, and each of the graph's calls among the observed."""
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    seen: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    rows = list(rows)
    for row in rows:
        found[row.caller, row.callee, row.path].add(row.line)
    result = Comparison()
    for call in observed.calls:
        lines = _range(call.line, call.last_line)
        key = (call.caller, call.callee, call.path)
        seen[key].update(lines)
        hit = not found[key].isdisjoint(lines)
        part = _part(call, tests)
        result.recall.setdefault(call.form, defaultdict(Tally))[part].add(hit)
        if not hit and part in _PARTS and call.form not in _NOT_COUNTED:
            result.misses.append(call)
    for row in rows:
        if row.callee in observed.internal and (row.caller, row.path, row.line) in observed.active:
            hit = row.line in seen[row.caller, row.callee, row.path]
            result.confirmed.setdefault(row.method, Tally()).add(hit)
            if not hit:
                result.unconfirmed.append(row)
                result.decorated += row.callee in observed.decorated
    return result


def _part(call: Call, tests: str) -> str:
    """What tests pass into a package, or put in the place of its functions, is told apart."""
    if tests in call.path.split("/"):
        return "tests"
    return "package to tests" if tests in call.callee.split(".") else "package"


def report(suite: Suite, observed: Observed, comparison: Comparison, *, built: bool) -> str:
    """The tables of one package, in Markdown."""
    lines = [f"## {suite.name} {suite.version}\n", _notes(observed, comparison), ""]
    heads = ["observed", "found", "recall"] if built else ["observed"]
    lines += _header(["form", *(f"{part}: {head}" for part in _PARTS for head in heads)])
    counted = {form: comparison.recall[form] for form in Form if form in comparison.recall and form not in _NOT_COUNTED}
    written = (parts for form, parts in counted.items() if form != Form.PROTOCOL)
    for name, parts in [*counted.items(), ("all but the last", _sum(written)), ("all", _sum(counted.values()))]:
        cells = [str(name)]
        for part in _PARTS:
            tally = parts.get(part, Tally())
            cells += [str(tally.total), str(tally.hits), tally.share][: len(heads)]
        lines.append(_line(cells))
    if built:
        lines += ["", *_header(["method", "calls on lines that ran", "confirmed", "share"])]
        whole = Tally(
            sum(t.total for t in comparison.confirmed.values()), sum(t.hits for t in comparison.confirmed.values())
        )
        for method, tally in [*sorted(comparison.confirmed.items()), ("all", whole)]:
            lines.append(_line([method, str(tally.total), str(tally.hits), tally.share]))
        lines.append(f"\nUnconfirmed calls of decorated definitions: {comparison.decorated}.")
    return "\n".join([*lines, ""])


def _notes(observed: Observed, comparison: Comparison) -> str:
    through, bare = (
        sum(tally.total for tally in comparison.recall.get(form, {}).values()) for form in (Form.THROUGH_C, Form.BARE)
    )
    passed = _sum(parts for form, parts in comparison.recall.items() if form not in _NOT_COUNTED)["package to tests"]
    return (
        f"Not counted: {observed.callbacks} functions called from outside the tree, {through} calls back through C "
        f"code from a line of the tree, {bare} calls of classes without `__init__` in the tree, {passed.total} calls "
        f"from the package of what its tests pass in (found: {passed.hits}), {observed.orphans} generator functions "
        f"whose caller was not seen, {observed.unnamed} calls of code without a definition. {observed.externals} "
        "calls went out of the tree."
    )


def _sum(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    whole: dict[str, Tally] = defaultdict(Tally)
    for tallies in parts:
        for part, tally in tallies.items():
            whole[part].total += tally.total
            whole[part].hits += tally.hits
    return whole


def _header(cells: Sequence[str]) -> list[str]:
    return [_line(cells), _line(["---"] * len(cells))]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def listing(title: str, found: Sequence[Call | Row], limit: int) -> str:
    """Up to `limit` calls, spread over all of them."""
    chosen = found[:: max(1, len(found) // limit)][:limit] if limit else []
    told = [
        f"{each.path}:{each.line}: {each.caller} -> {each.callee}  "
        f"[{each.form if isinstance(each, Call) else f'{each.method} {each.confidence:.2f}'}]"
        for each in chosen
    ]
    return "\n".join([f"{title} ({len(chosen)} of {len(found)}):", *told, "\n"]) if chosen else ""


def summary(observed: Observed) -> dict[str, Any]:
    """What was observed, in numbers."""
    numbers = {name: getattr(observed, name) for name in ("callbacks", "orphans", "externals", "unnamed")}
    return {"calls": len(observed.calls), "forms": Counter(call.form for call in observed.calls), **numbers}


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything of a comparison."""
    return {
        "recall": {form: {part: asdict(t) for part, t in parts.items()} for form, parts in comparison.recall.items()},
        "confirmed": {method: asdict(tally) for method, tally in comparison.confirmed.items()},
        "misses": [asdict(call) for call in comparison.misses],
        "unconfirmed": [asdict(row) for row in comparison.unconfirmed],
        "unconfirmed_decorated": comparison.decorated,
    }


if __name__ == "__main__":
    main()
