"""Keep a graph up to date while its tree is edited: a build after each burst of changes.

A build that reads files while they are edited starts over by itself; an edit after it has read them is noticed, because
the tree is watched from before the first scan, and another build follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeanatomy.api.requests import BuildRequest
from codeanatomy.catalogue.runs import INC_IMPACTED_FILES
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.pipeline.inputs import scan_options, warm_settings
from codeanatomy.pipeline.progress import Listener
from codeanatomy.pipeline.request import BuildResult, Mode
from codeanatomy.query.build_diff import compare_edges
from codeanatomy.repo.config import RepoConfig, read_config
from codeanatomy.repo.git import lock_files
from codeanatomy.repo.scan import checked_root, walked_directories
from codeanatomy.service.changes import TreeWatcher
from codeanatomy.service.runner import AUTO, Runner, engine_options, is_interactive
from codeanatomy.store.builds import find_build
from codeanatomy.store.bundles import read_bundle_rows
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import open_state

SECONDS_UNTIL_RETRY = 5.0
"""After a build that failed although nothing was wrong with the tree."""

SECONDS_BETWEEN_KEEPS = 300.0
"""How often the engine is told that it is still wanted."""


@dataclass(frozen=True)
class WatchRequest:
    """What to keep up to date, whether with the engine (off, auto, require), and how long a tree must be quiet."""

    build: BuildRequest
    engine: str = AUTO
    quiet_seconds: float = 0.1
    notify: Callable[[str], None] = field(default=lambda _: None)
    """Told why the engine is not used."""


@dataclass(frozen=True)
class Update:
    """One build of a tree that is watched, or why it failed; `affected` are files rebuilt because of others."""

    seconds: float
    build_id: str | None = None
    mode: str = ""
    changed: int = 0
    rebuilt: int = 0
    edges_added: int | None = None
    edges_removed: int | None = None
    affected: tuple[str, ...] = ()
    error: str | None = None
    exit_code: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object that `watch --json` prints for it."""
        return {**vars(self), "affected": list(self.affected), "seconds": round(self.seconds, 3)}


def watch(request: WatchRequest, *, listener: Listener | None = None) -> Iterator[Update]:
    """Build, and build again whenever the tree has changed, for ever: an update for each build that found something."""
    root = checked_root(Path(request.build.repo))
    with ExitStack() as stack:
        runner = Runner(request.engine, request.notify, _OwnSession(stack).build)
        _start_engine(request)
        watcher = TreeWatcher(lambda: _directories(request.build), lock_files(root), request.quiet_seconds)
        while True:
            update = _round(runner, request.build, listener)
            if update.mode != Mode.NOOP:
                yield update
            is_retried = update.exit_code > 2
            while not watcher.wait(SECONDS_UNTIL_RETRY if is_retried else SECONDS_BETWEEN_KEEPS) and not is_retried:
                runner.keep_engine()


class _OwnSession:
    """Builds in this process, on one session that is started with the first."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._warm: Any = None

    def build(self, request: BuildRequest, listener: Listener | None) -> BuildResult:
        """Bring the graph of a repository up to date."""
        from codeanatomy.engine.session import open_engine  # noqa: PLC0415 - with an engine, no Spark is loaded here
        from codeanatomy.pipeline.warm import Warm  # noqa: PLC0415

        if self._warm is None:
            spark = self._stack.enter_context(open_engine(warm_settings(request)))
            self._warm = self._stack.enter_context(Warm(spark))
        found: BuildResult = self._warm.build(request, listener)
        return found


def _start_engine(request: WatchRequest) -> None:
    """An engine is as soon there as a session of our own, and stays."""
    if request.engine != AUTO or not is_interactive():
        return
    from codeanatomy.service.engine import engine_status, start_engine  # noqa: PLC0415

    try:
        if not engine_status().running:
            start_engine(engine_options(vars(request.build)))
    except CodeAnatomyError as error:
        request.notify(f"note: {error}: going on without the engine")


def _directories(request: BuildRequest) -> Sequence[Path]:
    root = Path(request.repo)
    location = locate_state(request.repo, request.state, request.storage_options)
    try:
        config = read_config(root)
    except CodeAnatomyError:  # the build says what is wrong with it
        config = RepoConfig()
    return walked_directories(root, scan_options(request, config, request.repo_id, location))


def _round(runner: Runner, request: BuildRequest, listener: Listener | None) -> Update:
    began = time.monotonic()
    try:
        result = runner.build(request, listener)
        seconds = time.monotonic() - began
        return _update(request, result, seconds)
    except CodeAnatomyError as error:
        return Update(time.monotonic() - began, error=str(error), exit_code=error.exit_code)


def _update(request: BuildRequest, result: Any, seconds: float) -> Update:
    files = result["files"]
    changed = sum(files[kind] for kind in ("added", "modified", "deleted", "renamed"))
    update = Update(seconds, result["build_id"], result["mode"], changed, files["rebuilt"])
    if result["mode"] != Mode.INCREMENTAL:
        return update
    state = open_state(locate_state(request.repo, request.state, request.storage_options))
    before, after = (find_build(state, result[name]) for name in ("parent_build_id", "build_id"))
    edges = compare_edges(state, before, after)
    impacted = read_bundle_rows(state, after.build_id, INC_IMPACTED_FILES)
    columns = (impacted[name].to_pylist() for name in ("path", "caused_by_path"))
    affected = sorted(path for path, cause in zip(*columns, strict=True) if cause is not None)
    return replace(update, edges_added=edges.added, edges_removed=edges.removed, affected=tuple(affected))
