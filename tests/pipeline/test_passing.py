"""What is seen otherwise does not depend on the order in which that is found out."""

from itertools import permutations

from codeanatomy.pipeline.passing import ALL, Handed, Passing, Seen, Texts
from tests.repositories import write_repository


def test_of_several_files_that_are_to_blame_the_same_is_named_in_any_order():
    found = set()
    for order in permutations([("m.py", "a"), ("m.pyi", "b"), ("m/__init__.py", "c")]):
        seen = Seen()
        assert all(seen.add("m", path, [name]) for path, name in order)
        found.add((seen.path("m"), frozenset(seen.names("m"))))
    assert found == {("m.py", frozenset("abc"))}


def test_what_speaks_for_all_names_counts_for_all():
    seen = Seen()
    assert seen.add("m", "m.py", ["__version__"])
    assert not seen.add("m", "m.py", ["__version__"])
    assert seen.names("m") == {"__version__"}
    for module, name in (("listed", "__all__"), ("asked", "__getattr__"), ("starred", "*other")):
        seen.add(module, "x.py", [name])
        assert seen.names(module) == {ALL}


def test_a_file_hands_on_what_it_was_told_of_and_what_is_made_of_that():
    handed = [
        Handed("Told", frozenset({"base"}), frozenset({"far"})),
        Handed("MadeOfTold", frozenset({"Told"}), frozenset({"here"})),
        Handed("Untold", frozenset({"other"}), frozenset({"far"})),
        Handed("Elsewhere", frozenset({"base"}), frozenset({"farther"})),
        Handed("Unknown", frozenset({"base"}), None),
    ]
    seen = Seen()
    seen.add("far", "far.py", ["base"])
    assert Passing("here", "here.py", handed).names(seen) == {"Told", "MadeOfTold", "Unknown"}
    starred = Passing("here", "here.py", [Handed(ALL, frozenset(), frozenset({"far"}))])
    assert starred.names(seen) == {"base"}


def test_words_are_found_as_python_reads_them(tmp_path):
    files = {"plain.py": "import base\n", "wide.py": "ｂａｓｅ()\n", "part.py": "based = 1\n"}
    texts = Texts(write_repository(tmp_path, files))
    (tmp_path / "bytes.py").write_bytes(b"\xff\n")
    has = {path for path in (*files, "bytes.py") if texts.has_one_of(path, {"base"})}
    assert has == {"plain.py", "wide.py", "bytes.py"}
    assert texts.has_one_of("part.py", {ALL})
