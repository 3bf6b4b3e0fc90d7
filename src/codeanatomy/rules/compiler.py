"""Compile rules: their inputs, column lineage, plan identity and order are read from the SQL.

Glossary
    inputs         datasets that the SQL names.
    lineage        for each output column, the input columns its value comes from.
    plan identity  hash of the qualified, normalised syntax tree and the contract. Formatting, comments and the case
                   of keywords do not change it; everything that can change a row does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node
from sqlglot.lineage import lineage as trace
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import build_scope, traverse_scope
from sqlglot.schema import MappingSchema

from codeanatomy.catalogue.columns import GLOBAL_OWNER, Dataset
from codeanatomy.catalogue.tables import INPUTS, STORED_TABLES, VIEWS
from codeanatomy.rules.compiled import CompiledRule, TableReference, by_output, dependencies, sql_type
from codeanatomy.rules.definition import Rule, RuleError
from codeanatomy.rules.id_check import check_ids

DIALECT = "spark"
OWNER = "file_id"


@dataclass(frozen=True)
class ParsedRule(CompiledRule):
    """A compiled rule with its qualified syntax tree."""

    tree: exp.Select


def compile_rules(rules: Sequence[Rule]) -> tuple[ParsedRule, ...]:
    """Compile `rules`; an error if one breaks its contract or if they depend on each other in a cycle."""
    schema = MappingSchema(_schema((*INPUTS, *STORED_TABLES, *VIEWS)), dialect=DIALECT)
    compiled = tuple(_compile(rule, schema) for rule in rules)
    outputs = by_output(compiled)
    dependencies(outputs)
    check_ids(outputs)
    return compiled


def references_in(parsed: exp.Expr) -> tuple[TableReference, ...]:
    """Where a statement, as it was parsed, names a table."""
    return tuple(
        TableReference(table.name, table.this.meta["start"], table.this.meta["end"] + 1, bool(table.alias))
        for table in parsed.find_all(exp.Table)
    )


def _compile(rule: Rule, schema: MappingSchema) -> ParsedRule:
    try:
        parsed = sqlglot.parse_one(rule.sql, dialect=DIALECT)
        references = references_in(parsed)
        tree = qualify(parsed, schema=schema, dialect=DIALECT, validate_qualify_columns=True, quote_identifiers=False)
    except SqlglotError as error:
        raise RuleError(f"rule {rule.name}: {str(error).splitlines()[0]}") from error
    if not isinstance(tree, exp.Select):
        raise RuleError(f"rule {rule.name}: a rule is one SELECT")
    inputs = {
        source.name
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }
    if unknown := inputs - schema.mapping.keys():
        raise RuleError(f"rule {rule.name}: unknown dataset {sorted(unknown)[0]}")
    columns = tuple(tree.named_selects)
    _check_columns(rule, columns)
    _check_types(rule, annotate_types(tree, schema=schema, dialect=DIALECT))
    return ParsedRule(
        rule=rule,
        inputs=tuple(sorted(inputs)),
        columns=columns,
        identity=_identity(rule, tree),
        is_global=_is_global(rule, tree),
        references=references,
        lineage=_lineage(tree.copy()),
        tree=tree,
    )


def _check_columns(rule: Rule, columns: tuple[str, ...]) -> None:
    given = set(columns) | rule.constants().keys()
    declared = set(rule.output.names())
    required = {c.name for c in rule.output.columns if c.required}
    if surplus := given - declared:
        raise RuleError(f"rule {rule.name}: {rule.output.name} has no column {sorted(surplus)[0]}")
    defaults = {"resolution_method": rule.method, "confidence": rule.confidence}
    if twice := {c for c in set(columns) & rule.constants().keys() if defaults.get(c, "") is not None}:
        raise RuleError(f"rule {rule.name}: the contract already gives {sorted(twice)[0]}")
    if missing := required - given:
        raise RuleError(f"rule {rule.name}: required column {sorted(missing)[0]} is missing")


def _check_types(rule: Rule, tree: exp.Select) -> None:
    for select in tree.selects:
        want = sql_type(rule.output.column(select.alias_or_name).type)
        got = select.type.sql(dialect=DIALECT).lower() if select.type else "unknown"
        if got not in (want, "void"):  # void: a null fits everywhere
            raise RuleError(f"rule {rule.name}: column {select.alias_or_name} is {got}, the contract says {want}")


def _is_global(rule: Rule, tree: exp.Select) -> bool:
    """Whether rows have no file; the owner of a row must be the owner of an input row, unchanged, or no file."""
    owner = next(select for select in tree.selects if select.alias_or_name == OWNER).unalias()
    if isinstance(owner, exp.Literal) and owner.this == GLOBAL_OWNER:
        return True
    if not isinstance(owner, exp.Column) or owner.name != OWNER:
        raise RuleError(f"rule {rule.name}: {OWNER} must be an input's {OWNER} or '{GLOBAL_OWNER}'")
    return False


def _identity(rule: Rule, tree: exp.Select) -> str:
    canonical = tree.sql(dialect=DIALECT, comments=False, normalize=True, pretty=False)
    return _hash([rule.output.name, sorted(rule.constants().items()), canonical])


def _lineage(tree: exp.Select) -> dict[str, tuple[str, ...]]:
    nodes = trace(None, tree, {}, dialect=DIALECT, scope=build_scope(tree), trim_selects=False, copy=False)
    return {column: _origins(node) for column, node in nodes.items()}


def _origins(node: Node) -> tuple[str, ...]:
    leaves = (each for each in node.walk() if isinstance(each.expression, exp.Table))
    return tuple(sorted({f"{leaf.expression.name}.{leaf.name.rpartition('.')[2]}" for leaf in leaves}))


def _schema(datasets: Sequence[Dataset]) -> dict[str, object]:
    return {d.name: {c.name: sql_type(c.type) for c in d.columns} for d in datasets}


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
