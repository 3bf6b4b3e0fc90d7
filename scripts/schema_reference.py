"""Write docs/schema.md from the catalogue; with --check, fail if the file says something else."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.ids import AMBIGUITY_GROUP_FORMS, EDGE_IDS, NODE_IDS, PARTS, edge_forms, example_of
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.catalogue.runs import RUN_DATASETS
from codeanatomy.catalogue.tables import (
    CPG_PROPS,
    DOCUMENT_VIEWS,
    FACT_VIEWS,
    FLOW_TABLES,
    SCIP_DOCUMENTS,
    STORED_TABLES,
    VIEWS,
)
from codeanatomy.rules.compiler import CompiledRule, compile_rules
from codeanatomy.rules.definition import load_rules

TARGET = Path(__file__).parent.parent / "docs" / "schema.md"

INTRODUCTION = """# Schema reference

Made from the catalogue by `make docs`; do not edit. Every dataset below can be named in `codeanatomy sql`.
Spans are UTF-8 byte offsets, end-exclusive; lines count from 1.
"""

IDS = """
## Ids

An id is a form filled with parts, deterministic and without byte offsets. Other files point only to nodes whose id has
no number that counts things in source order, so that an edit does not break edges of unchanged files.
"""


def main() -> int:
    """Write or check the reference."""
    text = reference()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        print("docs/schema.md is out of date: run `make docs`", file=sys.stderr)
        return 1
    return 0


def reference() -> str:
    """The whole document."""
    rules = compile_rules(load_rules())
    parts = [
        INTRODUCTION,
        "## Nodes\n",
        *_kinds(NodeKind, rules),
        "\n## Edges\n",
        *_kinds(EdgeKind, rules),
        IDS,
        *_node_ids(),
        "",
        *_edge_ids(),
        "",
        *_parts(),
        f"\nThe candidates of one site share an `ambiguity_group_id`: {_codes(AMBIGUITY_GROUP_FORMS)}.",
        "\n## Tables of the graph\n",
        *(_dataset(d) for d in (*STORED_TABLES, *FLOW_TABLES, CPG_PROPS)),
        "## Relations\n",
        *(_dataset(d) for d in VIEWS),
        "## Facts of each file\n",
        *(_dataset(d) for d in FACT_VIEWS),
        "## Semantic documents of each file\n",
        *(_dataset(d) for d in (SCIP_DOCUMENTS, *DOCUMENT_VIEWS)),
        "## What a build did, and why\n",
        *(_dataset(d) for d in RUN_DATASETS),
    ]
    return "\n".join(parts)


def _kinds(kinds: type[NodeKind] | type[EdgeKind], rules: Iterable[CompiledRule]) -> Iterable[str]:
    yield "| kind | meaning | made by | from |\n|---|---|---|---|"
    for kind in kinds:
        makers = [rule for rule in rules if rule.rule.kind == kind]
        inputs = sorted({name for rule in makers for name in rule.inputs})
        yield f"| `{kind}` | {kind.doc} | {_codes(r.rule.name for r in makers)} | {_codes(inputs)} |"


def _node_ids() -> Iterable[str]:
    yield "| node | id | example | `parent_id` | other files may point to it |\n|---|---|---|---|---|"
    for kind, (forms, parents, shared) in NODE_IDS.items():
        examples = _codes(example_of(form) for form in forms)
        yield f"| `{kind}` | {_codes(forms)} | {examples} | {_codes(parents)} | {'yes' if shared else 'no'} |"


def _edge_ids() -> Iterable[str]:
    yield "| edge | id | from | to |\n|---|---|---|---|"
    for kind, (_, src, dst) in EDGE_IDS.items():
        yield f"| `{kind}` | {_codes(edge_forms(kind))} | {_codes(src)} | {_codes(dst)} |"


def _parts() -> Iterable[str]:
    yield "| part | meaning | counts things in source order |\n|---|---|---|"
    for name, part in PARTS.items():
        yield f"| `{{{name}}}` | {part.doc} | {'yes' if part.counts_source_order else 'no'} |"


def _dataset(dataset: Dataset) -> str:
    rows = (f"| `{c.name}` | {_type(c.type)} | {'no' if c.required else 'yes'} | {c.doc} |" for c in dataset.columns)
    head = f"### `{dataset.name}`\n\n{dataset.doc}\n\n| column | type | null | meaning |\n|---|---|---|---|"
    return "\n".join([head, *rows, ""])


def _type(kind: pa.DataType) -> str:
    return f"list of {_type(kind.value_type)}" if pa.types.is_list(kind) else str(kind)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.exit(main())
