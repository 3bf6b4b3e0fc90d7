"""The expectations of the step cases, held against the definition of impact itself; no build is made."""

from itertools import pairwise

import pytest

from codeanatomy.repo.modules import module_names
from tests.incremental.cases import OWN_KINDS, Impacted, differences, load_cases, owners, together
from tests.incremental.impact import impact, outcomes

CASES = load_cases()
SHARING = [case for case in CASES if not case.is_alone]
ALONE = [case for case in CASES if case.is_alone]
STEPS = max(len(case.steps) for case in SHARING)
OWNER = owners(SHARING)


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def impacts(trees, *, indexed=False):
    """What each step from one tree to the next impacts."""
    found = [outcomes(tree, indexed=indexed) for tree in trees]
    return [impact(before, after) for before, after in pairwise(found)]


def of_case(case, reasons):
    return {path: reason for path, reason in reasons.items() if OWNER[path] == case.name}


def complaints(case, number, reasons, *, indexed=False):
    """How the expectations of a step differ from what it impacts; a reference must be a name that an answer has."""
    step = case.steps[number - 1] if number <= len(case.steps) else None
    expected = {each.path: each for each in (step.expected(indexed=indexed) if step else ())}
    own = {path for path, reason in reasons.items() if reason.kind in OWN_KINDS}
    found = []
    for path, reason in reasons.items():
        said = expected.get(path, Impacted(path, reason.kind))
        ref = said.ref if said.ref in reason.names else next(iter(sorted(reason.names)), None)
        found.append(Impacted(path, reason.kind, ref, said.cause if said.cause in own else None))
    return differences(case, number, found, indexed=indexed)


def fail_with(*found):
    if any(found):
        pytest.fail("\n".join(filter(None, found)), pytrace=False)


@pytest.fixture(scope="module")
def shared():
    """What the steps of all cases that share a repository impact, step by step."""
    return impacts([together(SHARING, number) for number in range(STEPS + 1)])


@by_name(SHARING)
def test_expectations_hold_in_one_repository(case, shared):
    for number, reasons in enumerate(shared, 1):
        fail_with(complaints(case, number, of_case(case, reasons)))


@by_name(ALONE)
def test_expectations_hold_alone(case):
    for number, reasons in enumerate(impacts(case.versions()), 1):
        fail_with(complaints(case, number, reasons))


@pytest.mark.slow
@by_name(SHARING)
def test_expectations_hold_in_a_repository_of_its_own(case):
    for number, reasons in enumerate(impacts(case.versions()), 1):
        fail_with(complaints(case, number, reasons))


@pytest.mark.slow
def test_expectations_hold_with_an_index():
    cases = [case for case in SHARING if case.is_indexed]
    trees = [together(cases, number) for number in range(STEPS + 1)]
    found = [
        complaints(case, number, of_case(case, reasons), indexed=True)
        for number, reasons in enumerate(impacts(trees, indexed=True), 1)
        for case in cases
    ]
    fail_with(*found)


def test_expectations_of_one_case_are_not_those_of_another():
    """No module's first name belongs to two cases, and it starts with the name of its case."""
    tops = {}
    for number in range(STEPS + 1):
        for module in module_names(sorted(together(SHARING, number))):
            top = module.module_fqn.partition(".")[0]
            assert tops.setdefault(top, OWNER[module.path]) == OWNER[module.path], module.path
            assert f"{top}_".startswith(f"{OWNER[module.path]}_"), module.path
    assert sum(len(tree) for tree in (case.files for case in SHARING)) == len(together(SHARING, 0))


def test_expectations_are_many():
    assert len(CASES) >= 90
    assert len(ALONE) <= 8
    assert all(step.impacted_indexed != step.impacted for case in CASES for step in case.steps)
