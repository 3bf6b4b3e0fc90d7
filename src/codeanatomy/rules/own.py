"""The rules of this package, compiled. SQLGlot is needed only for those that no earlier process has compiled."""

from __future__ import annotations

from functools import cache
from typing import Any

from codeanatomy.engine.remembered import key_of, remembered
from codeanatomy.rules.compiled import CompiledRule, TableReference
from codeanatomy.rules.definition import Rule, load_rules


@cache
def own_rules() -> tuple[CompiledRule, ...]:
    """Every rule of the package, ordered by name."""
    rules = load_rules()

    def compiled() -> dict[str, Any]:
        from codeanatomy.rules.compiler import compile_rules  # noqa: PLC0415 - loads SQLGlot

        return {each.rule.name: _values(each) for each in compile_rules(rules)}

    key = key_of("codeanatomy.catalogue", "codeanatomy.rules", made_by="sqlglot")
    return remembered("rules", key, compiled, lambda found: tuple(_rule(each, found[each.name]) for each in rules))


def _values(compiled: CompiledRule) -> dict[str, Any]:
    """What was read from the rule's syntax tree."""
    return {
        "inputs": compiled.inputs,
        "columns": compiled.columns,
        "identity": compiled.identity,
        "is_global": compiled.is_global,
        "references": compiled.references,
        "lineage": compiled.lineage,
    }


def _rule(rule: Rule, values: dict[str, Any]) -> CompiledRule:
    return CompiledRule(
        rule=rule,
        inputs=tuple(values["inputs"]),
        columns=tuple(values["columns"]),
        identity=values["identity"],
        is_global=values["is_global"],
        references=tuple(TableReference(*each) for each in values["references"]),
        lineage={column: tuple(origins) for column, origins in values["lineage"].items()},
    )
