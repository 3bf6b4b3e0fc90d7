"""Edits made of real code: a sample of them goes well, every kind is one, and what goes wrong is found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

import pyarrow.compute as pc
import pytest
from bench import analyses
from bench.analyses import Ledger
from bench.splices import fails, put, smallest, steps_of
from bench.splicing import CHAINS, EDITS, Chain, Library, Splicer, parsed

from codeanatomy.resolve import Resolver

PROGRAM = {
    "p/__init__.py": b"",
    "p/a.py": b'"""A."""\n\n\nclass A:\n    def m(self):\n        return self\n\n\ndef f():\n    return A()\n',
    "p/b.py": b"from p.a import f\n\n\ndef g():\n    return f().m()\n",
    "p/sub/c.py": b"import p.a\n\n\ndef h():\n    return p.a.A().m()\n",
    "chain/m0.py": b"class x0:\n    def m(self):\n        return self\n",
    "chain/m1.py": b"from chain.m0 import x0\n\n\nclass x1(x0):\n    pass\n",
    "user.py": b"from chain.m1 import x1\n\nx1().m()\n",
}


def splicer(seed):
    made = Splicer(Random(seed), Library())
    made.past += [{}, {**PROGRAM, "p/a.py": b""}]
    made.chains.append(Chain(["chain/m0.py", "chain/m1.py"], "user.py"))
    return made


@pytest.mark.parametrize("kind", EDITS)
def test_every_kind_of_edit_is_one(kind):
    for seed in range(30):
        tree = dict(PROGRAM)
        if EDITS[kind](splicer(seed), tree) and tree != PROGRAM:
            break
    else:
        pytest.fail("nothing was edited")
    assert all(isinstance(text, bytes) for text in tree.values())


def test_a_step_that_can_be_made_of_real_code_leaves_code_that_parses_more_often_than_not():
    steps = [step for walk in range(3) for step in steps_of(walk, 0, 8, longest=20)]
    changed = [text for step in steps for path, text in step.after.items() if step.before.get(path) != text]
    assert sum(parsed(text) is not None for text in changed) > 0.8 * len(changed)


def test_a_walk_is_the_same_every_time():
    one, other = (list(steps_of(7, 1, 6)) for _ in range(2))
    assert one == other
    assert one != list(steps_of(7, 2, 6))
    assert 10 <= len(one[0].after) <= 60


@pytest.mark.parametrize("walk", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_answer_is_missed_and_none_depends_on_the_order(walk, tmp_path):
    ledger = None
    for step in steps_of(walk, 0, 8):
        put(tmp_path / "tree", step.before, step.after)
        if ledger is None:
            ledger = Ledger(tmp_path / "tree", tmp_path / "ledger")
        else:
            assert not ledger.advance(Random(step.number)).failed, str(step)


ONE_FILE_OR_MANY = [(kind, across) for kind in CHAINS for across in (False, True) if across or CHAINS[kind].link]


@pytest.mark.parametrize(("kind", "across"), ONE_FILE_OR_MANY)
@pytest.mark.parametrize("length", [160, pytest.param(500, marks=pytest.mark.slow)])
def test_no_answer_about_a_chain_is_missed_and_none_depends_on_the_order(kind, across, length, tmp_path):
    length = length // 4 if kind in ("names", "exports") else length  # each link is, or offers, all those before it
    tree = {**CHAINS[kind].links("chain", length, across=across), "user.py": CHAINS[kind].user("chain", length)}
    put(tmp_path / "tree", {}, tree)
    ledger = Ledger(tmp_path / "tree", tmp_path / "ledger")
    put(tmp_path / "tree", tree, {**tree, "user.py": tree["user.py"] + b"# touched\n"})
    assert not ledger.advance(Random(0)).failed


# The check can fail.


@pytest.fixture
def edited(tmp_path):
    """A ledger of a program in which a function was then renamed that another file calls."""
    put(tmp_path / "tree", {}, PROGRAM)
    ledger = Ledger(tmp_path / "tree", tmp_path / "ledger")
    put(tmp_path / "tree", PROGRAM, {**PROGRAM, "p/a.py": PROGRAM["p/a.py"].replace(b"def f", b"def other")})
    return ledger


def test_a_program_that_goes_well(edited):
    examined = edited.advance(Random(0))
    assert (examined.files, examined.failed) == (len(PROGRAM), ())
    assert 0 < examined.kept < examined.questions


class Forgetful(Resolver):
    """Finds nothing any more once it was asked a number of questions."""

    patience = 3

    def evaluate(self, file, question):
        self.patience -= 1
        return super().evaluate(file, question) if self.patience >= 0 else ({}, frozenset({"nowhere"}))


class Leaky(Resolver):
    """Adds what it was asked before to the trail of an answer, which is right otherwise."""

    def evaluate(self, file, question):
        found, trail = super().evaluate(file, question)
        self.past = {*getattr(self, "past", ()), f"?{question}"}
        return found, trail | self.past


@pytest.mark.parametrize("resolver", [Forgetful, Leaky])
def test_answers_that_depend_on_what_was_asked_before_are_found(resolver, edited, monkeypatch):
    monkeypatch.setattr(analyses, "Resolver", resolver)
    found = {each.what for each in edited.advance(Random(0)).order_dependent}
    assert found == {
        "answers that depend on the order of questions",
        "answers that depend on other files' questions",
        "an answer that depends on other questions",
    }


def overlooking(path, parts, analyse=analyses.analyse):
    """An analysis of an update that leaves a file out of parts of what it finds."""

    def overlook(*arguments):
        found = analyse(*arguments)
        impact = found.impact
        kept = tuple(each for each in impact.files if each.path != path)
        less = {
            "asked": impact.asked & {each.file_id for each in kept},
            "answers": impact.answers.filter(pc.field("path") != path),
            "files": kept,
        }
        return replace(found, impact=replace(impact, **{part: less[part] for part in parts}))

    return overlook


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (("asked", "answers"), "answers that an update would leave as they were"),
        (("files",), "rows that an update would leave as they were"),
    ],
)
def test_a_file_that_an_update_would_overlook_is_found(parts, what, edited, monkeypatch):
    monkeypatch.setattr(analyses, "analyse", overlooking("p/b.py", parts))
    assert [each[:2] for each in edited.advance(Random(0)).missed] == [("p/b.py", what)]


def test_a_failure_is_made_small(tmp_path, monkeypatch):
    monkeypatch.setattr(analyses, "analyse", overlooking("p/b.py", ("asked", "answers")))
    renamed = PROGRAM["p/a.py"].replace(b"def f", b"def other")
    found = smallest(
        PROGRAM,
        {**PROGRAM, "p/a.py": renamed, "p/sub/c.py": b"", "new.py": b""},
        partial(fails, home=tmp_path),
        seconds=60,
    )
    before, after = ({path: text.split() for path, text in tree.items()} for tree in found)
    assert before == {"p/a.py": [b"def", b"f():", b"return", b"A()"], "p/b.py": b"from p.a import f".split()}
    assert after == {**before, "p/a.py": []}
