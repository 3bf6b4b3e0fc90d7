"""Lookups of a name: its callers, its callees, its references, its definition.

A name is dotted (`pkg.mod.Class.method`). If no full name matches, every name that ends with it does. The callers and
callees of a class include those of its `__init__`, because calling the class runs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.query.graph import Graph
from codeanatomy.query.statements import statement
from codeanatomy.repo.reading import MAX_FILE_BYTES, read_optional

_MAX_SUGGESTIONS = 5


@dataclass(frozen=True)
class SourceLine:
    """A line that was found; `what` is the caller, the callee, how the name is used, or the kind of definition."""

    name: str
    what: str
    path: str
    line: int
    confidence: float
    method: str
    text: str | None


@dataclass(frozen=True)
class LookupResult:
    """The full names that matched, and the lines that were found, by file and line number."""

    lookup: str
    names: tuple[str, ...]
    lines: tuple[SourceLine, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that the command of the lookup prints with `--json`."""
        return {"lookup": self.lookup, "names": list(self.names), "lines": [vars(line) for line in self.lines]}


def look_up(graph: Graph, lookup: str, name: str, root: Path | None = None) -> LookupResult:
    """Run one of the lookups; with `root`, each line has its text if the file is unchanged since the build."""
    names = _matching_names(graph, name)
    rows = _rows(graph, lookup, names=_with_constructors(names, lookup))
    texts = _source_lines(graph, root, {row["path"] for row in rows}) if root else {}
    lines = (SourceLine(**row, text=_line(texts.get(row["path"], ()), row["line"])) for row in rows)
    return LookupResult(lookup, names, tuple(lines))


def _matching_names(graph: Graph, name: str) -> tuple[str, ...]:
    """The full names that `name` can mean."""
    found = _rows(graph, "matching_names", name=name)
    exact = tuple(row["qname"] for row in found if row["is_exact"])
    names = exact or tuple(row["qname"] for row in found)
    if not names:
        raise InputError(f"the graph has no name {name!r}", hint=_suggestions(graph, name))
    return names


def _suggestions(graph: Graph, name: str) -> str | None:
    """Names that are spelled alike."""
    similar = _rows(graph, "similar_names", last=name.rpartition(".")[2], limit=_MAX_SUGGESTIONS)
    return f"did you mean {', '.join(row['qname'] for row in similar)}?" if similar else None


def _with_constructors(names: Sequence[str], lookup: str) -> list[str]:
    return [*names, *(f"{name}.__init__" for name in names)] if lookup in ("callers", "callees") else list(names)


def _source_lines(graph: Graph, root: Path, paths: set[str]) -> Mapping[str, Sequence[str]]:
    """Lines of the files that are unchanged since the build."""
    lines = {}
    for file in _rows(graph, "files", paths=sorted(paths)):
        content = read_optional(root / file["path"], MAX_FILE_BYTES)
        if content is not None and hashlib.sha256(content).hexdigest() == file["content_id"]:
            text = content.decode(file["encoding"] or "utf-8", errors="replace")
            lines[file["path"]] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines


def _line(lines: Sequence[str], number: int) -> str | None:
    return lines[number - 1].strip() if 0 < number <= len(lines) else None


def _rows(graph: Graph, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = graph.sql(statement(f"lookup/{name}"), parameters).to_pylist()
    return found
