"""Which names are affected does not depend on the order in which changes are found."""

from itertools import permutations

from codeanatomy.impact.propagation import ALL, ChangedNames, DerivedName, DerivedNames, NameChange, SourceWords
from tests.repositories import write_repository


def test_the_first_path_is_named_in_any_order():
    found = set()
    for order in permutations([("m.py", "a"), ("m.pyi", "b"), ("m/__init__.py", "c")]):
        changed = ChangedNames()
        for path, name in order:
            changed = changed.plus([NameChange("m", path, [name])])
        found.add((changed.paths["m"], changed.names("m")))
    assert found == {("m.py", frozenset("abc"))}


def test_nothing_new_is_the_same_object():
    changed = ChangedNames().plus([NameChange("m", "m.py", ["__version__"])])
    assert changed.plus([NameChange("m", "a.py", ["__version__"])]) is changed
    assert changed.names("m") == {"__version__"}


def test_a_name_that_stands_for_all_changes_all():
    for module, name in (("listed", "__all__"), ("asked", "__getattr__"), ("starred", "*other")):
        assert ChangedNames().plus([NameChange(module, "x.py", [name])]).names(module) == {ALL}


def test_names_are_affected_through_what_they_are_derived_from():
    names = [
        DerivedName("Derived", frozenset({"base"}), frozenset({"far"})),
        DerivedName("DerivedTwice", frozenset({"Derived"}), frozenset({"here"})),
        DerivedName("OtherName", frozenset({"other"}), frozenset({"far"})),
        DerivedName("OtherModule", frozenset({"base"}), frozenset({"farther"})),
        DerivedName("Unknown", frozenset({"base"}), None),
    ]
    changed = ChangedNames().plus([NameChange("far", "far.py", ["base"])])
    assert DerivedNames("here", "here.py", names).affected(changed) == {"Derived", "DerivedTwice", "Unknown"}
    starred = DerivedNames("here", "here.py", [DerivedName(ALL, frozenset(), frozenset({"far"}))])
    assert starred.affected(changed) == {"base"}


def test_words_are_found_as_python_reads_them(tmp_path):
    files = {"plain.py": "import base\n", "wide.py": "ｂａｓｅ()\n", "part.py": "based = 1\n"}
    words = SourceWords(write_repository(tmp_path, files))
    (tmp_path / "bytes.py").write_bytes(b"\xff\n")
    has = {path for path in (*files, "bytes.py") if words.has_one_of(path, frozenset({"base"}))}
    assert has == {"plain.py", "wide.py", "bytes.py"}
    assert words.has_one_of("part.py", frozenset({ALL}))
