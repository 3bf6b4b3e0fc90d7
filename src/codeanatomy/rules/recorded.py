"""Compile the rules that a build recorded.

A state may come with the repository, so recorded rules are untrusted (SQL can call Java and start programs). A rule may
use only kinds of expressions and functions that the rules of this version use. What runs is the checked syntax tree,
never the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp

from codeanatomy.errors import InputError
from codeanatomy.rules.compiler import DIALECT, ParsedRule, compile_rules, references_in
from codeanatomy.rules.definition import RuleError, load_rules, parse_rule


def compile_recorded(sources: Mapping[str, str]) -> tuple[ParsedRule, ...]:
    """Compile the rules of a build from their texts, by name."""
    try:
        compiled = compile_rules([parse_rule(name, source) for name, source in sources.items()])
    except RuleError as error:
        raise InputError(f"this version of codeanatomy cannot read the rules of the build: {error}") from error
    ours = load_rules()
    texts = {rule.name: rule.sql for rule in ours}
    others = {each.rule.name for each in compiled if texts.get(each.rule.name) != each.rule.sql}
    known = _expression_kinds(compile_rules(ours)) if others else set()
    return tuple(_checked(known, each) if each.rule.name in others else each for each in compiled)


def _checked(known: set[str], compiled: ParsedRule) -> ParsedRule:
    if unknown := _expression_kinds([compiled]) - known:
        raise InputError(
            f"rule {compiled.rule.name} of the build is not run: "
            f"no rule of this version of codeanatomy has a {min(unknown)}"
        )
    sql = compiled.tree.sql(dialect=DIALECT, comments=False)
    references = references_in(sqlglot.parse_one(sql, dialect=DIALECT))
    return replace(compiled, rule=replace(compiled.rule, sql=sql), references=references)


def _expression_kinds(rules: Iterable[ParsedRule]) -> set[str]:
    """The kinds of expressions in rules, and the names of functions that SQLGlot does not know."""
    return {
        f"function {node.name}" if isinstance(node, exp.Anonymous) else type(node).__name__
        for each in rules
        for node in each.tree.walk()
    }
