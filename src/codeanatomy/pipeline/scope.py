"""Whose rows a build computes: those of all owners, or of some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import ANSWERS, MODULE_LOOKUPS
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.tables import Replaced

_OF_ANSWERS = (ANSWERS, MODULE_LOOKUPS)
"""Tables that also change where only the trail of an answer did."""


@dataclass(frozen=True)
class Scope:
    """The `rebuilt` owners (all, if None) get new rows, the `gone` ones lose theirs.

    `asked` files, the rebuilt among them, get new answers. The `passing` ones pass something else on. `before` has
    the digests of what all of these have in each table of the last build.
    """

    rebuilt: frozenset[str] | None
    gone: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    passing: frozenset[str] = frozenset()
    before: Mapping[str, Mapping[str, SetDigest]] = field(default_factory=dict)

    @property
    def owners(self) -> frozenset[str] | None:
        """All owners whose rows are replaced in some table; None for all there are."""
        return None if self.rebuilt is None else self.rebuilt | self.gone | self.asked | self.passing

    @property
    def is_empty(self) -> bool:
        """Whether no row is replaced."""
        return self.owners is not None and not self.owners

    def replaced(self, table: Dataset) -> Replaced | None:
        """The owners whose rows in a table are replaced; None for all there are."""
        if self.rebuilt is None:
            return None
        owners = (self.asked if table in _OF_ANSWERS else self.rebuilt) | self.gone
        return Replaced(owners, self.before.get(table.name, {}))

    def is_rebuilt(self, owner: str) -> bool:
        """Whether an owner gets new rows."""
        return self.rebuilt is None or owner in self.rebuilt


ALL = Scope(None)
"""Every owner there is."""
