"""Run verbs through the engine if there is one, else in this process; the answer is the object that `--json` prints.

The engine is a help, never a need: whatever is wrong with it, the verb runs here, unless the engine is required. What
depends on variables of this process is not given to the engine: an object store, a cluster, a program from PATH.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeanatomy.api import building, history, reading
from codeanatomy.errors import MachineError
from codeanatomy.service.client import NotRunningError, Question, UnavailableError, ask, stream

if TYPE_CHECKING:
    from codeanatomy.api.requests import BuildRequest, Repository
    from codeanatomy.pipeline.progress import Listener
    from codeanatomy.pipeline.request import BuildResult
    from codeanatomy.service.engine import EngineOptions

OFF, AUTO, REQUIRE = "off", "auto", "require"
MODES = (OFF, AUTO, REQUIRE)
"""Never use the engine; use it if it is there; fail without it."""

ENGINE_FIELDS = {"profile": "profile", "master": "master", "conf": "spark_conf"}
"""The settings of an engine, and the fields of a build request that must be the same."""

_CI = ("CI", "CONTINUOUS_INTEGRATION", "BUILD_NUMBER", "GITHUB_ACTIONS", "GITLAB_CI", "TEAMCITY_VERSION", "TF_BUILD")


def is_interactive(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a person waits at a terminal, and no automation does."""
    in_ci = any(environ.get(name, "").lower() not in ("", "0", "false") for name in _CI)
    return not in_ci and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


@dataclass(frozen=True)
class SqlQuery:
    """A SELECT over a build, its limits, and the form of the answer: `json`, `csv` or `rows` (a JSON list each)."""

    subject: str
    form: str
    build: str | None = None
    timeout: float | None = None
    max_memory_mb: int | None = None


@dataclass
class Runner:
    """Who asks: whether the engine may be used, and who is told why it was not."""

    mode: str = AUTO
    notify: Callable[[str], None] = field(default=lambda _: None)
    build_here: Callable[[BuildRequest, Listener | None], BuildResult] = field(
        default=lambda request, listener: building.build(request, listener=listener)
    )
    """How to build without the engine."""
    _was_missed: bool = field(default=False, init=False)

    def build(self, request: BuildRequest, listener: Listener | None = None) -> Any:
        """Bring the graph of a repository up to date."""

        def here() -> Any:
            return self.build_here(request, listener).as_json()

        return self._run(Question("build", _of_build(request), listener), here)

    def plan(self, request: BuildRequest, listener: Listener | None = None) -> Any:
        """What a build would do now."""

        def here() -> Any:
            return building.plan(request, listener=listener).as_json()

        return self._run(Question("plan", _of_build(request), listener), here)

    def status(self, request: BuildRequest) -> Any:
        """The last build, and what changed in the working tree since."""
        return self._run(Question("status", _of_build(request)), lambda: building.status(request).as_json())

    def look_up(self, lookup: str, name: str, repo: Repository, build: str | None) -> Any:
        """The answer of `callers`, `callees`, `refs` or `definition`."""

        def here() -> Any:
            return getattr(reading, lookup)(name, repo, build=build).as_json()

        return self._run(Question(lookup, {"subject": name, "build": build, **_of_repository(repo)}), here)

    def why(self, path: str, repo: Repository, build: str | None) -> Any:
        """Why a file was rebuilt, or why not."""

        def here() -> Any:
            return reading.why(path, repo, build=build).as_json()

        return self._run(Question("why", {"subject": path, "build": build, **_of_repository(repo)}), here)

    def builds(self, repo: Repository) -> Any:
        """The builds that are kept, newest first."""
        return self._run(
            Question("builds", _of_repository(repo)), lambda: [each.as_json() for each in history.builds(repo)]
        )

    def sql(self, query: SqlQuery, repo: Repository) -> Iterator[str] | None:
        """The parts of the engine's answer to a SELECT, in the form asked for; None if it is to be answered here."""

        def there(question: Question) -> Iterator[str]:
            answer = stream(question)
            return chain([next(answer, "")], _in_the_middle(answer))

        found: Iterator[str] | None = self._try(Question("sql", {**vars(query), **_of_repository(repo)}), there)
        return found

    def start_beside(self, request: BuildRequest) -> None:
        """Start an engine for later commands, with the settings of `request`, if a person will want one."""
        if self._was_missed and self.mode == AUTO and is_interactive():
            from codeanatomy.service.engine import launch_engine  # noqa: PLC0415 - most commands start none

            launch_engine(engine_options(vars(request)))

    def keep_engine(self) -> None:
        """Tell the engine, if one runs, that it will be used again."""
        if self.mode != OFF:
            with suppress(UnavailableError):
                ask(Question("keep"))

    def _run(self, question: Question, here: Callable[[], Any]) -> Any:
        answer = self._try(question, ask)
        return here() if answer is None else answer

    def _try(self, question: Question, there: Callable[[Question], Any]) -> Any:
        """What the engine answers, or None if it does not."""
        if self.mode == OFF or not Path(question.arguments["repo"]).is_dir():
            return None  # an error of this process names the directory as the user did
        try:
            if reason := _unsuitable(question.arguments):
                raise UnavailableError(reason)
            if self.mode != REQUIRE:
                return there(question)
            return _started(replace(question, wait=True), there)
        except UnavailableError as error:
            if self.mode == REQUIRE:
                raise MachineError(f"the engine is required: {error}") from None
            self._was_missed = isinstance(error, NotRunningError)
            if error.note:
                self.notify(f"note: {error}: going on without the engine")
            return None


def _started(question: Question, there: Callable[[Question], Any]) -> Any:
    """What the engine answers; it is started if none runs."""
    try:
        return there(question)
    except NotRunningError:
        from codeanatomy.service.engine import start_engine  # noqa: PLC0415 - most commands start none

        start_engine(engine_options(question.arguments))
    return there(question)


def _in_the_middle(answer: Iterator[str]) -> Iterator[str]:
    """The rest of an answer: what was printed cannot be taken back, so it must not begin again elsewhere."""
    try:
        yield from answer
    except UnavailableError as error:
        raise MachineError(f"{error}, in the middle of the answer", hint="try again") from None


def _unsuitable(arguments: Mapping[str, Any]) -> str | None:
    """Why the engine would not do the same as this process: it has another environment."""
    if "://" in (arguments.get("state") or ""):
        return "the state is on an object store"
    if arguments.get("remote"):
        return "another Spark is asked for"
    if arguments.get("index") == "scip" and not arguments.get("scip"):
        return "scip-python is looked for in the PATH of this process"
    return None


def engine_options(request: Mapping[str, Any]) -> EngineOptions:
    """The options of an engine for requests like this one."""
    from codeanatomy.service.engine import EngineOptions  # noqa: PLC0415

    settings = {option: request[field] for option, field in ENGINE_FIELDS.items() if field in request}
    return EngineOptions(**settings)


def _of_build(request: BuildRequest) -> dict[str, Any]:
    """A request whose paths mean the same everywhere."""
    return {
        **vars(request),
        **_of_repository(request),
        "scip": _absolute(request.scip),
        "entry_points": _absolute(request.entry_points),
        "scratch": _absolute(request.scratch),
        "spark_conf": dict(request.spark_conf),
    }


def _of_repository(repo: Repository | BuildRequest) -> dict[str, Any]:
    return {
        "repo": _absolute(str(repo.repo)),
        "state": repo.state if "://" in (repo.state or "") else _absolute(repo.state),
        "storage_options": dict(repo.storage_options),
    }


def _absolute(path: str | None) -> str | None:
    return path if path is None else str(Path(path).absolute())
