"""Where the time of a build goes: stages, planning and running of statements, Python, commits.

    python -m bench.build_profile [flask | scrapy | django] [--index pyrefly]

One full build and one update (the body of a function edited), each from a cold session. Four independent sources:

    stages        the clock of the build
    Spark         its event log: statements, when their jobs ran, what tasks took
    processes     processor time of driver, JVM and Python workers, as the system counts it
    samples       what the threads of the driver were doing, looked at a hundred times per second

Writes bench/PROFILE.md. Looking costs a few percent.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import codeanatomy as ca
from bench.builds import source_release
from bench.latency import TREES, Tree
from codeanatomy.engine.memory import descendants

RESULTS = Path(__file__).parent / "PROFILE.md"
SECONDS_BETWEEN_SAMPLES = 0.01
SAMPLES_PER_LOOK_AT_PROCESSES = 20
SHOWN = 12
WAITING = ("threading.py", "selectors.py", "socketserver.py", "thread.py", "subprocess.py", "_base.py")
RUNNING = ("toArrow", "collect", "_collect_as_arrow", "localCheckpoint", "parquet", "save", "count")


@dataclass
class Watch:
    """What was seen of a build while it ran."""

    begun: dict[str, float] = field(default_factory=dict)
    samples: Counter[str] = field(default_factory=Counter)
    processor: dict[int, tuple[str, float]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def stage(self, name: str) -> None:
        """A stage begins."""
        self.begun.setdefault(name, time.monotonic() - self.began)

    def advance(self, done: int, total: int, unit: str) -> None:
        """Progress within a stage is of no interest."""


def main() -> None:
    """Profile both builds, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", choices=[tree.name for tree in TREES], default="flask")
    parser.add_argument("--index", default="none")
    options = parser.parse_args()
    tree = next(each for each in TREES if each.name == options.tree)
    with tempfile.TemporaryDirectory(prefix="profile-") as scratch:
        root = Path(shutil.copytree(source_release(tree.name, tree.releases[0]), f"{scratch}/{tree.name}"))
        text = _profiled(tree, root, options.index)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


def _profiled(tree: Tree, root: Path, index: str) -> str:
    lines = [
        f"# Where the time of a build goes: {tree.name} {tree.releases[0]}\n",
        f"`python -m bench.build_profile {tree.name} --index {index}` on {os.cpu_count()} cores, each from a cold "
        f"session; load of the machine {os.getloadavg()[0]:.1f}.\n",
    ]
    changes = tree.changes(0)
    for what, change in (("Full build", "full"), ("Update, one function body", "body")):
        changes[change](root)
        events = root.with_name(f"events-{change}")
        events.mkdir()
        conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        with _watched() as watch:
            result = ca.build(ca.BuildRequest(root, index=index, spark_conf=conf), listener=watch)
        lines += [f"## {what}: {watch.seconds:.1f} s\n", *_stages(result, watch), *_processes(watch)]
        lines += [*_statements(events), *_samples(watch)]
    return "\n".join(lines)


@contextmanager
def _watched() -> Iterator[Watch]:
    """Look at threads and processes until the block ends."""
    watch, done = Watch(), threading.Event()

    def look() -> None:
        own, number = threading.get_ident(), 0
        while not done.wait(SECONDS_BETWEEN_SAMPLES):
            if number % SAMPLES_PER_LOOK_AT_PROCESSES == 0:
                _count_processor_time(watch)
            number += 1
            for thread, frame in sys._current_frames().items():
                if thread != own and (what := _activity(frame)):
                    watch.samples[what] += 1

    looking = threading.Thread(target=look, name="profile", daemon=True)
    before = time.process_time()
    looking.start()
    try:
        yield watch
    finally:
        watch.seconds = time.monotonic() - watch.began
        done.set()
        looking.join()
        watch.processor[os.getpid()] = ("driver", time.process_time() - before)


def _activity(frame: FrameType) -> str | None:
    """What a thread does, in a few words; None if it waits for others."""
    files, functions = [], []
    each: FrameType | None = frame
    while each is not None:
        files.append(each.f_code.co_filename)
        functions.append(each.f_code.co_name)
        each = each.f_back
    if Path(files[0]).name == "socket.py" and (ours := _first(files, "/codeanatomy/")) is not None:
        runs = set(functions[:ours]) & set(RUNNING)
        return f"waits for the JVM, which {'plans and runs' if runs else 'analyses'} a statement"
    if Path(files[0]).name in WAITING:
        return None
    if _first(files, "/deltalake/") is not None:
        return "reads or commits Delta logs"
    if (ours := _first(files, "/codeanatomy/")) is not None:
        return f"Python: {files[ours].rpartition('/codeanatomy/')[2].partition('/')[0]}"
    return "Python: imports and other libraries" if "<frozen importlib._bootstrap>" in files else None


def _first(files: list[str], folder: str) -> int | None:
    """The innermost frame of a file below a folder."""
    return next((place for place, file in enumerate(files) if folder in file), None)


def _count_processor_time(watch: Watch) -> None:
    for pid in descendants(os.getpid()):
        with suppress(OSError, ValueError, IndexError):
            name, _, rest = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")
            kind = name.partition("(")[2]
            ticks = sum(int(each) for each in rest.split()[11:15])  # its own, and of children that have ended
            known = {"java": "JVM", "pyrefly": "indexer"}.get(kind, "Python workers" if "python" in kind else kind)
            watch.processor[pid] = (known, ticks / os.sysconf("SC_CLK_TCK"))


def _stages(result: ca.BuildResult, watch: Watch) -> list[str]:
    rows = [
        f"| {stage.name} | {watch.begun.get(stage.name, 0):.2f} | {stage.seconds:.2f} | "
        f"{'' if stage.rows is None else f'{stage.rows:,}'} |"
        for stage in sorted(result.stages, key=lambda stage: watch.begun.get(stage.name, 0))
    ]
    return ["| stage | begins, s | takes, s | rows |", "|---|---|---|---|", *rows, "", "Stages of tables overlap.\n"]


def _processes(watch: Watch) -> list[str]:
    total: dict[str, float] = {}
    for name, seconds in watch.processor.values():
        total[name] = total.get(name, 0.0) + seconds
    everything = sum(total.values())
    by_size = sorted(total.items(), key=lambda each: -each[1])
    rows = [f"| {name} | {seconds:.1f} | {seconds / everything:.0%} |" for name, seconds in by_size]
    cores = f"{everything / watch.seconds:.1f} cores busy on average."
    return ["| process | processor time, s | share |", "|---|---|---|", *rows, "", f"{cores}\n"]


def _statements(folder: Path) -> list[str]:
    """Statements in Spark's event log: how long each was under way, and how much of that its jobs ran."""
    events = [event for file in folder.iterdir() for event in _events(file)]
    begun = {e["executionId"]: e["time"] for e in events if e["Event"].endswith("SQLExecutionStart")}
    ended = {e["executionId"]: e["time"] for e in events if e["Event"].endswith("SQLExecutionEnd")}
    jobs = {e["Job ID"]: e for e in events if e["Event"] == "SparkListenerJobStart"}
    job_ends = {e["Job ID"]: e["Completion Time"] for e in events if e["Event"] == "SparkListenerJobEnd"}
    spans: dict[int, list[tuple[int, int]]] = {number: [] for number in begun}
    for number, job in jobs.items():
        statement = int(job.get("Properties", {}).get("spark.sql.execution.id") or -1)
        spans.setdefault(statement, []).append((job["Submission Time"], job_ends.get(number, job["Submission Time"])))
    whole = sum(ended[number] - begun[number] for number in begun.keys() & ended.keys()) / 1000
    running = sum(_covered(spans[number]) for number in begun.keys() & ended.keys()) / 1000
    tasks = [e["Task Metrics"] for e in events if e["Event"] == "SparkListenerTaskEnd" and e.get("Task Metrics")]
    figures = {
        "statements / jobs / tasks": f"{len(begun)} / {len(jobs)} / {len(tasks)}",
        "statements under way, added up": f"{whole:.1f} s",
        "of that, their jobs ran": f"{running:.1f} s",
        "of that, planned and prepared": f"{whole - running:.1f} s",
        "tasks, added up": f"{sum(t['Executor Run Time'] for t in tasks) / 1000:.1f} s",
        "of that, processor time in the JVM": f"{sum(t['Executor CPU Time'] for t in tasks) / 1e9:.1f} s",
        "garbage collection during tasks": f"{sum(t['JVM GC Time'] for t in tasks) / 1000:.1f} s",
    }
    rows = [f"| {name} | {value} |" for name, value in figures.items()]
    return ["| Spark | |", "|---|---|", *rows, "", "Analysis, before a statement starts, is in the samples below.\n"]


def _events(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):  # the last line of a JVM that was killed
            yield json.loads(line)


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """The length of the union of intervals."""
    total, until = 0, 0
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def _samples(watch: Watch) -> list[str]:
    rows = [f"| {what} | {count * SECONDS_BETWEEN_SAMPLES:.1f} |" for what, count in watch.samples.most_common(SHOWN)]
    return ["| threads of the driver | about, s |", "|---|---|", *rows, ""]


if __name__ == "__main__":
    main()
