"""Many updates in a row through one engine process: do time and memory grow, and are the rows still right?

    python -m bench.endurance [--updates 1000] [--points 10] [--index pyrefly]

A copy of Flask's source release is edited by one small change after the other, of several kinds and in several files,
and brought up to date after each by a command. At random points, and at the end, the graph is compared with one from
scratch. Writes bench/ENDURANCE.md: medians per hundred updates. Growth is told from the second hundred on, for the JVM
is still compiling in the first. A row that differs, and an update that is a full build, end in exit code 1.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench import commands
from bench.builds import source_release
from bench.revisions import FLASK

RESULTS = Path(__file__).parent / "ENDURANCE.md"
PART = 100


def main() -> None:
    """Update, measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--index", default="none", choices=("none", "pyrefly"))
    options = parser.parse_args()
    chance = random.Random(14)
    points = {*chance.sample(range(1, options.updates), options.points), options.updates}
    seconds: list[float] = []
    memory: list[int] = []
    with tempfile.TemporaryDirectory() as scratch, commands.engine() as environment:
        root = Path(shutil.copytree(source_release("flask", FLASK), Path(scratch) / "flask"))
        build = ("build", root, "--index", options.index)
        commands.run(*build, environment=environment)
        for number in range(1, options.updates + 1):
            _edit(root, number, chance)
            began = time.monotonic()
            result = commands.run(*build, environment=environment)
            seconds.append(time.monotonic() - began)
            if result["mode"] != "incremental":
                sys.exit(f"update {number} was a build of mode {result['mode']}: {result['reasons']}")
            if number in points:
                commands.run("verify", root)  # fails if a row differs
                print(f"{number}: as from scratch", flush=True)
            if number % PART == 0:
                memory.append(commands.run("engine", "status", environment=environment)["memory_mb"])
                print(f"{number}: {median(seconds[-PART:]):.2f} s, {memory[-1]:,} MB", flush=True)
    text = _report(options, seconds, memory)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


def _edit(root: Path, number: int, chance: random.Random) -> None:
    """One of: a comment, a body, a new function, a new file that imports, the last such file gone."""
    file = root / chance.choice(["src/flask/helpers.py", "src/flask/app.py", "src/flask/cli.py", "tests/test_basic.py"])
    extra = root / "src/flask/extra.py"
    kind = chance.randrange(5)
    if kind == 3 and not extra.exists():
        extra.write_text(f"from flask.helpers import url_for\n\n\ndef extra_{number}():\n    return url_for('x')\n")
    elif kind == 4 and extra.exists():
        extra.unlink()
    else:
        text = f"\n# {number}\n" if kind == 0 else f"\n\ndef added_{number}():\n    return url_for({number})\n"
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
        if kind == 2:  # keep files from growing without end: take back what was added before
            kept = file.read_text(encoding="utf-8").partition("\n\ndef added_")[0]
            file.write_text(f"{kept}\n\ndef added_{number}():\n    pass\n", encoding="utf-8")


def _report(options: argparse.Namespace, seconds: list[float], memory: list[int]) -> str:
    parts = [seconds[start : start + PART] for start in range(0, len(seconds), PART)]
    lines = [
        "# Many updates in a row\n",
        f"`python -m bench.endurance --updates {options.updates} --index {options.index}`: updates of Flask {FLASK} by "
        f"commands through one engine process. Compared with a build from scratch at {options.points} random points and"
        " at the end: 0 differing rows.\n",
        "| updates | median, s | best, s | memory of the engine, MB |",
        "|---|---|---|---|",
    ]
    for number, (part, mb) in enumerate(zip(parts, memory, strict=False)):
        first = number * PART + 1
        lines.append(f"| {first:,} to {first + len(part) - 1:,} | {median(part):.2f} | {min(part):.2f} | {mb:,} |")
    if len(parts) > 2 and len(memory) > 1:
        lines.append(
            f"\nThe last hundred against the second: {median(parts[-1]) / median(parts[1]):.2f} in time, "
            f"{memory[-1] / memory[1]:.2f} in memory."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
