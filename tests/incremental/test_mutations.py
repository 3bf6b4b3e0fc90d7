"""Random edits of real code: edits are found that an update would not get right, and every kind of edit is one."""

import shutil
from random import Random

import pytest
from bench.mutations import CHANGES, differences, edited, put_back

from codeanatomy.catalogue.tables import ANSWERS
from codeanatomy.impact import documents
from codeanatomy.pipeline import analysis
from tests.repositories import SHOP, write_repository

EVERYTHING = """\
import os

__all__ = [
    "f",
]

v = 1


class B:
    pass


class C(B):
    x: str

    @staticmethod
    def __call__(a) -> str:
        return a

    def m(self):
        pass


def f():
    return v
"""


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_one(name):
    assert any(CHANGES[name](EVERYTHING, Random(seed)) != EVERYTHING for seed in range(9))
    unchanged = CHANGES[name]("\n", Random(0)) == "\n"
    assert unchanged == (not name.endswith("added") or name == "parameter added")


def test_edits_are_the_same_every_time_and_can_be_undone(tmp_path):
    released = write_repository(tmp_path / "released")
    before = {path: (released / path).read_text() for path in SHOP}
    told = set()
    for number in range(12):
        trees = [tmp_path / f"{number} {copy}" for copy in range(2)]
        edits = [list(edited(shutil.copytree(released, tree), Random(number))) for tree in trees]
        assert edits[0] == edits[1]
        texts = [{each.relative_to(tree): each.read_text() for each in tree.rglob("*.py*")} for tree in trees]
        assert texts[0] == texts[1]
        put_back(trees[0], released)
        assert {path: (trees[0] / path).read_text() for path in SHOP} == before
        assert len(list(trees[0].rglob("*.py*"))) == len(list(released.rglob("*.py*")))
        told.update(edits[0])
    assert len(told) > 6


def test_what_an_update_would_get_wrong_is_found(tmp_path, indexed_once, monkeypatch):
    tree = shutil.copytree(indexed_once, tmp_path / "repo")
    prices = tree / "shop/prices.py"
    prices.write_text(prices.read_text().replace("def price_of(item: str) -> float", "def price_of(item: str) -> str"))
    asked, found = differences(tree)
    assert (asked > 1, found) == (True, [])
    monkeypatch.setattr(documents.StoredDocuments, "knowing", lambda *_: ())
    asked, found = differences(tree)
    assert (asked, [each[:2] for each in found]) == (1, [("shop/cart.py", "document")])
    monkeypatch.undo()
    monkeypatch.setattr(analysis, "answer", lambda *_: ANSWERS.schema().empty_table())
    assert ("shop/prices.py", "answers") in [each[:2] for each in differences(tree)[1]]
