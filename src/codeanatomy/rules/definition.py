"""A rule: one `.sql` file over dataset names, with a contract in its header.

The header is the comment at the top. Its prose gives the reason for the rule; its `key: value` lines are the contract:

    output      dataset the rows go to (required)
    kind        node or edge kind, for the graph's tables
    method      how a target was found, for relations and edges, unless the SQL gives it (default: syntax)
    confidence  how sure that is, unless the SQL gives it (default: 1.0)
    needs       `documents` for a rule that has no rows in a build without a semantic index, which leaves it out

A rule gives some columns of its output; the contract's constants and typed nulls fill the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.catalogue.tables import CPG_EDGES, CPG_NODES, STORED_TABLES, VIEWS

_CONTRACT_LINE = re.compile(r"--\s*(output|kind|method|confidence|needs):\s*(\S+)\s*$")
_KINDS: Mapping[str, type[NodeKind] | type[EdgeKind]] = {CPG_NODES.name: NodeKind, CPG_EDGES.name: EdgeKind}


class RuleError(Exception):
    """A rule breaks its contract: a defect of this program, never of its input."""


@dataclass(frozen=True)
class Rule:
    """One rule as written: its SQL and its contract."""

    name: str
    output: Dataset
    sql: str
    kind: str | None
    method: str | None
    confidence: float | None
    needs_documents: bool = False

    def constants(self) -> dict[str, str | float]:
        """Output columns for which the contract has a value, used unless the SQL gives one."""
        kind_column = {CPG_NODES.name: "node_kind", CPG_EDGES.name: "edge_kind"}.get(self.output.name)
        values: dict[str, str | float] = {
            "resolution_method": self.method or "syntax",
            "confidence": 1.0 if self.confidence is None else self.confidence,
            "rule_name": self.name,
        }
        if kind_column and self.kind:
            values[kind_column] = self.kind
        return {column: value for column, value in values.items() if column in self.output.names()}


def parse_rule(name: str, source: str) -> Rule:
    """Read a rule from the text of its file."""
    contract = {m[1]: m[2] for line in source.splitlines() if (m := _CONTRACT_LINE.match(line))}
    outputs = {d.name: d for d in (*STORED_TABLES, *VIEWS)}
    if contract.get("output", "") not in outputs:
        raise RuleError(f"rule {name}: output {contract.get('output', '')!r} is not a dataset of the catalogue")
    output = outputs[contract["output"]]
    kind = contract.get("kind")
    if output.name in _KINDS and kind not in set(_KINDS[output.name]):
        raise RuleError(f"rule {name}: kind {kind!r} is not declared for {output.name}")
    return Rule(
        name=name,
        output=output,
        sql=source,
        kind=kind,
        method=contract.get("method"),
        confidence=float(contract["confidence"]) if "confidence" in contract else None,
        needs_documents=contract.get("needs") == "documents",
    )


def load_rules() -> tuple[Rule, ...]:
    """Every rule of the package, ordered by name."""
    return tuple(
        parse_rule(name, text) for name, text in sorted(_sources(resources.files("codeanatomy.rules") / "sql"))
    )


def _sources(folder: Traversable, prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _sources(entry, f"{prefix}{entry.name}.")
        elif entry.name.endswith(".sql"):
            found.append((prefix + entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8")))
    return found
