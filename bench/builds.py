"""Full builds of real code: how fast, how large, what takes the time. Writes bench/RESULTS.md.

python -m bench.builds [django] [stdlib]

The corpora are Django's source release, with its tests, and the standard library of the interpreter that runs this.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import codeanatomy as ca
from bench.extract import measure

DJANGO = "5.2.8"
CORPORA = Path(".corpora")
RESULTS = Path(__file__).parent / "RESULTS.md"
TARGETS = "Targets: peak memory under 6 GB; extraction at most 4 times ast; no-op and sql at most 0.6 s."


@dataclass
class CpuClock:
    """Listens to a build and notes how busy the processors were in each stage."""

    marks: list[tuple[str, float, float]] = field(default_factory=list)

    def stage(self, name: str) -> None:
        self.marks.append((name, time.monotonic(), _busy_seconds()))

    def advance(self, done: int, total: int, unit: str) -> None:
        pass

    def cores_busy(self, name: str) -> float:
        """Average number of busy processors from the start of a stage to the start of the next."""
        place = next(i for i, mark in enumerate(self.marks) if mark[0] == name)
        (_, begin, busy_before), (_, end, busy_after) = self.marks[place : place + 2]
        return (busy_after - busy_before) / (end - begin)


def main() -> None:
    corpora = {"django": ("Django " + DJANGO, django), "stdlib": ("standard library", _stdlib)}
    chosen = sys.argv[1:] or list(corpora)
    parts = [
        "# Full builds\n",
        f"`make bench` on {os.cpu_count()} cores, Python {platform.python_version()}. Times vary with the machine.",
        TARGETS + "\n",
        *(_report(name, root()) for name, root in (corpora[each] for each in chosen)),
    ]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


def _report(name: str, root: Path) -> str:
    with tempfile.TemporaryDirectory() as state:
        clock = CpuClock()
        result = ca.build(ca.BuildRequest(root, state=state), listener=clock)
        size = sum(file.stat().st_size for file in Path(state).rglob("*.parquet"))
        lines = (
            ca.open(root, state=state).sql("SELECT sum(line_count)::BIGINT AS n FROM repo_files")["n"].to_pylist()[0]
        )
        noop = _seconds("build", root, state)
        sql = _seconds("sql", root, state, "SELECT count(*) FROM cpg_nodes")
    baseline, extraction = measure(sorted(root.rglob("*.py")))
    rows = {table: figures["rows"] for table, figures in result.tables.items()}
    files = result.files["total"]
    facts = [
        ("files / lines", f"{files:,} / {lines:,}"),
        ("seconds", f"{result.seconds:.1f}"),
        ("files/s, lines/s", f"{files / result.seconds:,.0f}, {lines / result.seconds:,.0f}"),
        ("rows", ", ".join(f"{table} {count:,}" for table, count in rows.items())),
        ("bytes on disk", f"{size / 1e6:.1f} MB"),
        ("peak memory, whole process tree", f"{result.peak_memory_mb:,} MB"),
        ("files with syntax errors / not read", f"{result.files['with_errors']} / {result.files['failed']}"),
        (
            "extraction against ast.parse + walk (CPU)",
            f"{extraction:.1f} / {baseline:.1f} = {extraction / baseline:.2f}",
        ),
        ("cores busy while extracting", f"{clock.cores_busy('extract'):.2f} of {os.cpu_count()}"),
        ("no-op build, cold process", f"{noop:.2f} s"),
        ("sql count(*), cold process", f"{sql:.2f} s"),
    ]
    stages = [
        (s.name, f"{s.seconds:.1f}", f"{100 * s.seconds / result.seconds:.0f} %", f"{s.rows:,}" if s.rows else "")
        for s in result.stages
    ]
    table = ["| | |", "|---|---|", *(f"| {what} | {value} |" for what, value in facts)]
    header = ["| stage | seconds | share | rows |", "|---|---|---|---|"]
    shares = [*header, *("| " + " | ".join(row) + " |" for row in stages)]
    return "\n".join(
        [
            f"## {name}\n",
            *table,
            "\nTables are written as soon as what they need is there, several at a time.\n",
            *shares,
            "",
        ]
    )


def _seconds(command: str, root: Path, state: str, query: str | None = None) -> float:
    arguments = [sys.executable, "-m", "codeanatomy.cli.main", command, *([query] if query else []), str(root)]
    start = time.monotonic()
    subprocess.run([*arguments, "--state", state], check=True, capture_output=True)
    return time.monotonic() - start


def _busy_seconds() -> float:
    user, nice, system, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def django() -> Path:
    """The source release of Django, with its tests."""
    return source_release("django", DJANGO)


def source_release(name: str, version: str) -> Path:
    """A source release from PyPI, unpacked."""
    root = CORPORA / f"{name}-{version}"
    if not root.exists():
        CORPORA.mkdir(exist_ok=True)
        wanted = [f"{name}=={version}", "--no-deps", "--no-binary", ":all:", "--dest", str(CORPORA)]
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
        with tarfile.open(CORPORA / f"{name}-{version}.tar.gz") as archive:
            archive.extractall(CORPORA, filter="data")
    return root


def _stdlib() -> Path:
    root = CORPORA / f"stdlib-{platform.python_version()}"
    if not root.exists():
        ignored = shutil.ignore_patterns("site-packages", "__pycache__", "*.so", "*.a")
        shutil.copytree(sysconfig.get_path("stdlib"), root, ignore=ignored, symlinks=True)
    return root


if __name__ == "__main__":
    main()
