"""The rules make ids as the grammar spells them, and one that does not is refused."""

from itertools import chain

import pytest

from codeanatomy.catalogue.ids import ANSWER_IDS, EDGE_IDS, NODE_IDS, edge_forms
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.rules.compiled import by_output
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import RuleError, load_rules, parse_rule
from codeanatomy.rules.id_check import IdForms, check_ids

NODE = "-- output: cpg_nodes\n-- kind: {}\nSELECT {} AS node_id, x.file_id FROM {} AS x"
EDGE = (
    "-- output: cpg_edges\n-- kind: HAS_PARAM\n"
    "SELECT {} AS edge_id, {} AS src_id, concat('p:', x.file_id, ':', x.def_key, ':', x.position) AS dst_id, x.file_id "
    "FROM cst_params AS x"
)
EDGE_ID = "concat('HAS_PARAM:', x.file_id, ':', x.def_key, ':', x.position)"


@pytest.fixture(scope="module")
def rules():
    return by_output(compile_rules(load_rules()))


def refused(sql, complaint):
    with pytest.raises(RuleError, match=complaint):
        compile_rules([parse_rule("rule", sql)])


def forms(rules, output, column):
    """The forms of a column, by the kind of the rules that make it."""
    found = {}
    for rule in rules[output]:
        found.setdefault(rule.rule.kind, set()).update(IdForms(rules).of(rule, column))
    return found


def test_the_rules_of_the_package_are_checked(rules):
    check_ids(rules)


def test_every_declared_form_of_a_node_is_made_by_a_rule_or_read_from_answers(rules):
    made = forms(rules, "cpg_nodes", "node_id")
    for kind, spelled in NODE_IDS.items():
        read = {f"{{answers.{column}}}" for column, kinds in ANSWER_IDS.items() if kind in kinds}
        assert set(spelled.forms) <= made[kind] or made[kind] & read, kind


def test_every_declared_parent_is_made_by_a_rule(rules):
    made = forms(rules, "cpg_nodes", "parent_id")
    for kind, spelled in NODE_IDS.items():
        assert {form for parent in spelled.parents for form in NODE_IDS[parent].forms} == made[kind], kind


@pytest.mark.parametrize("end", ["src", "dst"])
def test_every_declared_end_of_an_edge_is_made_by_a_rule_or_read_from_answers(rules, end):
    made = forms(rules, "cpg_edges", f"{end}_id")
    for kind, spelled in EDGE_IDS.items():
        answered = set(
            chain.from_iterable(held for column, held in ANSWER_IDS.items() if f"{{answers.{column}}}" in made[kind])
        )
        expected = {form for each in set(getattr(spelled, end)) - answered for form in NODE_IDS[each].forms}
        assert expected <= made[kind], kind


def test_every_declared_form_of_an_edge_is_made_by_a_rule(rules):
    made = forms(rules, "cpg_edges", "edge_id")
    ends = {end: forms(rules, "cpg_edges", end) for end in ("src_id", "dst_id")}
    for kind in EdgeKind:
        for form in edge_forms(kind):
            filled = {
                form.replace("{src_id}", src).replace("{dst_id}", dst)
                for src in ends["src_id"][kind]
                for dst in ends["dst_id"][kind]
            }
            assert filled & made[kind], form


def test_every_statement_spells_node_ids_as_the_grammar_does(rules):
    """Also where an id is only compared, as in a join."""
    accepted = {form for spelled in NODE_IDS.values() for form in spelled.forms}
    accepted |= {"a:{file_id}:{ask_no}", "a:{file_id}:{bstart}:{bend}"}
    for rule in chain.from_iterable(rules.values()):
        for found in IdForms(rules).node_ids_in(rule.tree):
            assert found <= accepted, rule.rule.name


def test_an_edge_reads_only_the_sites_of_its_role(rules):
    calls = next(rule for rule in rules["cpg_edges"] if rule.rule.name == "edges.calls")
    sites = {form for kind in (NodeKind.CALLSITE, NodeKind.NAME_REF) for form in NODE_IDS[kind].forms}
    assert IdForms(rules).of(calls, "src_id") == sites


@pytest.mark.parametrize(
    ("kind", "expression", "source", "complaint"),
    [
        ("DEF", "concat('e:', x.file_id, ':', x.def_key)", "cst_defs", r"node_id is spelled e:\{file_id\}:\{def_key\}"),
        ("DEF", "concat('d:', x.file_id, ':', x.bstart)", "cst_defs", r"d:\{file_id\}:\{bstart\}, the grammar"),
        ("DEF", "concat('d:', x.file_id, x.def_key)", "cst_defs", r"d:\{file_id\}\{def_key\}"),
        ("DEF", "concat('d:', x.file_id, ':', x.binding_key)", "sym_bindings", r"d:\{file_id\}:\{binding_key\}"),
        (
            "CALLSITE",
            "concat('c:', x.file_id, ':', x.implicit_no)",
            "cst_implicit_calls",
            r"c:\{file_id\}:\{implicit_no",
        ),
        ("REPO", "concat('r:', x.path)", "scan_files", r"r:\{path\}"),
        (
            "SYMBOL",
            "concat('s:', substr(sha2(x.symbol, 256), 1, 16))",
            "scip_symbol_information",
            "cannot tell the form",
        ),
        ("SYMBOL", "concat('s:', md5(x.symbol))", "scip_symbol_information", "cannot tell the form"),
        ("SYMBOL", "concat('s:', substr(sha2(x.path, 256), 1, 24))", "scip_symbol_information", "cannot tell the form"),
        (
            "DEF",
            "coalesce(concat('d:', x.file_id, ':', x.container_key), concat('m:', x.file_id))",
            "cst_defs",
            r"node_id is spelled m:\{file_id\}",
        ),
    ],
)
def test_a_node_id_that_is_spelled_differently_is_refused(kind, expression, source, complaint):
    refused(NODE.format(kind, expression, source), complaint)


@pytest.mark.parametrize(
    ("edge_id", "src_id", "complaint"),
    [
        (EDGE_ID, "concat('m:', x.file_id)", r"src_id is spelled m:\{file_id\}"),
        (
            "concat('PARAM:', x.file_id)",
            "concat('d:', x.file_id, ':', x.def_key)",
            r"edge_id is spelled PARAM:\{file_id\}",
        ),
        (EDGE_ID, "concat('d:', x.file_id, ':', x.position)", r"src_id is spelled d:\{file_id\}:\{position\}"),
    ],
)
def test_an_edge_that_is_spelled_differently_is_refused(edge_id, src_id, complaint):
    refused(EDGE.format(edge_id, src_id), complaint)


def test_a_rule_is_refused_for_the_ids_of_a_rule_that_it_reads():
    sources = {rule.name: rule.sql for rule in load_rules()}
    sources["sites.calls"] = sources["sites.calls"].replace("concat('c:', c.file_id", "concat('k:', c.file_id")
    with pytest.raises(RuleError, match=r"rule edges.calls: src_id is spelled k:\{file_id\}:\{call_no\}"):
        compile_rules([parse_rule(name, sql) for name, sql in sources.items()])


def test_a_kind_without_a_spelling_of_its_ids_is_refused(monkeypatch):
    monkeypatch.delitem(EDGE_IDS, EdgeKind.CALLS)
    with pytest.raises(RuleError, match=r"kind CALLS: catalogue/ids\.py does not say"):
        compile_rules(load_rules())
