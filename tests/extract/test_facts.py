"""Facts that the interpreter has no word for, read off small sources."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import pytest

from codeanatomy.catalogue.layers import FACT_DATASETS, LAYERS
from codeanatomy.catalogue.revisions import LAYER_VERSIONS
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.errors import InputError
from codeanatomy.extract import extract_batch

from .reading import facts_of, rows, spans


def test_a_batch_has_the_schema_of_facts_and_keeps_the_order_of_contents():
    batch = extract_batch(["one", "two", "three"], [b"a = 1\n", b"", b"def f(): pass\n"])
    assert batch.schema == FACTS.schema()
    batch.validate(full=True)
    assert batch["content_id"].to_pylist() == ["one", "two", "three"]
    for layer in LAYERS:
        assert batch[layer.version_column].to_pylist() == [LAYER_VERSIONS[layer.name]] * 3
    assert [[row["name"] for row in defs] for defs in batch["cst_defs"].to_pylist()] == [[], [], ["f"]]


def test_facts_of_a_content_do_not_depend_on_its_batch():
    sources = [
        b"import a\ndef f(x): return a.b(x)\n",
        "é = [ñ for ñ in 'é']\n".encode(),
        b"class C:\n  y: int = f(1)\n",
    ]
    together = extract_batch(["?"] * 3, sources).to_pylist()
    assert together == [facts_of(source) for source in sources]


def test_an_empty_batch_has_the_schema_too():
    assert extract_batch([], []).schema == FACTS.schema()


def test_ids_and_sources_must_match():
    with pytest.raises(InputError, match="2 content ids were given for 1 sources"):
        extract_batch(["a", "b"], [b""])


def test_extraction_can_be_shipped():
    assert pickle.loads(pickle.dumps(extract_batch)) is extract_batch


def test_ordinals_count_from_zero_in_source_order():
    source = "@d(lambda: 1)\ndef f(a=lambda x: g(h()), b=2):\n    return [k() for z in j()]\n"
    for dataset in FACT_DATASETS:
        ordinal = dataset.names()[0]
        if ordinal in ("def_no", "source") and dataset.name != "cst_defs":
            continue
        numbers = rows(source, dataset.name, ordinal)
        assert numbers == list(range(len(numbers))), dataset.name
    for dataset in ("cst_defs", "cst_params", "cst_callsites", "cst_name_refs", "sym_scopes"):
        places = rows(source, dataset, "bstart", "bend")
        assert places == sorted(places, key=lambda span: (span[0], -span[1])), dataset


# -- definitions ----------------------------------------------------------------------------------------------------


def test_definitions_are_named_from_the_module_down():
    source = (
        "class C:\n  def m(self):\n    def inner(): pass\n    class D:\n      x = lambda: 0\nasync def f(): yield\n"
    )
    assert rows(source, "cst_defs", "kind", "qualname", "container_no", "is_async", "is_generator") == [
        ("class", "C", None, False, False),
        ("method", "C.m", 0, False, False),
        ("function", "C.m.inner", 1, False, False),
        ("class", "C.m.D", 1, False, False),
        ("lambda", "C.m.D.<lambda1>", 3, False, False),
        ("function", "f", None, True, True),
    ]


def test_redefinitions_have_ordinals():
    source = "if a:\n  def f(): pass\nelse:\n  def f(): pass\n@f.register\ndef f(): pass\ndef g(): pass\n"
    assert rows(source, "cst_defs", "qualname", "ordinal") == [("f", 0), ("f", 1), ("f", 2), ("g", 0)]


def test_lambdas_are_numbered_within_the_definition_that_evaluates_them():
    source = "a = lambda: (lambda: 1)\ndef f(x=lambda: 2):\n    return [lambda: 3 for _ in y], lambda: 4\n"
    assert rows(source, "cst_defs", "qualname") == [
        "<lambda1>",
        "<lambda1>.<lambda1>",
        "f",
        "<lambda2>",
        "f.<lambda1>",
        "f.<lambda2>",
    ]


def test_keys_are_hashes_of_names_and_ordinals():
    facts = facts_of("def f():\n    x = 1\n    return x\ndef f(): pass\n")

    def key(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    assert [row["def_key"] for row in facts["cst_defs"]] == [key("f#0"), key("f#1")]
    assert [row["scope_key"] for row in facts["sym_scopes"]] == [key("#0"), key("f#0"), key("f#1")]
    assert [row["parent_key"] for row in facts["sym_scopes"]] == [None, key("#0"), key("#0")]
    assert [row["binding_key"] for row in facts["sym_bindings"]] == [key("#0:f"), key("f#0:x")]
    assert {row["binding_key"] for row in facts["cst_name_refs"]} == {key("f#0:x")}
    assert facts["cst_name_refs"][0]["def_key"] == key("f#0")


def test_keys_survive_a_shift():
    source = "class C:\n    def m(self, x: int): return x\n"
    before, after = facts_of(source), facts_of("# a comment\n\n" + source)
    for dataset in ("cst_defs", "cst_params", "cst_type_exprs", "sym_scopes", "sym_bindings", "cst_name_refs"):
        for old, new in zip(before[dataset], after[dataset], strict=True):
            assert {k: v for k, v in old.items() if k.endswith("_key")} == {
                k: v for k, v in new.items() if k.endswith("_key")
            }


def test_a_definition_ends_with_its_last_statement_and_starts_after_its_decorators():
    source = "@a\nclass C:\n    x = 1\n    # the end\n# outside\n@b.c(1)\ndef f(): pass;\n"
    assert spans(source, "cst_defs") == [b"class C:\n    x = 1", b"def f(): pass;"]
    assert rows(source, "cst_defs", "line_start", "line_end") == [(2, 3), (7, 7)]


def test_decorators():
    source = "@a\n@b.c\n@d(1).e\n@f(x)\n@g[0]\ndef h(): pass\n"
    assert rows(source, "cst_decorators", "def_no", "position", "text", "dotted") == [
        (0, 0, "a", "a"),
        (0, 1, "b.c", "b.c"),
        (0, 2, "d(1).e", None),
        (0, 3, "f(x)", "f"),
        (0, 4, "g[0]", None),
    ]
    assert rows(source, "cst_defs", "decorators") == [["a", "b.c", "d(1).e", "f(x)", "g[0]"]]


def test_class_arguments():
    source = "class C(A, b.B[int], make(), *more, metaclass=M, **kw): pass\n"
    assert rows(source, "cst_bases", "position", "keyword", "text", "dotted") == [
        (0, None, "A", "A"),
        (1, None, "b.B[int]", "b.B"),
        (2, None, "make()", None),
        (3, "*", "*more", "more"),
        (4, "metaclass", "metaclass=M", "M"),
        (5, "**", "**kw", "kw"),
    ]
    assert spans(source, "cst_bases") == [b"A", b"b.B[int]", b"make()", b"more", b"M", b"kw"]
    assert rows(source, "cst_defs", "bases") == [["A", "b.B[int]", "make()", "*more", "metaclass=M", "**kw"]]


def test_parameters():
    source = "def f(a, /, b: int, c=1, *args: str, d, e: x.Y = z(), **kw): pass\n"
    assert rows(source, "cst_params", "position", "name", "kind", "annotation", "default") == [
        (0, "a", "positional_only", None, None),
        (1, "b", "positional_or_keyword", "int", None),
        (2, "c", "positional_or_keyword", None, "1"),
        (3, "args", "var_positional", "str", None),
        (4, "d", "keyword_only", None, None),
        (5, "e", "keyword_only", "x.Y", "z()"),
        (6, "kw", "var_keyword", None, None),
    ]
    assert spans(source, "cst_params") == [b"a", b"b", b"c", b"args", b"d", b"e", b"kw"]


def test_a_bare_star_starts_the_keyword_only_parameters():
    assert rows("lambda a, *, b: 0\n", "cst_params", "name", "kind") == [
        ("a", "positional_or_keyword"),
        ("b", "keyword_only"),
    ]


def test_docstrings_are_values_of_plain_literals():
    source = (
        b'"""Module\r\n  doc."""\n'
        b"def f():\n    # first\n    r'raw \\n'\n"
        b"def g(): ('a'\n  '\\x41\\N{BULLET}\\q')\n"
        b'class C: f"no"\n'
        b"class D: b'no'\n"
        b"def h(): 'no',\n"
        b"def i():\n    x = 1\n    'no'\n"
    )
    assert rows(source, "docstrings", "def_no", "text") == [
        (None, "Module\n  doc."),
        (0, "raw \\n"),
        (1, "aA•\\q"),
    ]
    docs = [row["doc_bstart"] for row in facts_of(source)["cst_defs"]]
    assert [start is not None for start in docs] == [True, True, False, False, False, False]


# -- calls and names ------------------------------------------------------------------------------------------------


def test_callees():
    source = "f()\na.b.c()\n(d)()\nf()()\nx[0]()\n(lambda: 0)()\n'' .join()\n(yield)()\n"
    assert rows(source, "cst_callsites", "callee_shape", "callee_name", "dotted") == [
        ("name", "f", "f"),
        ("attribute", "c", "a.b.c"),
        ("name", "d", "d"),
        ("call", None, None),
        ("name", "f", "f"),
        ("subscript", None, None),
        ("lambda", None, None),
        ("attribute", "join", None),
        ("other", None, None),
    ]
    assert spans(source, "cst_callsites", "callee_name_") == [b"f", b"c", b"d", b"f", b"join"]


def test_arguments():
    source = "f(1, *a, b, k=1, *c.d, **e, l=2)\ng(x for x in y)\n"
    assert rows(source, "cst_callsites", "arg_count", "keywords", "has_star", "has_double_star") == [
        (2, ["k", "l"], True, True),
        (1, [], False, False),
    ]


def test_what_is_raised_may_be_a_class_unless_it_is_called():
    source = (
        "def f(e):\n    raise\n    raise A\n    raise (m.B) from (C)\n    raise D() from e\n    raise E() from None\n"
    )
    assert rows(source, "cst_implicit_calls", "kind") == ["raise"] * 4
    assert spans(source, "cst_implicit_calls") == [b"A", b"m.B", b"C", b"e"]
    assert [name for name in spans(source, "cst_name_refs") if name == b"A"] == [b"A"]


def test_the_last_name_of_a_callee_spread_over_lines():
    source = "(a  # why\n  .b\n  .c)(1)\n"
    assert rows(source, "cst_callsites", "dotted") == ["a.b.c"]
    assert spans(source, "cst_callsites", "callee_name_") == [b"c"]


def test_attributes_know_their_dotted_base():
    source = "a.b.c = x[0].d\n"
    assert rows(source, "cst_name_refs", "name", "ctx", "is_attribute", "base") == [
        ("c", "store", True, "a.b"),
        ("b", "load", True, "a"),
        ("a", "load", False, None),
        ("d", "load", True, None),
        ("x", "load", False, None),
    ]


def test_names_resolve_to_bindings_of_the_same_file():
    facts = facts_of("import os\ndef f(a):\n    return a, os, len, g\ndef g(): pass\n")
    bindings = facts["sym_bindings"]
    meant = {
        row["name"]: row["binding_no"] is not None and (bindings[row["binding_no"]]["scope_no"])
        for row in facts["cst_name_refs"]
    }
    assert meant == {"a": 1, "os": 0, "len": False, "g": 0}


def test_calls_and_names_belong_to_the_definition_that_evaluates_them():
    source = "@d()\ndef f(a=e()) -> g():\n    return [h() for i in j()]\n"
    assert rows(source, "cst_callsites", "callee_name", "def_no") == [
        ("d", None),
        ("e", None),
        ("g", None),
        ("h", 0),
        ("j", 0),
    ]


def bindings_of(source: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Bindings by scope and name, their target as such a pair too."""
    facts = facts_of(source)
    names = [(facts["sym_scopes"][row["scope_no"]]["qualname"], row["name"]) for row in facts["sym_bindings"]]
    targets = [row["target_no"] for row in facts["sym_bindings"]]
    return {
        name: row | {"target": None if target is None else names[target]}
        for name, row, target in zip(names, facts["sym_bindings"], targets, strict=True)
    }


def test_bindings_resolve_to_the_scope_that_binds():
    found = bindings_of("x = 1\ndef f(a):\n    def g():\n        nonlocal a\n        a = x, len\n    return g\n")
    assert {name: row["target"] for name, row in found.items()} == {
        ("", "f"): ("", "f"),
        ("", "x"): ("", "x"),
        ("f", "a"): ("f", "a"),
        ("f", "g"): ("f", "g"),
        ("f.g", "a"): ("f", "a"),
        ("f.g", "len"): None,
        ("f.g", "x"): ("", "x"),
    }


def test_a_name_that_only_a_function_makes_global_is_the_modules():
    found = bindings_of("def f():\n    global x\n    x = 1\n")
    assert found["f", "x"]["target"] == ("", "x")
    assert (found["f", "x"]["site_kind"], found["f", "x"]["site_count"]) == ("assign", 1)
    assert (found["", "x"]["site_kind"], found["", "x"]["site_count"]) == ("implicit", 0)
    assert found["", "x"]["site_bstart"] is None


def test_super_means_the_class_it_stands_in():
    found = bindings_of("class C:\n    def m(self): super().m()\n")
    assert found["C.m", "__class__"]["target"] == ("C", "__class__")
    assert found["C", "__class__"]["site_kind"] == "implicit"


def test_two_spellings_of_one_name_are_one_binding():
    found = bindings_of("ﬁ = 1\nfi\nclass C:\n    __x = 1\n    _C__x\n")
    assert found["", "ﬁ"]["is_referenced"]
    assert ("", "fi") not in found
    assert found["C", "__x"]["is_referenced"]


def test_annotation_scopes_see_the_names_of_their_class():
    found = bindings_of("class C:\n    a = 1\n    def m[T: a](self): return a\n")
    assert found["C.m.T", "a"]["target"] == ("C", "a")
    assert found["C.m.m", "a"]["target"] is None


def test_sites_are_the_first_of_their_kind_and_are_counted():
    row = bindings_of("for x in y: pass\nx = 1\ndel x\n")["", "x"]
    assert (row["site_kind"], row["site_bstart"], row["line_start"], row["col_start"], row["site_count"]) == (
        "for",
        4,
        1,
        4,
        3,
    )


# -- imports --------------------------------------------------------------------------------------------------------


def test_imports():
    source = "import a.b.c, d as e\nfrom . import f\nfrom ..g.h import (i as j,\n  k)\nfrom l import *\n"
    columns = ("kind", "module", "level", "name", "asname", "bound_name", "is_star")
    assert rows(source, "cst_imports", *columns) == [
        ("import", "a.b.c", 0, None, None, "a", False),
        ("import", "d", 0, None, "e", "e", False),
        ("from", None, 1, "f", None, "f", False),
        ("from", "g.h", 2, "i", "j", "j", False),
        ("from", "g.h", 2, "k", None, "k", False),
        ("from", "l", 0, None, None, None, True),
    ]
    assert spans(source, "cst_imports") == [b"a.b.c", b"d as e", b"f", b"i as j", b"k", b"*"]
    assert len(set(rows(source, "cst_imports", "stmt_bstart", "stmt_bend"))) == 4


def test_future_imports():
    assert rows("from __future__ import annotations\n", "cst_imports", "module", "name", "bound_name") == [
        ("__future__", "annotations", "annotations")
    ]


def test_where_imports_stand():
    source = """
if TYPE_CHECKING:
    import a
else:
    import b
if t.TYPE_CHECKING:
    class C:
        import c
try:
    import d
except ImportError:
    import e
else:
    import f
finally:
    import g
def h():
    import i
    class J:
        import k
import l
"""
    flags = ("in_type_checking", "in_try", "in_function")
    found = {row["module"]: [flag for flag in flags if row[flag]] for row in facts_of(source)["cst_imports"]}
    assert found == {
        "a": ["in_type_checking"],
        "b": [],
        "c": ["in_type_checking"],
        "d": ["in_try"],
        "e": ["in_try"],
        "f": [],
        "g": [],
        "i": ["in_function"],
        "k": ["in_function"],
        "l": [],
    }


@pytest.mark.parametrize(
    ("statement", "entries"),
    [
        ("__all__ = ['a', \"b\"]", [("set", None, None), ("add", "a", None), ("add", "b", None)]),
        ("__all__ = ()", [("set", None, None)]),
        ("__all__: list[str] = ['a']", [("set", None, None), ("add", "a", None)]),
        ("__all__ = 'a', 'b' 'c'", [("set", None, None), ("add", "a", None), ("add", "bc", None)]),
        ("__all__ = m.__all__ + ['a']", [("set", None, None), ("add", None, "m.__all__"), ("add", "a", None)]),
        ("__all__ = [*m.__all__, 'a']", [("set", None, None), ("add", None, "m.__all__"), ("add", "a", None)]),
        ("__all__ = f()", [("set", None, None), ("add", None, None)]),
        ("__all__ += ['a', x]", [("add", "a", None), ("add", None, None)]),
        ("__all__ += m.n.__all__", [("add", None, "m.n.__all__")]),
        ("__all__.extend(m.__all__)", [("add", None, "m.__all__")]),
        ("__all__.append('a')", [("add", "a", None)]),
        ("__all__.remove('a')", [("remove", "a", None)]),
        ("def f(): __all__ = ['a']", []),
        ("x.__all__ = ['a']", []),
    ],
)
def test_all_names(statement, entries):
    assert rows(statement + "\n", "all_names", "op", "name", "ref") == entries


# -- assignments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("a = b.c", [("assign", "name", "a", [], "attribute", "b.c")]),
        ("a = b = f(x)", [("assign", "name", "a", [], "call", "f"), ("assign", "name", "b", [], "call", "f")]),
        ("a.b = (c)", [("assign", "attribute", "a.b", [], "name", "c")]),
        ("a[0] = [c]", [("assign", "subscript", None, [], "list", None)]),
        (
            "a, (b, *c, d) = e",
            [
                ("assign", "name", "a", ["0"], "name", "e"),
                ("assign", "name", "b", ["1", "0"], "name", "e"),
                ("assign", "starred", "c", ["1", "*"], "name", "e"),
                ("assign", "name", "d", ["1", "-1"], "name", "e"),
            ],
        ),
        ("(a) = 1, 2", [("assign", "name", "a", [], "tuple", None)]),
        ("a: int = {}", [("annotated", "name", "a", [], "dict", None)]),
        ("a: int", [("annotated", "name", "a", [], "none", None)]),
        ("a.b += 1", [("augmented", "attribute", "a.b", [], "literal", None)]),
        ("(a := {b})", [("walrus", "name", "a", [], "set", None)]),
        ("for a, b in c(): pass", [("for", "name", "a", ["0"], "call", "c"), ("for", "name", "b", ["1"], "call", "c")]),
        ("with a.b() as c, d: pass", [("with", "name", "c", [], "call", "a.b")]),
        (
            "with (a as b, c as d.e): pass",
            [("with", "name", "b", [], "name", "a"), ("with", "attribute", "d.e", [], "name", "c")],
        ),
        ("try: pass\nexcept A as b: pass", [("except", "name", "b", [], "name", "A")]),
        ("del a, b.c", [("del", "name", "a", [], "none", None), ("del", "attribute", "b.c", [], "none", None)]),
        ("match a:\n  case b.C(d, e=f) as g: pass", [("match", "name", n, [], "none", None) for n in "dfg"]),
        ("match a:\n  case [_, *b] | {'k': c, **d}: pass", [("match", "name", n, [], "none", None) for n in "bcd"]),
        ("lambda: a", [("return", "none", None, [], "name", "a")]),
        ("def f(): return", [("return", "none", None, [], "none", None)]),
        ("def f(): yield a", [("yield", "none", None, [], "name", "a")]),
        ("def f(): yield from a()", [("yield_from", "none", None, [], "call", "a")]),
        ("[0 for a in b[1]]", [("for", "name", "a", [], "subscript", None)]),
        ("a = await b()", [("assign", "name", "a", [], "other", None)]),
    ],
)
def test_assignments(statement, expected):
    columns = ("op", "target_shape", "target", "unpack", "value_shape", "value")
    assert rows(statement + "\n", "cst_assigns", *columns) == expected


def test_values_that_are_calls_or_lambdas_are_numbered():
    source = (
        "x[g()] = a = f(h())\n"
        "b = (lambda: i())\n"
        "with j(k()) as c: pass\n"
        "for d in l(): pass\n"
        "def m(): return n(o())\n"
        "if e := p(): pass\n"
    )
    facts = facts_of(source)
    calls = [row["callee_name"] for row in facts["cst_callsites"]]
    defs = [row["name"] for row in facts["cst_defs"]]
    found = [
        (row["target"], calls[row["value_call_no"]] if row["value_call_no"] is not None else None)
        for row in facts["cst_assigns"]
    ]
    assert found == [(None, "f"), ("a", "f"), ("b", None), (None, "i"), ("c", "j"), ("d", "l"), (None, "n"), ("e", "p")]
    assert [defs[row["value_def_no"]] for row in facts["cst_assigns"] if row["value_def_no"] is not None] == [
        "<lambda1>"
    ]


# -- annotations ----------------------------------------------------------------------------------------------------


def test_annotations():
    source = "def f(a: int, *b: x.Y) -> 'Z':\n    c: list[int] = []\n    self.d: (str | None)\n"
    facts = facts_of(source)
    columns = ("role", "owner_no", "position", "target", "text", "scope_no")
    assert rows(source, "cst_type_exprs", *columns) == [
        ("parameter", 0, 0, "a", "int", 0),
        ("parameter", 1, 1, "b", "x.Y", 0),
        ("return", 0, None, None, "'Z'", 0),
        ("variable", None, None, "c", "list[int]", 1),
        ("variable", None, None, "self.d", "str | None", 1),
    ]
    def_key = facts["cst_defs"][0]["def_key"]
    assert [row["owner_key"] for row in facts["cst_type_exprs"]] == [def_key] * 3 + [None] * 2
    keys = {row["name"]: row["binding_key"] for row in facts["sym_bindings"]}
    assert [row["binding_key"] for row in facts["cst_type_exprs"]] == [None, None, None, keys["c"], None]


def test_annotations_are_references_under_the_future_import_too():
    source = "from __future__ import annotations\nimport m\ndef f(a: m.T): pass\n"
    assert [row for row in rows(source, "cst_name_refs", "name", "scope_no") if row[0] == "m"] == [("m", 0)]
