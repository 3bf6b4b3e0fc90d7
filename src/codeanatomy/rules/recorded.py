"""Rules as a build recorded them, compiled again.

A state may have come with the repository, so what it records is not ours. Such a rule may be made only of what our own
rules are made of (SQL can call Java, and start programs), and what runs is the syntax tree that was looked at, never
the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp

from codeanatomy.errors import InputError
from codeanatomy.rules.compiler import DIALECT, CompiledRule, compile_rules, references_in
from codeanatomy.rules.definition import RuleError, load_rules, parse_rule


def compile_recorded(sources: Mapping[str, str]) -> tuple[CompiledRule, ...]:
    """Compile the rules of a build from their texts, by name."""
    try:
        compiled = compile_rules([parse_rule(name, source) for name, source in sources.items()])
    except RuleError as error:
        raise InputError(f"this version of codeanatomy cannot read the rules of the build: {error}") from error
    ours = load_rules()
    texts = {rule.name: rule.sql for rule in ours}
    others = {each.rule.name for each in compiled if texts.get(each.rule.name) != each.rule.sql}
    known = _parts(compile_rules(ours)) if others else set()
    return tuple(_held_against(known, each) if each.rule.name in others else each for each in compiled)


def _held_against(known: set[str], compiled: CompiledRule) -> CompiledRule:
    if unknown := _parts([compiled]) - known:
        raise InputError(
            f"rule {compiled.rule.name} of the build is not run: "
            f"no rule of this version of codeanatomy has a {min(unknown)}"
        )
    sql = compiled.tree.sql(dialect=DIALECT, comments=False)
    references = references_in(sqlglot.parse_one(sql, dialect=DIALECT))
    return replace(compiled, rule=replace(compiled.rule, sql=sql), references=references)


def _parts(rules: Iterable[CompiledRule]) -> set[str]:
    """The kinds of expressions that rules are made of; functions SQLGlot does not know, by name."""
    return {
        f"function {node.name}" if isinstance(node, exp.Anonymous) else type(node).__name__
        for each in rules
        for node in each.tree.walk()
    }
