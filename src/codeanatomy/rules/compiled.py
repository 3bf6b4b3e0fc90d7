"""Compiled rules as values: what was read from their syntax trees, their groups and their order. Loads no SQLGlot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple, TypeVar

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import STORED_TABLES, VIEWS
from codeanatomy.rules.definition import Rule, RuleError


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
    is_global: bool  # whether its rows belong to no file
    references: tuple[TableReference, ...]
    lineage: Mapping[str, tuple[str, ...]]
    """For each output column, the input columns (`dataset.column`) it is made from."""

    def sql_over(self, views: Mapping[str, str]) -> str:
        """The rule's SQL with every column of its output, reading each of its inputs from the view of that name.

        Columns that the SQL does not give are constants of the contract or typed nulls.
        """
        constants = self.rule.constants()
        columns = ", ".join(
            f"`{column.name}`"
            if column.name in self.columns
            else f"CAST({_literal(constants.get(column.name))} AS {sql_type(column.type)}) AS `{column.name}`"
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


AnyRule = TypeVar("AnyRule", bound=CompiledRule)


def by_output(compiled: Iterable[AnyRule]) -> dict[str, tuple[AnyRule, ...]]:
    """Rules grouped by the dataset they make."""
    groups: dict[str, tuple[AnyRule, ...]] = {}
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


def sql_type(arrow: pa.DataType) -> str:
    """A type of Arrow as Spark SQL spells it."""
    if pa.types.is_list(arrow):
        return f"array<{sql_type(arrow.value_type)}>"
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
