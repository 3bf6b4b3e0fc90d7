"""Contents as they come: encodings, line ends, broken and absurd sources."""

from __future__ import annotations

import pytest

from .reading import facts_of, rows, spans

BOM = b"\xef\xbb\xbf"


def test_spans_are_bytes_and_columns_count_bytes():
    source = "é = '😀'; f(ñ)\n"
    assert spans(source, "cst_name_refs") == ["é".encode(), b"f", "ñ".encode()]
    assert rows(source, "cst_callsites", "line_start", "col_start") == [(1, len("é = '😀'; ".encode()))]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_of_three_ways(end):
    source = end.join([b"def f():", b"    x = 1", b"    return y", b"", b"z"]) + end
    facts = facts_of(source)
    assert [row["line_end"] for row in facts["cst_defs"]] == [3]
    assert [(row["name"], row["line_start"], row["col_start"]) for row in facts["cst_name_refs"]] == [
        ("x", 2, 4),
        ("y", 3, 11),
        ("z", 5, 0),
    ]
    assert [source[at : at + 1] for at in facts["line_starts"]] == [b"d", b" ", b" ", end[:1], b"z"]
    assert spans(source, "cst_name_refs") == [b"x", b"y", b"z"]
    assert facts["parse_errors"] == []


def test_mixed_line_ends():
    assert facts_of(b"a\rb\r\nc\n\rd")["line_starts"] == [0, 2, 5, 7, 8]


def test_a_byte_order_mark_is_counted_and_is_no_part_of_anything():
    source = BOM + b"x = 1\n"
    facts = facts_of(source)
    assert (facts["has_bom"], facts["encoding"], facts["parse_errors"]) == (True, "utf-8", [])
    assert [(row["bstart"], row["name"]) for row in facts["cst_name_refs"]] == [(3, "x")]


def test_other_encodings_are_read_as_python_reads_them():
    source = "# -*- coding: latin-1 -*-\né = 'ÿ'\n"
    facts = facts_of(source.encode("latin-1"))
    assert facts["encoding"] == "iso-8859-1"
    text = source.encode()
    ref = facts["cst_name_refs"][0]
    assert (ref["name"], text[ref["bstart"] : ref["bend"]]) == ("é", "é".encode())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"# coding: no-such-thing\nx = 1\n", "unknown encoding"),
        (BOM + b"# coding: latin-1\nx = 1\n", "encoding problem"),
        (b"x = 1\ny = 2\nz = '\xff'\n", "can't decode byte 0xff"),
        (b"\xff\xfe\nx = 1\n", "invalid or missing encoding declaration"),
        (b"# coding: ascii\nx = '\xc3\xa9'\n", "can't decode byte 0xc3"),
        (b"# coding: rot13\nk = 1\n", "not a text encoding"),
    ],
)
def test_an_undecodable_content_has_one_fatal_error_and_nothing_else(source, message):
    facts = facts_of(source)
    assert facts["encoding"] is None
    assert facts["line_starts"] is None
    assert [(row["source"], row["severity"]) for row in facts["parse_errors"]] == [("decoder", "fatal")]
    assert message in facts["parse_errors"][0]["message"]
    assert not any(rows for name, rows in facts.items() if name.startswith(("cst_", "sym_")))


def test_an_empty_content_is_one_scope():
    facts = facts_of(b"")
    assert [(row["kind"], row["bstart"], row["bend"]) for row in facts["sym_scopes"]] == [("module", 0, 0)]
    assert facts["line_starts"] == [0]


def test_the_module_is_the_whole_content():
    source = BOM + b"\n\n  \nx = 1\n\n"
    assert rows(source, "sym_scopes", "bstart", "bend", "line_start", "line_end") == [(0, len(source), 1, 5)]


def test_healthy_parts_of_a_broken_source_are_kept():
    source = "import a\ndef f():\n    return g(1)\nx = = b(c)\ndef h(x): return k(x)\n"
    facts = facts_of(source)
    assert {row["name"] for row in facts["cst_defs"]} >= {"f", "h"}
    assert {row["callee_name"] for row in facts["cst_callsites"]} == {"g", "b", "k"}
    assert facts["cst_imports"][0]["module"] == "a"
    errors = facts["parse_errors"]
    assert errors
    assert all(row["source"] == "tree-sitter" and row["severity"] == "error" for row in errors)
    assert any(row["line_start"] <= 4 <= row["line_end"] for row in errors)


def test_what_is_missing_is_an_error():
    assert "missing" in facts_of("for x in :\n    pass\n")["parse_errors"][0]["message"]


def test_errors_are_capped():
    assert 50 <= len(facts_of("x = = 1\ny = 2\n" * 5_000)["parse_errors"]) <= 100


@pytest.mark.parametrize(
    "source",
    [
        b"x = 1\0y = 2\n",
        b"\0",
        b"\x0c\x0cdef f():\n\x0c    pass\n",
        b"if x:\n\ty\n        z\n",
        b"\\",
        b"'''",
        b"f'{",
        b"def",
        b"def f(",
        b"class",
        b"lambda",
        b"import",
        b"from . import",
        b"from",
        b"x.",
        b"x: ",
        b"@",
        b"@\nclass C: pass",
        b"for in x: pass",
        b"[for x in y]",
        b"with as x: pass",
        b"except: pass",
        b"match x:\n case",
        b"type X =",
        b"type \\\n = 1\n",
        b"type = type = type\n",
        b"def f[T = int](): pass\n",
        b"a, = \n",
        b"*\n",
        b"print 'x', y\nexec 'z' in w\nexcept A, e: pass\n",
        b"def f((a, b), c): pass\n",
        b"global\n",
        b"del\n",
        b"yield\n",
        b"(:=)",
        "\u200bx = 1\n".encode(),
        b"x = '\\ud800'\ndef f(): '\\ud800'\n",
    ],
)
def test_nothing_breaks_extraction(source):
    assert facts_of(source)["sym_scopes"][0]["kind"] == "module"


def test_a_source_can_be_cut_anywhere():
    source = (
        b"@d\nclass C[T](B, k=1):\n  '''doc'''\n  x: int = [y for z in w if (q := z)]\n"
        b"  async def m(self, *a: T, **k): yield f'{a!r:>{k}}'\n"
    )
    for end in range(0, len(source), 3):
        facts_of(source[:end])


def test_python_2_statements_keep_what_they_mention():
    source = "print 'x', y\nprint >>f, z\nexec code in w\n"
    assert set(rows(source, "cst_name_refs", "name")) == {"y", "print", "f", "z", "code", "w"}
    assert rows("print >>f, z\n", "cst_name_refs", "name") == ["print", "f", "z"]
    assert rows("print 'x', y\n", "cst_name_refs", "name") == ["y"]


DEEP = 5_000


@pytest.mark.parametrize(
    ("source", "dataset", "count"),
    [
        ("(" * DEEP + "x" + ")" * DEEP, "cst_name_refs", 1),
        ("(" * 100_000 + "x" + ")" * 100_000, "cst_name_refs", 1),
        ("f(" * DEEP + ")" * DEEP, "cst_callsites", DEEP),
        ("f()" + ".g()" * DEEP, "cst_callsites", DEEP + 1),
        pytest.param("x" + ".a" * 100_000, "cst_name_refs", 100_001, marks=pytest.mark.slow),
        ("lambda: " * DEEP + "x", "cst_defs", DEEP),
        ("lambda x=" * 1_000 + "x" + ": 0" * 1_000, "cst_params", 1_000),
        ("[" * DEEP + "x" + "]" * DEEP + " = y", "cst_assigns", 1),
        ("x = " * DEEP + "y", "cst_assigns", DEEP),
        ("-" * DEEP + "x", "cst_name_refs", 1),
        (" + ".join(["x"] * DEEP), "cst_name_refs", DEEP),
        ("x: " + "a[" * DEEP + "b" + "]" * DEEP, "cst_name_refs", DEEP + 2),
        ("".join(" " * depth + "if x:\n" for depth in range(100)) + " " * 100 + "y", "cst_name_refs", 101),
    ],
)
def test_no_nesting_is_too_deep(source, dataset, count):
    assert len(facts_of(source + "\n")[dataset]) == count


def test_a_statement_glued_to_another_is_an_error():
    (error,) = facts_of("x = 1\n1glued  # no\n")["parse_errors"]
    assert (error["message"], error["line_start"], error["col_start"]) == ("missing newline", 2, 1)
    assert facts_of("a = 1; b = 2  # fine\n")["parse_errors"] == []
