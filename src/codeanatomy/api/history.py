"""Verbs about the builds of a state: list, compare, consume their changes, go back, delete old ones."""
# ruff: noqa: PLC0415 - see the package's docstring

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from codeanatomy.api.requests import RepositoryLike, as_repository

if TYPE_CHECKING:
    from codeanatomy.query.build_diff import BuildDiff
    from codeanatomy.query.changes import Changes
    from codeanatomy.store.builds import BuildRecord
    from codeanatomy.store.retention import GcReport
    from codeanatomy.store.state import State


def builds(repo: RepositoryLike = ".") -> tuple[BuildRecord, ...]:
    """The builds that are kept, newest first."""
    from codeanatomy.store.builds import list_builds

    return tuple(reversed(list_builds(_state(repo))))


def diff(before: str | None = None, after: str | None = None, repo: RepositoryLike = ".") -> BuildDiff:
    """What changed in the graph from one build to another; by default from the last one's parent to the last."""
    from codeanatomy.query.build_diff import choose_builds, compare_builds

    state = _state(repo)
    return compare_builds(state, *choose_builds(state, before, after))


def changes(cursor: str, repo: RepositoryLike = ".", *, build: str | None = None, reset: bool = False) -> Changes:
    """Rows added and removed since the build that the consumer `cursor` acknowledged, up to `build` or the last."""
    from codeanatomy.query.changes import changes_since

    return changes_since(_state(repo), cursor, build=build, reset=reset)


def rollback(build: str, repo: RepositoryLike = ".") -> BuildRecord:
    """Make an earlier build the current one again: a new build with the earlier one's tables."""
    from codeanatomy.store.builds import check_whole, current_build, find_build, publish, rollback_build
    from codeanatomy.store.lease import hold_lease

    state = _state(repo)
    with hold_lease(state.location):
        target = find_build(state, build)
        check_whole(state, target)
        record = rollback_build(target, current_build(state), datetime.now(UTC))
        publish(state, record)
    return record


def gc(repo: RepositoryLike = ".", *, keep: int = 10, days: float | None = None, dry_run: bool = False) -> GcReport:
    """Drop all but the newest `keep` builds and those younger than `days`; delete the files that only they need."""
    from codeanatomy.store.lease import hold_lease
    from codeanatomy.store.retention import collect_garbage

    state = _state(repo)
    older_than = timedelta(days=days) if days is not None else None
    with hold_lease(state.location) as lease:
        return collect_garbage(state, lease, keep=keep, older_than=older_than, dry_run=dry_run)


def _state(repo: RepositoryLike) -> State:
    from codeanatomy.store.location import locate_state
    from codeanatomy.store.state import open_state

    at = as_repository(repo)
    return open_state(locate_state(at.repo, at.state, at.storage_options))
