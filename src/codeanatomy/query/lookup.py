"""Lookups of a name: its callers, its callees, its references, its definition.

A name is dotted (`pkg.mod.Class.method`). If no full name matches, every name that ends with it does. The callers and
callees of a class include those of its `__init__`, because calling the class runs it.
"""

# ruff: noqa: S608 - every name is quoted, and the connection can only read

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.query.graph import Graph
from codeanatomy.repo.reading import read_optional
from codeanatomy.repo.scan import MAX_FILE_BYTES

_MAX_SUGGESTIONS = 5

_STATEMENTS = {
    "callers": """
        SELECT DISTINCT callee AS name, caller AS what, path, line, confidence, method FROM calls
        WHERE callee IN ({names})
        UNION
        SELECT DISTINCT callee.qname, caller.qname, e.path, e.line, e.confidence, e.resolution_method
        FROM cpg_edges AS e
        JOIN cpg_nodes AS callee ON callee.node_id = e.dst_id
        JOIN cpg_nodes AS caller ON caller.node_id = e.code_id
        WHERE e.edge_kind = 'CALLS' AND e.confidence >= 0.5 AND callee.qname IN ({names})
    """,
    "callees": """
        SELECT DISTINCT caller AS name, callee AS what, path, line, confidence, method FROM calls
        WHERE caller IN ({names})
    """,
    "refs": """
        SELECT DISTINCT name, context AS what, path, line, confidence, method FROM "references"
        WHERE name IN ({names})
    """,
    "definition": """
        SELECT name, kind AS what, path, line, 1.0 AS confidence, 'syntax' AS method FROM definitions
        WHERE name IN ({names})
        UNION ALL
        SELECT qname, 'module', path, 1, 1.0, 'syntax' FROM cpg_nodes
        WHERE node_kind = 'MODULE' AND qname IN ({names})
    """,
}


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
    statement = _STATEMENTS[lookup].format(names=", ".join(map(_quoted, _with_constructors(names, lookup))))
    rows = graph.sql(f"SELECT * FROM ({statement}) ORDER BY path, line, name, what").to_pylist()
    texts = _source_lines(graph, root, {row["path"] for row in rows}) if root else {}
    lines = (SourceLine(**row, text=_line(texts.get(row["path"], ()), row["line"])) for row in rows)
    return LookupResult(lookup, names, tuple(lines))


def _matching_names(graph: Graph, name: str) -> tuple[str, ...]:
    """The full names that `name` can mean."""
    ends = _quoted(f".{name}")
    found = graph.sql(
        f"""
        SELECT DISTINCT qname, qname = {_quoted(name)} AS whole FROM cpg_nodes
        WHERE node_kind IN ('DEF', 'MODULE', 'BINDING', 'SYMBOL', 'QNAME')
          AND (qname = {_quoted(name)} OR suffix(qname, {ends}))
        ORDER BY ALL
        """
    ).to_pylist()
    exact = tuple(row["qname"] for row in found if row["whole"])
    names = exact or tuple(row["qname"] for row in found)
    if not names:
        raise InputError(f"the graph has no name {name!r}", hint=_suggestions(graph, name))
    return names


def _suggestions(graph: Graph, name: str) -> str | None:
    """Names that are spelled alike."""
    last = name.rpartition(".")[2]
    rows = graph.sql(
        f"""
        SELECT qname FROM cpg_nodes WHERE node_kind IN ('DEF', 'MODULE') AND levenshtein(name, {_quoted(last)}) <= 2
        ORDER BY levenshtein(name, {_quoted(last)}), qname LIMIT {_MAX_SUGGESTIONS}
        """
    )
    return f"did you mean {', '.join(rows['qname'].to_pylist())}?" if rows.num_rows else None


def _with_constructors(names: Sequence[str], lookup: str) -> Iterable[str]:
    return [*names, *(f"{name}.__init__" for name in names)] if lookup in ("callers", "callees") else names


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _source_lines(graph: Graph, root: Path, paths: set[str]) -> Mapping[str, Sequence[str]]:
    """Lines of the files that are unchanged since the build."""
    if not paths:
        return {}
    chosen = ", ".join(map(_quoted, sorted(paths)))
    built = graph.sql(f"SELECT path, content_id, encoding FROM repo_files WHERE path IN ({chosen})").to_pylist()
    lines = {}
    for file in built:
        content = read_optional(root / file["path"], MAX_FILE_BYTES)
        if content is not None and hashlib.sha256(content).hexdigest() == file["content_id"]:
            text = content.decode(file["encoding"] or "utf-8", errors="replace")
            lines[file["path"]] = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines


def _line(lines: Sequence[str], number: int) -> str | None:
    return lines[number - 1].strip() if 0 < number <= len(lines) else None
