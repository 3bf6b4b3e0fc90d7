"""What commands print of a repository that nobody has vouched for, and of answers of any size."""

import json
import os
import subprocess
import sys

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.query.sql import Limits
from tests.repositories import write_repository

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x7f\x9b31m\u202egnp\u2028end"

FILES = {
    f"bad{ESCAPES}.py": f"def broken(:  # {ESCAPES}\n    pass\n",
    f"line\nbreak{ESCAPES}.py": f"import util\nutil.target('{ESCAPES}')\n",
    "util.py": f"def target(x): return x  # {ESCAPES}\n\n\ndef other(): return target('{ESCAPES}')\n",
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, spark):
    root = write_repository(tmp_path_factory.mktemp("hostile") / "repo", FILES)
    ca.build(ca.BuildRequest(root), spark=spark)
    (root / "util.py").write_text(FILES["util.py"] + "\n\nLATER = 1\n")
    ca.build(ca.BuildRequest(root), spark=spark)
    (root / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    return root


@pytest.fixture
def run(capsys):
    def run_command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


def is_safe(text):
    return all(line.isprintable() for line in text.removesuffix("\n").split("\n"))


QUESTIONS = [
    ["build"],
    ["plan"],
    ["plan", "--full", "--verbose"],
    ["status"],
    ["why", f"bad{ESCAPES}.py"],
    ["why", f"nowhere{ESCAPES}.py"],
    ["callers", "util.target"],
    ["callees", "util.other"],
    ["refs", "util.target"],
    ["definition", "util.target"],
    ["definition", f"bad{ESCAPES}"],
    ["definition", "trget"],
    ["definition", f"nothing{ESCAPES}"],
    ["sql", "SELECT path, name, text FROM cpg_nodes"],
    ["sql", f"SELECT '{ESCAPES}' AS \"{ESCAPES}\""],
    ["sql", f"SELECT {ESCAPES}"],
    ["sql", f'SELECT * FROM "{ESCAPES}"'],
    ["builds"],
    ["diff"],
    ["changes", "--cursor", "nobody"],
    ["changes", "--cursor", ESCAPES],
    ["rollback", ESCAPES],
    ["doctor"],
    [f"bogus{ESCAPES}"],
]


@pytest.mark.parametrize("arguments", QUESTIONS, ids=lambda arguments: " ".join(arguments)[:20])
def test_nothing_of_a_repository_commands_the_terminal(hostile, run, arguments):
    where = [] if arguments[0].startswith("bogus") else [hostile]
    _, out, err = run(*arguments, *where)
    assert out or err
    assert is_safe(out)
    assert is_safe(err)
    _, out, err = run(*arguments, *where, "--json")
    assert isinstance(json.loads(out), dict | list)
    assert is_safe(out)
    assert is_safe(err)


def test_json_and_files_keep_what_the_terminal_does_not_get(hostile, run, tmp_path):
    _, out, _ = run("sql", "SELECT path FROM repo_files ORDER BY 1", hostile, "--json")
    assert [row[0] for row in json.loads(out)["rows"]] == sorted(FILES)
    _, out, _ = run("sql", f"SELECT '{ESCAPES}' AS x", hostile, "--csv")
    assert ESCAPES in out
    _, out, err = run("build", hostile, "--json")
    assert {"caf\\xe9.py", f"bad{ESCAPES}.py"} <= {problem["path"] for problem in json.loads(out)["problems"]}
    assert "warning: bad\\x1b]0;owned" in err


def test_csv_on_a_terminal_is_escaped(hostile, run, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    _, out, _ = run("sql", f"SELECT '{ESCAPES}\nx' AS a, 1 AS b", hostile, "--csv")
    assert is_safe(out)
    assert len(out.splitlines()) == 2


def test_a_terminal_gets_the_first_rows_and_is_told_so(hostile, run, monkeypatch):
    query = "SELECT range AS n FROM range(5000)"
    _, piped, _ = run("sql", query, hostile)
    assert len(piped.splitlines()) == 5002
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    _, out, _ = run("sql", query, hostile)
    assert len(out.splitlines()) == 1003
    assert "1,000 rows" in out.splitlines()[-1]
    _, out, _ = run("sql", query, hostile, "--verbose")
    assert out == piped
    _, out, _ = run("sql", "SELECT range AS n FROM range(1000)", hostile)
    assert len(out.splitlines()) == 1002


FOREVER = "SELECT count(*) AS n FROM range(1000000000000) AS a, range(1000000) AS b WHERE a.range + b.range = -1"


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_a_query_that_takes_too_long_is_stopped(hostile, run, form):
    code, out, err = run("sql", FOREVER, hostile, "--timeout", "0.2", *form)
    assert (code, err.count("\n")) == (3, 1)
    assert "stopped after 0.2 s" in err
    assert form != ["--json"] or json.loads(out)["exit_code"] == 3


def test_a_query_that_takes_too_long_between_rows_is_stopped(hostile, run):
    query = "SELECT n FROM range(1000000000000000) AS rows(n) WHERE n < 200000 OR n % 7 = 8"
    code, out, err = run("sql", query, hostile, "--timeout", "5", "--json")
    told = json.loads(out)
    assert (code, told["exit_code"], told["columns"]) == (3, 3, ["n"])
    assert "stopped after 5 s" in err


def test_a_query_that_needs_too_much_memory_is_stopped(hostile, run):
    query = "SELECT list(range) AS n FROM range(100000000)"
    code, _, err = run("sql", query, hostile, "--max-memory-mb", "50")
    assert (code, err.count("\n")) == (3, 1)
    assert "needs more than 50 MB" in err


def test_the_reader_of_an_answer_may_take_its_time(hostile):
    answer = ca.open(hostile).read("SELECT range FROM range(1000000)", Limits(seconds=600))
    assert next(answer).num_rows + sum(batch.num_rows for batch in answer) == 1_000_000


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_an_answer_of_any_size_is_printed_in_little_memory(hostile, tmp_path, form):
    """200 MB of text, of which a process may hold half at a time."""
    query = "SELECT repeat('x', 5000) AS text FROM range(40000)"
    code = (
        "import resource, sys; from codeanatomy.cli.main import main;"
        "main(['sql', 'SELECT 1 AS one', *sys.argv[2:]]);"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "code = main(['sql', *sys.argv[1:]]);"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "sys.exit(code or (after - before) // 1024 > 100)"
    )
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run([sys.executable, "-c", code, query, hostile, *form], stdout=out, check=False)
    assert done.returncode == 0
    assert (tmp_path / "out").stat().st_size > 200_000_000


def test_numbers_that_are_not_finite_are_null(hostile, run):
    query = "SELECT 'nan'::DOUBLE AS a, 'inf'::FLOAT AS b, ['-inf'::DOUBLE, 1] AS c, {'x': 'nan'::DOUBLE} AS d"
    _, out, _ = run("sql", query, hostile, "--json")
    assert json.loads(out, parse_constant=pytest.fail)["rows"] == [[None, None, [None, 1.0], {"x": None}]]


@pytest.mark.parametrize(
    "environ",
    [{"LANG": "C"}, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "ascii"}],
    ids=["LANG", "PYTHONIOENCODING"],
)
@pytest.mark.parametrize(
    "arguments", [["sql", "SELECT 'café → 日' AS \"naïve\""], ["doctor"], ["sql", "SELECT 'é'", "--csv"], ["é"]]
)
def test_an_ascii_terminal_gets_ascii(hostile, environ, arguments):
    names = ("LANG", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING", "PYTHONUTF8")
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    where = [] if arguments == ["é"] else [hostile]
    done = subprocess.run(
        [sys.executable, "-m", "codeanatomy.cli.main", *arguments, *where],
        capture_output=True,
        env=inherited | environ,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.stderr.isascii()
    if "--csv" in arguments:
        assert done.stdout == "'é'\né\n".encode()
    else:
        assert done.stdout.isascii()
    if "SELECT" in arguments[-1]:
        assert b"caf\\xe9 -> \\u65e5" in done.stdout


def test_why_of_a_first_build_does_not_say_that_rows_are_unchanged(built_once, run):
    code, out, _ = run("why", "shop/cart.py", built_once)
    assert (code, "was rebuilt" in out, "unchanged" in out) == (0, True, False)
