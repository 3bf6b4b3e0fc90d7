"""Questions answered across files, on small programs: what is found, how, and which modules were looked at."""

import random

import pytest
from bench.accuracy.small_graphs import small_graphs


def graph_of(files):
    return small_graphs({"program": files})


def ask(files, query):
    with graph_of(files) as (connection, _):
        return connection.execute(query).fetchall()


def calls(files):
    return sorted(ask(files, "SELECT DISTINCT caller, callee FROM calls"))


def trail_of(files, question):
    (trail,) = ask(files, f"SELECT trail FROM questions WHERE path = 'main.py' AND question = '{question}'")[0]
    return set(trail)


def test_an_answer_keeps_the_modules_it_looked_at_present_and_absent():
    files = {
        "main.py": "from pkg import run\nimport missing.part\nrun()\nmissing.part.go()\n",
        "pkg/__init__.py": "from .impl import run\n",
        "pkg/impl.py": "def run(): pass\n",
    }
    assert trail_of(files, "g:run") == {"main", "pkg", "pkg.impl"}
    assert trail_of(files, "g:missing .part .go") == {"main", "?missing"}


def test_a_module_that_appears_is_on_the_trail_of_what_missed_it():
    before = {"main.py": "from pkg import late\nlate()\n", "pkg/__init__.py": ""}
    assert "?pkg.late" in trail_of(before, "g:late")
    assert ask(before, "SELECT status FROM questions WHERE question = 'g:late'") == [("absent",)]
    after = before | {"pkg/late.py": ""}
    assert ask(after, "SELECT status FROM questions WHERE question = 'g:late'") == [("internal",)]


def test_an_absolute_import_inside_a_package_is_absolute():
    files = {
        "pkg/__init__.py": "",
        "pkg/json.py": "def dumps(): pass\n",
        "pkg/main.py": "import json\nfrom . import json as own\njson.dumps()\nown.dumps()\n",
    }
    assert calls(files) == [("pkg.main", "json.dumps"), ("pkg.main", "pkg.json.dumps")]


def test_a_class_that_is_raised_is_called_and_still_named_and_an_instance_is_only_named():
    files = {
        "main.py": "from errors import Late, late\ndef f():\n    raise Late\ndef g():\n    raise late from KeyError\n",
        "errors.py": (
            "class Late(Exception):\n    def __init__(self): pass\n    def __call__(self): pass\nlate = Late()\n"
        ),
    }
    assert ("main.f", "errors.Late.__init__") in calls(files)
    assert not [caller for caller, _ in calls(files) if caller == "main.g"]
    sites = "SELECT line_start FROM cpg_nodes WHERE node_kind = 'CALLSITE' AND subkind = 'raise'"
    assert ask(files, sites) == [(3,)]
    named = "SELECT DISTINCT line FROM cpg_edges WHERE edge_kind = 'REFERENCES' AND path = 'main.py' AND line IN (3, 5)"
    assert sorted(ask(files, named)) == [(3,), (5,)]


def test_a_module_named_like_one_of_the_standard_library_hides_it():
    files = {"main.py": "import types\ntypes.make()\n", "types.py": "def make(): pass\n"}
    assert calls(files) == [("main", "types.make")]


def test_a_package_hides_the_module_of_its_name():
    files = {"main.py": "import x\nx.f()\n", "x.py": "def f(): pass\n", "x/__init__.py": "def f(): pass\n"}
    assert calls(files) == [("main", "x.f")]
    assert ask(
        files,
        "SELECT callee.path FROM cpg_edges e JOIN cpg_nodes callee ON callee.node_id = e.dst_id "
        "WHERE edge_kind = 'CALLS'",
    ) == [("x/__init__.py",)]


def test_two_files_that_claim_a_module_are_both_candidates():
    files = {
        "main.py": "import lib\nlib.f()\n",
        "src/lib.py": "def f(): pass\n",
        "other/src/lib.py": "def f(): pass\n",
    }
    found = ask(files, "SELECT candidate_count, ambiguity_group_id IS NOT NULL, score FROM rel_callsite_qname")
    assert found == [(2, True, 0.5), (2, True, 0.5)]


def test_sources_come_before_stubs_and_stubs_before_nothing():
    files = {
        "main.py": "import lib\nlib.f()\nlib.g()\n",
        "lib.py": "def f(): pass\n",
        "lib.pyi": "def f(): ...\ndef g(): ...\n",
    }
    found = ask(
        files,
        "SELECT e.line, n.path FROM cpg_edges e JOIN cpg_nodes n ON n.node_id = e.dst_id "
        "WHERE edge_kind = 'CALLS' ORDER BY 1",
    )
    assert found == [(2, "lib.py"), (3, "lib.pyi")]


def test_circles_of_imports_and_star_imports_end():
    files = {
        "a.py": "from b import x\nfrom b import *\nx()\nonly_b()\nnowhere()\n",
        "b.py": "from a import x\nfrom a import *\ndef only_b(): pass\n",
    }
    assert calls(files) == [("a", "b.only_b")]


def test_star_imports_fifty_deep():
    files = {f"m{n}.py": f"from m{n + 1} import *\n" for n in range(50)} | {"m50.py": "def deep(): pass\n"}
    assert calls(files | {"main.py": "from m0 import deep\ndeep()\n"}) == [("main", "m50.deep")]


def test_ten_thousand_names_in_all():
    names = ", ".join(f"'n{n}'" for n in range(10_000))
    files = {
        "main.py": "from lib import *\nn9999()\nhidden()\n",
        "lib.py": f"__all__ = [{names}]\ndef n9999(): pass\ndef hidden(): pass\n",
    }
    assert calls(files) == [("main", "lib.n9999")]


@pytest.mark.parametrize(
    "source",
    [
        "class A(A): pass\nA().m()\n",
        "class A(B): pass\nclass B(A): pass\nA().m()\n",
        "class X: pass\nclass Y: pass\nclass P(X, Y): pass\nclass Q(Y, X): pass\nclass Z(P, Q): pass\nZ().m()\n",
        "class A:\n    @property\n    def p(self): return self.p\nA().p.p()\n",
        "x = y.a\ny = x.b\nx()\ny()\n",
        "def f(): return f()\nf().g()\n",
    ],
)
def test_what_python_refuses_or_never_ends_still_has_a_graph(source):
    assert ask({"main.py": source}, "SELECT count(*) FROM cpg_nodes WHERE node_kind = 'CALLSITE'")[0][0] > 0


def test_bases_that_cannot_be_merged_are_searched_as_written():
    source = "class X:\n    def m(self): pass\nclass Y: pass\nclass P(X, Y): pass\nclass Q(Y, X): pass\n"
    assert ("main", "main.X.m") in calls({"main.py": source + "class Z(P, Q): pass\nZ().m()\n"})


def test_answers_do_not_depend_on_the_order_of_files_or_on_what_was_asked_before():
    files = {
        "a.py": "from b import x\ny = x\nclass A(Base): pass\nfrom c import *\nA().run()\ny()\n",
        "b.py": "from c import x\nfrom a import y as z\nz()\n",
        "c.py": "try:\n    from a import y as x\nexcept ImportError:\n    def x(): pass\n"
        "class Base:\n    def run(self): x()\n",
        "main.py": "import a, b, c\na.y(); b.x(); c.x(); b.z(); a.A().run()\n",
    }
    expected = ask(files, "SELECT * EXCLUDE (file_id) FROM answers ORDER BY ALL")
    for seed in range(5):
        order = list(files)
        random.Random(seed).shuffle(order)
        assert (
            ask({path: files[path] for path in order}, "SELECT * EXCLUDE (file_id) FROM answers ORDER BY ALL")
            == expected
        )


def test_a_script_finds_the_modules_beside_it():
    files = {"tools/run.py": "import helper\nhelper.go()\n", "tools/helper.py": "def go(): pass\n"}
    assert calls(files) == [("tools.run", "tools.helper.go")]


def test_what_a_class_gets_from_outside_is_external_and_what_it_should_have_is_absent():
    files = {
        "main.py": "import threading\nclass T(threading.Thread):\n    def f(self): self.join()\n"
        "class U:\n    def f(self): self.join()\n"
    }
    found = ask(files, "SELECT target_id, status FROM rel_callsite_qname ORDER BY 1")
    assert found == [("q:main.U.join", "absent"), ("q:threading.Thread.join", "external")]
    assert calls(files) == [("main.T.f", "threading.Thread.join")]


def test_exports_have_an_identity_and_a_shape():
    def exports(source):
        rows = ask({"main.py": source}, "SELECT name, identity_hash, shape_hash FROM dim_exported_defs")
        return {name: (identity, shape) for name, identity, shape in rows}

    before = exports("def f(a): return 1\nclass C:\n    def m(self): pass\n")
    body = exports("def f(a):\n    # other\n    return 2\nclass C:\n    def m(self): return 1\n")
    signature = exports("def f(a, b): return 1\nclass C:\n    def m(self, x): pass\n")
    assert before == body
    assert before["f"][0] == signature["f"][0]
    assert before["f"][1] != signature["f"][1]
    assert before["C"][1] != signature["C"][1]


def test_overrides_inherits_decorators_types_and_variables_have_edges():
    files = {
        "base.py": "LIMIT = 1\ndef deco(f): return f\nclass Base:\n    def run(self): pass\n",
        "main.py": "import base\nfrom base import Base, deco\n\n\nclass Sub(Base):\n    @deco\n"
        "    def run(self, other: 'Base', more: base.Base):\n        base.LIMIT = base.LIMIT + 1\n",
    }
    found = ask(
        files,
        "SELECT edge_kind, s.qname, t.qname FROM cpg_edges e JOIN cpg_nodes s ON s.node_id = e.src_id "
        "JOIN cpg_nodes t ON t.node_id = e.dst_id WHERE e.path = 'main.py'",
    )
    assert {
        ("INHERITS", "main.Sub", "base.Base"),
        ("OVERRIDES", "main.Sub.run", "base.Base.run"),
        ("DECORATED_BY", "main.Sub.run", "base.deco"),
        ("READS", "main.Sub.run", "base.LIMIT"),
        ("WRITES", "main.Sub.run", "base.LIMIT"),
        ("IMPORTS", "main", "base"),
        ("CALLS_DEF", "main", "base.deco"),
    } <= set(found)
    types = ask(
        files,
        "SELECT t.qname FROM cpg_edges e JOIN cpg_nodes t ON t.node_id = e.dst_id "
        "WHERE edge_kind = 'TYPE_REFERS_TO' ORDER BY 1",
    )
    assert types == [("base",), ("base.Base",), ("base.Base",)]
