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
    """Order of rows: `fast` (any), `stable` (that of the build), or `canonical`: total, the same bytes every time."""
    props_json: bool = False
    """Whether to write `cpg_props_json` as well."""
    diagnostics: bool = False
    """Whether to write the datasets of the run bundle as well: what the build did, and why."""
