"""How much of the order of rows is fixed. The rows themselves are the same in every tier."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.store.layout import OWNER


class Determinism(StrEnum):
    """A tier of determinism; each promises what the one before it does."""

    FAST = "fast"
    """Rows are in any order."""
    STABLE = "stable"
    """Rows of an owner are together, similar ones next to each other: files compress well."""
    CANONICAL = "canonical"
    """Rows are in a total order: equal rows, written in the same place, are equal bytes."""


def row_order(dataset: Dataset, determinism: Determinism) -> tuple[str, ...]:
    """The columns by which the rows of a data file are sorted."""
    if determinism is Determinism.FAST:
        return ()
    known = (OWNER, *dataset.sort_by)
    if determinism is Determinism.STABLE:
        return known
    others = (column.name for column in dataset.columns if not pa.types.is_nested(column.type))
    return tuple(dict.fromkeys((*known, *others)))


def in_order(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """The rows sorted by these columns, nulls first."""
    return rows.sort_by([(name, "ascending", "at_start") for name in order]) if order else rows
