"""Hold the ids that rules make against the grammar of ids (`catalogue.ids`), without running a rule.

The expression of an id is read as the forms it can have, in the notation of the grammar:

    concat('d:', d.file_id, ':', d.container_key)   d:{file_id}:{def_key}
    coalesce(x, y), CASE … THEN x ELSE y END        the forms of x and those of y
    a column that rules make                        the forms of their expressions
    a.target_id, of `answers`                       {answers.target_id}: made by the resolver, only read by rules

Of a dataset whose rows have a `role`, only those rules count that make one of the roles which the reader asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from codeanatomy.catalogue.ids import (
    AMBIGUITY_GROUP_FORMS,
    ANSWER_IDS,
    CODE_KINDS,
    EDGE_IDS,
    HASH_DIGITS,
    NODE_IDS,
    PART_OF_COLUMN,
    edge_forms,
)
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.catalogue.tables import ANSWERS, CPG_EDGES, CPG_NODES, STORED_TABLES, VIEWS
from codeanatomy.rules.definition import RuleError

if TYPE_CHECKING:
    from codeanatomy.rules.compiler import ParsedRule

_ROLE: Final = "role"
_OWNER: Final = "file_id"
_MADE_BY_RULES: Final = {dataset.name for dataset in (*STORED_TABLES, *VIEWS)} - {ANSWERS.name}
_SAME_FORM: Final = (exp.Neg, exp.Paren, exp.Cast, exp.Min, exp.Max)
"""Expressions whose value is spelled as that of their operand; of a negated question number, the digits count."""

_NO_ROLES: Final[frozenset[str]] = frozenset()


def check_ids(rules: Mapping[str, Sequence[ParsedRule]]) -> None:
    """Refuse a rule (of `rules`, by the dataset they make) whose ids are not spelled as the grammar says."""
    reader = IdForms(rules)
    for kind in {*NodeKind, *EdgeKind} - NODE_IDS.keys() - EDGE_IDS.keys():
        raise RuleError(f"kind {kind}: catalogue/ids.py does not say how its ids are spelled")
    for rule in rules.get(CPG_NODES.name, ()):
        node_kind = NodeKind[str(rule.rule.kind)]
        _check(reader, rule, "node_id", _node_forms([node_kind]))
        _check(reader, rule, "parent_id", _node_forms(NODE_IDS[node_kind].parents))
    for rule in rules.get(CPG_EDGES.name, ()):
        edge_kind = EdgeKind[str(rule.rule.kind)]
        src = _check(reader, rule, "src_id", _node_forms(EDGE_IDS[edge_kind].src))
        dst = _check(reader, rule, "dst_id", _node_forms(EDGE_IDS[edge_kind].dst))
        _check(reader, rule, "edge_id", _edge_forms_between(edge_kind, src, dst))
        _check(reader, rule, "code_id", _node_forms(CODE_KINDS))
        _check(reader, rule, "ambiguity_group_id", set(AMBIGUITY_GROUP_FORMS))


def _check(reader: IdForms, rule: ParsedRule, column: str, accepted: Collection[str]) -> set[str]:
    """The forms of an output column, all of which must be `accepted`; none if the rule reads one that is not there."""
    try:
        found = reader.of(rule, column)
    except KeyError:  # rules were compiled without those that they read
        return set()
    except ValueError as error:
        raise RuleError(f"rule {rule.rule.name}: {column}: {error}") from error
    if wrong := found - set(accepted):
        raise RuleError(
            f"rule {rule.rule.name}: {column} is spelled {min(wrong)}, "
            f"the grammar of ids says {' or '.join(sorted(accepted)) or 'that there is none'}"
        )
    return found


def _node_forms(kinds: Collection[NodeKind]) -> set[str]:
    """The forms of node ids of these kinds, and the columns of answers that can hold one."""
    held = {_form(f"{ANSWERS.name}.{column}") for column, of in ANSWER_IDS.items() if not set(of).isdisjoint(kinds)}
    return {form for kind in kinds for form in NODE_IDS[kind].forms} | held


def _edge_forms_between(kind: EdgeKind, src: Collection[str], dst: Collection[str]) -> set[str]:
    return {
        form.replace("{src_id}", source).replace("{dst_id}", target)
        for form in edge_forms(kind)
        for source, target in product(src or ["{src_id}"], dst or ["{dst_id}"])
    }


class IdForms:
    """Reads expressions of rules as forms; `rules` by the dataset they make."""

    def __init__(self, rules: Mapping[str, Sequence[ParsedRule]]) -> None:
        self._rules = rules
        self._scopes: dict[str, Scope] = {}

    def of(self, rule: ParsedRule, column: str, roles: Collection[str] = _NO_ROLES) -> set[str]:
        """The forms of an output column, in rows of these roles if any are given.

        ValueError for an expression that cannot be read as forms, KeyError if a rule that is read is not there.
        """
        if rule.rule.name not in self._scopes:
            self._scopes[rule.rule.name] = _scope_of(rule.tree)
        return self._output(self._scopes[rule.rule.name], column, roles)

    def node_ids_in(self, tree: exp.Expr) -> Iterator[set[str]]:
        """The forms of every concatenation in a qualified statement that starts like the id of a node."""
        for scope in _scope_of(tree).traverse():
            for node in scope.find_all(exp.Concat):
                if isinstance(node.expressions[0], exp.Literal) and node.expressions[0].name[1:2] == ":":
                    yield self._forms(scope, node, _NO_ROLES)

    def _output(self, scope: Scope, column: str, roles: Collection[str]) -> set[str]:
        if isinstance(scope.expression, exp.SetOperation):
            return set().union(*(self._output(each, column, roles) for each in scope.set_operation_scopes))
        selects = scope.expression.selects if isinstance(scope.expression, exp.Select) else []
        expression = next((each.unalias() for each in selects if each.alias_or_name == column), None)
        return self._forms(scope, expression, roles) if expression else set()  # left to the contract: null

    def _forms(self, scope: Scope, node: exp.Expr, roles: Collection[str]) -> set[str]:
        if isinstance(node, exp.Null):
            return set()
        if isinstance(node, exp.Literal):
            return {node.name}
        if isinstance(node, exp.Column):
            return self._column(scope, node, roles)
        if isinstance(node, _SAME_FORM):
            return self._forms(scope, node.this, roles)
        if isinstance(node, exp.Concat):
            parts = (self._forms(scope, each, roles) for each in node.expressions)
            return {"".join(each) for each in product(*parts)}
        if isinstance(node, exp.Coalesce):
            return set().union(*(self._forms(scope, each, roles) for each in (node.this, *node.expressions)))
        if isinstance(node, exp.Case):
            return set().union(*(self._forms(scope, each, roles) for each in _results(node)))
        if _is_symbol_hash(node):
            return {_form("symbol_hash")}
        raise ValueError(f"cannot tell the form of {node.sql()}")

    def _column(self, scope: Scope, column: exp.Column, roles: Collection[str]) -> set[str]:
        source = scope.sources[column.table]
        if isinstance(source, Scope):
            return self._output(source, column.name, roles)
        if source.name == ANSWERS.name and column.name in ANSWER_IDS:
            return {_form(f"{ANSWERS.name}.{column.name}")}
        if source.name not in _MADE_BY_RULES or column.name == _OWNER:
            return {_form(PART_OF_COLUMN.get(column.name, column.name))}
        wanted = _roles_read(scope, column.table) or roles
        makers = (rule for rule in self._rules[source.name] if not wanted or _makes_role(rule, wanted))
        return set().union(*(self.of(rule, column.name, wanted) for rule in makers))


def _form(part: str) -> str:
    return f"{{{part}}}"


def _results(case: exp.Case) -> list[exp.Expr]:
    default = case.args.get("default")
    return [each.args["true"] for each in case.args["ifs"]] + ([default] if default else [])


def _is_symbol_hash(node: exp.Expr) -> bool:
    """Whether an expression is a hash of a symbol, and as long as hashes of ids are."""
    if not isinstance(node, exp.Substring) or not isinstance(node.this, exp.SHA2):
        return False
    numbers = (node.args["start"], node.args["length"], node.this.args["length"])
    symbol = node.this.this
    return (
        tuple(each.name for each in numbers) == ("1", str(HASH_DIGITS), "256")
        and isinstance(symbol, exp.Column)
        and symbol.name.endswith("symbol")
    )


def _roles_read(scope: Scope, table: str) -> set[str]:
    """The roles that a statement compares the `role` of a table with."""
    compared = (each.parent for each in scope.columns if (each.name, each.table) == (_ROLE, table))
    return {
        literal.name for each in compared if isinstance(each, exp.EQ | exp.In) for literal in each.find_all(exp.Literal)
    }


def _makes_role(rule: ParsedRule, wanted: Collection[str]) -> bool:
    """Whether some rows of a rule can have one of the `wanted` roles; one that passes on a role can have any."""
    for select in rule.tree.selects:
        if select.alias_or_name == _ROLE and not isinstance(select.unalias(), exp.Column):
            role = select.unalias()
            made = _results(role) if isinstance(role, exp.Case) else [role]
            return any(each.name in wanted for each in made)
    return True


def _scope_of(tree: exp.Expr) -> Scope:
    scope = build_scope(tree)
    if scope is None:
        raise ValueError("not a SELECT")
    return scope
