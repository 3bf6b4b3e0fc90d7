"""The indexer that stays, next to runs from scratch: does it say the same, and how much sooner?

    python -m bench.warm_index documents [flask] [django]
    python -m bench.warm_index builds [--only-repeated] [flask] [django]

`documents` makes edits of all kinds, one on top of the other. After each, the changed files are asked for alone, as an
update does, and then every document of the repository, or those of files at random if it is large; all are compared,
whole, with runs from scratch.
`builds` makes the same edits in two copies of a tree, updates both on one warm session, one copy with the indexer that
stays, and compares the graph with one from scratch at the end. Writes bench/WARM-INDEX-DOCUMENTS.md or -BUILDS.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Event
from typing import NamedTuple

from pyspark.sql import SparkSession
from tests.index.indexing import Indexed, Tree, pyrefly_provider, read, tree

from bench.builds import DJANGO, django, source_release
from bench.updates import appended, renamed, replaced
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.index.provider import IndexTask
from codeanatomy.index.warm import WarmPyrefly
from codeanatomy.pipeline.indexing import warm_index
from codeanatomy.pipeline.request import BuildRequest, BuildResult
from codeanatomy.pipeline.run import build
from codeanatomy.pipeline.verify import verify
from codeanatomy.pipeline.warm import Warm

FOLDER = Path(__file__).parent
FLASK = "3.0.3"
WARMING_UP = 8
REPEATED = 5
SAMPLE = 200
"""Files that are compared after each edit."""


class Edit(NamedTuple):
    """Something done to the tree, and the files it is done to."""

    what: str
    do: Callable[[Path], None]
    paths: tuple[str, ...]


def changed(what: str, path: str, old: str, new: str) -> Edit:
    """A text replaced in a file."""
    return Edit(what, replaced(path, old, new), (path,))


def rewritten(path: str, content: bytes) -> Callable[[Path], None]:
    """Replace a whole file."""

    def edit(root: Path) -> None:
        (root / path).write_bytes(content)

    return edit


FLASK_EDITS = (
    changed("comment", "src/flask/app.py", "    def make_response(", "    # a comment\n    def make_response("),
    changed(
        "body", "src/flask/helpers.py", "def get_debug_flag() -> bool:", "def get_debug_flag() -> bool:\n    y = 3"
    ),
    changed("signature", "src/flask/helpers.py", "def get_debug_flag() ->", "def get_debug_flag(extra: int = 0) ->"),
    changed("function renamed", "src/flask/helpers.py", "def get_root_path(", "def get_root_folder("),
    changed("import added", "src/flask/app.py", "import sys", "import sys\nimport xml.dom.minidom"),
    changed(
        "private function before others",
        "src/flask/helpers.py",
        "def url_for(",
        "def _f():\n    pass\n\n\ndef url_for(",
    ),
    changed(
        "class before others", "src/flask/ctx.py", "class AppContext:", "class _New:\n    pass\n\n\nclass AppContext:"
    ),
    changed(
        "method added to a base",
        "src/flask/sansio/scaffold.py",
        "    def _check_setup_finished",
        "    def brand_new(self) -> int:\n        return 1\n\n    def _check_setup_finished",
    ),
    changed("re-export removed", "src/flask/__init__.py", "from .app import Flask as Flask\n", ""),
    changed("re-export back", "src/flask/__init__.py", "from .ctx", "from .app import Flask as Flask\nfrom .ctx"),
    Edit("syntax error", appended("src/flask/views.py", "\ndef broken(:\n"), ("src/flask/views.py",)),
    changed("syntax error gone", "src/flask/views.py", "\ndef broken(:\n", ""),
    Edit("not UTF-8", rewritten("src/flask/typing.py", b"# coding: latin-1\nx = '\xe9'\n"), ()),
    Edit(
        "UTF-8 again",
        rewritten("src/flask/typing.py", b"import typing as t\n\nx: t.Any = '\xc3\xa9'\n"),
        ("src/flask/typing.py",),
    ),
    Edit(
        "new file",
        appended("src/flask/brand_new.py", "from .app import Flask\n\n\ndef make() -> Flask:\n    return Flask('a')\n"),
        ("src/flask/brand_new.py",),
    ),
    Edit(
        "used by another",
        appended("src/flask/views.py", "\nfrom .brand_new import make\n\nmade = make()\n"),
        ("src/flask/views.py",),
    ),
    Edit("file moved", renamed("src/flask/brand_new.py", "src/flask/newer.py"), ("src/flask/newer.py",)),
    Edit("file deleted", lambda root: (root / "src/flask/newer.py").unlink(), ()),
)

DJANGO_EDITS = (
    Edit("comment", appended("django/utils/text.py", "\n# a comment\n"), ("django/utils/text.py",)),
    changed("body of a function", "django/utils/text.py", "def capfirst(x):", "def capfirst(x):\n    y = 3"),
    changed(
        "body of a method in the core",
        "django/db/models/query.py",
        "def _chain(self):",
        "def _chain(self):\n        y = 3",
    ),
    changed("parameter added", "django/utils/text.py", "def slugify(value,", "def slugify(value, extra=None,"),
    changed("function renamed", "django/utils/html.py", "def linebreaks(", "def linebreaks_renamed("),
    changed(
        "method added to a base of many",
        "django/db/models/fields/__init__.py",
        "    def clone(self):",
        "    def brand_new(self):\n        pass\n\n    def clone(self):",
    ),
    changed(
        "re-export removed", "django/db/models/__init__.py", "from django.db.models.aggregates import *  # NOQA", ""
    ),
    Edit("syntax error", appended("django/utils/lorem_ipsum.py", "\ndef broken(:\n"), ("django/utils/lorem_ipsum.py",)),
    Edit("not UTF-8", rewritten("django/utils/ipv6.py", b"# coding: latin-1\nx = '\xe9'\n"), ()),
    Edit(
        "new file",
        appended(
            "django/utils/brand_new.py",
            "from django.utils.text import slugify\n\n\ndef go():\n    return slugify('a')\n",
        ),
        ("django/utils/brand_new.py",),
    ),
    Edit("file moved", renamed("django/utils/brand_new.py", "django/utils/newer.py"), ("django/utils/newer.py",)),
    Edit("file deleted", lambda root: (root / "django/utils/newer.py").unlink(), ()),
)


class Corpus(NamedTuple):
    """A tree, the edits that are made in it, and one more that is repeated."""

    name: str
    root: Callable[[], Path]
    edits: Sequence[Edit]
    repeated: Callable[[int], Edit]


def _body(path: str, marked: str) -> Callable[[int], Edit]:
    """The body of a function changed, again and again."""

    def edit(number: int) -> Edit:
        old = f"{marked}\n    y = {number - 1}" if number else marked
        return changed("body, repeated", path, old, f"{marked}\n    y = {number}")

    return edit


CORPORA = {
    "flask": Corpus(
        f"Flask {FLASK}",
        lambda: source_release("flask", FLASK),
        FLASK_EDITS,
        _body("src/flask/helpers.py", "def get_load_dotenv(default: bool = True) -> bool:"),
    ),
    "django": Corpus(
        f"Django {DJANGO}", django, DJANGO_EDITS, _body("django/utils/html.py", "def conditional_escape(text):")
    ),
}


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("documents", "builds"))
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []])
    parser.add_argument("--only-repeated", action="store_true", help="only the edit that is repeated")
    options = parser.parse_args()
    chosen = [CORPORA[name] for name in options.corpora or CORPORA]
    only = ["--only-repeated"] if options.only_repeated else []
    command = " ".join(["python -m bench.warm_index", options.what, *only, *options.corpora])
    parts = ["# The indexer that stays\n", f"`{command}`; both sides in one run.\n"]
    if options.what == "documents":
        for corpus in chosen:
            parts += documents(corpus)
    else:
        settings = EngineSettings(shuffle_partitions=8, preload=("codeanatomy.extract", "codeanatomy.store.filewriter"))
        with open_engine(settings) as spark:
            for corpus in chosen:
                parts += builds(corpus._replace(edits=()) if only else corpus, spark)
    text = "\n".join(parts) + "\n"
    (FOLDER / f"WARM-INDEX-{options.what.upper()}.md").write_text(text, encoding="utf-8")
    print(text)


def documents(corpus: Corpus) -> list[str]:
    """A table of edits: documents that differ, and what the changed files took."""
    parts = [
        f"## {corpus.name}: documents\n",
        "| edit | compared | differ | rounds | from scratch, s | staying, s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    differing = 0
    with tempfile.TemporaryDirectory() as scratch, warm_index() as warm:
        root = copied(corpus, Path(scratch) / "tree")
        settle(tree(root), warm)
        for edit in corpus.edits:
            edit.do(root)
            seen = tree(root)
            kept, staying = indexed(seen, edit.paths, warm)
            fresh, once = indexed(seen, edit.paths, None)
            rounds = warm.rounds
            some = _sample(seen, edit)
            settle(seen, warm)  # what is compared now is its own
            every, _ = indexed(seen, some, warm)
            every_fresh, _ = indexed(seen, some, None)
            differ = _differing(kept, fresh) + _differing(every, every_fresh)
            differing += differ
            parts.append(
                f"| {edit.what} | {len(every_fresh.documents)} | {differ} | {rounds} | {once:.2f} | {staying:.2f} "
                f"| {staying / once:.2f} |"
            )
            print(parts[-1], flush=True)
        parts.append(f"\nDocuments that differ: {differing}. Memory at the end: {warm.memory_bytes >> 20} MB.\n")
    return parts


def _sample(seen: Tree, edit: Edit) -> Collection[str]:
    """Files to compare: all of a small repository."""
    paths = sorted(file.path for file in seen.files if file.content_id)
    return paths if len(paths) <= SAMPLE else random.Random(edit.what).sample(paths, SAMPLE)


def settle(seen: Tree, warm: WarmPyrefly) -> None:
    """Wait until it has reported on everything, however long that takes."""
    with tempfile.TemporaryDirectory() as scratch:
        task = IndexTask(seen.root, seen.files, seen.modules, Path(scratch))
        warm.answer(pyrefly_provider().pyrefly, task)


def indexed(seen: Tree, paths: Collection[str], warm: WarmPyrefly | None) -> tuple[Indexed, float]:
    """The documents of some files, and the seconds it took to have them reported and read."""
    some = Tree(seen.root, tuple(file for file in seen.files if file.path in paths), seen.modules)
    some.facts  # noqa: B018 - extracted here, which is not measured
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        began = time.monotonic()
        task = IndexTask(seen.root, seen.files, seen.modules, Path(scratch), Event(), paths, warm)
        found = read(some, pyrefly_provider().run(task))
        return found, time.monotonic() - began


def _differing(one: Indexed, other: Indexed) -> int:
    """Documents and failures that are not the same on both sides."""
    sides = [{**each.documents, **each.failed} for each in (one, other)]
    return sum(sides[0].get(path) != sides[1].get(path) for path in sides[0].keys() | sides[1].keys())


def builds(corpus: Corpus, spark: SparkSession) -> list[str]:
    """A table of updates by a process that stays, its indexer with it, and by one that keeps only Spark."""
    parts = [
        f"## {corpus.name}: updates\n",
        "| edit | from scratch, s | of it the index | staying, s | of it the index | ratio, of the index |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as scratch, Warm(spark) as process:
        roots = [copied(corpus, Path(scratch) / name / "tree") for name in ("scratch", "staying")]
        sides = list(zip(roots, (None, process), strict=True))
        for root, warm in sides:
            full = build(BuildRequest(root, index="pyrefly"), spark=spark, warm=warm)
            print(f"full {full.seconds:.1f}", flush=True)
        edits = [corpus.repeated(number) for number in range(WARMING_UP + REPEATED)]
        seconds: dict[str, list[list[float]]] = {}
        for place, edit in enumerate((*edits, *corpus.edits)):
            made = []
            for root, warm in sides:
                edit.do(root)
                made.append(build(BuildRequest(root, index="pyrefly"), spark=spark, warm=warm))
            row = [figure for each in made for figure in (each.seconds, _index_seconds(each))]
            print(edit.what, row, _stages(made[1]), flush=True)
            if place >= WARMING_UP:
                seconds.setdefault(edit.what, []).append(row)
        for what, rows in seconds.items():
            once, once_index, staying, staying_index = (statistics.median(column) for column in zip(*rows, strict=True))
            parts.append(
                f"| {what} | {once:.2f} | {once_index:.2f} | {staying:.2f} | {staying_index:.2f} "
                f"| {staying / once:.2f}, {staying_index / max(once_index, 0.01):.2f} |"
            )
        verified = verify(BuildRequest(roots[1], index="pyrefly"), spark=spark)
        differing = sum(each.only_incremental + each.only_full for each in verified.tables.values())
        parts.append(f"\nRows that differ from a build from scratch: {differing}.\n")
    return parts


def copied(corpus: Corpus, place: Path) -> Path:
    """A tree to be edited."""
    shutil.copytree(corpus.root(), place, ignore=shutil.ignore_patterns(".codeanatomy"))
    return place


def _index_seconds(made: BuildResult) -> float:
    return next((stage.seconds for stage in made.stages if stage.name == "index"), 0.0)


def _stages(made: BuildResult) -> str:
    return " ".join(f"{stage.name}={stage.seconds:.2f}" for stage in made.stages)


if __name__ == "__main__":
    main()
