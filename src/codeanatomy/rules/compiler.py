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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import pyarrow as pa
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
from codeanatomy.rules.definition import Rule, RuleError
from codeanatomy.rules.id_check import check_ids

DIALECT = "spark"
OWNER = "file_id"


class TableReference(NamedTuple):
    """Where the text of a rule names an input."""

    name: str
    start: int
    end: int
    has_alias: bool


@dataclass(frozen=True)
class CompiledRule:
    """A rule, and what was read from its syntax tree."""

    rule: Rule
    inputs: tuple[str, ...]
    columns: tuple[str, ...]
    identity: str
    tree: exp.Select
    references: tuple[TableReference, ...]

    def sql_over(self, views: Mapping[str, str]) -> str:
        """The rule's SQL with every column of its output, reading each of its inputs from the view of that name.

        Columns that the SQL does not give are constants of the contract or typed nulls.
        """
        constants = self.rule.constants()
        columns = ", ".join(
            f"`{column.name}`"
            if column.name in self.columns
            else f"CAST({_literal(constants.get(column.name))} AS {_sql_type(column.type)}) AS `{column.name}`"
            for column in self.rule.output.columns
        )
        return f"SELECT {columns} FROM (\n{self._text_over(views)}\n) AS rule"  # noqa: S608 - ours, or checked

    def _text_over(self, views: Mapping[str, str]) -> str:
        text = self.rule.sql
        for reference in sorted(self.references, key=lambda each: each.start, reverse=True):
            if reference.name not in self.inputs:  # a common table expression of the rule's own
                continue
            view = views[reference.name] if reference.has_alias else f"{views[reference.name]} AS {reference.name}"
            text = text[: reference.start] + view + text[reference.end :]
        return text

    @property
    def is_global(self) -> bool:
        """Whether its rows belong to no file."""
        owner = next(select for select in self.tree.selects if select.alias_or_name == OWNER).unalias()
        return isinstance(owner, exp.Literal)

    @cached_property
    def lineage(self) -> Mapping[str, tuple[str, ...]]:
        """For each output column, the input columns (`dataset.column`) it is made from."""
        scope = build_scope(self.tree)
        nodes = trace(None, self.tree, {}, dialect=DIALECT, scope=scope, trim_selects=False, copy=False)
        return {column: _origins(node) for column, node in nodes.items()}


def compile_rules(rules: Sequence[Rule]) -> tuple[CompiledRule, ...]:
    """Compile `rules`; an error if one breaks its contract or if they depend on each other in a cycle."""
    schema = MappingSchema(_schema((*INPUTS, *STORED_TABLES, *VIEWS)), dialect=DIALECT)
    compiled = tuple(_compile(rule, schema) for rule in rules)
    outputs = by_output(compiled)
    dependencies(outputs)
    check_ids(outputs)
    return compiled


def by_output(compiled: Iterable[CompiledRule]) -> dict[str, tuple[CompiledRule, ...]]:
    """Rules grouped by the dataset they make."""
    groups: dict[str, tuple[CompiledRule, ...]] = {}
    for each in compiled:
        groups[each.rule.output.name] = (*groups.get(each.rule.output.name, ()), each)
    return groups


def dependencies(groups: Mapping[str, Sequence[CompiledRule]]) -> dict[str, set[str]]:
    """For each dataset that rules make, the datasets it is made from; an error if there is a cycle."""
    needs = {name: {needed for rule in rules for needed in rule.inputs} for name, rules in groups.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        raise RuleError(f"rules depend on each other in a circle: {' → '.join(error.args[1])}") from error
    return needs


def needed_rules(compiled: Sequence[CompiledRule], *, documents: bool) -> tuple[CompiledRule, ...]:
    """The rules a build evaluates: those of stored tables and of the views that these read.

    Without semantic documents, rules that need them are left out; `unmade` has the views that are then empty.
    """
    usable = [c for c in compiled if documents or not c.rule.needs_documents]
    needed = {table.name for table in STORED_TABLES}
    while more := {i for c in usable if c.rule.output.name in needed for i in c.inputs} - needed:
        needed |= more
    return tuple(c for c in usable if c.rule.output.name in needed)


def unmade(rules: Sequence[CompiledRule]) -> tuple[Dataset, ...]:
    """Views that some of `rules` reads and none makes."""
    made = {c.rule.output.name for c in rules}
    read = {name for c in rules for name in c.inputs}
    return tuple(view for view in VIEWS if view.name in read - made)


def references_in(parsed: exp.Expr) -> tuple[TableReference, ...]:
    """Where a statement, as it was parsed, names a table."""
    return tuple(
        TableReference(table.name, table.this.meta["start"], table.this.meta["end"] + 1, bool(table.alias))
        for table in parsed.find_all(exp.Table)
    )


def _compile(rule: Rule, schema: MappingSchema) -> CompiledRule:
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
    compiled = CompiledRule(rule, tuple(sorted(inputs)), columns, _identity(rule, tree), tree, references)
    _check_owner(compiled)
    return compiled


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
        want = _sql_type(rule.output.column(select.alias_or_name).type)
        got = select.type.sql(dialect=DIALECT).lower() if select.type else "unknown"
        if got not in (want, "void"):  # void: a null fits everywhere
            raise RuleError(f"rule {rule.name}: column {select.alias_or_name} is {got}, the contract says {want}")


def _check_owner(compiled: CompiledRule) -> None:
    """The owner of a row must be the owner of an input row, unchanged, or no file."""
    expression = next(select for select in compiled.tree.selects if select.alias_or_name == OWNER).unalias()
    if compiled.is_global and expression.this == GLOBAL_OWNER:
        return
    if not isinstance(expression, exp.Column) or expression.name != OWNER:
        raise RuleError(f"rule {compiled.rule.name}: {OWNER} must be an input's {OWNER} or '{GLOBAL_OWNER}'")


def _identity(rule: Rule, tree: exp.Select) -> str:
    canonical = tree.sql(dialect=DIALECT, comments=False, normalize=True, pretty=False)
    return _hash([rule.output.name, sorted(rule.constants().items()), canonical])


def _origins(node: Node) -> tuple[str, ...]:
    leaves = (each for each in node.walk() if isinstance(each.expression, exp.Table))
    return tuple(sorted({f"{leaf.expression.name}.{leaf.name.rpartition('.')[2]}" for leaf in leaves}))


def _schema(datasets: Sequence[Dataset]) -> dict[str, object]:
    return {d.name: {c.name: _sql_type(c.type) for c in d.columns} for d in datasets}


def _sql_type(arrow: pa.DataType) -> str:
    if pa.types.is_list(arrow):
        return f"array<{_sql_type(arrow.value_type)}>"
    names = {
        pa.string(): "string",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float64(): "double",
        pa.bool_(): "boolean",
    }
    return names[arrow]


def _literal(value: str | float | None) -> str:
    """A constant of a contract as SQL."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return "NULL" if value is None else repr(value)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
