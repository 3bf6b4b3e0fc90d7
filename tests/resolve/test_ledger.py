"""The accuracy ledger: the hand-written cases keep what the project promises of them."""

import pytest
from bench.accuracy.cases import load_cases
from bench.accuracy.ledger import measure, score


@pytest.fixture(scope="module")
def outcomes():
    return measure(load_cases())


def test_there_are_enough_cases():
    cases = load_cases()
    assert len(cases) >= 150
    assert len({case.category for case in cases}) >= 20


def test_cases_that_need_no_general_flow_are_resolved(outcomes):
    plain = score(o for o in outcomes if not o.case.needs_flow)
    assert plain.precision >= 0.99
    assert plain.recall >= 0.98


def test_cases_that_need_flow_are_resolved(outcomes):
    flow = score(o for o in outcomes if o.case.needs_flow)
    assert flow.precision >= 0.98
    assert flow.recall >= 0.95
