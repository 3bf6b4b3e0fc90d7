"""The format of the accuracy ledger's cases, and how they are held against what running them shows."""

import pytest
from bench.accuracy.cases import Case, CaseError, load_cases
from bench.accuracy.check_cases import check

ADDS = """\
class Sum:
    def __add__(self, other):
        return 1


Sum() + 1
"""
ADDED = ("main", "main.Sum.__add__")


def read(tmp_path, text):
    (tmp_path / "some.txt").write_text(text, encoding="utf-8")
    (case,) = load_cases(tmp_path)
    return case


def case_of(source, calls=(), implicit=None, unseen=()):
    return Case(
        category="some",
        name="case",
        needs_flow=False,
        files={"main.py": source},
        calls=frozenset(calls),
        unseen=frozenset(unseen),
        implicit=None if implicit is None else frozenset(implicit),
    )


def test_implicit_calls_are_kept_apart_from_the_written_ones(tmp_path):
    case = read(
        tmp_path,
        "[case a]\n[file main.py]\nx\n[calls]\nmain -> main.f\n"
        "[implicit]\nmain -> main.C.__add__\nmain -> main.C.__len__  # not reached\n[end]\n",
    )
    assert case.calls == {("main", "main.f")}
    assert case.implicit == {("main", "main.C.__add__"), ("main", "main.C.__len__")}
    assert case.unseen == {("main", "main.C.__len__")}


def test_a_case_may_say_that_nothing_is_called_implicitly_or_say_nothing(tmp_path):
    assert read(tmp_path, "[case a]\n[file main.py]\n[calls]\n[implicit]\n[end]\n").implicit == frozenset()
    assert read(tmp_path, "[case a]\n[file main.py]\n[calls]\n[end]\n").implicit is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[case a]\n[file main.py]\n[implicit]\n[end]\n", r"some\.txt:3: \[implicit\] comes after \[calls\]"),
        ("[case a]\n[implicit]\n[file main.py]\n[calls]\n[end]\n", r"some\.txt:2: \[implicit\] comes after \[calls\]"),
        (
            "[case a]\n[file main.py]\n[calls]\n[implicit]\n[calls]\n[end]\n",
            r"some\.txt:5: after \[implicit\] comes \[end\]",
        ),
        (
            "[case a]\n[file main.py]\n[calls]\n[implicit]\n[implicit]\n[end]\n",
            r"some\.txt:5: after \[implicit\] comes \[end\]",
        ),
        ("[case a]\n[file main.py]\n[calls]\n[implicit x]\n[end]\n", r"some\.txt:4: \[implicit\] takes no name"),
        (
            "[case a]\n[file main.py]\n[calls]\nmain -> main.f\n[implicit]\nmain -> main.f\n[end]\n",
            r"some\.txt:6: 'main -> main\.f' is there twice",
        ),
        ("[case a]\n[file main.py]\n[calls]\n[implicit]\nmain\n[end]\n", r"some\.txt:5: expected `caller -> callee`"),
    ],
)
def test_a_misplaced_section_is_told_with_its_place(tmp_path, text, message):
    with pytest.raises(CaseError, match=message):
        read(tmp_path, text)


def test_a_list_of_implicit_calls_is_held_against_what_was_entered():
    assert list(check(case_of(ADDS, implicit=[ADDED]))) == []
    assert list(check(case_of(ADDS))) == [("note", "not a written call: main -> main.Sum.__add__")]
    assert list(check(case_of(ADDS, implicit=[]))) == [("error", "not a written call: main -> main.Sum.__add__")]


def test_an_implicit_call_that_was_not_entered_is_told_unless_the_case_says_why():
    source = ADDS.replace("Sum() + 1\n", "Sum()\n")
    assert list(check(case_of(source, implicit=[ADDED]))) == [
        ("warning", "not seen, implicit: main -> main.Sum.__add__")
    ]
    assert list(check(case_of(source, implicit=[ADDED], unseen=[ADDED]))) == []
    assert list(check(case_of(ADDS, implicit=[ADDED], unseen=[ADDED]))) == [
        ("error", "said not to be seen: main -> main.Sum.__add__")
    ]


def test_an_implicit_call_is_of_the_program():
    assert list(
        check(case_of("f = 1\n", implicit=[("main", "<builtin>.len")], unseen=[("main", "<builtin>.len")]))
    ) == [("error", "nothing is called <builtin>.len")]


def test_a_partial_is_called_by_the_name_of_its_function():
    source = "from functools import partial\n\n\ndef f(a, b):\n    pass\n\n\npartial(partial(f, 1), 2)()\n"
    assert list(check(case_of(source, [("main", "functools.partial"), ("main", "main.f")], []))) == []


def test_a_generator_that_goes_on_is_not_called_and_its_methods_have_no_name():
    source = (
        "def f():\n    yield\n\n\ndef run(g):\n    next(g)\n    g.send(1)\n\n\n"
        "try:\n    run(f())\nexcept StopIteration:\n    pass\n"
    )
    assert (
        list(check(case_of(source, [("main", "main.f"), ("main", "main.run"), ("main.run", "<builtin>.next")], [])))
        == []
    )


def test_asynchronous_iteration_counts_as_iteration_does():
    source = (
        "import asyncio\n\n\nclass Pages:\n    def __aiter__(self):\n        return self\n\n"
        "    async def __anext__(self):\n        raise StopAsyncIteration\n\n\n"
        "async def main():\n    async for page in Pages():\n        pass\n\n\nasyncio.run(main())\n"
    )
    calls = [("main", "asyncio.run"), ("main", "main.main")]
    calls += [("main.main", "main.Pages.__aiter__"), ("main.main", "main.Pages.__anext__")]
    assert list(check(case_of(source, calls, []))) == []
