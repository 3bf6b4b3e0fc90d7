"""What a build is asked to do, and what it answers. Both are values that print as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from codeanatomy.repo.reading import MAX_FILE_BYTES


class Mode(StrEnum):
    """How much of the repository a build works through."""

    FULL = "full"
    """Every file is rebuilt; contents that were extracted before are not parsed again."""
    INCREMENTAL = "incremental"
    """Only the files that changes since the last build affect are rebuilt."""
    NOOP = "noop"
    """Nothing that can change a row changed since the last build; nothing is written."""


class Strategy(StrEnum):
    """How the files that a change affects are found. The rows are the same; how many files are rebuilt is not."""

    HYBRID = "hybrid"
    """Files with an answer, or a semantic document, that changed."""
    SYMBOL_CLOSURE = "symbol_closure"
    """Files with an answer that changed; only for builds without an index, which sees more."""
    IMPORT_CLOSURE = "import_closure"
    """Transitive dependents of a module that changed."""


@dataclass(frozen=True)
class BuildRequest:
    """Which repository to build, where its state lives, and how to run."""

    repo: str | Path = "."
    state: str | None = None
    full: bool = False
    strategy: str = Strategy.HYBRID
    max_impact_depth: int | None = None
    repo_id: str = ""
    moved: bool = False  # the state is of this repository, although that was elsewhere
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    index: str | None = None  # auto; where a build is looked at, what it was made with
    scip: str | None = None
    entry_points: str | None = None  # file that describes more of them
    scratch: str | None = None
    max_file_bytes: int = MAX_FILE_BYTES
    determinism: str = "stable"  # of the data files that are written: fast, stable or canonical
    profile: str = "prod_fast"
    master: str | None = None
    remote: str | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FinishedStage:
    """One stage of a finished build: its name, how long it took, the rows it computed."""

    name: str
    seconds: float
    rows: int | None


@dataclass(frozen=True)
class Problem:
    """A file that could not be read or parsed as a whole, and why."""

    path: str
    reason: str
    detail: str


@dataclass(frozen=True)
class BuildResult:
    """What a build did; `as_json` is the object `build --json` prints."""

    build_id: str
    parent_build_id: str | None
    mode: Mode
    strategy: str | None
    repo: str
    git_commit: str | None
    snapshot_id: str
    files: Mapping[str, int]
    tables: Mapping[str, Mapping[str, Any]]
    stages: tuple[FinishedStage, ...]
    seconds: float
    peak_memory_mb: int
    index: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    """How many questions of a file were not followed to their end, by path; only files that have any."""
    reasons: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The build as the interface describes it."""
        return {
            "build_id": self.build_id,
            "parent_build_id": self.parent_build_id,
            "mode": str(self.mode),
            "strategy": self.strategy,
            "repo": self.repo,
            "git_commit": self.git_commit,
            "snapshot_id": self.snapshot_id,
            "files": dict(self.files),
            "tables": {name: dict(table) for name, table in self.tables.items()},
            "stages": [{"name": s.name, "seconds": round(s.seconds, 3), "rows": s.rows} for s in self.stages],
            "seconds": round(self.seconds, 3),
            "peak_memory_mb": self.peak_memory_mb,
            "index": dict(self.index) if self.index else None,
            "reasons": list(self.reasons),
            "problems": [{"path": p.path, "reason": p.reason, "detail": p.detail} for p in self.problems],
            "limits": {"questions": sum(self.limits.values()), "files": len(self.limits)},
        }
