"""The rule framework: contracts are checked, inputs and identity come from the SQL itself."""

from graphlib import TopologicalSorter

import pytest

from codeanatomy.catalogue.columns import Dataset, text
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.catalogue.tables import DOCUMENT_VIEWS, SCIP_DOCUMENTS
from codeanatomy.rules.compiled import by_output, dependencies, needed_rules, unmade
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import RuleError, load_rules, parse_rule

HEADER = "-- output: py_module_index\n"
BODY = "SELECT s.file_id, s.path, s.module_fqn, s.is_init, s.is_stub, s.root FROM scan_files AS s"


def compiled(sql: str, name: str = "rule"):
    return compile_rules([parse_rule(name, sql)])[0]


def test_every_rule_of_the_package_compiles():
    assert len(compile_rules(load_rules())) == len(load_rules()) > 20


def test_every_declared_kind_has_a_rule():
    made = {rule.kind for rule in load_rules()}
    assert made >= {*NodeKind, *EdgeKind}


def test_inputs_are_read_off_the_sql_and_exclude_its_own_names():
    sql = HEADER + f"WITH w AS ({BODY}) SELECT w.* FROM w LEFT JOIN cst_defs AS d ON d.file_id = w.file_id"
    assert compiled(sql).inputs == ("cst_defs", "scan_files")


def test_lineage_reaches_the_input_columns():
    rule = next(r for r in compile_rules(load_rules()) if r.rule.name == "nodes.def")
    assert rule.lineage["qname"] == ("cst_defs.qualname", "py_module_index.module_fqn")


@pytest.mark.parametrize(
    "variant",
    [
        BODY.replace(", ", ",\n   "),
        BODY.replace("SELECT", "select /* why */").replace("FROM", "from"),
        BODY + "  -- a comment",
        BODY.replace("s.", "").replace(" AS s", " s"),
    ],
)
def test_formatting_does_not_change_the_plan_identity(variant):
    assert compiled(HEADER + variant).identity == compiled(HEADER + BODY).identity


@pytest.mark.parametrize(
    "variant",
    [
        BODY + " WHERE s.is_init",
        BODY.replace("s.root FROM", "s.path AS root FROM"),
        BODY + " LIMIT 1",
    ],
)
def test_meaning_changes_the_plan_identity(variant):
    assert compiled(HEADER + variant).identity != compiled(HEADER + BODY).identity


def test_the_contract_is_part_of_the_plan_identity():
    edge = next(r for r in load_rules() if r.name == "edges.resolves_to")
    changed = parse_rule(edge.name, edge.sql.replace("kind: RESOLVES_TO", "kind: SCOPE_BINDS"))
    assert compile_rules([changed])[0].identity != compile_rules([edge])[0].identity


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        (BODY, "output '' is not a dataset"),
        ("-- output: nowhere\n" + BODY, "output 'nowhere' is not a dataset"),
        ("-- output: cpg_nodes\n-- kind: GHOST\nSELECT 1", "kind 'GHOST' is not declared"),
        (HEADER + BODY.replace("scan_files", "nothing"), "nothing"),
        (HEADER + BODY.replace("s.root", "s.rot"), "rot"),
        (HEADER + BODY.replace("s.root", "s.root, s.size"), "no column size"),
        (HEADER + BODY.replace(", s.root", ""), "required column root is missing"),
        (HEADER + BODY.replace("s.file_id", "s.path AS file_id"), "file_id must be an input's file_id"),
        (HEADER + BODY.replace("s.root", "s.size AS root"), "column root is bigint, the contract says string"),
        (HEADER + BODY + " UNION ALL " + BODY, "one SELECT"),
        (
            "-- output: cpg_edges\n-- kind: CONTAINS\nSELECT s.file_id, 'x' AS rule_name FROM scan_files AS s",
            "rule_name",
        ),
        (HEADER + "SELEC 1", "rule rule"),
    ],
)
def test_a_broken_contract_is_refused(sql, complaint):
    with pytest.raises(RuleError, match=complaint):
        compiled(sql)


def test_a_dataset_is_made_after_all_that_its_rules_read():
    order = list(TopologicalSorter(dependencies(by_output(compile_rules(load_rules())))).static_order())
    for rule in compile_rules(load_rules()):
        assert all(order.index(name) < order.index(rule.rule.output.name) for name in rule.inputs)
    assert order.index("repo_files") < order.index("cpg_nodes")


def test_a_build_evaluates_what_stored_tables_need_and_nothing_else():
    rules = compile_rules(load_rules())
    needed = {rule.rule.output.name for rule in needed_rules(rules, documents=True)}
    assert {"cpg_edges", "site_answers", "rel_callsite_qname", "rel_callsite_symbol"} <= needed
    assert not needed & {"calls", "references", "dim_exported_defs"}


def test_without_documents_the_rules_that_need_them_are_left_out():
    rules = needed_rules(compile_rules(load_rules()), documents=False)
    read = {name for rule in rules for name in rule.inputs}
    assert not any(rule.rule.needs_documents for rule in rules)
    assert not read & {view.name for view in (SCIP_DOCUMENTS, *DOCUMENT_VIEWS)}
    assert [view.name for view in unmade(rules)] == ["rel_callsite_symbol"]


def test_a_circle_of_rules_is_refused():
    first = parse_rule(
        "first",
        HEADER
        + BODY.replace("scan_files", "repo_files")
        .replace("s.module_fqn", "s.path AS module_fqn")
        .replace("s.is_init, s.is_stub, s.root", "true AS is_init, true AS is_stub, s.path AS root"),
    )
    second = parse_rule(
        "second",
        "-- output: repo_files\n"
        "SELECT m.file_id, m.path, CAST(1 AS BIGINT) AS size, m.root AS status FROM py_module_index AS m",
    )
    with pytest.raises(RuleError, match="circle"):
        compile_rules([first, second])


def test_a_dataset_knows_its_columns():
    dataset = Dataset("d", "", (text("a", "", required=True),))
    assert dataset.column("a").required
    with pytest.raises(KeyError, match="d has no column b"):
        dataset.column("b")
