"""Reasons in words."""

import re
from pathlib import Path

import pytest

from codeanatomy.impact.reasons import ReasonKind
from codeanatomy.query.why import Step

PAGE = (Path(__file__).parents[2] / "docs" / "incremental.md").read_text()


@pytest.mark.parametrize("kind", ReasonKind)
def test_every_reason_is_a_sentence(kind):
    assert "{" not in str(Step("shop/cart.py", kind, "shop.prices", None))


def test_the_page_on_incremental_builds_lists_the_reasons_in_their_order():
    table = PAGE.partition("| reason |")[2].partition("\n\n")[0]
    assert re.findall(r"`(\w+)`", table) == list(ReasonKind)


def test_a_build_of_an_older_version_may_have_stored_the_kind_as_text():
    assert str(Step("shop/cart.py", "content_changed", None, None)) == "its content changed"
