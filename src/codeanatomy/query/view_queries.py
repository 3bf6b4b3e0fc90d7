"""The queries of views, in DuckDB's dialect. Made by SQLGlot, and remembered (`views`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.layers import FACT_DATASETS
from codeanatomy.catalogue.tables import (
    CPG_EDGES,
    CPG_NODES,
    CPG_PROPS,
    DOCUMENT_VIEWS,
    DOCUMENTS,
    FACT_VIEWS,
    FACTS,
    REPO_FILES,
    SCIP_DOCUMENTS,
    VIEWS,
)
from codeanatomy.rules.compiled import CompiledRule, by_output
from codeanatomy.rules.compiler import DIALECT
from codeanatomy.rules.own import own_rules

_NOT_PROPERTIES = {"node_id", "edge_id", "file_id", "parent_id", "src_id", "dst_id"}
"""Columns that identify a row or link it to others."""

_VALUE_COLUMNS = {
    pa.string(): "value_str",
    pa.int32(): "value_int",
    pa.int64(): "value_int",
    pa.float64(): "value_float",
    pa.bool_(): "value_bool",
}


def view_queries() -> dict[str, dict[str, Any]]:
    """The `query` of every view, and the datasets (`inputs`) that it reads."""
    rules = by_output(own_rules())
    documents = exp.select(*map(exp.column, SCIP_DOCUMENTS.names())).from_(DOCUMENTS.name)
    found: dict[str, tuple[exp.Query, set[str]]] = {
        CPG_PROPS.name: (_properties(), {CPG_NODES.name, CPG_EDGES.name}),
        SCIP_DOCUMENTS.name: (documents, {DOCUMENTS.name}),
        **{view.name: (document_query(view), {DOCUMENTS.name}) for view in DOCUMENT_VIEWS},
        **{view.name: (fact_query(view), {FACTS.name, REPO_FILES.name}) for view in FACT_VIEWS},
        **{view.name: _rules_query(rules[view.name]) for view in VIEWS},
    }
    return {
        name: {"query": query.sql(dialect="duckdb", comments=False), "inputs": sorted(inputs)}
        for name, (query, inputs) in found.items()
    }


def _rules_query(rules: Iterable[CompiledRule]) -> tuple[exp.Query, set[str]]:
    return _union(rule_query(rule) for rule in rules), {name for rule in rules for name in rule.inputs}


def document_query(dataset: Dataset) -> exp.Query:
    """Unnest one column of the documents."""
    owner = ("file_id", "path")
    unnested = exp.select(*owner, exp.alias_(exp.func("unnest", exp.column(dataset.name)), "item")).from_(
        DOCUMENTS.name
    )
    fields = (exp.alias_(exp.column(n, table="item"), n, quoted=True) for n in dataset.names() if n not in owner)
    return exp.select(*owner, *fields).from_(unnested.subquery("u"))


def fact_query(dataset: Dataset) -> exp.Query:
    """Unnest one fact column and give each row to every file that has the content."""
    fact = next(d for d in FACT_DATASETS if d.name == dataset.name)
    unnested = exp.select("content_id", exp.alias_(exp.func("unnest", exp.column(fact.name)), "fact")).from_(FACTS.name)
    fields = (exp.alias_(exp.column(c.name, table="fact"), c.name, quoted=True) for c in fact.columns)
    return (
        exp.select(exp.column("file_id", table="f"), exp.column("path", table="f"), *fields)
        .from_(exp.alias_(exp.to_table(REPO_FILES.name), "f", table=True))
        .join(unnested.subquery("u"), using="content_id")
    )


def rule_query(compiled: CompiledRule) -> exp.Query:
    """A rule over the datasets it reads, to be written in DuckDB's dialect."""
    return sqlglot.parse_one(
        compiled.sql_over({name: name for name in compiled.inputs}), dialect=DIALECT, into=exp.Select
    )


def _properties() -> exp.Query:
    """One SELECT per property column of nodes and edges."""
    return _union(
        exp.select(
            exp.alias_(exp.Literal.string(entity), "entity_kind"),
            exp.alias_(exp.column(key), "entity_id"),
            exp.alias_(exp.Literal.string(column.name), "prop_key"),
            *(
                exp.alias_(exp.cast(exp.column(column.name) if value == target else exp.null(), kind), value)
                for value, kind in (
                    ("value_str", "text"),
                    ("value_int", "bigint"),
                    ("value_float", "double"),
                    ("value_bool", "boolean"),
                )
            ),
        )
        .from_(table.name)
        .where(exp.column(column.name).is_(exp.null()).not_())
        for entity, key, table in (("node", "node_id", CPG_NODES), ("edge", "edge_id", CPG_EDGES))
        for column in table.columns
        if column.name not in _NOT_PROPERTIES and (target := _VALUE_COLUMNS[column.type])
    )


def _union(queries: Iterable[exp.Query]) -> exp.Query:
    first, *rest = queries
    return exp.union(first, *rest, distinct=False) if rest else first
