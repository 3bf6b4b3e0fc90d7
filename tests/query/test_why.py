"""Reasons in words."""

import pytest

from codeanatomy.impact.reasons import ReasonKind
from codeanatomy.query.why import REASONS, Step


@pytest.mark.parametrize("kind", ReasonKind)
def test_every_reason_has_a_sentence(kind):
    sentence = str(Step("shop/cart.py", kind, "shop.prices", None))
    assert sentence == REASONS[kind].format(ref="shop.prices")
    assert "{" not in sentence


def test_a_build_of_an_older_version_may_have_stored_the_kind_as_text():
    assert str(Step("shop/cart.py", "content_changed", None, None)) == "its content changed"
