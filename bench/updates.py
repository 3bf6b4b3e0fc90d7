"""Updates of Django: what edits of different kinds reach, and what they cost next to a full build.

    python -m bench.updates [--index pyrefly] [--only-sizes | --only-edits]

One warm session for everything. The full build that updates are held against is one from scratch on that same session,
after it was warmed up by another, and a few updates come before those that are measured. Every edit is made on top of
the ones before; at the end, the graph is compared row for row with a build from scratch. Writes bench/UPDATES.md
(UPDATES-INDEX.md with an index).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from bench.builds import DJANGO, django
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.pipeline.request import BuildRequest, BuildResult
from codeanatomy.pipeline.run import build
from codeanatomy.pipeline.verify import verify

FOLDER = Path(__file__).parent
SIZES = (("django/utils", "django/template"), ("django",), ("django", "tests"))
REPEATED = 5
WARMING_UP = 10
"""Edits until the JVM has compiled what an update runs."""


class Edit(NamedTuple):
    """Something done to the tree."""

    what: str
    do: Callable[[Path], None]


def replaced(path: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace the first occurrence of a text in a file."""

    def edit(root: Path) -> None:
        text = (root / path).read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"{path} has no {old!r}")
        (root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    return edit


def appended(path: str, text: str) -> Callable[[Path], None]:
    """Add lines to a file, which may be new."""

    def edit(root: Path) -> None:
        with (root / path).open("a", encoding="utf-8") as file:
            file.write(text)

    return edit


def renamed(old: str, new: str) -> Callable[[Path], None]:
    """Move a file."""

    def edit(root: Path) -> None:
        (root / old).rename(root / new)

    return edit


def several(*edits: Callable[[Path], None]) -> Callable[[Path], None]:
    """All of them at once."""

    def edit(root: Path) -> None:
        for each in edits:
            each(root)

    return edit


def body_edit(path: str, number: int) -> Callable[[Path], None]:
    """Another line in the body of a function that nobody sees through."""
    return appended(path, f"\n\ndef _bench_{number}():\n    value = {number}\n    print(value)\n")


EDITS = (
    Edit("comment in a leaf", appended("django/utils/text.py", "\n# a comment\n")),
    Edit(
        "body of a function in a leaf",
        replaced("django/utils/text.py", "def capfirst(x):", "def capfirst(x):\n    y = 3"),
    ),
    Edit(
        "body of a method in the core",
        replaced("django/db/models/query.py", "def _chain(self):", "def _chain(self):\n        y = 3"),
    ),
    Edit(
        "docstring of a class in the core",
        replaced("django/db/models/base.py", "class ModelState:", "class ModelState:\n    'x'"),
    ),
    Edit("new private function", appended("django/utils/timesince.py", "\n\ndef _helper(x):\n    return x\n")),
    Edit(
        "new public function in a much-used module",
        appended("django/utils/functional.py", "\n\ndef brand_new(x):\n    return x\n"),
    ),
    Edit("parameter added", replaced("django/utils/text.py", "def slugify(value,", "def slugify(value, extra=None,")),
    Edit(
        "function renamed, few callers", replaced("django/utils/html.py", "def linebreaks(", "def linebreaks_renamed(")
    ),
    Edit("function renamed, many callers", replaced("django/utils/encoding.py", "def force_str(", "def force_text(")),
    Edit(
        "method of a base renamed, many callers",
        replaced("django/db/models/base.py", "\n    def save(", "\n    def save_renamed("),
    ),
    Edit("renamed back", replaced("django/utils/encoding.py", "def force_text(", "def force_str(")),
    Edit(
        "method added to a base of many",
        replaced(
            "django/db/models/fields/__init__.py",
            "    def clone(self):",
            "    def brand_new(self):\n        pass\n\n    def clone(self):",
        ),
    ),
    Edit(
        "base class changed",
        replaced(
            "django/http/response.py", "class JsonResponse(HttpResponse):", "class JsonResponse(HttpResponseBase):"
        ),
    ),
    Edit(
        "`__init__` added to a class",
        replaced(
            "django/utils/safestring.py", "class SafeData:", "class SafeData:\n    def __init__(self):\n        pass\n"
        ),
    ),
    Edit(
        "what a function returns changed",
        replaced(
            "django/utils/timezone.py",
            "def get_default_timezone():",
            "def get_default_timezone():\n    return SafeX()\n\n\nclass SafeX:\n    pass\n\n\ndef _old():",
        ),
    ),
    Edit(
        "import of an external module added",
        replaced("django/http/request.py", "import copy", "import copy\nimport brand_new_package"),
    ),
    Edit(
        "re-export removed",
        replaced("django/db/models/__init__.py", "from django.db.models.aggregates import *  # NOQA", ""),
    ),
    Edit(
        "new module",
        appended(
            "django/utils/brand_new.py",
            "from django.utils.text import slugify\n\n\ndef go():\n    return slugify('a')\n",
        ),
    ),
    Edit("module renamed", renamed("django/utils/brand_new.py", "django/utils/newer.py")),
    Edit("module deleted", lambda root: (root / "django/utils/newer.py").unlink()),
    Edit(
        "ten files at once",
        several(
            *(
                body_edit(f"django/utils/{name}.py", 10)
                for name in (
                    "text",
                    "html",
                    "dates",
                    "crypto",
                    "archive",
                    "cache",
                    "choices",
                    "feedgenerator",
                    "formats",
                    "ipv6",
                )
            )
        ),
    ),
    Edit("syntax error", appended("django/utils/lorem_ipsum.py", "\ndef broken(:\n")),
)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", default="none", choices=("none", "pyrefly"))
    parser.add_argument("--only-sizes", action="store_true")
    parser.add_argument("--only-edits", action="store_true")
    options = parser.parse_args()
    settings = EngineSettings(shuffle_partitions=14, preload=("codeanatomy.extract", "codeanatomy.store.filewriter"))
    only = " --only-sizes" if options.only_sizes else " --only-edits" if options.only_edits else ""
    parts = [
        f"# Updates of Django {DJANGO}\n",
        f"`python -m bench.updates --index {options.index}{only}`, one warm session.\n",
    ]
    with open_engine(settings) as spark, tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if not options.only_sizes:
            parts += edits(spark, options.index, place)
        if not options.only_edits:
            parts += sizes(spark, options.index, place)
    text = "\n".join(parts) + "\n"
    name = "UPDATES.md" if options.index == "none" else "UPDATES-INDEX.md"
    (FOLDER / name).write_text(text, encoding="utf-8")
    print(text)


def copied(place: Path, folders: Sequence[str] = (".",)) -> Path:
    """Some folders of Django, to be edited."""
    for folder in folders:
        shutil.copytree(
            django() / folder, place / folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".codeanatomy")
        )
    return place


def edits(spark: SparkSession, index: str, scratch: Path) -> list[str]:
    """A table of edits."""
    root = copied(scratch / "edited")
    build(BuildRequest(root, state=str(scratch / "warm-up"), index=index), spark=spark)
    full = build(BuildRequest(root, index=index), spark=spark)
    for number in range(WARMING_UP):
        appended("django/utils/dateformat.py", f"\n# {number}\n")(root)
        build(BuildRequest(root, index=index), spark=spark)
    parts = [
        f"A full build of its {full.files['total']:,} files takes {full.seconds:.1f} s.\n",
        "| edit | mode | impacted | in vain | seconds | of a full build |" + (" indexer |" if index != "none" else ""),
        "|---|---|---|---|---|---|" + ("---|" if index != "none" else ""),
    ]
    for edit in EDITS:
        edit.do(root)
        made = build(BuildRequest(root, index=index), spark=spark)
        files = made.files
        more = f" {made.index['seconds']:.1f} s |" if index != "none" and made.index else ""
        parts.append(
            f"| {edit.what} | {made.mode} | {files['impacted']} | {files['unchanged_rows']} | {made.seconds:.2f} "
            f"| {made.seconds / full.seconds:.1%} |{more}"
        )
        print(parts[-1], stages(made), flush=True)
    again = build(BuildRequest(root, index=index), spark=spark)
    verified = verify(BuildRequest(root), spark=spark)
    differing = sum(each.only_incremental + each.only_full for each in verified.tables.values())
    parts.append(
        f"\nThen nothing: {again.mode}, {again.seconds:.2f} s. "
        f"Rows that differ from a build from scratch: {differing}.\n"
    )
    return parts


def sizes(spark: SparkSession, index: str, scratch: Path) -> list[str]:
    """The same edit in repositories of three sizes."""
    parts = [
        "The body of one function edited, in repositories of three sizes (median of "
        f"{REPEATED} edits; the full build is from scratch, on the same session):\n",
        "| files | full build, s | one-file edit, s | of the full build |",
        "|---|---|---|---|",
    ]
    for number, folders in enumerate(SIZES):
        root = copied(scratch / f"size{number}", folders)
        build(BuildRequest(root, state=str(scratch / f"warm-up{number}"), index=index), spark=spark)
        full = build(BuildRequest(root, index=index), spark=spark)
        body_edit("django/utils/text.py", 0)(root)
        build(BuildRequest(root, index=index), spark=spark)
        seconds = []
        for edited in range(1, WARMING_UP + REPEATED + 1):
            replaced("django/utils/text.py", f"    value = {edited - 1}\n", f"    value = {edited}\n")(root)
            made = build(BuildRequest(root, index=index), spark=spark)
            seconds.append(made.seconds)
            print(made.seconds, stages(made), flush=True)
        middle = statistics.median(seconds[WARMING_UP:])
        parts.append(f"| {full.files['total']:,} | {full.seconds:.1f} | {middle:.2f} | {middle / full.seconds:.1%} |")
        print(parts[-1], flush=True)
    return parts


def stages(made: BuildResult) -> str:
    """Where the time went."""
    return " ".join(f"{stage.name}={stage.seconds:.2f}" for stage in made.stages)


if __name__ == "__main__":
    main()
