"""How long a cold session takes to its first answers, with and without the class-data archive and the quick JVM.

Run: python -m bench.engine_start [REPETITIONS]. Trust the ratios; the seconds are the machine's.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from codeanatomy.engine.training import make_archive

STEPS = ("session", "query", "python", "stop", "total")

PROGRAM = """
import json, sys, time
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
archive, short_run = json.loads(sys.argv[1])
times = [time.perf_counter()]
with open_engine(EngineSettings(archive=archive, short_run=short_run)) as spark:
    times.append(time.perf_counter())
    spark.sql("SELECT id % 7 AS k, count(*) AS n FROM range(100000) GROUP BY k ORDER BY k").collect()
    times.append(time.perf_counter())
    spark.range(10).mapInArrow(lambda batches: batches, "id long").collect()
    times.append(time.perf_counter())
times.append(time.perf_counter())
steps = [after - before for before, after in zip(times, times[1:])]
print(json.dumps([*steps, sum(steps)]))
"""

CASES = {
    "plain": (False, False),
    "quick JVM": (False, True),
    "archive": (True, False),
    "archive, quick JVM": (True, True),
}


def measure(archive: bool, short_run: bool) -> list[float]:
    """Seconds of each step, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, json.dumps([archive, short_run])]
    times: list[float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return times


def main(repetitions: int) -> None:
    """Print the median of each step and the ratio of the totals."""
    make_archive()
    runs: dict[str, list[list[float]]] = {name: [] for name in CASES}
    for _ in range(repetitions):  # interleaved, so that a busy minute hurts every case alike
        for name, case in CASES.items():
            runs[name].append(measure(*case))
    medians = {name: [statistics.median(step) for step in zip(*times, strict=True)] for name, times in runs.items()}
    print("".join(f"{title:>20}" if title == "case" else f"{title:>10}" for title in ("case", *STEPS, "ratio")))
    for name, steps in medians.items():
        ratio = steps[-1] / medians["plain"][-1]
        print(f"{name:>20}" + "".join(f"{seconds:>10.2f}" for seconds in (*steps, ratio)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
