"""Keep a copy of the graph's nodes up to date from the change feed, as a search index would.

    python examples/change_feed.py path/to/repository nodes.json

A cursor remembers the build that this consumer has seen. Rows are applied first and acknowledged afterwards: a consumer
that dies in between gets the same rows again.
"""

import json
import sys
from pathlib import Path

import codeanatomy as ca

CURSOR = "example-search-index"


def main(repo: str, copy: str) -> None:
    """Apply what changed since the last time."""
    path = Path(copy)
    nodes = json.loads(path.read_text()) if path.exists() else {}
    changes = ca.changes(CURSOR, repo, reset=not path.exists())
    with changes.rows() as tables:
        removed = [row["node_id"] for row in tables["cpg_nodes"]["removed"]]
        added = {row["node_id"]: row["qname"] for row in tables["cpg_nodes"]["added"]}
    for node_id in removed:
        nodes.pop(node_id, None)
    nodes |= added
    path.write_text(json.dumps(nodes))
    changes.acknowledge()
    print(f"{len(added)} added, {len(removed)} removed, {len(nodes)} nodes now")


if __name__ == "__main__":
    main(*sys.argv[1:3])
