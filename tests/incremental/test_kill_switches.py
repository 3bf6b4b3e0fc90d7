"""The proof has teeth: with any one part of an update switched off, rows come out wrong, and a check says so.

Each switch takes away one thing that an update does. What looks after the rest is not to make up for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

import codeanatomy as ca
from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.impact import affected, dependents, documents, propagation, snapshots
from codeanatomy.impact.reasons import ReasonKind
from codeanatomy.pipeline import analysis, rebuild
from codeanatomy.pipeline import tables as table_stages
from codeanatomy.pipeline import verify as verification
from codeanatomy.resolve import Resolver, answers
from codeanatomy.resolve.index import FileNames
from codeanatomy.store import owners, tables
from tests.incremental.cases import load_cases, together
from tests.incremental.test_random_edits import off_trail, walk
from tests.incremental.updates import first_build, put, unequal
from tests.incremental.versions import Contents, answered, overlooked


@dataclass(frozen=True)
class Switch:
    """Something that is switched off, and a file of `BEFORE` or `AFTER` whose rows then come out wrong."""

    name: str
    off: Callable[[pytest.MonkeyPatch], None]
    wrong: str
    is_slow: bool = True


TWO = "class C:\n    def m(self): pass\nclass D:\n    def m(self): pass\n"
BEFORE = {
    "k_added/old.py": "",
    "k_changed/a.py": "def f():\n    return 1\n",
    "k_renamed/old.py": "def unique(): pass\n",
    "k_deleted/a.py": "import os\nos.getcwd()\n",
    "k_emptied/a.py": "import os\nos.getpid()\n",
    "k_moved/src/k_root/a.py": "from . import b\nb.f()\n",
    "k_moved/src/k_root/b.py": "def f(): pass\n",
    "k_import_module/user.py": "import k_late\n",
    "k_import_name/a.py": "def f(): pass\ndef kept(): pass\n",
    "k_import_name/user.py": "from k_import_name.a import f\n",
    "k_import_star/a.py": "def f(): pass\ndef kept(): pass\n",
    "k_import_star/user.py": "from k_import_star.a import *\nf()\n",
    "k_base_class/a.py": "class C: pass\n",
    "k_base_class/user.py": "import k_base_class.a as a\nclass D(a.C): pass\n",
    "k_caller/a.py": "def f(): pass\n",
    "k_caller/user.py": "import k_caller.a as a\na.f()\n",
    "k_name/a.py": "v = 1\n",
    "k_name/user.py": "import k_name.a as a\nx = a.v\n",
    "k_classes/a.py": "class B:\n    def m(self): pass\nclass C: pass\n",
    "k_classes/user.py": "import k_classes.a as a\na.C().m()\n",
    "k_returns/a.py": f"{TWO}def f():\n    return C()\n",
    "k_returns/user.py": "import k_returns.a as a\na.f().m()\n",
    "k_return_types/a.py": f"{TWO}def f() -> C: ...\n",
    "k_return_types/user.py": "import k_return_types.a as a\na.f().m()\n",
    "k_yields/a.py": f"{TWO}def f():\n    yield C()\n",
    "k_yields/user.py": "import k_yields.a as a\nfor x in a.f():\n    x.m()\n",
    "k_stars/one.py": "def f(): pass\n",
    "k_stars/two.py": "def f(): pass\n",
    "k_stars/a.py": "from k_stars.one import *\n",
    "k_stars/user.py": "import k_stars.a as a\na.f()\n",
    "k_exports/a.py": "__all__ = ['f']\ndef f(): pass\ndef g(): pass\n",
    "k_exports/user.py": "from k_exports.a import *\nf()\n",
    "k_signatures/a.py": f"{TWO}def f(x, y):\n    return x\n",
    "k_signatures/user.py": "import k_signatures.a as a\na.f(a.C, a.D)().m()\n",
    "k_passes/a.py": f"{TWO}def f(x):\n    return x\ndef g():\n    z = C\n    return f(z)\n",
    "k_passes/user.py": "import k_passes.a as a\na.g()().m()\n",
    "k_package/user.py": "import k_names\n",
    "k_outside/a.py": "import k_was_outside\n",
}
"""Programs that share a repository, so that one build serves all switches; each has top-level names of its own."""

AFTER = {
    **BEFORE,
    "k_added/new.py": "def f(): pass\n",
    "k_changed/a.py": "def f():\n    return g()\ndef g(): pass\n",
    "k_renamed/new.py": BEFORE["k_renamed/old.py"],
    "k_emptied/a.py": "",
    "k_moved/__init__.py": "",
    "k_late.py": "",
    "k_import_name/a.py": "def kept(): pass\n",
    "k_import_star/a.py": "def kept(): pass\n",
    "k_base_class/a.py": "class E: pass\n",
    "k_caller/a.py": "def g(): pass\n",
    "k_name/a.py": "w = 1\n",
    "k_classes/a.py": BEFORE["k_classes/a.py"].replace("C:", "C(B):"),
    "k_returns/a.py": BEFORE["k_returns/a.py"].replace("return C()", "return D()"),
    "k_return_types/a.py": BEFORE["k_return_types/a.py"].replace("-> C", "-> D"),
    "k_yields/a.py": BEFORE["k_yields/a.py"].replace("yield C()", "yield D()"),
    "k_stars/a.py": "from k_stars.two import *\n",
    "k_exports/a.py": BEFORE["k_exports/a.py"].replace("['f']", "['g']"),
    "k_signatures/a.py": BEFORE["k_signatures/a.py"].replace("(x, y)", "(y, x)"),
    "k_passes/a.py": BEFORE["k_passes/a.py"].replace("z = C", "z = D"),
    "k_names/inside.py": "",
    "k_outside/a.py": "import k_is_outside\n",
}
for gone in ("k_renamed/old.py", "k_deleted/a.py"):
    del AFTER[gone]


# What an update looks for. These need no build: the answers of both versions are worked out in this process.


def no_absent_modules(patch):
    """Trails keep the modules that are there, and forget those that are not, or only had to be."""
    patch.setattr(answers, "_trail_entries", lambda trail: sorted(each for each in trail if not each.startswith("?")))


def no_present_modules(patch):
    """Trails keep that modules are there, and forget that something was looked for in them."""
    patch.setattr(answers, "_trail_entries", lambda trail: sorted({f"?{each.removeprefix('?')}" for each in trail}))


def no_entries_of_existence(patch):
    """A module that comes or goes is looked for only where its contents were."""
    patch.setattr(snapshots.ModuleChanges, "entries", lambda self: sorted({*self.contents, *self.existence}))


def changed_modules(patch, change):
    """What changed in modules, and then with something missing."""
    real = snapshots.module_changes

    def less(changes, contents):
        return change(real(changes, contents))

    for module in (snapshots, analysis):
        patch.setattr(module, "module_changes", less)


def no_contents(patch):
    changed_modules(patch, lambda found: replace(found, contents={}))


def no_existence(patch):
    changed_modules(patch, lambda found: replace(found, existence={}))


def no_packages(patch):
    """Packages without a file of their own neither come nor go."""
    patch.setattr(snapshots, "_packages", lambda files: set())


def not_held(part):
    """A part of what a module holds makes no difference to others."""

    def off(patch):
        real = snapshots._held

        def held(file, contents):
            names = real(file, contents)
            return replace(names, **{part: getattr(FileNames(), part)}) if isinstance(names, FileNames) else names

        patch.setattr(snapshots, "_held", held)

    return off


def no_moved_modules(patch):
    """A file that goes by another module name, because a package came above it, is as it was."""
    real = snapshots.snapshot_changes

    def changes(before, after):
        return replace(real(before, after), moved_modules=())

    for module in (snapshots, analysis):
        patch.setattr(module, "snapshot_changes", changes)


SEARCH = (
    Switch("absent modules on trails", no_absent_modules, "k_import_module/user.py"),
    Switch("present modules on trails", no_present_modules, "k_caller/user.py"),
    Switch("existence among the entries", no_entries_of_existence, "k_import_module/user.py"),
    Switch("contents of modules", no_contents, "k_import_name/user.py"),
    Switch("existence of modules", no_existence, "k_import_module/user.py"),
    Switch("existence of packages", no_packages, "k_package/user.py"),
    Switch("moved modules", no_moved_modules, "k_moved/src/k_root/a.py"),
)
HOLDING = (
    Switch("names", not_held("names"), "k_import_name/user.py"),
    Switch("classes", not_held("classes"), "k_classes/user.py"),
    Switch("returns", not_held("returns"), "k_returns/user.py"),
    Switch("return_types", not_held("return_types"), "k_return_types/user.py"),
    Switch("yields", not_held("yields"), "k_yields/user.py"),
    Switch("stars", not_held("stars"), "k_stars/user.py"),
    Switch("exports", not_held("exports"), "k_exports/user.py"),
    Switch("signatures", not_held("signatures"), "k_signatures/user.py"),
    Switch("passes", not_held("read_passes"), "k_passes/user.py"),
)


def by_name(switches):
    return pytest.mark.parametrize(
        "switch",
        [pytest.param(each, id=each.name, marks=[pytest.mark.slow] if each.is_slow else []) for each in switches],
    )


def searched(*programs):
    """The paths of answers that an update from each program to the next would overlook."""
    contents = Contents(text for program in programs for text in program.values())
    versions = [answered(program, contents) for program in programs]
    return {each.path for before, after in pairwise(versions) for each in overlooked(before, after, contents)}


def test_nothing_is_overlooked_with_everything_on():
    assert not searched(BEFORE, AFTER, BEFORE)


@pytest.mark.parametrize("switch", [*SEARCH, *HOLDING], ids=lambda switch: switch.name)
def test_something_is_overlooked_without(switch, monkeypatch):
    switch.off(monkeypatch)
    assert switch.wrong in searched(BEFORE, AFTER)


@pytest.mark.parametrize("switch", SEARCH, ids=lambda switch: switch.name)
def test_random_edits_notice_the_lack_of(switch, monkeypatch):
    switch.off(monkeypatch)
    assert any(searched(*walk(seed, 10)) for seed in range(0, 100, 2))


def test_an_answer_that_forgets_where_it_looked_is_noticed(monkeypatch):
    real = Resolver._module_attribute
    monkeypatch.setattr(Resolver, "_module_attribute", lambda *asked: (real(*asked)[0], frozenset()))
    program = {"a.py": "import b\nb.f()\n", "b.py": "def f(): pass\n"}
    assert list(off_trail(program, Contents(program.values()), lambda asked: asked))


# What an update does with what it found. These are built, and held against a build from scratch.


def without_reason(kind):
    """Files that are to be rebuilt for this reason are not."""

    def off(patch):
        real = analysis.find_impact

        def find_impact(*arguments):
            found = real(*arguments)
            return replace(found, files=tuple(file for file in found.files if file.reason_kind != kind))

        patch.setattr(analysis, "find_impact", find_impact)

    return off


def no_gone_files(patch):
    patch.setattr(affected.Impact, "gone", lambda self: frozenset())


def no_lookups(patch):
    patch.setattr(dependents.Lookups, "of", lambda self, entries=None: [])


def no_questions(patch):
    """Of the files that looked at a change, no question is asked again."""
    patch.setattr(affected, "_questions_meeting", lambda answers, entries: {})


def replaced_by_rows(patch):
    """Rows are replaced of the owners that have new ones, not of those that are listed."""
    real = tables.replace_rows

    def replace_rows(rows, dataset, state, base, replaced):
        present = set(rows.table["file_id"].to_pylist())
        owners = [owner for owner in replaced.owners if owner in present]
        return real(rows, dataset, state, base, replace(replaced, owners=owners))

    patch.setattr(table_stages, "replace_rows", replace_rows)


def merged_by_rows(patch):
    """The same, but digests are told as if it had been by the list."""
    real = tables._BucketsFromDriver._merged

    def merged(self, *more):
        present = set(self.rows.table["file_id"].to_pylist())
        return real(replace(self, owners=[owner for owner in self.owners if owner in present]), *more)

    patch.setattr(tables._BucketsFromDriver, "_merged", merged)


def nothing_compared(patch):
    """Whatever comes out is taken for what was there."""
    real = tables._replace

    def unchanged(dataset, state, base, replaced, rewritten):
        patch.setattr(type(rewritten), "digests", lambda _: replaced.before)
        return real(dataset, state, base, replaced, rewritten)

    patch.setattr(tables, "_replace", unchanged)


def no_rows_of_no_file(patch):
    real = analysis._scope_of

    def scope_of(*arguments):
        scope = real(*arguments)
        return replace(scope, rebuilt=scope.rebuilt - {GLOBAL_OWNER})

    patch.setattr(analysis, "_scope_of", scope_of)


def nothing_remembered(patch):
    """What each owner has now is not written down."""

    def forget(state, digests, base, replaced, before):
        return tables.WrittenTable(owners_table, base, written=False, files=0, bytes=0)

    owners_table = owners.OWNER_DIGESTS.name
    patch.setattr(rebuild, "replace_owner_digests", forget)


REBUILDING = (
    Switch("added", without_reason(ReasonKind.ADDED), "k_added/new.py"),
    Switch("content_changed", without_reason(ReasonKind.CONTENT_CHANGED), "k_changed/a.py"),
    Switch("renamed", without_reason(ReasonKind.RENAMED), "k_renamed/new.py"),
    Switch("deleted", no_gone_files, "k_deleted/a.py"),
    Switch("module_renamed", without_reason(ReasonKind.MODULE_RENAMED), "k_moved/src/k_root/b.py"),
    Switch("import_module", without_reason(ReasonKind.IMPORT_MODULE), "k_import_module/user.py"),
    Switch("import_name", without_reason(ReasonKind.IMPORT_NAME), "k_import_name/user.py"),
    Switch("import_star", without_reason(ReasonKind.IMPORT_STAR), "k_import_star/user.py"),
    Switch("base_class", without_reason(ReasonKind.BASE_CLASS), "k_base_class/user.py"),
    Switch("caller_qname", without_reason(ReasonKind.CALLER_QNAME), "k_caller/user.py"),
    Switch("name_qname", without_reason(ReasonKind.NAME_QNAME), "k_name/user.py"),
    Switch("who looked at what", no_lookups, "k_caller/user.py"),
    Switch("which questions did", no_questions, "k_caller/user.py"),
    Switch("replaced by list", replaced_by_rows, "k_emptied/a.py", is_slow=False),
    Switch("merged by list", merged_by_rows, "k_deleted/a.py"),
    Switch("compared with before", nothing_compared, "k_changed/a.py", is_slow=False),
    Switch("rows of no file", no_rows_of_no_file, "k_is_outside", is_slow=False),
    Switch("what owners have", nothing_remembered, "owner_digests"),
    *(each for each in SEARCH if "on trails" not in each.name),
)
"""Trails are made by workers of Spark's, which no switch of this process reaches."""


def no_interfaces(patch):
    """A module passes no change on for what others see of it having changed."""
    patch.setattr(documents, "redefined_names", lambda before, after: set())


def no_mentions(patch):
    """Only who looked at a module is asked again, not who knows it by its types; nor does a name spread."""
    nothing_made_of_others(patch)

    def knowing(self, modules, lookups):
        for file_id, entry in lookups.of([entry for module in modules for entry in (module, f"?{module}")]):
            yield file_id, entry.removeprefix("?"), ""

    patch.setattr(documents.StoredDocuments, "knowing", knowing)


def no_words(patch):
    """Only who mentions a name itself is asked again, not who has its text."""
    patch.setattr(propagation.SourceWords, "has_one_of", lambda self, path, names: propagation.ALL in names)


def no_names(patch):
    """Only who has the text of a name is asked again, not who mentions it by its types; nor does a name spread."""
    nothing_made_of_others(patch)
    real = documents.StoredDocuments.knowing
    patch.setattr(
        documents.StoredDocuments, "knowing", lambda *given: ((file, module, "") for file, module, _ in real(*given))
    )


def nothing_made_of_others(patch):
    """A name is seen otherwise only if its own module says so."""
    patch.setattr(documents.StoredDocuments, "spread", lambda self, names: names)


def nothing_passed_on(patch):
    """What decorators, bases, star imports and other names bring is passed on by nobody."""
    patch.setattr(propagation.DerivedNames, "affected", lambda *_: set())


INDEXING = (
    Switch("semantic_document", without_reason(ReasonKind.SEMANTIC_DOCUMENT), "element_type/b.py"),
    Switch("caller_symbol", without_reason(ReasonKind.CALLER_SYMBOL), "symbol_of_stub_and_source/b.py"),
    Switch("interfaces", no_interfaces, "inferred_chain/c.py"),
    Switch("mentions", no_mentions, "inherited_method_appears/user.py"),
    Switch("words", no_words, "appears_under_another_name/mid.py"),
    Switch("names", no_names, "seen_by_type_alone/user.py"),
    Switch("made of others", nothing_made_of_others, "type_that_is_not_told/user.py"),
    Switch("passing on", nothing_passed_on, "appears_under_another_name/user.py"),
)
CASES = [case for case in load_cases() if any(each.wrong.startswith(f"{case.name}/") for each in INDEXING)]
"""The step cases that these need, of which the first step is taken."""


@dataclass(frozen=True)
class Bench:
    """Programs as they were, built; as they are; and these built from scratch."""

    built: Path
    after: Mapping[str, str]
    scratch: Path
    index: str | None

    @classmethod
    def prepare(cls, place, before, after, spark, index=None):
        built = first_build(place / "before" / "repo", before, spark, index=index)
        fresh = first_build(place / "after" / "repo", after, spark, index=index)
        return cls(built, after, fresh / ".codeanatomy", index)

    def update(self, place, spark):
        """Bring a copy of the first build up to date and verify it, against the build from scratch there is."""

        def stand_in(request, **_):
            shutil.copytree(self.scratch, request.state, dirs_exist_ok=True)

        root = Path(shutil.copytree(self.built, place / "repo"))
        put(root, self.after)
        result = ca.build(ca.BuildRequest(root, index=self.index), spark=spark)
        assert result.mode == "incremental"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(verification, "build", stand_in)
            patch.setattr(verification, "SHOWN_ROWS", 10**6)
            return ca.open(root), ca.verify(ca.BuildRequest(root), spark=spark)


@pytest.fixture(scope="module")
def bench(tmp_path_factory, spark):
    return Bench.prepare(tmp_path_factory.mktemp("bench"), BEFORE, AFTER, spark)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory, spark):
    """The same for what an index sees."""
    trees = [{path: text.decode() for path, text in together(CASES, step).items()} for step in (0, 1)]
    return Bench.prepare(tmp_path_factory.mktemp("indexed"), *trees, spark, index="pyrefly")


def assert_right(switches, graph, verified):
    """Everything is as from scratch, and the switches that are named after a reason have a file that has it."""
    assert not unequal(verified)
    rows = graph.sql("SELECT path, reason_kind FROM inc_impacted_files").to_pylist()
    reasons = {row["path"]: row["reason_kind"] for row in rows}
    named = {each.wrong: each.name for each in switches if each.name in list(ReasonKind)}
    assert named == {path: reasons.get(path) for path in named}


def assert_wrong(switch, verified):
    found = unequal(verified)
    assert not verified.equal
    assert any(switch.wrong in each for each in found), found


def test_rows_are_right_with_everything_on(bench, tmp_path, spark):
    assert_right(REBUILDING, *bench.update(tmp_path, spark))


@by_name(REBUILDING)
def test_rows_are_wrong_without(switch, bench, tmp_path, spark, monkeypatch):
    switch.off(monkeypatch)
    assert_wrong(switch, bench.update(tmp_path, spark)[1])


@pytest.mark.slow
def test_rows_are_right_with_an_index_and_everything_on(indexed, tmp_path, spark):
    assert_right(INDEXING, *indexed.update(tmp_path, spark))


@by_name(INDEXING)
def test_rows_are_wrong_with_an_index_but_without(switch, indexed, tmp_path, spark, monkeypatch):
    switch.off(monkeypatch)
    assert_wrong(switch, indexed.update(tmp_path, spark)[1])
