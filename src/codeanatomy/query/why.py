"""Why a file was rebuilt in a build, or why not: a chain of reasons down to the changed file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.impact.reasons import ReasonKind
from codeanatomy.query.graph import Graph
from codeanatomy.query.statements import statement


@dataclass(frozen=True)
class Step:
    """One file of the chain, why it was rebuilt, and because of which other file."""

    path: str
    reason_kind: str
    reason_ref: str | None
    caused_by: str | None

    def __str__(self) -> str:
        """The reason in words."""
        kind = ReasonKind(self.reason_kind)  # type: ignore[call-arg]  # a member is looked up, not made
        return kind.doc.format(ref=self.reason_ref)


@dataclass(frozen=True)
class Explanation:
    """Why a file was rebuilt, as a chain of steps, or why it was not."""

    build_id: str
    path: str
    rebuilt: bool
    steps: tuple[Step, ...]
    reason: str
    tables: tuple[str, ...] = ()
    rows_changed: bool = True
    """False if its rows came out as they were; a full build does not compare them."""

    def as_json(self) -> dict[str, Any]:
        """The object that `why --json` prints."""
        return {
            "build_id": self.build_id,
            "path": self.path,
            "rebuilt": self.rebuilt,
            "reason": self.reason,
            "tables": list(self.tables),
            "rows_changed": self.rows_changed,
            "chain": [
                {
                    "path": step.path,
                    "reason": str(step),
                    "reason_kind": step.reason_kind,
                    "reason_ref": step.reason_ref,
                    "caused_by": step.caused_by,
                }
                for step in self.steps
            ],
        }


def explain(graph: Graph, path: str) -> Explanation:
    """Why a file was rebuilt in the build of `graph`, or why not."""
    build_id = graph.build.build_id
    impacted = {row["path"]: row for row in _rows(graph, "impacted")}
    if path in impacted:
        steps = tuple(_chain(impacted, path))
        row = impacted[path]
        is_rebuilt = row["reason_kind"] != "deleted"
        tables = tuple(row["tables"] or ())
        return Explanation(build_id, path, is_rebuilt, steps, str(steps[0]), tables, row["rows_changed"])
    return Explanation(build_id, path, rebuilt=False, steps=(), reason=_reason_not_rebuilt(graph, path))


def _reason_not_rebuilt(graph: Graph, path: str) -> str:
    for row in _rows(graph, "renamed_to", path=path):
        return f"it was renamed to {row['path']}"
    if not _rows(graph, "file", path=path):
        raise InputError(
            f"build {graph.build.build_id} has no file {path}", hint="give a path relative to the repository"
        )
    for row in _rows(graph, "reconsidered", path=path):
        module, cause = row["module"].removeprefix("?"), row["caused_by_path"]
        return f"it depends on {module}, which changed with {cause}, but every name in it still resolves the same"
    return "neither the file nor any module it depends on changed"


def _chain(impacted: Mapping[str, Mapping[str, Any]], path: str) -> list[Step]:
    steps: list[Step] = []
    following = path
    while following in impacted and following not in {step.path for step in steps}:
        row = impacted[following]
        steps.append(Step(following, row["reason_kind"], row["reason_ref"], row["caused_by_path"]))
        following = row["caused_by_path"] or ""
    return steps


def _rows(graph: Graph, name: str, /, **parameters: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = graph.sql(statement(f"why/{name}"), parameters).to_pylist()
    return found
