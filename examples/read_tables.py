"""Read the tables of a build with DuckDB and with Polars, without CodeAnatomy's own reader.

    python examples/read_tables.py path/to/repository

A build pins one version of each table; reading the pinned version gives the same rows whatever is built meanwhile.
"""

import sys
from pathlib import Path

import duckdb
import polars
from deltalake import DeltaTable

import codeanatomy as ca


def main(repo: str) -> None:
    """Print the largest functions and the most called ones."""
    record = ca.builds(repo)[0]
    place = Path(repo, ".codeanatomy", "tables")
    pinned = {
        name: DeltaTable(place / name, version=record.tables[name].version) for name in ("cpg_nodes", "cpg_edges")
    }

    with duckdb.connect() as connection:
        for name, table in pinned.items():
            connection.register(name, table.to_pyarrow_dataset())
        print("largest functions (DuckDB)")
        largest = """
            SELECT qname, line_end - line_start + 1 AS lines
            FROM cpg_nodes
            WHERE node_kind = 'DEF' AND subkind IN ('function', 'method')
            ORDER BY lines DESC, qname
            LIMIT 5
        """
        for qname, lines in connection.sql(largest).fetchall():
            print(f"  {lines:5} {qname}")

    nodes, edges = (polars.scan_delta(pinned[name]) for name in ("cpg_nodes", "cpg_edges"))
    calls = edges.filter(polars.col("edge_kind") == "CALLS").group_by("dst_id").len("calls")
    most_called = (
        calls.join(nodes.select("node_id", "qname"), left_on="dst_id", right_on="node_id")
        .sort("calls", "qname", descending=[True, False])
        .head(5)
        .collect()
    )
    print("most called (Polars)")
    for row in most_called.iter_rows(named=True):
        print(f"  {row['calls']:5} {row['qname']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
