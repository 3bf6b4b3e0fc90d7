"""Which files of a snapshot could not be read or parsed whole, and why; a build reports each and goes on."""

from __future__ import annotations

import pyarrow.compute as pc

from codeanatomy.catalogue.tables import DOCUMENTS, FACTS
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.request import Problem
from codeanatomy.store.state import State
from codeanatomy.store.tables import open_arrow

SYNTAX_ERROR = "syntax_error"
NOT_INDEXED = "not_indexed"
_REASONS = {"decoder": "undecodable", "tree-sitter": SYNTAX_ERROR}


def find_problems(
    state: State, inputs: BuildInputs, facts_version: int, documents_version: int | None
) -> tuple[Problem, ...]:
    """One entry per troubled file, by path; a file with many errors is told by its first."""
    without_document = _not_indexed(state, documents_version) if documents_version is not None else {}
    flawed = open_arrow(state, FACTS, facts_version).to_table(
        columns=["content_id", "parse_errors"],
        filter=(pc.field("extractor") == EXTRACTOR_VERSION) & (pc.list_value_length(pc.field("parse_errors")) > 0),
    )
    errors = dict(zip(flawed["content_id"].to_pylist(), flawed["parse_errors"].to_pylist(), strict=True))
    problems = []
    for file in inputs.snapshot.files:
        if file.status != "ok":
            problems.append(Problem(file.path, file.status, file.detail))
        elif found := errors.get(file.content_id):
            first = min(found, key=lambda error: (error["bstart"], error["bend"], error["message"]))
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            problems.append(
                Problem(file.path, _REASONS[first["source"]], f"line {first['line_start']}: {first['message']}{more}")
            )
        elif file.path in without_document:
            problems.append(Problem(file.path, NOT_INDEXED, without_document[file.path]))
    return tuple(problems)


def _not_indexed(state: State, documents_version: int) -> dict[str, str]:
    """Why files have no document, by path."""
    failed = open_arrow(state, DOCUMENTS, documents_version).to_table(
        columns=["path", "detail"], filter=pc.field("status") == "failed"
    )
    return dict(zip(failed["path"].to_pylist(), failed["detail"].to_pylist(), strict=True))
