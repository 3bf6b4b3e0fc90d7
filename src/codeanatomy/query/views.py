"""The datasets that SQL can read: DuckDB views over the pinned tables of a build.

A view is one of six kinds, all defined by the catalogue: a stored table; a file of the build's run bundle; a fact
dataset, unnested from `facts` and joined to the files that have the content; a document dataset, unnested from
`documents`; a rule that is computed when read, in DuckDB's dialect; `cpg_props`.
Views are created when a query names them, so that a query pays only for what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot import exp

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.layers import FACT_DATASETS
from codeanatomy.catalogue.runs import RUN_DATASETS
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
    STORED_TABLES,
    VIEWS,
)
from codeanatomy.rules.compiler import DIALECT, CompiledRule, compile_rules
from codeanatomy.rules.definition import load_rules

PUBLIC: Mapping[str, Dataset] = {
    d.name: d for d in (*STORED_TABLES, *VIEWS, CPG_PROPS, *FACT_VIEWS, SCIP_DOCUMENTS, *DOCUMENT_VIEWS, *RUN_DATASETS)
}
"""Every dataset a query may name."""

_NOT_PROPERTIES = {"node_id", "edge_id", "file_id", "parent_id", "src_id", "dst_id"}
"""Columns that identify a row or link it to others."""

_VALUE_COLUMNS = {
    pa.string(): "value_str",
    pa.int32(): "value_int",
    pa.int64(): "value_int",
    pa.float64(): "value_float",
    pa.bool_(): "value_bool",
}


@dataclass(frozen=True)
class View:
    """A dataset as a query over other datasets; a stored table has no query."""

    dataset: Dataset
    query: exp.Query | None
    inputs: tuple[str, ...]


def view_of(name: str) -> View:
    """How the public dataset `name` (or a table behind it) is read."""
    for nested in (FACTS, DOCUMENTS):
        if name == nested.name:
            return View(nested, None, ())
    dataset = PUBLIC[name]
    if dataset in STORED_TABLES or dataset in RUN_DATASETS:
        return View(dataset, None, ())
    if dataset is CPG_PROPS:
        return View(dataset, _properties(), (CPG_NODES.name, CPG_EDGES.name))
    if dataset in VIEWS:
        rules = compile_rules([rule for rule in load_rules() if rule.output == dataset])
        inputs = {name for rule in rules for name in rule.inputs}
        return View(dataset, _union(rule_query(rule) for rule in rules), tuple(inputs))
    if dataset is SCIP_DOCUMENTS:
        return View(dataset, exp.select(*map(exp.column, dataset.names())).from_(DOCUMENTS.name), (DOCUMENTS.name,))
    if dataset in DOCUMENT_VIEWS:
        return View(dataset, document_query(dataset), (DOCUMENTS.name,))
    return View(dataset, fact_query(dataset), (FACTS.name, REPO_FILES.name))


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
