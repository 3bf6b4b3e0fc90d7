"""How rules differ from those of an earlier build: as differences of their syntax trees, found by SQLGlot.

Formatting and comments are no difference. The earlier rules come from a state, so they are only parsed, never run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.diff import Insert, Keep, Move, Remove, Update, diff
from sqlglot.errors import SqlglotError

from codeanatomy.rules.compiler import DIALECT

MAX_COMPARED = 20_000
"""Characters of a rule; comparing trees takes time that grows with the square of their size."""


@dataclass(frozen=True)
class RuleChange:
    """One difference between two versions of a rule; the fields of an edit are empty for rules that come or go."""

    rule: str
    kind: str
    edit: str | None = None
    expression: str | None = None
    before: str | None = None
    after: str | None = None


def rule_changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[RuleChange]:
    """The differences of rules, given as SQL by name; a rule with equal text on both sides has none."""
    found: list[RuleChange] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            found.append(RuleChange(name, "added"))
        elif name not in after:
            found.append(RuleChange(name, "removed"))
        elif before[name] != after[name]:
            found += _edits(name, before[name], after[name])
    return found


def _edits(name: str, before: str, after: str) -> list[RuleChange]:
    if max(len(before), len(after)) > MAX_COMPARED:
        return [RuleChange(name, "changed")]
    try:
        trees = [sqlglot.parse_one(sql, dialect=DIALECT) for sql in (before, after)]
        edits = list(_differences(name, *trees))
    except (SqlglotError, RecursionError):
        return [RuleChange(name, "changed")]
    return edits or [RuleChange(name, "changed", "contract")]


def _differences(name: str, before: exp.Expr, after: exp.Expr) -> Iterator[RuleChange]:
    for edit in diff(before, after, delta_only=True):
        match edit:
            case Insert(expression):
                yield RuleChange(name, "changed", "insert", _kind(expression), None, _sql(expression))
            case Remove(expression):
                yield RuleChange(name, "changed", "remove", _kind(expression), _sql(expression), None)
            case Move(source, target) | Update(source, target):
                edited = type(edit).__name__.lower()
                yield RuleChange(name, "changed", edited, _kind(source), _sql(source), _sql(target))
            case Keep():
                pass


def _kind(expression: exp.Expr) -> str:
    return type(expression).__name__


def _sql(expression: exp.Expr) -> str:
    return expression.sql(dialect=DIALECT, comments=False)
