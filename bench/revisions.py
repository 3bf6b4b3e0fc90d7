"""Two revisions of this project, side by side: full builds and one-file updates, from cold and warm processes.

    python -m bench.revisions BASE [--only flask] [--rounds 2] [--updates 6]

The working tree against the revision BASE, in one run and in turns, on the same trees. Cold: a process of the command
line for each build. Warm: one process and one Spark session for all of them, with what they leave for the next (`Warm`)
if the revision has that; the first full build and half of the updates are not counted. Prints a table, and writes
bench/REVISIONS.md. Trust the ratios; the seconds are the machine's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.builds import DJANGO, django, source_release

FLASK = "3.0.3"
RESULTS = Path(__file__).parent / "REVISIONS.md"
EDITED = {"flask": "src/flask/helpers.py", "django": "django/utils/text.py"}
MEASURES = ("cold, full", "cold, one-file update", "warm, full", "warm, one-file update")

WARM = """
import json, sys, time
from contextlib import nullcontext
from pathlib import Path
import codeanatomy as ca
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings

root, edited, updates = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
settings = EngineSettings(shuffle_partitions=8, preload=("codeanatomy.extract",))
times = {"full": [], "update": []}
with open_engine(settings) as spark, ca.Warm(spark) if "Warm" in ca.__all__ else nullcontext() as warm:
    on = {"warm": warm} if warm else {"spark": spark}
    for state in ("first", "second"):
        began = time.monotonic()
        ca.build(ca.BuildRequest(root, state=f"{root}-{state}", index="none"), **on)
        times["full"].append(time.monotonic() - began)
    for number in range(2 * updates):
        with (root / edited).open("a") as file:
            file.write(f"\\n\\ndef _bench_{number}():\\n    return {number}\\n")
        began = time.monotonic()
        ca.build(ca.BuildRequest(root, state=f"{root}-second", index="none"), **on)
        times["update"].append(time.monotonic() - began)
print(json.dumps(times))
"""


def main() -> None:
    """Measure in turns, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("--only", choices=tuple(EDITED))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(base), options.base], check=True)
        try:
            sides = {"before": base / "src", "after": Path("src").resolve()}
            text = _report(options, sides, Path(scratch))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(base)], check=True)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


def _report(options: argparse.Namespace, sides: dict[str, Path], scratch: Path) -> str:
    lines = [
        f"# Against {options.base}\n",
        f"`python -m bench.revisions {options.base}` on {os.cpu_count()} cores; no index; medians, in seconds.\n",
        "| tree | | before | after | ratio |",
        "|---|---|---|---|---|",
    ]
    for name in [options.only] if options.only else EDITED:
        tree = django() if name == "django" else source_release("flask", FLASK)
        times: dict[str, dict[str, list[float]]] = {side: {what: [] for what in MEASURES} for side in sides}
        for number in range(options.rounds):
            for side, source in sides.items():
                root = scratch / f"{name}-{side}-{number}"
                shutil.copytree(tree, root, ignore=shutil.ignore_patterns(".codeanatomy"))
                for what, seconds in _measured(source, root, EDITED[name], options.updates).items():
                    times[side][what] += seconds
                    print(name, side, what, [f"{each:.1f}" for each in seconds], flush=True)
        for what in MEASURES:
            before, after = (median(times[side][what]) for side in sides)
            version = DJANGO if name == "django" else FLASK
            lines.append(f"| {name} {version} | {what} | {before:.1f} | {after:.1f} | {after / before:.2f} |")
    return "\n".join(lines) + "\n"


def _measured(source: Path, root: Path, edited: str, updates: int) -> dict[str, list[float]]:
    """What one side takes on one copy of a tree."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    times: dict[str, list[float]] = {what: [] for what in MEASURES}
    command = [sys.executable, "-m", "codeanatomy.cli.main", "build", str(root), "--index", "none", "--quiet"]
    for number in range(3):
        if number:
            with (root / edited).open("a", encoding="utf-8") as file:
                file.write(f"\n\ndef _cold_{number}():\n    return {number}\n")
        began = time.monotonic()
        subprocess.run(command, check=True, env=environment, capture_output=True)
        times[MEASURES[1 if number else 0]].append(time.monotonic() - began)
    warm = [sys.executable, "-c", WARM, str(root), edited, str(updates)]
    printed = subprocess.run(warm, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
    told = json.loads(printed.splitlines()[-1])
    times[MEASURES[2]], times[MEASURES[3]] = told["full"][1:], told["update"][updates:]
    return times


if __name__ == "__main__":
    main()
