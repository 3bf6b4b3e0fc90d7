"""Commands that need no Spark load no heavy library but those they use: that is what makes them quick."""

import json
import subprocess
import sys

import pytest

HEAVY = ("pyspark", "pandas", "sqlglot", "duckdb", "pyarrow.dataset", "pyarrow.compute", "tree_sitter", "pyrefly")

PROGRAM = """
import json, sys
from codeanatomy.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


@pytest.fixture(scope="module")
def loaded(built_once):
    """Runs a command in a process of its own, the second time, and gives the heavy libraries it loaded."""

    def run(*arguments):
        command = [sys.executable, "-c", PROGRAM, *arguments]
        for _ in range(2):  # the first time, rules and views are compiled and remembered
            found = subprocess.run(command, capture_output=True, text=True, check=True)
        code, modules = json.loads(found.stdout.splitlines()[-1])
        assert code == 0, found.stderr
        return [name for name in HEAVY if name in modules]

    return lambda command, *own: run(command, *own, str(built_once), "--quiet")


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (("build", "--index", "none"), []),
        (("status",), []),
        (("builds",), []),
        (("sql", "SELECT count(*) FROM cpg_nodes JOIN repo_files USING (file_id)"), ["duckdb"]),
        (("sql", "SELECT * FROM calls"), ["duckdb"]),
        (("sql", "SELECT * FROM cpg_props"), ["duckdb"]),
        (("callers", "shop.prices.price_of"), ["duckdb"]),
        (("why", "shop/prices.py"), ["duckdb"]),
    ],
    ids=lambda value: " ".join(value) or "nothing",
)
def test_a_command_loads_only_what_it_uses(loaded, command, needed):
    assert loaded(*command) == needed
