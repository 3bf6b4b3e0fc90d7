"""Rules of a state are not ours: they run if they are made of what our rules are made of, and only as looked at."""

import pytest

from codeanatomy.errors import InputError
from codeanatomy.rules.definition import load_rules
from codeanatomy.rules.recorded import compile_recorded

HEADER = "-- output: py_module_index\n"
RULE = HEADER + "SELECT file_id, path, {} AS module_fqn, is_init, is_stub, root FROM scan_files"


def test_our_own_rules_are_run_as_they_are():
    sources = {rule.name: rule.sql for rule in load_rules() if rule.output.name in ("repo_files", "py_module_index")}
    assert {each.rule.name: each.rule.sql for each in compile_recorded(sources)} == sources


@pytest.mark.parametrize(
    "module_fqn",
    [
        "java_method('java.lang.System', 'getProperty', 'user.home')",
        "`reflect`('java.lang.System', 'getProperty', 'user.home')",
        "(SELECT min(b) FROM (SELECT TRANSFORM(path) USING 'cat' AS (b string) FROM scan_files))",
    ],
)
def test_a_rule_that_reaches_outside_is_refused(module_fqn):
    with pytest.raises(InputError, match="rule mine"):
        compile_recorded({"mine": RULE.format(module_fqn)})


def test_what_only_spark_would_read_is_not_run():
    """To Spark a backslash continues a comment, so that it would see what SQLGlot takes for part of another."""
    hidden = "-- \\\n/*\n, java_method('java.lang.System', 'getProperty', 'user.home') AS module_fqn\n-- \\\n*/\n"
    source = HEADER + f"SELECT file_id, path\n{hidden}, module_fqn, is_init, is_stub, root FROM scan_files"
    (compiled,) = compile_recorded({"mine": source})
    assert "module_fqn" in compiled.rule.sql
    assert "java_method" not in compiled.rule.sql.lower()


@pytest.mark.parametrize("source", [RULE.format("nothing"), "SELECT 1", HEADER + "DROP TABLE scan_files"])
def test_what_is_no_rule_any_more_is_bad_input(source):
    with pytest.raises(InputError, match="cannot read the rules of the build"):
        compile_recorded({"mine": source})
