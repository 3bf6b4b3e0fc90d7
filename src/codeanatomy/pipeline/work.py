"""What a stage of a build is, what passes from stage to stage, and what comes out at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codeanatomy.impact.affected import Impact
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.progress import START
from codeanatomy.pipeline.scope import ALL, Scope
from codeanatomy.store.tables import TablePin, WrittenTable

if TYPE_CHECKING:
    from codeanatomy.impact.documents import DocumentChanges
    from codeanatomy.impact.evidence import Evidence
    from codeanatomy.pipeline.flow import ValueFlow
    from codeanatomy.pipeline.indexing import Indexing
    from codeanatomy.pipeline.passed import PassedValues
    from codeanatomy.pipeline.request import BuildResult, Problem


@dataclass(frozen=True)
class Work:
    """What a build has found out and written so far; each stage returns it with more.

    An update has `evidence` of what changed and, with an index, the `documents` that did. A full build has nothing to
    compare documents with: it has `written` them, as the indexer that was `started` first reported them.
    """

    facts: Facts
    impact: Impact
    scope: Scope = ALL
    started: Indexing | None = None
    evidence: Evidence | None = None
    documents: DocumentChanges | None = None
    flow: ValueFlow | None = None
    indexing_seconds: float = 0.0
    written: Mapping[str, WrittenTable] = field(default_factory=dict)
    computing_seconds: float = 0.0
    result: BuildResult | None = None

    @property
    def passed(self) -> PassedValues | None:
        """What slots hold, if values are followed."""
        return self.flow.values if self.flow else None


@dataclass(frozen=True)
class Outcome:
    """What a build did, and why: all that is reported. `changed` has the tables in which a file's rows changed."""

    impact: Impact
    changed: Mapping[str, Sequence[str]]
    pins: Mapping[str, TablePin]
    written: Mapping[str, bool]
    problems: tuple[Problem, ...]
    limits: Mapping[str, int]
    indexing_seconds: float
    costs: Mapping[str, float]


@dataclass(frozen=True)
class Stage:
    """One stage of a build: what it does, for how many files (None: only its run tells), why; and what does it."""

    name: str
    does: str
    run: Callable[[Build, Work], Work]
    files: int | None = None
    why: str = ""
    tables: tuple[str, ...] = ()
    """The tables that it writes; each is a stage to those who watch."""

    def described(self) -> list[dict[str, Any]]:
        """The stage, or that of each of its tables, as `plan --json` prints it."""
        about = {"does": self.does, "files": self.files, "why": self.why}
        return [{"name": name, **about} for name in self.tables or [self.name]]


def run_stages(build: Build, stages: tuple[Stage, ...], work: Work) -> Work:
    """Run the stages, one after the other. Any of them may be the first that needs Spark, and wait for it."""
    build.clock.plan({START, *(each["name"] for stage in stages for each in stage.described())})
    for stage in stages:
        work = stage.run(build, work)
    return work
