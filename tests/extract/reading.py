"""Facts of one source, in the few columns a test is about."""

from __future__ import annotations

from typing import Any

from codeanatomy.extract import extract_batch


def facts_of(source: str | bytes) -> dict[str, Any]:
    """The one row of facts of `source`."""
    content = source if isinstance(source, bytes) else source.encode()
    batch = extract_batch(["?"], [content])
    batch.validate(full=True)
    return batch.to_pylist()[0]


def rows(source: str | bytes, dataset: str, *columns: str) -> list[Any]:
    """Some columns of a dataset; a single one without the tuple around it."""
    found = facts_of(source)[dataset]
    if len(columns) == 1:
        return [row[columns[0]] for row in found]
    return [tuple(row[column] for column in columns) for row in found]


def spans(source: str | bytes, dataset: str, prefix: str = "") -> list[bytes]:
    """The bytes under each row's span."""
    content = source if isinstance(source, bytes) else source.encode()
    return [
        content[start:end]
        for start, end in rows(content, dataset, f"{prefix}bstart", f"{prefix}bend")
        if start is not None
    ]
