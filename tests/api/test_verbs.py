"""Every verb is a function of the api, a name of the package and a command; importing them is cheap."""

import inspect
import re
import subprocess
import sys

import pytest

import codeanatomy as ca
from codeanatomy.api import building, diagnosis, history, reading
from codeanatomy.cli.main import parser
from codeanatomy.cli.options import _commands
from codeanatomy.service import engine, watch

FUNCTIONS = {
    name: function
    for module in (building, diagnosis, history, reading, engine, watch)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    if name not in ("check_engine", "launch_engine")  # which the command line uses
}

WITHOUT_COMMAND = {"open"}
OF_ENGINE = {"start_engine", "stop_engine", "engine_status"}


def loaded_by(code, *arguments):
    """The modules that a fresh process has imported after running `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('modules', *sys.modules)", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_api_the_package_and_the_command_line_offer_the_same_verbs():
    assert set(FUNCTIONS) == {name for name in ca.__all__ if name.islower()}
    assert set(FUNCTIONS) - OF_ENGINE | {"engine"} == WITHOUT_COMMAND | {
        name.replace("-", "_") for name in _commands(parser())
    }


def test_every_public_name_is_the_apis():
    for name in ca.__all__:
        assert getattr(ca, name).__name__ == name
    assert {name: getattr(ca, name) for name in FUNCTIONS} == FUNCTIONS
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        ca.nothing  # noqa: B018


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_verb_returns_a_public_type_that_prints_as_json(name):
    signature = inspect.signature(FUNCTIONS[name])
    assert len(signature.parameters) <= 5
    (result,) = set(re.findall(r"\w+", str(signature.return_annotation))) - {"tuple", "Iterator"}
    assert result in ca.__all__
    assert result == "Graph" or callable(getattr(ca, result).as_json)


def test_workers_and_the_command_line_import_little():
    ours = {name for name in loaded_by("import codeanatomy") if name.startswith("codeanatomy")}
    assert ours == {"codeanatomy"}
    assert not {"pyarrow", "duckdb", "deltalake", "sqlglot", "pyspark"} & loaded_by("import codeanatomy.cli.main")


def test_reading_loads_neither_spark_nor_the_parser(built_once):
    code = (
        "import sys; from codeanatomy.cli.main import main; repo = sys.argv[1];"
        "commands = [['sql', 'SELECT 1 AS n'], ['callers', 'price_of'], ['why', 'shop/cart.py'], ['builds']];"
        "codes = [main([*command, repo, '--quiet']) for command in commands]; assert not any(codes), codes"
    )
    assert not {"pyspark", "py4j", "tree_sitter"} & loaded_by(code, built_once)
    status = "import sys; from codeanatomy.cli.main import main; assert main(['status', sys.argv[1]]) == 0"
    assert not {"pyspark", "py4j"} & loaded_by(status, built_once)
