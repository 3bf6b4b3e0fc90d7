"""The command line as scripts see it: data on stdout, everything else on stderr, exit codes, one line per error."""

import json
import subprocess
import sys

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from tests.repositories import write_repository


@pytest.fixture(scope="module")
def repo(built_once):
    return built_once


@pytest.fixture
def run(capsys):
    def run_command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


def fresh_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "codeanatomy.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_build_prints_what_the_interface_promises_and_nothing_else(tmp_path):
    write_repository(tmp_path)
    done = fresh_process("build", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.keys() >= {
        "build_id", "parent_build_id", "mode", "strategy", "repo", "git_commit", "snapshot_id", "files", "tables",
        "stages", "seconds", "peak_memory_mb",
    }  # fmt: skip
    assert told["files"].keys() >= {"total", "added", "modified", "deleted", "renamed", "impacted", "rebuilt", "failed"}
    assert told["tables"]["cpg_nodes"].keys() == {"rows", "digest", "version", "written"}
    assert done.stderr.splitlines() == [
        "warning: broken.py: syntax_error: line 4: missing )",
        "note: no semantic index (--index none): types are unknown",
        f"build {told['build_id']}: full, 7 files, {told['tables']['cpg_nodes']['rows']:,} nodes, "
        f"{told['tables']['cpg_edges']['rows']:,} edges ({told['seconds']:.1f} s, peak {told['peak_memory_mb']:,} MB)",
    ]


def test_a_no_op_build_loads_no_spark(repo):
    code = (
        "import sys; from codeanatomy.cli.main import main; code = main(sys.argv[1:]);"
        "sys.exit(code or bool({'pyspark', 'pandas', 'py4j'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, "build", repo], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "up to date" in done.stderr


def test_sql_prints_a_table_json_csv_or_writes_arrow(repo, run, tmp_path):
    query = "SELECT name, line_start FROM cpg_nodes WHERE node_kind = 'DEF' AND path = 'shop/prices.py' ORDER BY 2"
    code, out, _ = run("sql", query, repo)
    assert (code, out.splitlines()[0].split()) == (0, ["name", "line_start"])
    code, out, _ = run("sql", query, repo, "--json")
    assert json.loads(out)["columns"] == ["name", "line_start"]
    assert ["price_of", 7] in json.loads(out)["rows"]
    code, out, _ = run("sql", "SELECT sum(line_start) AS n, 1 AS a, 2 AS a FROM CPG_NODES", repo, "--json")
    assert json.loads(out)["columns"] == ["n", "a", "a"]
    assert [type(value) for value in json.loads(out)["rows"][0]] == [int, int, int]
    code, out, _ = run("sql", query, repo, "--csv")
    assert "price_of,7" in out.splitlines()
    code, out, _ = run("sql", query, repo, "--arrow", tmp_path / "a.arrow")
    assert (code, out) == (0, "")
    assert (tmp_path / "a.arrow").stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["build", "/no/such/place"], 2, "no such directory"),
        (["sql", "SELECT 1", "/tmp"], 2, "run `codeanatomy build`"),
        (["sql", "DROP TABLE cpg_nodes", "{repo}"], 2, "read-only"),
        (["sql", "SELECT 1", "{repo}", "--build", "nope"], 2, "no build nope"),
        (["rollback", "nope", "{repo}"], 2, "no build nope"),
        (["replay", "nope", "{repo}"], 2, "no build nope"),
        (["gc", "{repo}", "--keep", "0"], 2, "--keep"),
        (["publish", "{repo}", "--out", "{repo}"], 2, "not an earlier publication"),
        (["publish", "{repo}", "--out", "x", "--table", "ghosts"], 2, "no dataset is called 'ghosts'"),
        (["build", "{repo}", "--conf", "nonsense"], 2, "KEY=VALUE"),
        (["status", "{repo}", "--config", "/no/such.toml"], 2, "cannot read --config"),
    ],
)
def test_bad_usage_is_one_line_and_an_exit_code(repo, run, arguments, code, words):
    got, out, err = run(*(argument.format(repo=repo) for argument in arguments))
    assert got == code
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_status_tells_whether_the_build_is_fresh(built, run):
    repo = built
    code, out, _ = run("status", repo, "--check")
    assert (code, "up to date" in out) == (0, True)
    (repo / "empty.py").write_text("x = 1\n")
    (repo / "new.py").write_text("y = 1\n")
    code, out, _ = run("status", repo, "--check")
    assert code == 1
    assert "modified  empty.py" in out
    assert "added     new.py" in out
    code, out, _ = run("status", repo, "--json")
    assert (code, json.loads(out)["changes"]) == (0, {"added": ["new.py"], "modified": ["empty.py"]})


def test_rollback_goes_back_and_gc_forgets(built, spark, run):
    repo = built
    first = ca.build(ca.BuildRequest(repo))
    (repo / "empty.py").write_text("x = 1\n")
    second = ca.build(ca.BuildRequest(repo), spark=spark)
    code, _, err = run("rollback", first.build_id, repo)
    assert (code, first.build_id in err) == (0, True)
    assert ca.open(repo).build.snapshot_id == first.snapshot_id
    code, out, _ = run("builds", repo, "--json")
    assert [build["mode"] for build in json.loads(out)] == ["rollback", "incremental", "full"]
    code, out, _ = run("status", repo, "--json")
    assert json.loads(out)["changes"] == {"modified": ["empty.py"]}
    code, out, _ = run("gc", repo, "--keep", "1", "--dry-run", "--json")
    assert json.loads(out)["builds"] == [second.build_id]
    code, out, _ = run("gc", repo, "--keep", "1", "--json")
    assert json.loads(out)["builds"] == [second.build_id]
    assert ca.open(repo).sql("SELECT count(*) AS n FROM cpg_nodes")["n"].to_pylist() == [
        first.tables["cpg_nodes"]["rows"]
    ]
    with pytest.raises(ca.InputError, match="no build"):
        ca.open(repo, build=second.build_id)


def test_options_come_from_the_environment_and_the_users_file(repo, run, monkeypatch, tmp_path):
    monkeypatch.setenv("CODEANATOMY_STATE", str(repo / ".codeanatomy"))
    assert run("sql", "SELECT 1 AS one", tmp_path)[0] == 0
    monkeypatch.delenv("CODEANATOMY_STATE")
    (tmp_path / "mine.toml").write_text(f"state = '{repo / '.codeanatomy'}'\ncsv = true\n")
    code, out, _ = run("sql", "SELECT 1 AS one", tmp_path, "--config", tmp_path / "mine.toml")
    assert (code, out) == (0, "one\n1\n")


def test_doctor_says_what_is_there(repo, run):
    code, out, _ = run("doctor", repo)
    assert code == 0
    assert "✓ java" in out
    assert ca.open(repo).build.build_id in out


def test_doctor_misses_lost_files(built, run):
    repo = built
    next((repo / ".codeanatomy/tables/cpg_nodes").rglob("*.parquet")).unlink()
    code, out, _ = run("doctor", repo)
    assert code == 4
    assert "is damaged (table cpg_nodes lost" in out
