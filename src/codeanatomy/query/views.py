"""The datasets that SQL can read: DuckDB views over the pinned tables of a build.

A view is one of six kinds, all defined by the catalogue: a stored table; a file of the build's run bundle; a fact
dataset, unnested from `facts` and joined to the files that have the content; a document dataset, unnested from
`documents`; a rule that is computed when read, in DuckDB's dialect; `cpg_props`.
Views are created when a query names them, so that a query pays only for what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.runs import RUN_DATASETS
from codeanatomy.catalogue.tables import (
    CPG_PROPS,
    DOCUMENT_VIEWS,
    DOCUMENTS,
    FACT_VIEWS,
    FACTS,
    FLOW_TABLES,
    SCIP_DOCUMENTS,
    STORED_TABLES,
    VIEWS,
)
from codeanatomy.engine.remembered import key_of, remembered

PUBLIC: Mapping[str, Dataset] = {
    d.name: d
    for d in (
        *STORED_TABLES,
        *FLOW_TABLES,
        *VIEWS,
        CPG_PROPS,
        *FACT_VIEWS,
        SCIP_DOCUMENTS,
        *DOCUMENT_VIEWS,
        *RUN_DATASETS,
    )
}
"""Every dataset a query may name."""

_STORED = {d.name: d for d in (FACTS, DOCUMENTS, *FLOW_TABLES, *STORED_TABLES, *RUN_DATASETS)}


@dataclass(frozen=True)
class View:
    """A dataset as a query over other datasets; a stored table has no query."""

    dataset: Dataset
    query: str | None = None
    inputs: tuple[str, ...] = ()


def view_of(name: str) -> View:
    """How the public dataset `name` (or a table behind it) is read."""
    return View(_STORED[name]) if name in _STORED else _views()[name]


@cache
def _views() -> dict[str, View]:
    """The views that have a query."""

    def made() -> dict[str, dict[str, Any]]:
        from codeanatomy.query.view_queries import view_queries  # noqa: PLC0415 - loads SQLGlot

        return view_queries()

    key = key_of("codeanatomy.catalogue", "codeanatomy.rules", "codeanatomy.query", made_by="sqlglot")
    return remembered("views", key, made, _read_views)


def _read_views(found: dict[str, Any]) -> dict[str, View]:
    return {name: View(PUBLIC[name], each["query"], tuple(each["inputs"])) for name, each in found.items()}
