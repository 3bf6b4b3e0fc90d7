"""Which files of a snapshot could not be read or parsed whole, and why; a build reports each and goes on.

Beside them, how many questions of a file were not followed to their end because a limit was hit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.pipeline.analysis import Impact
from codeanatomy.pipeline.facts import KnownFacts
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.reindexing import Documents
from codeanatomy.pipeline.request import Problem
from codeanatomy.repo.snapshot import ScannedFile, Skipped
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow

SYNTAX_ERROR = "syntax_error"
NOT_INDEXED = "not_indexed"
_REASONS = {"decoder": "undecodable", "tree-sitter": SYNTAX_ERROR}


def find_problems(
    state: State, inputs: BuildInputs, facts_version: int, documents_version: int | None
) -> tuple[Problem, ...]:
    """One entry per troubled file, by path; a file with many errors is told by its first."""
    without_document = _not_indexed(state, documents_version) if documents_version is not None else {}
    flawed = read_arrow(
        state,
        FACTS,
        facts_version,
        ["content_id", "parse_errors"],
        only=(pc.field("extractor") == EXTRACTOR_VERSION) & (pc.list_value_length(pc.field("parse_errors")) > 0),
    )
    errors = dict(zip(flawed["content_id"].to_pylist(), flawed["parse_errors"].to_pylist(), strict=True))
    problems = []
    for file in inputs.snapshot.files:
        if problem := _problem(file, errors.get(file.content_id, ())):
            problems.append(problem)
        elif file.path in without_document:
            problems.append(Problem(file.path, NOT_INDEXED, without_document[file.path]))
    return tuple(problems)


def update_problems(
    last: BuildRecord, inputs: BuildInputs, changes: SnapshotChanges, facts: KnownFacts, documents: Documents | None
) -> tuple[Problem, ...]:
    """The same for an update: files that did not change have the problems they had."""
    changed = {*changes.rebuilt(), *changes.gone()}
    said = documents.rows.select(["path", "status", "detail"]).to_pylist() if documents else []
    changed |= {row["path"] for row in said}
    failed = {row["path"]: row["detail"] for row in said if row["status"] == "failed"}
    before = [Problem(**each) for each in last.figures["problems"]]
    unchanged_failures = {  # rebuilt, and failed for the same reason again
        each.path: each.detail
        for each in before
        if documents is not None and each.reason == NOT_INDEXED and each.path not in {row["path"] for row in said}
    }
    kept = {each.path: each for each in before if each.path not in changed}
    files = [file for file in inputs.snapshot.files if file.path in changed]
    errors = facts.by_content({file.content_id for file in files if file.content_id}, ["parse_errors"])
    for file in files:
        found = errors[file.content_id]["parse_errors"] if file.content_id in errors else ()
        if problem := _problem(file, found):
            kept[file.path] = problem
        elif file.path in failed:
            kept[file.path] = Problem(file.path, NOT_INDEXED, failed[file.path])
        elif file.path in unchanged_failures:
            kept[file.path] = Problem(file.path, NOT_INDEXED, unchanged_failures[file.path])
    return tuple(kept[file.path] for file in inputs.snapshot.files if file.path in kept)


def find_limits(state: State, answers_version: int) -> dict[str, int]:
    """How many questions of each file hit a limit; only files that have any."""
    return _limits_in(read_arrow(state, ANSWERS, answers_version, ["path"], only=pc.field("status") == "limit"))


def update_limits(last: BuildRecord, impact: Impact) -> dict[str, int]:
    """The same for an update, which has all answers of the files that were asked again."""
    unchanged = {path for path, file in impact.changes.after.items() if file.file_id not in impact.asked}
    kept = {path: count for path, count in last.figures.get("limits", {}).items() if path in unchanged}
    return kept | _limits_in(impact.answers.filter(pc.field("status") == "limit"))


def _limits_in(answers: pa.Table) -> dict[str, int]:
    """Rows by path: a question has one such row at most."""
    return {each["values"]: each["counts"] for each in pc.value_counts(answers["path"]).to_pylist()}


def not_looked_into(skipped: Iterable[Skipped]) -> Iterable[Problem]:
    """What would be part of the snapshot if it could be."""
    wanted = ("name_not_utf8", "unreadable")
    return (Problem(each.path, each.reason, each.detail) for each in skipped if each.reason in wanted)


def _problem(file: ScannedFile, errors: Sequence[Mapping[str, Any]]) -> Problem | None:
    if file.status != "ok":
        return Problem(file.path, file.status, file.detail)
    if not errors:
        return None
    first = min(errors, key=lambda error: (error["bstart"], error["bend"], error["message"]))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Problem(file.path, _REASONS[first["source"]], f"line {first['line_start']}: {first['message']}{more}")


def _not_indexed(state: State, documents_version: int) -> dict[str, str]:
    """Why files have no document, by path."""
    failed = read_arrow(state, DOCUMENTS, documents_version, ["path", "detail"], only=pc.field("status") == "failed")
    return dict(zip(failed["path"].to_pylist(), failed["detail"].to_pylist(), strict=True))
