"""Builds with a semantic index: what it adds to the graph, that it can be verified, and that builds do without it."""

import shutil
from pathlib import Path

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.errors import InputError, MachineError
from codeanatomy.index import choice, pyrefly, warm
from codeanatomy.index.scip import open_index
from codeanatomy.pipeline import indexing
from codeanatomy.pipeline.inputs import gather
from codeanatomy.pipeline.run import strategy_of
from codeanatomy.pipeline.verify import verify
from codeanatomy.pipeline.warm import Warm
from codeanatomy.store.location import locate_state
from tests.repositories import deep_file

FIXTURES = Path(__file__).parent.parent / "index" / "fixtures"

TYPED = {
    "bank.py": """\
class Account:
    limit = 3

    def close(self):
        return Receipt()

    @property
    def owner(self) -> "Owner":
        return Owner()


class Receipt:
    def show(self): ...


class Owner:
    def notify(self): ...


class Savings(Account):
    def close(self):
        return super().close()
""",
    "use.py": """\
from bank import Account, Savings


def close_all(accounts: dict[str, list[Account]]):
    for name, some in accounts.items():
        "\N{GRINNING FACE}"; some[0].close().show()
        some[0].owner.notify()
    print(", ".join(accounts).upper())


def narrowed():
    account = Account()
    if isinstance(account, Savings):
        account.close()
""",
    "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
}


@pytest.fixture(scope="module")
def typed(tmp_path_factory, spark):
    root = tmp_path_factory.mktemp("typed")
    for path, text in TYPED.items():
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root, ca.build(ca.BuildRequest(root, index="pyrefly"), spark=spark)


def calls(graph, path):
    rows = graph.sql(f"SELECT callee, line, method, confidence FROM calls WHERE path = '{path}' ORDER BY ALL")
    return {(row["callee"], row["line"]): (row["method"], row["confidence"]) for row in rows.to_pylist()}


def test_types_find_calls_that_scopes_and_flow_cannot(typed):
    root, _ = typed
    found = calls(ca.open(root), "use.py")
    assert found["bank.Account.close", 6] == ("exact_span", 0.9)
    assert found["bank.Receipt.show", 6] == ("exact_span", 0.9)
    assert found["bank.Account.owner", 7] == ("exact_span", 0.9)
    assert found["bank.Owner.notify", 7] == ("exact_span", 0.9)
    assert ("<builtin>.str.join", 8) in found


def test_where_both_know_there_is_one_edge(typed):
    root, _ = typed
    edges = ca.open(root).sql(
        """
        SELECT e.edge_kind, e.src_id, e.dst_id FROM cpg_edges AS e WHERE e.edge_kind IN ('CALLS', 'REFERENCES')
        GROUP BY ALL HAVING count(*) > 1
        """
    )
    assert edges.num_rows == 0


def test_a_contradiction_is_kept_and_shown_but_not_believed(typed):
    root, _ = typed
    graph = ca.open(root)
    assert graph.sql("SELECT path, line, own, semantic FROM disagreements").to_pylist() == [
        {"path": "use.py", "line": 14, "own": ["bank.Account.close"], "semantic": ["bank.Savings.close"]}
    ]
    assert ("bank.Savings.close", 14) not in calls(graph, "use.py")
    kept = graph.sql("SELECT confidence FROM cpg_edges WHERE line = 14 AND edge_kind = 'CALLS' ORDER BY 1")
    assert kept["confidence"].to_pylist() == [0.4, 0.9]


def test_a_file_the_indexer_cannot_read_is_reported_and_the_rest_is_built(typed):
    root, result = typed
    assert [(p.path, p.reason) for p in result.problems] == [("latin.py", "not_indexed")]
    assert result.files["not_indexed"] == 1
    rows = ca.open(root).sql("SELECT path, status FROM scip_documents ORDER BY path").to_pylist()
    assert [(row["path"], row["status"]) for row in rows] == [
        ("bank.py", "ok"),
        ("latin.py", "failed"),
        ("use.py", "ok"),
    ]


def test_a_build_with_an_index_is_a_no_op_again_and_verifies(typed, spark, tmp_path, monkeypatch):
    root, result = typed
    monkeypatch.setattr(indexing, "_IN_MEMORY", tmp_path)
    again = ca.build(ca.BuildRequest(root, index="pyrefly"))
    assert (again.mode, again.build_id) == ("noop", result.build_id)
    found = verify(ca.BuildRequest(root), spark=spark)  # with the index of the build, unasked
    assert found.equal
    assert found.tables["documents"].rows == 3
    assert list(tmp_path.iterdir()) == []


def test_builds_of_one_process_can_keep_the_indexer(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(warm, "PATIENCE", 300.0)
    root = tmp_path / "kept"
    root.mkdir()
    for path, text in TYPED.items():
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    request = ca.BuildRequest(root, index="pyrefly")
    with Warm(spark) as process:
        process.build(request)
        kept = process.indexer(ca.open(root).state.location)
        assert kept.rounds == 1, "the full build let it report on everything"
        started = kept.pid
        (root / "bank.py").write_text(str(TYPED["bank.py"]).replace("return Receipt()", "return Owner()"))
        updated = process.build(request)
        assert (updated.mode, kept.rounds, kept.pid) == ("incremental", 2, started)
        assert ("bank.Owner.show", 6) not in calls(ca.open(root), "use.py")
        assert ("bank.Receipt.show", 6) not in calls(ca.open(root), "use.py")
        assert verify(request, spark=spark).equal
        (root / "new.py").write_text("from bank import Owner\n\nOwner().notify()\n")
        process.build(request)
        assert kept.pid != started, "a file came: it was started again"
        assert verify(request, spark=spark).equal
    assert kept.pid is None


def test_an_update_of_files_that_the_indexer_leaves_out(typed, tmp_path, spark):
    root = shutil.copytree(typed[0], tmp_path / "typed")
    with (root / "latin.py").open("ab") as file:
        file.write(b"other = '\xe8'\n")
    with deep_file(root, 1000) as deep:
        result = ca.build(ca.BuildRequest(root, index="pyrefly"), spark=spark)
        assert (result.mode, result.files["rebuilt"]) == ("incremental", 2)
        assert {problem.path: (problem.reason, problem.detail) for problem in result.problems} == {
            "latin.py": ("not_indexed", "pyrefly reads UTF-8 only"),
            deep: ("not_indexed", "it is more than 100 folders deep"),
        }
        assert verify(ca.BuildRequest(root), spark=spark).equal


def test_with_an_index_symbol_closure_is_hybrid_and_the_build_says_so(typed, capsys):
    root, _ = typed
    request = ca.BuildRequest(root, index="pyrefly", strategy="symbol_closure")
    assert strategy_of(request, gather(request, locate_state(root, None, {}), None)) == "hybrid"
    assert main(["build", str(root), "--index", "pyrefly", "--strategy", "symbol_closure"]) == 0
    assert "note: --strategy symbol_closure needs --index none: used hybrid\n" in capsys.readouterr().err


@pytest.fixture(scope="module")
def from_scip(tmp_path_factory, spark):
    root = shutil.copytree(FIXTURES / "tricky", tmp_path_factory.mktemp("scip") / "tricky")
    request = ca.BuildRequest(root, index="scip", scip=str(FIXTURES / "tricky.scip"))
    return root, ca.build(request, spark=spark)


def test_a_scip_index_makes_symbols_imports_and_definitions(from_scip):
    root, result = from_scip
    graph = ca.open(root)
    assert result.index["provider"].startswith("scip ")
    kinds = graph.sql("SELECT DISTINCT edge_kind FROM cpg_edges")["edge_kind"].to_pylist()
    assert {"DEFINES", "CALLS", "REFERENCES", "IMPORT_BINDS"} <= set(kinds)
    assert graph.sql("SELECT count(*) AS n FROM rel_import_symbol")["n"].to_pylist() != [0]
    dangling = graph.sql("SELECT edge_kind FROM cpg_edges AS e ANTI JOIN cpg_nodes AS n ON n.node_id = e.dst_id")
    assert dangling.num_rows == 0
    local = graph.sql("SELECT text FROM cpg_nodes WHERE node_kind = 'SYMBOL' AND text LIKE 'local %'")
    assert all("@" in text for text in local["text"].to_pylist())


def test_a_damaged_document_is_reported_and_the_rest_is_built(tmp_path, spark):
    root = shutil.copytree(FIXTURES / "tricky", tmp_path / "tricky")
    index = open_index(FIXTURES / "tricky.scip")
    damaged = bytearray((FIXTURES / "tricky.scip").read_bytes())
    (part,) = index.documents["tabs.py"]
    end = part.offset + part.length
    damaged[end - 40 : end] = b"\xff" * 40
    broken = tmp_path / "broken.scip"
    broken.write_bytes(damaged)
    result = ca.build(ca.BuildRequest(root, index="scip", scip=str(broken)), spark=spark)
    told = {problem.path: problem.reason for problem in result.problems}
    assert told["tabs.py"] == "not_indexed"
    statuses = ca.open(root).sql("SELECT status FROM scip_documents WHERE path = 'crlf.py'")
    assert statuses["status"].to_pylist() == ["ok"]


def test_the_own_answers_agree_with_scip_on_most_calls(from_scip):
    root, _ = from_scip
    rows = ca.open(root).sql("SELECT agreement, count(*) AS n FROM rel_callsite_symbol GROUP BY ALL").to_pylist()
    found = {row["agreement"]: row["n"] for row in rows}
    assert found["agrees"] > found.get("contradicts", 0)


def test_without_pyrefly_a_build_works_and_says_so(built, monkeypatch, capsys, spark):
    monkeypatch.setattr(pyrefly, "find_pyrefly", lambda: None)
    assert choice.choose_provider("auto", None, built) is None
    with pytest.raises(MachineError, match="pyrefly is not installed"):
        choice.choose_provider("pyrefly", None, built)
    assert main(["build", str(built)]) == 0  # up to date: the tests' builds have no index
    assert "no semantic index" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("choice_", "scip", "message"),
    [
        ("none", "index.scip", "--scip goes with --index scip"),
        ("scip", "missing.scip", "cannot read --scip missing.scip"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(choice_, scip, message, tmp_path):
    with pytest.raises(InputError, match=message):
        choice.choose_provider(choice_, scip, tmp_path)
