"""Why a file was rebuilt in a build, or why not: a chain down to the change it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.query.graph import Graph

_REASONS: Mapping[str, str] = {
    "added": "it is new",
    "content_changed": "its content changed",
    "renamed": "it was renamed from {ref}",
    "deleted": "it was deleted",
    "module_renamed": "it is module {ref} now",
    "import_module": "it imports module {ref}, which is another one now",
    "import_name": "it imports {ref}, which is something else now",
    "import_star": "a star import gives it {ref} otherwise than before",
    "base_class": "a base of its class is or was {ref}",
    "caller_qname": "it calls {ref}, or did",
    "name_qname": "it uses {ref}, or did",
    "caller_symbol": "the index sees {ref} in it, or did",
    "semantic_document": "the index sees it otherwise: {ref}",
    "import_closure": "it looks at {ref}, if only through others (import_closure)",
    "rule_changed": "rule {ref} changed",
    "settings_changed": "every file was built anew: {ref}",
    "full_refresh": "every file was built anew: {ref}",
}


@dataclass(frozen=True)
class Step:
    """A file of the chain, why it was rebuilt, and where it comes from."""

    path: str
    reason_kind: str
    reason_ref: str | None
    caused_by: str | None

    def __str__(self) -> str:
        """The reason in words."""
        return _REASONS[self.reason_kind].format(ref=self.reason_ref)


@dataclass(frozen=True)
class Why:
    """The answer: the steps of the chain, or why there are none."""

    build_id: str
    path: str
    rebuilt: bool
    steps: tuple[Step, ...]
    reason: str
    tables: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The answer of `why --json`."""
        return {
            "build_id": self.build_id,
            "path": self.path,
            "rebuilt": self.rebuilt,
            "reason": self.reason,
            "tables": list(self.tables),
            "chain": [
                {
                    "path": step.path,
                    "reason_kind": step.reason_kind,
                    "reason_ref": step.reason_ref,
                    "caused_by": step.caused_by,
                }
                for step in self.steps
            ],
        }


def why(graph: Graph, path: str) -> Why:
    """Why a file of the build was rebuilt, or why not."""
    build_id = graph.build.build_id
    impacted = {row["path"]: row for row in graph.sql("SELECT * FROM inc_impacted_files").to_pylist()}
    if path in impacted:
        steps = tuple(_chain(impacted, path))
        row = impacted[path]
        return Why(build_id, path, row["reason_kind"] != "deleted", steps, str(steps[0]), tuple(row["tables"] or ()))
    for row in _rows(graph, "diff_report", "previous", path):
        if row["change_kind"] == "renamed":
            return Why(build_id, path, rebuilt=False, steps=(), reason=f"it was renamed to {row['path']}")
    if not _rows(graph, "repo_files", "path", path):
        raise InputError(f"build {build_id} has no file {path}", hint="paths are relative to the repository")
    for row in _rows(graph, "inc_reconsidered_files", "path", path):
        looked_at, cause = row["looked_at"].removeprefix("?"), row["caused_by_path"]
        reason = f"it looked at {looked_at}, which {cause} changed; every answer came out as it was"
        return Why(build_id, path, rebuilt=False, steps=(), reason=reason)
    reason = "it did not change, and none of its answers looked at a module that did"
    return Why(build_id, path, rebuilt=False, steps=(), reason=reason)


def _chain(impacted: Mapping[str, Mapping[str, Any]], path: str) -> list[Step]:
    steps: list[Step] = []
    following = path
    while following in impacted and following not in {step.path for step in steps}:
        row = impacted[following]
        steps.append(Step(following, row["reason_kind"], row["reason_ref"], row["caused_by_path"]))
        following = row["caused_by_path"] or ""
    return steps


def _rows(graph: Graph, dataset: str, column: str, value: str) -> list[dict[str, Any]]:
    quoted = value.replace("'", "''")
    found: list[dict[str, Any]] = graph.sql(f"SELECT * FROM {dataset} WHERE {column} = '{quoted}'").to_pylist()  # noqa: S608
    return found
