"""Random edits of generated programs: an update finds what they reach, and gives the rows of a build from scratch."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from itertools import cycle, islice, pairwise
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from codeanatomy.repo.files import file_table
from codeanatomy.resolve import Index, Resolver, answers
from tests.incremental.generated import CHAINS, EDITS, Author, PassingAuthor, untangled
from tests.incremental.updates import first_build, put, update
from tests.incremental.versions import Contents, answered, order_dependent, overlooked, shrunk, snapshot_of, told

RANDOMS = st.randoms(use_true_random=False)
SEEDLING = {"p/__init__.py": ""}


def walk(seed, steps):
    """A program and what it becomes, edit by edit; by every other seed, word by word."""
    author = Author(Random(seed))
    program = author.program()
    yield program
    for _ in range(steps):
        program = author.edited(program, ["replace_word"] if seed % 2 else ())
        yield program


def assert_nothing_is_overlooked(walks):
    contents = Contents(text for programs in walks for program in programs for text in program.values())

    def fails(pair):
        return bool(overlooked(*(answered(program, contents) for program in pair), contents))

    for programs in walks:
        versions = [answered(program, contents) for program in programs]
        for before, after in (*pairwise(versions), *pairwise(reversed(versions)), (versions[0], versions[-1])):
            if overlooked(before, after, contents):
                pair = shrunk(before.program, after.program, fails)
                found = overlooked(*(answered(program, contents) for program in pair), contents)
                pytest.fail("\n".join([told(*pair), *map(str, found)]))


def test_an_answer_changes_only_if_its_trail_meets_a_change():
    assert_nothing_is_overlooked([list(walk(seed, 10)) for seed in range(80)])


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 11_000, 1000))
def test_an_answer_changes_only_if_its_trail_meets_a_change_in_many_programs(start):
    for seeds in (range(first, first + 100) for first in range(start, start + 1000, 100)):
        assert_nothing_is_overlooked([list(walk(seed, 10)) for seed in seeds])


def assert_no_answer_depends_on_the_order(programs):
    contents = Contents(text for program in programs for text in program.values())
    for number, program in enumerate(programs):

        def fails(pair, number=number):
            return any(order_dependent(answered(pair[1], contents), contents, Random(number)))

        if fails((program, program)):
            small, _ = shrunk(program, program, fails)
            path, question, *sides = next(order_dependent(answered(small, contents), contents, Random(number)))
            pytest.fail("\n".join([told(small, small), f"{path}: {question}", *map(str, sides)]))


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(1000, 2000), marks=pytest.mark.slow)])
def test_an_answer_does_not_depend_on_what_else_is_asked(seeds):
    assert_no_answer_depends_on_the_order([program for seed in seeds for program in (*walk(seed, 10),)[::5]])


@pytest.mark.parametrize(
    ("kind", "across"), [(kind, across) for kind in CHAINS for across in (False, True) if across or kind != "imports"]
)
@pytest.mark.parametrize("length", [200, pytest.param(500, marks=pytest.mark.slow)])
def test_an_answer_about_a_chain_does_not_depend_on_what_else_is_asked(length, kind, across):
    program = {}
    length = length // 10 if kind == "names" else length  # each name is all those before it
    Author(Random(length)).chain(program, kind, length, across=across)
    contents = Contents(program.values())
    assert not list(islice(order_dependent(answered(program, contents), contents, Random(0)), 5))


class Watched(Index):
    """An index that notes what is looked at: modules as `m`, whether one exists as `?m`."""

    def __init__(self, files, contents):
        super().__init__(files, contents)
        self.asking = None
        self.seen = seen = set()

        class Modules(dict):
            def get(self, name, default=None):
                seen.add(f"?{name}")
                return super().get(name, default)

            def __getitem__(self, name):
                seen.add(f"?{name}")
                return super().__getitem__(name)

            def __contains__(self, name):
                seen.add(f"?{name}")
                return super().__contains__(name)

        class Packages(set):
            def __contains__(self, name):
                seen.add(f"?{name}")
                return super().__contains__(name)

        self.modules = Modules(self.modules)
        self.packages = Packages(self.packages)

    def names(self, file):
        if file is not self.asking:  # what the asking file holds is no news to it
            self.seen.add(file.module)
        return super().names(file)


def off_trail(program, contents, sample):
    """What answers looked at that is not on their trails: a sample of the questions, each asked of a fresh resolver."""
    files = snapshot_of(program, contents)
    index = Watched(file_table(files.values()), contents.names)
    asked = [
        (index.files[file.file_id], ask["question"])
        for file in files.values()
        for ask in contents.asks(file.content_id)[0].as_py() or ()
    ]
    for file, question in sample(asked):
        index.asking = file
        index.seen.clear()
        trail = answers.answer_question(Resolver(index), file, question).trail
        if missed := {each for each in index.seen if each not in trail and each.removeprefix("?") not in trail}:
            yield file.path, question, sorted(missed), sorted(trail)


def sources_of(*packages):
    """The sources of installed packages, by path."""
    found = {}
    for package in packages:
        root = Path(importlib.util.find_spec(package).origin).parent
        files = (path for path in sorted(root.rglob("*")) if path.suffix in (".py", ".pyi"))
        found |= {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in files}
    return found


@pytest.fixture
def deep_stack():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(limit)


def some(number):
    return lambda asked: Random(number).sample(asked, min(number, len(asked)))


@pytest.mark.parametrize(
    ("packages", "number"),
    [
        (("asyncio", "email"), 3000),
        pytest.param(("codeanatomy", "hypothesis", "unittest", "importlib"), 20_000, marks=pytest.mark.slow),
        pytest.param(("sqlglot", "pandas"), 20_000, marks=pytest.mark.slow),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, tuple) else str(each),
)
def test_answers_about_installed_code_look_at_nothing_that_is_not_on_their_trail(packages, number, deep_stack):
    program = sources_of(*packages)
    found = off_trail(program, Contents(program.values()), some(number))
    assert not list(islice(found, 5))


@pytest.mark.parametrize("programs", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_answers_look_at_nothing_that_is_not_on_their_trail(programs):
    made = [Author(Random(seed)).program() for seed in range(programs)]
    contents = Contents(text for program in made for text in program.values())
    for program in made:
        assert not list(islice(off_trail(program, contents, some(400)), 5)), told(program, program)


STRATEGIES = ("hybrid", "symbol_closure", "import_closure")


KINDS = ((), ("delete",), ("replace_word",), ("rename",), ("chain", "encode"), ("touch",), (), ("add",))
"""Edits of any kind, or of one alone: what a step lacks, no other program may make up for."""


def several(seed, prefixes, shape=dict, author=Author):
    """Programs that share a repository, and what they become, each step one edit or a few in every one of them."""
    authors = {prefix: author(Random(f"{seed} {prefix}"), prefix) for prefix in prefixes}
    programs = {prefix: author.program() for prefix, author in authors.items()}
    for kinds in cycle(KINDS):
        yield {prefix: shape(program) for prefix, program in programs.items()}
        programs = {prefix: author.edited(programs[prefix], kinds) for prefix, author in authors.items()}


def together(programs):
    return {path: text for program in programs.values() for path, text in program.items()}


def concerned(programs, wrong):
    """The programs that a difference is about: those of which it names a path, else all."""
    named = {prefix: each for prefix, each in programs.items() if any(f"'{path}'" in wrong for path in each)}
    return together(named or programs)


def take_steps(
    root, engine, seed, strategies, *, prefixes="hjklmnqt", compared=lambda step: True, author=Author, **asked
):
    """Build some programs and then their next versions, by one strategy after the other."""
    versions = several(seed, prefixes, untangled if "index" in asked else dict, author)
    before = next(versions)
    first_build(root, together(before), engine, **asked)
    for step, strategy in enumerate(strategies, 1):
        after = next(versions)
        put(root, together(after))
        wrong = update(root, engine, strategy=strategy, compared=compared(step), **asked)
        files = told(concerned(before, wrong), concerned(after, wrong)) if wrong else ""
        assert not wrong, f"step {step} of seed {seed} by {strategy}:\n{wrong}\n{files}"
        before = after


@pytest.fixture
def always_updated(monkeypatch):
    """Updates, however many files they rebuild."""
    monkeypatch.setattr("codeanatomy.pipeline.analysis.cheaper_in_full", lambda *_: None)


@pytest.fixture
def done_by_workers(monkeypatch):
    """Nothing is done in the driver, however little it is."""
    monkeypatch.setattr("codeanatomy.pipeline.context.TASK_BYTES", -1)


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.slow), "warm"])
def test_random_edits_give_the_rows_of_a_build_from_scratch(engine, tmp_path, request, always_updated):
    on = request.getfixturevalue(engine)
    take_steps(tmp_path / "repo", on, 1, STRATEGIES, prefixes="hjklmn", compared=lambda step: step == 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_random_edits_give_the_rows_of_a_build_from_scratch(strategy, seed, tmp_path, warm, always_updated):
    take_steps(tmp_path / "repo", warm, seed, [strategy] * 8)
    assert verify(BuildRequest(tmp_path / "repo"), spark=warm.spark).equal


@pytest.mark.parametrize(
    ("seed", "steps"), [(1, 4), *(pytest.param(seed, 12, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_random_edits_of_what_is_passed_around(seed, steps, tmp_path, warm, always_updated):
    asked = {"author": PassingAuthor, "value_flow": True}
    take_steps(tmp_path / "repo", warm, seed, ["hybrid"] * steps, **asked)


@pytest.mark.slow
def test_random_edits_of_what_is_passed_around_done_by_workers(tmp_path, spark, always_updated, done_by_workers):
    take_steps(tmp_path / "repo", spark, 7, ["hybrid"] * 6, author=PassingAuthor, value_flow=True)


@pytest.mark.slow
def test_random_edits_done_by_workers(tmp_path, spark, always_updated, done_by_workers):
    take_steps(tmp_path / "repo", spark, 6, STRATEGIES * 2)


@pytest.mark.slow
def test_random_edits_whose_rows_are_handed_over_as_files(tmp_path, spark, monkeypatch):
    monkeypatch.setattr("codeanatomy.store.temporary.INLINE_BYTES", -1)
    take_steps(tmp_path / "repo", spark, 10, ["hybrid"], prefixes="hj")
    assert not (tmp_path / "repo" / ".codeanatomy" / "shared").exists()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["hybrid", "import_closure"])
def test_random_edits_with_an_index(strategy, tmp_path, warm, always_updated):
    take_steps(tmp_path / "repo", warm, 8, [strategy] * 6, index="pyrefly")


@pytest.mark.slow
def test_a_long_row_of_updates(tmp_path, warm, always_updated):
    """So long that the small files of facts are made one."""
    take_steps(tmp_path / "repo", warm, 9, STRATEGIES * 12, compared=lambda step: step % 12 == 0)


class Edits(RuleBasedStateMachine):
    """A repository that is edited, and brought up to date after each edit or row of edits."""

    def __init__(self, spark, seedling, place, strategy, index):
        super().__init__()
        self._spark, self._strategy, self._index = spark, strategy, index
        self._place = Path(mkdtemp(dir=place))
        self._root = Path(shutil.copytree(seedling, self._place / "repo"))
        self._author = Author(Random())
        self._shape = untangled if index else dict
        self._program = dict(SEEDLING)

    @initialize(random=RANDOMS)
    def begin(self, random):
        self._author.random = random
        self._step(self._author.program(), "begin")

    @rule(kinds=st.lists(st.sampled_from(EDITS), min_size=1, max_size=3), random=RANDOMS)
    def edit(self, kinds, random):
        self._author.random = random
        self._step(self._author.edited(self._program, kinds), ", ".join(kinds))

    def _step(self, program, said):
        put(self._root, self._shape(program))
        wrong = update(self._root, self._spark, strategy=self._strategy, index=self._index)
        assert not wrong, f"{said}:\n{wrong}\n{told(self._shape(self._program), self._shape(program))}"
        self._program = program

    def teardown(self):
        shutil.rmtree(self._place)


def run_machine(spark, place, strategy, *, index=None, examples=4, steps=6):
    seedling = first_build(place / "seedling", SEEDLING, spark, index=index)
    run_state_machine_as_test(
        lambda: Edits(spark, seedling, place, strategy, index),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_edits_give_the_rows_of_a_build_from_scratch(strategy, tmp_path, spark):
    run_machine(spark, tmp_path, strategy)


@pytest.mark.slow
def test_any_edits_give_the_rows_of_a_build_from_scratch_with_an_index(tmp_path, spark):
    run_machine(spark, tmp_path, "hybrid", index="pyrefly")


@pytest.mark.slow
def test_any_edits_done_by_workers_give_the_rows_of_a_build_from_scratch(
    tmp_path, spark, always_updated, done_by_workers
):
    run_machine(spark, tmp_path, "hybrid")


HIDDEN = {"p/__init__.py": "", "p/b.py": "", "p/b/f.py": "D = 1\n", "user.py": "from p.b.f import D\n"}
PACKAGE = {**HIDDEN, "p/b/__init__.py": ""}
USER = {"user.py": "import a\na.f()\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({**USER, "a.py": "def f(): pass\n"}, USER, id="nothing but a deletion"),
        pytest.param(PACKAGE, HIDDEN, id="a package above an import goes, and a module hides it"),
        pytest.param(HIDDEN, PACKAGE, id="a package above an import comes, and hides a module"),
    ],
)
def test_what_random_edits_found_with_an_index(before, after, tmp_path, spark):
    root = first_build(tmp_path / "repo", before, spark, index="pyrefly")
    put(root, after)
    wrong = update(root, spark, index="pyrefly")
    assert not wrong, wrong
