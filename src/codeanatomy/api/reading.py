"""Verbs that read one build: open, sql, lookups, entry points, why, publish. None of them loads Spark."""
# ruff: noqa: PLC0415 - see the package's docstring

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codeanatomy.api.requests import PublishRequest, Repository, RepositoryLike, as_repository

if TYPE_CHECKING:
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.query.entry_points import EntryPoints
    from codeanatomy.query.graph import Graph
    from codeanatomy.query.lookup import LookupResult
    from codeanatomy.query.publish import Publication
    from codeanatomy.query.result import QueryResult
    from codeanatomy.query.why import Explanation

SQL_TIMEOUT = 300.0
"""Seconds after which a query is stopped, unless another limit is given."""


def open(  # noqa: A001 - `codeanatomy.open` reads as it should
    repo: str | Path = ".",
    *,
    state: str | None = None,
    build: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open the last build of a repository, or the one whose id or git commit starts with `build`."""
    return _graph(Repository(repo, state, storage_options or {}), build)


def sql(
    query: str,
    repo: RepositoryLike = ".",
    *,
    build: str | None = None,
    timeout: float | None = SQL_TIMEOUT,
    max_memory_mb: int | None = None,
) -> QueryResult:
    """Answer one SELECT within `timeout` seconds (None: no limit) and by default half of the machine's memory."""
    from codeanatomy.engine.memory import machine_memory_mb
    from codeanatomy.query.result import ROWS_PER_BATCH, QueryResult
    from codeanatomy.query.sql import Limits

    limits = Limits(timeout, max_memory_mb or machine_memory_mb() // 2, ROWS_PER_BATCH)
    return QueryResult(_graph(repo, build).read(query, limits))


def callers(name: str, repo: RepositoryLike = ".", *, build: str | None = None) -> LookupResult:
    """Who calls a function, method or class."""
    return _graph(repo, build).callers(name)


def callees(name: str, repo: RepositoryLike = ".", *, build: str | None = None) -> LookupResult:
    """What a function or module calls."""
    return _graph(repo, build).callees(name)


def refs(name: str, repo: RepositoryLike = ".", *, build: str | None = None) -> LookupResult:
    """Where a name is used."""
    return _graph(repo, build).refs(name)


def definition(name: str, repo: RepositoryLike = ".", *, build: str | None = None) -> LookupResult:
    """Where a name is defined."""
    return _graph(repo, build).definition(name)


def entry_points(repo: RepositoryLike = ".", *, kind: str | None = None, build: str | None = None) -> EntryPoints:
    """What something outside the repository calls: routes, commands, tests, scripts, …; of one kind, or all."""
    from codeanatomy.query.entry_points import find_entry_points

    return find_entry_points(_graph(repo, build), kind)


def why(path: str, repo: RepositoryLike = ".", *, build: str | None = None) -> Explanation:
    """Why a file was rebuilt in a build, or why not."""
    from codeanatomy.query.why import explain

    return explain(_graph(repo, build), path)


def publish(
    request: PublishRequest, repo: RepositoryLike = ".", *, build: str | None = None, listener: Listener | None = None
) -> Publication:
    """Write a build for other tools; the directory is replaced if it holds an earlier publication."""
    from codeanatomy.query.publish import publish as write_publication

    return write_publication(_graph(repo, build), request, on_table=listener.stage if listener else lambda _: None)


def _graph(repo: RepositoryLike, build: str | None) -> Graph:
    from codeanatomy.query.graph import open_graph

    at = as_repository(repo)
    return open_graph(at.repo, state=at.state, build=build, storage_options=at.storage_options)
