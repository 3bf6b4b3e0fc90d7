"""Which files of the last build looked at which modules, present or absent."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import MODULE_LOOKUPS
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.failures import reading
from codeanatomy.store.state import State
from codeanatomy.store.tables import open_arrow


class Lookups:
    """The table of them, read as far as it is asked for."""

    def __init__(self, state: State, build: BuildRecord) -> None:
        self._state = state
        self._table = open_arrow(state, MODULE_LOOKUPS, build.tables[MODULE_LOOKUPS.name].version)

    def of(self, entries: Collection[str] | None = None) -> list[tuple[str, str]]:
        """The files that looked at one of these (at anything), and what they looked at."""
        only = None if entries is None else pc.field("looked_at").isin(pa.array(sorted(entries), pa.string()))
        with reading(self._state.location):
            rows = self._table.to_table(["file_id", "looked_at"], filter=only)
        return list(zip(rows["file_id"].to_pylist(), rows["looked_at"].to_pylist(), strict=True))
