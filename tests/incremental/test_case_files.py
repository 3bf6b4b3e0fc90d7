"""The files of step cases: what they say is what is read, and what is malformed is refused with its place."""

import pytest

from tests.incremental.cases import (
    CaseError,
    Impacted,
    apply_step,
    changed,
    differences,
    lay_out,
    load_cases,
    parse_cases,
)

SMALL = """\
[case small]
What it shows.

[file small/a.py]
def f():

    return [1]
[bytes small/b.py]
x = '\\xe9'\\r\\n
y = "1"\\n
[file small/old/c.py]
[step]
What happens.
[rename small/old small/new]
[delete small/b.py]
[file small/a.py]
def g(): pass

[impacted]
small/a.py  content_changed
small/b.py  deleted
small/new/c.py  renamed  small/old/c.py
[impacted pyrefly]
small/a.py  content_changed
small/d.py  import_name  small.a.f  <- small/a.py
[step]
[impacted]
"""


def read(text):
    return list(parse_cases(text, "some.case"))


def test_a_case_is_read_as_it_is_written():
    (case,) = read(SMALL)
    assert (case.name, case.is_alone, case.place) == ("small", False, "some.case:1")
    assert case.files == {
        "small/a.py": b"def f():\n\n    return [1]\n",
        "small/b.py": b"x = '\xe9'\r\ny = \"1\"\n",
        "small/old/c.py": b"",
    }
    first, second = case.steps
    assert (first.writes, first.deletes, first.renames) == (
        {"small/a.py": b"def g(): pass\n"},
        ("small/b.py",),
        (("small/old", "small/new"),),
    )
    assert first.expected(indexed=False)[-1] == Impacted("small/new/c.py", "renamed", "small/old/c.py")
    assert first.expected(indexed=True)[-1] == Impacted("small/d.py", "import_name", "small.a.f", "small/a.py")
    assert (second.writes, second.impacted, second.expected(indexed=True)) == ({}, (), ())


def test_markers_stand_before_the_files():
    (case,) = read("[case a]\nWhy.\n[alone]\n[unindexed]\n[file a.py]\n[step]\n[impacted]\n")
    assert case.is_alone
    assert not case.is_indexed
    with pytest.raises(CaseError, match=r"some\.case:3: \[alone\] cannot stand here, before the first \[step\]"):
        read("[case a]\n[file a.py]\n[alone]\n[step]\n[impacted]\n")


def test_a_directory_follows_the_steps_as_the_trees_do(tmp_path):
    (case,) = read(SMALL)
    lay_out(case.files, tmp_path)
    tree = case.files
    for step in case.steps:
        apply_step(step, tmp_path)
        tree = changed(tree, step)
        found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*.py")}
        assert found == tree
    assert set(tree) == {"small/a.py", "small/new/c.py"}
    assert not (tmp_path / "small/old").exists()


def test_what_an_expectation_leaves_out_is_not_checked():
    (case,) = read(SMALL)
    found = [
        Impacted("small/a.py", "content_changed"),
        Impacted("small/b.py", "deleted", "anything", "any.py"),
        Impacted("small/new/c.py", "renamed", "small/old/c.py"),
    ]
    assert differences(case, 1, found) == ""


def test_differences_are_told_in_lines_of_the_case():
    (case,) = read(SMALL)
    found = [
        Impacted("small/a.py", "content_changed"),
        Impacted("small/b.py", "caller_qname", "x.y", "x.py"),
        Impacted("small/new/c.py", "renamed", "elsewhere.py"),
    ]
    assert differences(case, 1, found).splitlines() == [
        "case small (some.case:1), step 1:",
        "  missing  small/b.py  deleted",
        "  surplus  small/b.py  caller_qname  x.y  <- x.py",
        "  missing  small/new/c.py  renamed  small/old/c.py",
        "  surplus  small/new/c.py  renamed  elsewhere.py",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n", r"some\.case:1: expected \[case …\], found 'x'"),
        ("[case Not Snake]\n", r"some\.case:1: a case needs a name"),
        ("[case a]\n[file a.py]\n", r"some\.case:1: case a needs files and at least one \[step\]"),
        ("[case a]\n[step]\n[impacted]\n", r"some\.case:1: case a needs files"),
        ("[case a]\n[file a.py]\n[step]\n", r"some\.case:1: a step of this case has no \[impacted\]"),
        (
            "[case a]\n[file a.py]\n[delete a.py]\n",
            r"some\.case:3: \[delete\] cannot stand here, before the first \[step\]",
        ),
        ("[case a]\n[file a.py]\n[step]\n[delete b.py]\n[impacted]\n", r"some\.case:4: there is no b\.py to delete"),
        ("[case a]\n[file a.py]\n[step]\n[rename b.py c.py]\n[impacted]\n", r"some\.case:4: b\.py must be there"),
        ("[case a]\n[file a.py]\n[step]\n[delete a.py]\nx\n[impacted]\n", r"some\.case:5: nothing can follow"),
        ("[case a]\n[file a.py]\n[file a.py]\n[step]\n[impacted]\n", r"some\.case:3: a\.py is written twice"),
        ("[case a]\n[file ../a.py]\n[step]\n[impacted]\n", r"some\.case:2: \.\./a\.py is no relative path"),
        ("[case a]\n[file a.txt]\n[step]\n[impacted]\n", r"some\.case:2: a\.txt is no relative path"),
        ("[case a]\n[bytes a.py]\n\\xg1\n[step]\n[impacted]\n", r"some\.case:3: not the inside of a bytes literal"),
        ("[case a]\n[file a.py]\n[step]\n[impacted]\na.py\n", r"some\.case:5: expected `path  kind"),
        ("[case a]\n[file a.py]\n[step]\n[impacted]\na.py  because\n", r"some\.case:5: there is no reason 'because'"),
        ("[case a]\n[file a.py]\n[step]\n[impacted]\na.py  added  <-\n", r"some\.case:5: expected `path  kind"),
        (
            "[case a]\n[file a.py]\n[step]\n[impacted]\na.py  added\na.py  added\n",
            r"some\.case:6: a\.py is listed twice",
        ),
        ("[case a]\n[file a.py]\n[step]\n[impacted]\n[impacted]\n", r"some\.case:5: this step has two such lists"),
        ("[case a]\n[file a.py]\n[step]\n[impacted]\n[file a.py]\n", r"some\.case:5: \[file\] cannot stand here"),
        ("[case a]\n[file a.py]\n[step]\n[impacted scip]\n", r"some\.case:4: \[impacted\] takes nothing or `pyrefly`"),
        ("[case a]\n[rename a]\n", r"some\.case:2: \[rename\] takes 2 words, not 1"),
        ("[case a]\n[fiel a.py]\n", r"some\.case:2: there is no section '\[fiel a\.py\]'"),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(text, message):
    with pytest.raises(CaseError, match=message):
        read(text)


def test_a_name_is_given_once_in_all_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.case").write_text("[case a]\n[file a.py]\n[step]\n[impacted]\n")
    with pytest.raises(CaseError, match=r"two\.case:1: there is already a case a, at one\.case:1"):
        load_cases(tmp_path)
