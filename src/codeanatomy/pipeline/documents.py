"""The semantic documents as a build will have them: those of a stored version, with some replaced by new ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.impact.affected import id_array
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow, read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Documents:
    """The documents of `version`, but for those of the `replaced` owners, which are `rows`."""

    state: State
    version: int
    replaced: frozenset[str] = frozenset()
    rows: pa.Table = field(default_factory=DOCUMENTS.schema().empty_table)

    @property
    def key(self) -> tuple[int, tuple[str, ...]]:
        """Equal keys mean equal documents."""
        return self.version, tuple(sorted(self.replaced))

    def read(self, columns: Sequence[str], owners: Collection[str] | None = None) -> pa.Table:
        """Some columns of the documents of these owners, or of all."""
        names = list(columns)
        if owners is None:
            is_kept = ~pc.field("file_id").isin(id_array(self.replaced)) if self.replaced else None
            stored = read_arrow(self.state, DOCUMENTS, self.version, names, only=is_kept)
            return pa.concat_tables([stored, self.rows.select(names)])
        stored = read_arrow(self.state, DOCUMENTS, self.version, names, owners=set(owners) - self.replaced)
        new = self.rows.filter(pc.field("file_id").isin(id_array(owners)))
        return pa.concat_tables([stored, new.select(names)])

    def frame(self, spark: SparkSession, columns: Sequence[str], owners: Collection[str] | None = None) -> DataFrame:
        """The same on workers; only of documents that are stored."""
        if self.replaced:
            raise AssertionError("documents that workers read are stored")
        narrow = replace(DOCUMENTS, columns=tuple(DOCUMENTS.column(name) for name in columns))
        return read_table(spark, self.state, narrow, self.version, owners=owners)
