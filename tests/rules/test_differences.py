"""Differences of rules: found in their syntax trees, not in their texts."""

from codeanatomy.rules.definition import load_rules
from codeanatomy.rules.differences import MAX_COMPARED, RuleChange, rule_changes

BEFORE = "-- output: calls\nSELECT a.x, a.y FROM a WHERE a.z > 1"


def changes(before, after):
    return rule_changes({"r": before}, {"r": after})


def test_rules_that_come_or_go():
    assert rule_changes({"old": BEFORE}, {"new": BEFORE}) == [RuleChange("new", "added"), RuleChange("old", "removed")]


def test_equal_rules_have_no_difference():
    sources = {rule.name: rule.sql for rule in load_rules()}
    assert rule_changes(sources, sources) == []


def test_an_edited_condition_is_told_by_its_literals():
    assert set(changes(BEFORE, BEFORE.replace("> 1", "> 2"))) == {
        RuleChange("r", "changed", "remove", "Literal", "1", None),
        RuleChange("r", "changed", "insert", "Literal", None, "2"),
    }


def test_a_column_more_is_an_insertion():
    found = changes(BEFORE, BEFORE.replace("a.y", "a.y, upper(a.w) AS w"))
    assert {each.edit for each in found} == {"insert"}
    assert RuleChange("r", "changed", "insert", "Upper", None, "UPPER(a.w)") in found


def test_a_column_less_is_a_removal():
    found = changes(BEFORE, BEFORE.replace(", a.y", ""))
    assert {(each.edit, each.after) for each in found} == {("remove", None)}


def test_where_the_trees_are_equal_the_contract_changed():
    (change,) = changes(BEFORE, BEFORE.replace("-- output: calls", "-- output: calls\n-- confidence: 0.5"))
    assert change == RuleChange("r", "changed", "contract")


def test_what_cannot_be_compared_is_only_named():
    deep = f"SELECT {'(' * 3000}1{')' * 3000}"
    for other in ("SELECT ((", deep, BEFORE + " OR a.z = 1" * MAX_COMPARED):
        assert changes(BEFORE, other) == [RuleChange("r", "changed")]
