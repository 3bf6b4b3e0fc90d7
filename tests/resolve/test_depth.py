"""An answer depends on the question and the index alone, however deep the search for it leads."""

import random

import pytest
from bench.accuracy.small_graphs import small_graphs
from bench.chains import RINGS, SHAPES
from bench.depth import Program


@pytest.mark.parametrize(
    ("shape", "size"), [(shape, size) for shape in SHAPES for size in ((10, 120) if shape in RINGS else (10, 100, 500))]
)
def test_the_far_end_is_found_whatever_was_asked_before(shape, size):
    program = Program(SHAPES[shape](size))
    together = program.answers()
    first = program.answers(["main.py"])
    backwards = program.answers(program.paths[::-1])
    assert together == backwards
    assert first == {key: rows for key, rows in together.items() if key[0] == "main.py"}
    if shape not in RINGS:
        found = {row["status"] for rows in first.values() for row in rows}
        assert found <= {"internal"}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_question_alone_is_answered_as_among_others(shape):
    program = Program(SHAPES[shape](40))
    together = program.answers()
    shuffled = random.Random(shape).sample(program.paths, len(program.paths))
    assert program.answers(shuffled) == together
    for path in program.paths[::7]:
        assert program.answers_alone(path) == {key: rows for key, rows in together.items() if key[0] == path}


def test_a_chain_of_values_keeps_its_call_when_only_the_user_is_asked_again():
    files = SHAPES["values"](40)
    with small_graphs({"program": files}) as (connection, _):
        rows = connection.execute("SELECT callee FROM calls WHERE path = 'main.py'").fetchall()
    assert rows == [("base.B.add",)]


def statuses_of(source, question):
    return [row["status"] for row in Program({"main.py": source}).answers()["main.py", question]]


def test_more_values_than_are_followed_are_a_limit_and_never_absent():
    classes = "".join(f"class C{n}:\n    def m{n}(self): pass\n" for n in range(20))
    makers = "".join(f"def f{n}(): return g{n}()\ndef g{n}(): return C{n}()\n" for n in range(20))
    halves = "def left(): return " + " or ".join(f"f{n}()" for n in range(8)) + "\n"
    halves += "def right(): return " + " or ".join(f"f{n}()" for n in range(8, 16)) + "\n"
    halves += "def far(): return " + " or ".join(f"f{n}()" for n in range(16, 20)) + "\n"
    source = f"{classes}{makers}{halves}def any(): return left() or right() or far()\nany().m19()\n"
    found = statuses_of(source, "g:any () .m19")
    assert "limit" in found
    assert "absent" not in found


def test_more_orders_of_bases_than_are_followed_are_a_limit():
    choices = "".join(
        f"if n:\n    class B{n}:\n        def a{n}(self): pass\nelse:\n    class B{n}:\n        def b{n}(self): pass\n"
        for n in range(4)
    )
    source = f"{choices}class W(B0, B1, B2, B3): pass\nW().b0()\nW().nothing()\n"
    assert "limit" in statuses_of(source, "g:W () .b0")
    assert statuses_of(source, "g:W () .nothing") == ["limit"]


def test_a_name_with_too_many_bindings_keeps_the_first_and_says_so():
    branches = "".join(f"elif x == {n}:\n    from m import f{n} as f\n" for n in range(20))
    source = f"if x:\n    pass\n{branches}f()\n"
    program = Program({"main.py": source, "m.py": "".join(f"def f{n}(): pass\n" for n in range(20))})
    found = [row["status"] for row in program.answers()["main.py", "g:f"]]
    assert found.count("internal") == 8
    assert found.count("limit") == 1


@pytest.mark.parametrize(
    "source",
    [
        "class B:\n    def add(self): return self\ndef f():\n    b = B()" + ".add()" * 90 + "\n    b.add()\n",
        "class B:\n    def add(self): return self\ndef f():\n    b0 = B()\n"
        + "".join(f"    b{n + 1} = b{n}.add()\n" for n in range(90)),
        "def f(): pass\nx = [" + "None, " * 70 + "f]\nx[70]()\n",
        "def f(): pass\nx = [" + "None, " * 70 + "f]\nx[-1]()\n",
        "def f(): pass\n" + ", ".join(f"a{n}" for n in range(71)) + " = " + "None, " * 70 + "f\na70()\n",
    ],
    ids=["steps", "locals", "item", "last item", "unpacked"],
)
def test_what_extraction_does_not_follow_is_a_limit(source):
    found = [row["status"] for rows in Program({"main.py": source}).answers().values() for row in rows]
    assert "limit" in found
    assert "absent" not in found
