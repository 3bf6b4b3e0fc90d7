"""The usual questions: who calls this, what does it call, where is it used, where is it defined.

A name is dotted (`pkg.mod.Class.method`); its end is enough as long as something is called so. Asking for a class means
its `__init__` as well, for calling the one runs the other.
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

QUESTIONS = ("callers", "callees", "refs", "definition")
"""What `look_up` can be asked."""

_SUGGESTIONS = 5

_STATEMENTS = {
    "callers": """
        SELECT DISTINCT callee AS name, caller AS "by", path, line, confidence, method FROM calls
        WHERE callee IN ({names})
        UNION
        SELECT DISTINCT callee.qname, caller.qname, e.path, e.line, e.confidence, e.resolution_method
        FROM cpg_edges AS e
        JOIN cpg_nodes AS callee ON callee.node_id = e.dst_id
        JOIN cpg_nodes AS caller ON caller.node_id = e.code_id
        WHERE e.edge_kind = 'CALLS' AND e.confidence >= 0.5 AND callee.qname IN ({names})
    """,
    "callees": """
        SELECT DISTINCT caller AS name, callee AS "by", path, line, confidence, method FROM calls
        WHERE caller IN ({names})
    """,
    "refs": """
        SELECT DISTINCT name, context AS "by", path, line, confidence, method FROM "references"
        WHERE name IN ({names})
    """,
    "definition": """
        SELECT name, kind AS "by", path, line, 1.0 AS confidence, 'syntax' AS method FROM definitions
        WHERE name IN ({names})
        UNION ALL
        SELECT qname, 'module', path, 1, 1.0, 'syntax' FROM cpg_nodes
        WHERE node_kind = 'MODULE' AND qname IN ({names})
    """,
}


@dataclass(frozen=True)
class Place:
    """A place that answers: `by` is who calls, what is called, how it is used, or what kind of thing it is."""

    name: str
    by: str
    path: str
    line: int
    confidence: float
    method: str
    text: str | None


@dataclass(frozen=True)
class Answer:
    """The names that were meant, and the places, by file and line."""

    question: str
    names: tuple[str, ...]
    places: tuple[Place, ...]

    def as_json(self) -> dict[str, Any]:
        """The answer as commands print it."""
        return {"question": self.question, "names": list(self.names), "places": [vars(p) for p in self.places]}


def look_up(graph: Graph, question: str, name: str, root: Path | None = None) -> Answer:
    """Answer one of `QUESTIONS`; with `root`, each place has its source line, if the file is still as it was built."""
    names = _names(graph, name)
    statement = _STATEMENTS[question].format(names=", ".join(map(_quoted, _meant(names, question))))
    rows = graph.sql(f'SELECT * FROM ({statement}) ORDER BY path, line, name, "by"').to_pylist()
    texts = _source_lines(graph, root, {row["path"] for row in rows}) if root else {}
    places = (Place(**row, text=_line(texts.get(row["path"], ()), row["line"])) for row in rows)
    return Answer(question, names, tuple(places))


def _names(graph: Graph, name: str) -> tuple[str, ...]:
    """The full names that `name` stands for."""
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
        raise InputError(f"nothing in the graph is called {name!r}", hint=_suggestions(graph, name))
    return names


def _suggestions(graph: Graph, name: str) -> str | None:
    """Names that look like it."""
    last = name.rpartition(".")[2]
    rows = graph.sql(
        f"""
        SELECT qname FROM cpg_nodes WHERE node_kind IN ('DEF', 'MODULE') AND levenshtein(name, {_quoted(last)}) <= 2
        ORDER BY levenshtein(name, {_quoted(last)}), qname LIMIT {_SUGGESTIONS}
        """
    )
    return f"there is {', '.join(rows['qname'].to_pylist())}" if rows.num_rows else None


def _meant(names: Sequence[str], question: str) -> Iterable[str]:
    return [*names, *(f"{name}.__init__" for name in names)] if question in ("callers", "callees") else names


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _source_lines(graph: Graph, root: Path, paths: set[str]) -> Mapping[str, Sequence[str]]:
    """Lines of the files that are still what was built."""
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
