"""Random edits of real code: does an update with an index find everything that they alter?

    python -m bench.mutations [--only NAME] [--edits N] [--seed S]

The last release of each package (`releases.txt`) is built once, with pyrefly. Then it is edited, over and over, each
time from the same start: a function is renamed, a base dropped, another value returned. The analysis of an update says
which documents and answers an edit alters, and leaves the others as they are. Here every file is asked about, and what
was left must be what a build from scratch would find; rows follow from these by the rules. After the first build no
Spark is needed, so that an edit takes seconds. Any difference ends in exit code 1, with the edit that showed it.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

import pyarrow as pa

import codeanatomy as ca
from bench.analyses import Difference, differing, rows_of
from bench.builds import CORPORA
from bench.versions import fetch, releases
from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, SCIP_DOCUMENTS
from codeanatomy.engine.rows import in_driver
from codeanatomy.pipeline.answering import Knowledge, answer
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.indexing import indexing, read_documents
from codeanatomy.pipeline.inputs import gather
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import Silent, StageClock
from codeanatomy.pipeline.request import Mode, Strategy
from codeanatomy.pipeline.stages import analyse
from codeanatomy.pipeline.work import Work
from codeanatomy.store.builds import current_build
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import open_state
from codeanatomy.store.tables import read_arrow

EDITS = 40
"""Of each package."""

Change = Callable[[str, Random], str]
"""Another text, or the same if there is nothing to change."""


def somewhere(pattern: str, *others: str) -> Change:
    """One of the places that match, replaced by one of `others`."""
    found = re.compile(pattern, re.MULTILINE)

    def change(text: str, chance: Random) -> str:
        places = list(found.finditer(text))
        if not places:
            return text
        place = chance.choice(places)
        return text[: place.start()] + place.expand(chance.choice(others)) + text[place.end() :]

    return change


def appended(more: str) -> Change:
    """Something at the end."""
    return lambda text, _: text + more


def rebased(text: str, chance: Random) -> str:
    """A class that is derived from another one of the file."""
    classes = re.findall(r"^class (\w+)", text, re.MULTILINE)
    base = chance.choice(classes) if classes else ""
    return somewhere(r"^(class \w+)(?:\(.*\))?:", rf"\1({base}):")(text, chance)


def returning(text: str, chance: Random) -> str:
    """A function that gives a function or class of the file, or an instance of it."""
    names = re.findall(r"^(?:class|def) (\w+)", text, re.MULTILINE)
    name = chance.choice(names) if names else "None"
    return somewhere(_RETURN, rf"\1 {name}", rf"\1 {name}()")(text, chance)


def without_a_statement(text: str, chance: Random) -> str:
    """A file without one of its definitions, assignments or conditions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.If)
    try:
        found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds) and node.col_offset in (0, 4)]
    except SyntaxError:
        return text
    if not found:
        return text
    node = chance.choice(found)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    lines = text.split("\n")
    lines[first - 1 : node.end_lineno] = [" " * node.col_offset + "pass"]
    return "\n".join(lines)


_RETURN = r"^(\s+return) \S.*(?<![(\[{,\\])$"

CHANGES: Mapping[str, Change] = {
    "function renamed": somewhere(r"^(\s*(?:async )?def \w+)\(", r"\1_renamed("),
    "class renamed": somewhere(r"^(\s*class \w+)", r"\1Renamed"),
    "variable renamed": somewhere(r"^(\w+)((?: *:[^=\n]+)? = \S)", r"\1_renamed\2"),
    "special method renamed": somewhere(r"def __(\w+)__\(", r"def \1("),
    "bases dropped": somewhere(r"^(\s*class \w+)\(.+\):", r"\1:"),
    "another base": rebased,
    "another value returned": somewhere(_RETURN, r"\1 None", r"\1 1", r"\1 [object()]"),
    "another definition returned": returning,
    "return type changed": somewhere(r"\) -> [^:\n]+:$", ") -> int:", ") -> object:", "):"),
    "annotation changed": somewhere(r"^(    \w+): [\w\[\], |.\"]+", r"\1: int", r"\1: list"),
    "parameter added": somewhere(r"^(\s*(?:async )?def \w+\()(self, |cls, )?(?=\w)", r"\1\2extra, "),
    "made a coroutine": somewhere(r"^(\s*)def ", r"\1async def "),
    "made a property": somewhere(r"^(\s*)def (\w+)\(self\)", r"\1@property\n\1def \2(self)"),
    "decorator dropped": somewhere(r"^\s*@[\w.]+\n", ""),
    "import dropped": somewhere(r"^(\s*)(?:from \S+ import [\w, ]+|import [\w.]+)(?: as \w+)?$", r"\1pass"),
    "another value": somewhere(r"^(\s*(?:self\.)?\w+(?: *:[^=\n]+)?) = [^(\[{\n]+$", r"\1 = None", r"\1 = 1"),
    "entry of a list dropped": somewhere(r"^    [\"']\w+[\"'],\n", ""),
    "statement dropped": without_a_statement,
    "function added": appended("\n\ndef brand_new(x):\n    return x\n"),
    "__getattr__ added": appended("\n\ndef __getattr__(name):\n    return 1\n"),
}


def main() -> int:
    """Edit and compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(releases()), action="append", help="only this package")
    parser.add_argument("--edits", type=int, default=EDITS, metavar="N", help=f"of each package ({EDITS})")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="other edits")
    options = parser.parse_args()
    differing = made = 0
    for name, listed in releases().items():
        if options.only and name not in options.only:
            continue
        released = fetch(listed[-1])
        tree = CORPORA / "mutations" / name
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(released, tree)
        built = ca.build(ca.BuildRequest(tree, index="pyrefly"))
        print(f"{released.name}: {built.files['total']} files, {built.seconds:.1f} s", flush=True)
        for number in range(options.edits):
            began = time.monotonic()
            edits = list(edited(tree, Random(f"{options.seed} {name} {number}")))
            asked, found = differences(tree)
            differing += bool(found)
            made += 1
            outcome = "DIFFERS" if found else "equal"
            told = f"{', '.join(edits)}: {asked} files asked about, {time.monotonic() - began:.1f} s"
            print(f"{name} {number} {outcome}: {told}", flush=True)
            for each in found:
                print(f"    {each.path}: {each.what}: {each.example}", flush=True)
            put_back(tree, released)
        shutil.rmtree(tree)
    print(f"{made} edits, {differing} of them with differences")
    return 1 if differing or not made else 0


def edited(tree: Path, chance: Random) -> Iterator[str]:
    """Change one file or two of a tree; what was done."""
    for _ in range(chance.choice((1, 1, 2))):
        modules = sorted(each for each in tree.rglob("*.py*") if each.suffix in (".py", ".pyi"))
        done = ""
        while not done:
            done = _edit(chance.choice(modules), chance)
        yield done


def _edit(file: Path, chance: Random) -> str:
    """What was done to a file; nothing, if it has no place for that."""
    what = chance.choice(("deleted", "moved", "stub added", *CHANGES, *CHANGES))
    if what == "deleted":
        file.unlink()
    elif what == "moved":
        file.rename(file.with_name(f"moved_{file.name}"))
    elif what == "stub added":
        if file.suffix == ".pyi":
            return ""
        file.with_suffix(".pyi").write_text("x: int\n", encoding="utf-8")
    else:
        try:
            before = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return ""
        after = CHANGES[what](before, chance)
        if after == before:
            return ""
        file.write_text(after, encoding="utf-8")
    return f"{what} in {file.name}"


def put_back(tree: Path, released: Path) -> None:
    """Undo all edits; what is the same is not touched."""
    for file in [each for each in tree.rglob("*.py*") if each.suffix in (".py", ".pyi")]:
        if not (released / file.relative_to(tree)).exists():
            file.unlink()
    for original in released.rglob("*.py*"):
        file = tree / original.relative_to(released)
        if not file.exists() or file.read_bytes() != original.read_bytes():
            shutil.copyfile(original, file)


def differences(tree: Path) -> tuple[int, list[Difference]]:
    """How many files an update would ask about, and where it would go wrong."""
    request = ca.BuildRequest(tree, index="pyrefly")
    location = locate_state(request.repo, None, {})
    state = open_state(location)
    last = current_build(state)
    inputs = gather(request, location, state)
    plan = Plan(Mode.INCREMENTAL, ())
    build = Build(state, last, inputs, plan, Strategy.HYBRID, StageClock(Silent()))
    analysis = analyse(build)
    documents = analysis.documents
    assert documents is not None
    there = {file.file_id: file.path for file in inputs.snapshot.files}
    with indexing(inputs) as started:
        whole = in_driver(read_documents(build, analysis.facts, started, inputs.source_bytes()))
    said = list(SCIP_DOCUMENTS.names())
    stored = read_arrow(state, DOCUMENTS, last.tables[DOCUMENTS.name].version, said)
    updated = pa.concat_tables([rows_of(stored, there.keys() - documents.replaced), documents.rows.select(said)])
    found = differing("document", there, updated, whole.select(said))
    if not found:
        stored = read_arrow(state, ANSWERS, last.tables[ANSWERS.name].version)
        updated = pa.concat_tables([rows_of(stored, there.keys() - analysis.impact.asked), analysis.impact.answers])
        found = differing("answers", there, updated, _answers_of_all(build, analysis, whole))
    return documents.indexed, found


def _answers_of_all(build: Build, analysis: Work, documents: pa.Table) -> pa.Table:
    assert build.last is not None
    stored = build.last.tables[DOCUMENTS.name].version
    every = frozenset(file.file_id for file in build.inputs.snapshot.files) | {GLOBAL_OWNER}
    known = Knowledge.of(build, analysis.facts, Documents(build.state, stored, every, documents))
    return in_driver(answer(build, known))


if __name__ == "__main__":
    sys.exit(main())
