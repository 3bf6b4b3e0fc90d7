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
_OF_EVERY_LOOKUP = ("matching_names", "similar_names", "files")


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
    statements = _Statements(graph, lookup)
    names = _matching_names(statements, name)
    rows = statements.rows(lookup, names=_with_constructors(names, lookup))
    texts = _source_lines(statements, root, {row["path"] for row in rows}) if root else {}
    lines = (SourceLine(**row, text=_line(texts.get(row["path"], ()), row["line"])) for row in rows)
    return LookupResult(lookup, names, tuple(lines))


class _Statements:
    """The statements of one lookup, over tables that are opened once."""

    def __init__(self, graph: Graph, lookup: str) -> None:
        self._texts = {name: statement(f"lookup/{name}") for name in (lookup, *_OF_EVERY_LOOKUP)}
        self._session = graph.session(list(self._texts.values()))

    def rows(self, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
        """What a statement returns."""
        found: list[dict[str, Any]] = self._session.read(self._texts[name], parameters).read_all().to_pylist()
        return found


def _matching_names(statements: _Statements, name: str) -> tuple[str, ...]:
    """The full names that `name` can mean."""
    found = statements.rows("matching_names", name=name)
    exact = tuple(row["qname"] for row in found if row["is_exact"])
    names = exact or tuple(row["qname"] for row in found)
    if not names:
        raise InputError(f"the graph has no name {name!r}", hint=_suggestions(statements, name))
    return names


def _suggestions(statements: _Statements, name: str) -> str | None:
    """Names that are spelled alike."""
    similar = statements.rows("similar_names", last=name.rpartition(".")[2], limit=_MAX_SUGGESTIONS)
    return f"did you mean {', '.join(row['qname'] for row in similar)}?" if similar else None


def _with_constructors(names: Sequence[str], lookup: str) -> list[str]:
    return [*names, *(f"{name}.__init__" for name in names)] if lookup in ("callers", "callees") else list(names)


def _source_lines(statements: _Statements, root: Path, paths: set[str]) -> Mapping[str, Sequence[str]]:
    """Lines of the files that are unchanged since the build."""
    lines = {}
    for file in statements.rows("files", paths=sorted(paths)):
        content = read_optional(root / file["path"], MAX_FILE_BYTES)
        if content is not None and hashlib.sha256(content).hexdigest() == file["content_id"]:
            text = content.decode(file["encoding"] or "utf-8", errors="replace")
            lines[file["path"]] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines


def _line(lines: Sequence[str], number: int) -> str | None:
    return lines[number - 1].strip() if 0 < number <= len(lines) else None
