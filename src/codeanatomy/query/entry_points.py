"""Entry points: what something outside the repository calls, as the view `entry_points` has it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.query.graph import Graph
from codeanatomy.query.statements import statement


@dataclass(frozen=True)
class EntryPoint:
    """A function, class or module that something outside the repository calls, and how that is known."""

    name: str
    kind: str
    path: str
    line: int
    evidence: str
    detail: str | None
    confidence: float
    node_id: str


@dataclass(frozen=True)
class EntryPoints:
    """Entry points, by file and line."""

    found: tuple[EntryPoint, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `entry-points --json` prints."""
        return {"entry_points": [vars(each) for each in self.found]}


def find_entry_points(graph: Graph, kind: str | None) -> EntryPoints:
    """The entry points of a kind, or all."""
    query, kinds = (statement(f"lookup/{name}") for name in ("entry_points", "entry_point_kinds"))
    session = graph.session([query, kinds])
    known = session.read(kinds).read_all()["kind"].to_pylist()
    if kind is not None and kind not in known:
        similar = get_close_matches(kind, known, n=3, cutoff=0.5) or known
        raise InputError(f"no entry point is described as {kind!r}", hint=f"choose from {', '.join(similar)}")
    rows = session.read(query, {"kind": kind}).read_all().to_pylist()
    return EntryPoints(tuple(EntryPoint(**row) for row in rows))
