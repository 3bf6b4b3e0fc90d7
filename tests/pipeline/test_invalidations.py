"""What is computed anew when something else than a file changes: its own output, what is made from it, no more."""

from dataclasses import replace

import pytest

import codeanatomy as ca
from codeanatomy.pipeline import inputs as build_inputs
from codeanatomy.pipeline.plan import ENTRY_POINTS, fingerprints, plan_build
from codeanatomy.pipeline.request import Mode
from codeanatomy.pipeline.verify import verify
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import load_rules
from codeanatomy.store.builds import latest_build
from tests.repositories import write_repository


def edited(name, change):
    """The rules, with the text of one changed."""
    rules = load_rules()
    assert any(rule.name == name for rule in rules)
    return compile_rules([replace(rule, sql=change(rule.sql)) if rule.name == name else rule for rule in rules])


def without(name):
    return compile_rules([rule for rule in load_rules() if rule.name != name])


def less_sure(sql):
    return sql.replace("r.confidence,", "r.confidence * 0.5 AS confidence,")


@pytest.fixture
def planned(built_once):
    """Plans a build of the sample repository with other rules or fingerprints."""
    state = ca.open(built_once).state
    last = latest_build(state)
    given = build_inputs.gather(ca.BuildRequest(built_once), state.location, state)

    def plan(rules=given.rules, settings=given.settings, changed=None):
        others = {ENTRY_POINTS: given.fingerprints[ENTRY_POINTS], **(changed or {})}
        current = {**fingerprints(rules, settings, given.roots, given.repo_id, None), **others}
        return plan_build(last, replace(given, rules=rules, fingerprints=current, provider=None), full=False)

    return plan


def test_nothing_changed(planned):
    assert planned().mode is Mode.NOOP


@pytest.mark.parametrize(
    ("rule", "tables"),
    [
        ("edges.inherits", ("cpg_edges",)),
        ("nodes.param", ("cpg_nodes",)),
        ("relations.calls_written", ("cpg_edges",)),  # a relation, and the edges that are made from it
        ("sites.calls", ("cpg_edges",)),
        ("tables.module_lookups", ("module_lookups",)),
        ("tables.py_module_index", ("py_module_index", "cpg_nodes", "cpg_edges")),
    ],
)
def test_an_edited_rule_reaches_what_is_made_from_it(planned, rule, tables):
    plan = planned(edited(rule, lambda sql: sql + "\nLIMIT 5"))
    assert plan.mode is Mode.INCREMENTAL
    assert plan.reasons == (f"rule {rule} changed",)
    assert plan.whole == set(tables)


@pytest.mark.parametrize("rule", ["edges.calls", "sites.calls", "tables.repo_files"])
def test_formatting_and_comments_of_a_rule_change_nothing(planned, rule):
    plan = planned(edited(rule, lambda sql: sql.replace("SELECT", "-- new words\nselect\n\n ", 1)))
    assert plan.mode is Mode.NOOP


def test_a_rule_of_a_view_that_nothing_stored_is_made_from_changes_nothing(planned):
    assert planned(edited("views.calls", lambda sql: sql + "\nLIMIT 5")).mode is Mode.NOOP


def test_a_rule_that_is_gone_reaches_its_table(planned):
    assert planned(without("edges.reads")).whole == {"cpg_edges"}


@pytest.mark.parametrize("name", ["resolver", "settings", "schema", "index", "modules"])
def test_anything_else_is_a_full_build(planned, name):
    plan = planned(changed={name: "another"})
    assert plan.mode is Mode.FULL
    assert [each.name for each in plan.invalidations] == [name]


def test_threads_memory_and_partitions_are_in_no_fingerprint(planned):
    settings = build_inputs.EngineSettings(
        master="local[7]", shuffle_partitions=3, short_run=True, profile=build_inputs.profile_named("memory_tight")
    )
    assert planned(settings=settings).mode is Mode.NOOP


def test_a_build_with_an_edited_rule_computes_its_table_alone(tmp_path, spark, monkeypatch):
    files = {"a.py": "class A: pass\n", "b.py": "from a import A\nclass B(A): pass\n"}
    root = write_repository(tmp_path, files)
    ca.build(ca.BuildRequest(root), spark=spark)
    monkeypatch.setattr(build_inputs, "own_rules", lambda: edited("edges.inherits", less_sure))
    write_repository(root, {"a.py": "class A:\n    def f(self): pass\n"})  # and a file changed as well
    result = ca.build(ca.BuildRequest(root), spark=spark)
    assert result.mode == "incremental"
    graph = ca.open(root)
    assert graph.sql("SELECT confidence FROM cpg_edges WHERE edge_kind = 'INHERITS'").to_pydict() == {
        "confidence": [0.5]
    }
    assert graph.sql("SELECT kind, name, tables FROM inc_invalidations").to_pylist() == [
        {"kind": "rule", "name": "edges.inherits", "tables": ["cpg_edges"]}
    ]
    reasons = graph.sql(
        "SELECT path, reason_kind, tables, rows_changed FROM inc_impacted_files ORDER BY path"
    ).to_pylist()
    assert [(row["path"], row["reason_kind"], row["rows_changed"]) for row in reasons] == [
        ("a.py", "content_changed", True),
        ("b.py", "rule_changed", True),
    ]
    assert reasons[1]["tables"] == ["cpg_edges"]
    assert verify(ca.BuildRequest(root), spark=spark).equal
