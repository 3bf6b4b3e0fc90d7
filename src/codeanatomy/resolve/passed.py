"""What slots hold, as rows: a table that any tool reads, and that two builds are compared by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from codeanatomy.catalogue.tables import PASSED_VALUES
from codeanatomy.resolve.slots import Contents, entry_of, file_of, is_attribute
from codeanatomy.resolve.values import Value

Held = Mapping[str, frozenset[tuple[str, int]]]
"""What each slot holds: values as text, and how they came there."""


def held_in(contents: Contents) -> Held:
    """What slots hold, with values as text."""
    texts: dict[Value, str] = {}
    return {
        slot: frozenset(
            (texts.get(value) or texts.setdefault(value, text_of(value)), how) for value, how in found.items()
        )
        for slot, found in contents.items()
        if found
    }


def held_in_rows(rows: pa.Table) -> Held:
    """The same of rows that were stored."""
    held: dict[str, set[tuple[str, int]]] = {}
    columns = (rows[name].to_pylist() for name in ("slot", "value", "how"))
    for slot, value, how in zip(*columns, strict=True):
        held.setdefault(slot, set()).add((value, how))
    return {slot: frozenset(values) for slot, values in held.items()}


def rows_of(held: Held, owners: frozenset[str] | None = None) -> pa.Table:
    """Rows of `passed_values`: those of these owners, or all."""
    return PASSED_VALUES.table(
        (file_of(slot), slot, value, how)
        for slot in sorted(held)
        if owners is None or file_of(slot) in owners
        for value, how in sorted(held[slot])
    )


def changed_slots(before: Held, after: Held) -> set[str]:
    """The slots that hold something else."""
    return {slot for slot in before.keys() | after.keys() if before.get(slot) != after.get(slot)}


def entries_of(slots: Iterable[str], module_of: Mapping[str, str]) -> Iterator[str]:
    """The entries of the trails of answers that read one of these slots.

    Attributes have no entries of their own: an answer names every module in which it looked for one.
    """
    for slot in slots:
        if not is_attribute(slot):
            yield entry_of(slot)
        elif (module := module_of.get(file_of(slot))) is not None:
            yield module


def text_of(value: Value) -> str:
    """A value as text: its kind, and what names it."""
    return repr(value)
