"""What to publish. Cheap to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FORMATS = ("parquet", "duckdb", "scip")


@dataclass(frozen=True)
class PublishRequest:
    """What to publish, where to, and in which format."""

    out: str | Path
    format: str = "parquet"
    """One of `FORMATS`."""
    tables: Sequence[str] | None = None
    """Datasets to write; by default the graph, its files and their errors."""
    determinism: str = "stable"
    """`canonical` sorts all rows, so that the same graph gives the same bytes."""
