"""Which files of a snapshot could not be read, parsed or indexed, and why; a build reports each and goes on.

Also: how many questions of a file were not followed to their end because a limit was hit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import ANSWERS
from codeanatomy.impact.affected import Impact
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.request import Problem
from codeanatomy.repo.snapshot import ScannedFile
from codeanatomy.store.tables import TablePin, read_arrow

if TYPE_CHECKING:
    from codeanatomy.pipeline.work import Work

SYNTAX_ERROR = "syntax_error"
NOT_INDEXED = "not_indexed"
_REASONS = {"decoder": "undecodable", "tree-sitter": SYNTAX_ERROR}


def find_problems(build: Build, work: Work, documents: Documents | None) -> tuple[Problem, ...]:
    """One entry per file with a problem, by path; a file with many errors is reported by its first.

    Files that did not change have the problems they had, but for their documents.
    """
    files = build.inputs.snapshot.files
    changed = {file.path for file in files}
    known: dict[str, Problem] = {}
    if build.last and not build.is_full:
        changed = set(work.impact.changes.rebuilt())
        before = (Problem(**each) for each in build.last.figures["problems"])
        known = {each.path: each for each in before if each.path not in changed and each.reason != NOT_INDEXED}
    contents = {file.content_id for file in files if file.path in changed and file.content_id}
    rows = work.facts.rows(contents, ["parse_errors"])
    flawed = rows.filter(pc.list_value_length(pc.field("parse_errors")) > 0).to_pylist()
    errors = {row["content_id"]: row["parse_errors"] for row in flawed}
    for file in files:
        if file.path in changed and (problem := _problem(file, errors.get(file.content_id, ()))):
            known[file.path] = problem
    for path, detail in (_not_indexed(documents) if documents else {}).items():
        known.setdefault(path, Problem(path, NOT_INDEXED, detail))
    return tuple(known[file.path] for file in files if file.path in known)


def find_limits(build: Build, impact: Impact, answers: TablePin) -> dict[str, int]:
    """How many questions of each file hit a limit; only files that have any."""
    if build.last is None or build.is_full:
        return _limits_in(
            read_arrow(build.state, ANSWERS, answers.version, ["path"], only=pc.field("status") == "limit")
        )
    unchanged = {path for path, file in impact.changes.after.items() if file.file_id not in impact.asked}
    kept = {path: count for path, count in build.last.figures.get("limits", {}).items() if path in unchanged}
    return kept | _limits_in(impact.answers.filter(pc.field("status") == "limit"))


def _limits_in(answers: pa.Table) -> dict[str, int]:
    """Rows by path: a question has one such row at most."""
    return {each["values"]: each["counts"] for each in pc.value_counts(answers["path"]).to_pylist()}


def _problem(file: ScannedFile, errors: Sequence[Mapping[str, Any]]) -> Problem | None:
    if file.status != "ok":
        return Problem(file.path, file.status, file.detail)
    if not errors:
        return None
    first = min(errors, key=lambda error: (error["bstart"], error["bend"], error["message"]))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Problem(file.path, _REASONS[first["source"]], f"line {first['line_start']}: {first['message']}{more}")


def _not_indexed(documents: Documents) -> dict[str, str]:
    """Why files have no document, by path."""
    rows = documents.read(["path", "detail", "status"])
    failed = rows.filter(pc.field("status") == "failed")
    return dict(zip(failed["path"].to_pylist(), failed["detail"].to_pylist(), strict=True))
