"""What a build under way has made, and what an update is about to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import ANSWERS, MODULE_LOOKUPS
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.tables import COLLECTED_OWNERS, TablePin, WrittenTable


@dataclass
class Made:
    """The tables of a build under way, as they are made."""

    pins: dict[str, TablePin] = field(default_factory=dict)
    written: dict[str, bool] = field(default_factory=dict)
    owners: dict[str, Mapping[str, SetDigest]] = field(default_factory=dict)

    def add(self, table: WrittenTable) -> None:
        """Note what was made."""
        self.pins[table.name] = table.pin
        self.written[table.name] = table.written or self.written.get(table.name, False)
        self.owners[table.name] = {**self.owners.get(table.name, {}), **table.owners}

    def version(self, table: Dataset) -> int | None:
        """The version that was made of a table, if one was."""
        pin = self.pins.get(table.name)
        return pin.version if pin else None


@dataclass(frozen=True)
class Scope:
    """What an update rebuilds: `rebuilt` owners get their rows anew, `gone` ones lose theirs.

    `asked` files, the rebuilt among them, have `answers`; `before` is what all of them had in each table.
    """

    rebuilt: frozenset[str]
    gone: frozenset[str]
    asked: frozenset[str]
    answers: pa.Table
    before: Mapping[str, Mapping[str, SetDigest]]

    def __bool__(self) -> bool:
        """Whether there is anything to rebuild."""
        return bool(self.rebuilt | self.gone | self.asked)

    @property
    def is_small(self) -> bool:
        """Whether its rows are better made here than spread over tasks."""
        return len(self.rebuilt) <= COLLECTED_OWNERS

    def is_collected(self, table: Dataset) -> bool:
        """Whether the rows of a table are better written from here; answers are here already."""
        return self.is_small or table in _OF_ANSWERS

    def owners(self, table: Dataset) -> frozenset[str]:
        """Whose rows are replaced."""
        return (self.asked if table in _OF_ANSWERS else self.rebuilt) | self.gone


_OF_ANSWERS = (ANSWERS, MODULE_LOOKUPS)
"""Tables that also change where an answer merely looked at other modules."""
