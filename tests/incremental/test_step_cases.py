"""Incremental builds on the step cases: which files a step rebuilds and why, and that its rows are those from scratch.

A build costs seconds however small the repository, so the cases share one and take their steps together.
"""

from dataclasses import dataclass

import pytest

import codeanatomy as ca
from codeanatomy.pipeline import analysis
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from codeanatomy.query.entry_points import EntryPoint
from tests.incremental.cases import Impacted, apply_step, differences, lay_out, load_cases, owners, together
from tests.incremental.updates import build_on, session_of, unequal

CASES = load_cases()
SHARING = [case for case in CASES if not case.is_alone]
INDEXED = [case for case in SHARING if case.is_indexed]
ALONE = [case for case in CASES if case.is_alone]
STEPS = max(len(case.steps) for case in SHARING)
OWNER = owners(SHARING)

GUESSED = 0.5
"""The confidence of entry points that are told by how a decorator is written."""

IMPACTED = "SELECT path, reason_kind, reason_ref, caused_by_path FROM inc_impacted_files ORDER BY path"


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@pytest.fixture(scope="module", autouse=True)
def always_updated():
    """However many files the cases reach together, a step is an update, even if a full build were faster."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "cheaper_in_full", lambda *_: None)
        yield


@dataclass
class Taken:
    """A step that was taken: what its build rebuilt, and how it compares with a build from scratch."""

    impacted: list[Impacted]
    unequal: list[str]
    entry_points: list[EntryPoint]


def take_steps(cases, root, engine, *, index=None, verified=lambda number: True):
    """Lay the cases out in one repository and build it, then after each step again."""
    request = BuildRequest(root, index=index)
    lay_out(together(cases, 0), root)
    build_on(engine, request)
    taken = []
    for number in range(1, max(len(case.steps) for case in cases) + 1):
        for case in cases:
            if number <= len(case.steps):
                apply_step(case.steps[number - 1], root)
        result = build_on(engine, request)
        assert result.mode in ("incremental", "noop"), f"step {number} made a {result.mode} build: {result.reasons}"
        rows = ca.open(root).sql(IMPACTED).to_pylist() if result.mode == "incremental" else []
        impacted = [Impacted(*(row.values())) for row in rows]
        differing = unequal(verify(request, spark=session_of(engine))) if verified(number) else []
        taken.append(Taken(impacted, differing, list(ca.entry_points(root).found)))
    return taken


def assert_as_expected(case, taken, *, indexed=False):
    found = []
    for number, step in enumerate(taken, 1):
        own = [each for each in step.impacted if case.is_alone or OWNER.get(each.path) == case.name]
        found.append(differences(case, number, own, indexed=indexed))
    if any(found):
        pytest.fail("\n".join(filter(None, found)), pytrace=False)


def assert_entry_points(case, taken):
    for number, (step, expected) in enumerate(zip(taken, case.steps, strict=False), 1):
        if expected.entry_points is not None:
            sure = [each for each in step.entry_points if each.confidence > GUESSED]
            own = {(e.kind, e.name) for e in sure if case.is_alone or OWNER.get(e.path) == case.name}
            assert own == expected.entry_points, f"{case.place}, step {number}"


def assert_as_from_scratch(taken):
    for number, step in enumerate(taken, 1):
        if step.unequal:
            pytest.fail("\n".join([f"after step {number}:", *step.unequal]), pytrace=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory, warm):
    """The steps of all cases that share a repository, by a process that stays."""
    return take_steps(SHARING, tmp_path_factory.mktemp("steps"), warm)


@by_name(SHARING)
def test_a_step_rebuilds_what_it_should(case, shared):
    assert_as_expected(case, shared)


@by_name([case for case in SHARING if any(step.entry_points is not None for step in case.steps)])
def test_entry_points_come_and_go(case, shared):
    assert_entry_points(case, shared)


def test_steps_rebuild_nothing_else(shared):
    assert not [each for step in shared for each in step.impacted if each.path not in OWNER]


def test_every_step_gives_the_rows_of_a_build_from_scratch(shared):
    assert len(shared) == STEPS
    assert_as_from_scratch(shared)


@by_name([pytest.param(case, marks=pytest.mark.slow, id=case.name) for case in ALONE])
def test_a_case_that_needs_a_repository_of_its_own(case, tmp_path, warm):
    taken = take_steps([case], tmp_path, warm)
    assert_as_expected(case, taken)
    assert_entry_points(case, taken)
    assert_as_from_scratch(taken)


@pytest.mark.slow
@by_name(SHARING)
def test_a_case_in_a_repository_of_its_own(case, tmp_path, spark):
    last = len(case.steps)
    taken = take_steps([case], tmp_path, spark, verified=lambda number: number == last)
    assert_as_expected(case, taken)
    assert_entry_points(case, taken)
    assert_as_from_scratch(taken)


@pytest.fixture(scope="module")
def shared_and_indexed(tmp_path_factory, warm):
    """The same steps with a semantic index."""
    return take_steps(INDEXED, tmp_path_factory.mktemp("indexed_steps"), warm, index="pyrefly")


@pytest.mark.slow
@by_name(INDEXED)
def test_a_step_rebuilds_what_it_should_with_an_index(case, shared_and_indexed):
    assert_as_expected(case, shared_and_indexed, indexed=True)


@pytest.mark.slow
def test_every_step_gives_the_rows_of_a_build_from_scratch_with_an_index(shared_and_indexed):
    assert_as_from_scratch(shared_and_indexed)
