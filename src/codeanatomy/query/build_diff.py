"""What changed in the graph from one build to another: rows by their ids, files, and symbols by their names.

Ids of calls and name references are their positions in the file, so an inserted call changes the rows of all that
follow it; the symbols do not change with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlglot import exp

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import CPG_EDGES, CPG_NODES, REPO_FILES
from codeanatomy.errors import InputError
from codeanatomy.query.comparison import AFTER, BEFORE, side_by_side
from codeanatomy.query.statements import statement
from codeanatomy.query.symbol_diff import SymbolDiff, compare_symbols
from codeanatomy.store.builds import BuildRecord, current_build, find_build, list_builds
from codeanatomy.store.state import State

GRAPH_TABLES: Mapping[Dataset, str] = {CPG_NODES: "node_id", CPG_EDGES: "edge_id"}
"""The tables that are compared, and the column that identifies a row."""

POSITIONS = frozenset({"bstart", "bend", "line_start", "line_end", "col_start", "line"})
"""Columns that say where something is, not what it is."""


@dataclass(frozen=True)
class TableDiff:
    """How many rows are new, gone, different, or only at another position."""

    added: int
    removed: int
    changed: int
    moved: int


@dataclass(frozen=True)
class BuildDiff:
    """What changed from one build to another."""

    before: BuildRecord
    after: BuildRecord
    files: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, TableDiff]
    symbols: tuple[SymbolDiff, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `diff --json` prints."""
        return {
            "from": _build_json(self.before),
            "to": _build_json(self.after),
            "files": {change: list(paths) for change, paths in self.files.items()},
            "tables": {name: vars(table) for name, table in self.tables.items()},
            "symbols": [symbol.as_json() for symbol in self.symbols],
        }


def compare_builds(state: State, before: BuildRecord, after: BuildRecord) -> BuildDiff:
    """What changed from the one build to the other."""
    with side_by_side(state, before, after, (*GRAPH_TABLES, REPO_FILES), whole=(CPG_NODES,)) as connection:
        return BuildDiff(
            before=before,
            after=after,
            files=_compare_files(connection),
            tables={table.name: _compare_rows(connection, table, key) for table, key in GRAPH_TABLES.items()},
            symbols=tuple(compare_symbols(connection)),
        )


def compare_edges(state: State, before: BuildRecord, after: BuildRecord) -> TableDiff:
    """How many edges changed from the one build to the other."""
    with side_by_side(state, before, after, (CPG_EDGES,)) as connection:
        return _compare_rows(connection, CPG_EDGES, GRAPH_TABLES[CPG_EDGES])


def choose_builds(state: State, before: str | None = None, after: str | None = None) -> tuple[BuildRecord, BuildRecord]:
    """The builds whose ids start so; by default the last one and its parent."""
    latter = find_build(state, after) if after else current_build(state)
    if before:
        return find_build(state, before), latter
    if latter.parent_build_id is None:
        raise InputError(f"build {latter.build_id} is the first, so there is no earlier one to compare with")
    former = next((build for build in list_builds(state) if build.build_id == latter.parent_build_id), None)
    if former is None:
        raise InputError(
            f"build {latter.parent_build_id}, the parent of {latter.build_id}, is no longer kept",
            hint="name one that `codeanatomy builds` lists",
        )
    return former, latter


def _compare_rows(connection: duckdb.DuckDBPyConnection, table: Dataset, key: str) -> TableDiff:
    counted = connection.execute(_count_query(table, key).sql(dialect="duckdb")).fetchone()
    return TableDiff(*counted) if counted else TableDiff(0, 0, 0, 0)


def _count_query(table: Dataset, key: str) -> exp.Query:
    """Count the rows of both sides that differ, by how."""
    is_new, is_gone = (exp.column(key, table=side).is_(exp.null()) for side in (BEFORE, AFTER))
    is_changed, is_moved = (
        exp.or_(
            *(
                exp.NullSafeNEQ(this=exp.column(name, table=BEFORE), expression=exp.column(name, table=AFTER))
                for name in table.names()
                if name != key and (name in POSITIONS) is of_position
            )
        )
        for of_position in (False, True)
    )
    is_both = exp.and_(is_new.not_(), is_gone.not_())
    conditions = {
        "added": is_new,
        "removed": is_gone,
        "changed": exp.and_(is_both, is_changed),
        "moved": exp.and_(is_both, is_changed.not_(), is_moved),
    }
    former, latter = (exp.to_table(table.name, db=side, alias=side) for side in (BEFORE, AFTER))
    return (
        exp.select(
            *(
                exp.alias_(exp.Count(this=exp.case().when(condition, "1")), name)
                for name, condition in conditions.items()
            )
        )
        .from_(former)
        .join(latter, on=exp.column(key, table=BEFORE).eq(exp.column(key, table=AFTER)), join_type="full")
    )


def _compare_files(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, ...]]:
    found = connection.execute(statement("diff/files")).fetchall()
    return {change: tuple(path for path, how in found if how == change) for change in ("added", "removed", "modified")}


def _build_json(build: BuildRecord) -> dict[str, Any]:
    return {"build_id": build.build_id, "git_commit": build.git_commit}
