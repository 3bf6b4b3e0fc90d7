"""An opened build: the same rows for as long as it is held, whatever is built in the meantime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from codeanatomy.catalogue.runs import RUN_DATASETS
from codeanatomy.catalogue.tables import DOCUMENTS, FACTS, FLOW_TABLES, STORED_TABLES
from codeanatomy.query.sql import NO_LIMITS, Limits, Opened, Parameters, Session
from codeanatomy.store.builds import BuildRecord, check_whole, current_build, find_build
from codeanatomy.store.bundles import read_bundle_rows
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import State, open_state
from codeanatomy.store.tables import open_arrow, read_table, verified_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from codeanatomy.query.build_diff import BuildDiff
    from codeanatomy.query.lookup import LookupResult

_RUN_DATASETS = {dataset.name: dataset for dataset in RUN_DATASETS}
_STORED = {table.name: table for table in (FACTS, DOCUMENTS, *FLOW_TABLES, *STORED_TABLES)}


@dataclass(frozen=True)
class Graph:
    """One build of one state, opened for reading."""

    state: State
    build: BuildRecord
    root: Path | None = None  # of the repository, for its source lines

    def sql(self, query: str, parameters: Parameters | None = None) -> pa.Table:
        """Answer one SELECT over the views of the build; `parameters` has the values of `$name` in it."""
        return self.read(query, parameters=parameters).read_all()

    def read(
        self, query: str, limits: Limits = NO_LIMITS, parameters: Parameters | None = None
    ) -> pa.RecordBatchReader:
        """Answer one SELECT, batch by batch."""
        return self.session([query], limits).read(query, parameters)

    def session(self, queries: Sequence[str], limits: Limits = NO_LIMITS) -> Session:
        """Open the tables that some SELECTs read, once for all of them."""
        return Session(self._open_table, queries, limits)

    def callers(self, name: str) -> LookupResult:
        """Who calls `name`."""
        return self._look_up("callers", name)

    def callees(self, name: str) -> LookupResult:
        """What `name` calls."""
        return self._look_up("callees", name)

    def refs(self, name: str) -> LookupResult:
        """Where `name` is used."""
        return self._look_up("refs", name)

    def definition(self, name: str) -> LookupResult:
        """Where `name` is defined."""
        return self._look_up("definition", name)

    def diff(self, before: str) -> BuildDiff:
        """What changed in the graph since the build whose id starts with `before`."""
        from codeanatomy.query.build_diff import compare_builds  # noqa: PLC0415 - no other method needs it

        return compare_builds(self.state, find_build(self.state, before), self.build)

    def _look_up(self, lookup: str, name: str) -> LookupResult:
        from codeanatomy.query.lookup import look_up  # noqa: PLC0415 - it imports this module

        return look_up(self, lookup, name, self.root)

    def spark(self, session: SparkSession) -> Mapping[str, DataFrame]:
        """The stored tables of the build as DataFrames of `session`."""
        return {
            name: read_table(session, self.state, table, self.build.tables[name].version)
            for name, table in _STORED.items()
            if name in self.build.tables
        }

    def _open_table(self, name: str) -> Opened:
        if name in _RUN_DATASETS:
            return read_bundle_rows(self.state, self.build.build_id, _RUN_DATASETS[name])
        if name not in self.build.tables:  # a build without an index has no documents
            return pa.Table.from_batches([], _STORED[name].schema())
        version = self.build.tables[name].version
        files = verified_files(self.state, name, version) if self.state.location.is_local else []
        return files or open_arrow(self.state, _STORED[name], version)


def open_graph(
    repo: str | Path = ".",
    *,
    state: str | None = None,
    build: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Graph:
    """Open the last build of a repository, or the one whose id starts with `build`."""
    opened = open_state(locate_state(repo, state, storage_options or {}))
    chosen = find_build(opened, build) if build else current_build(opened)
    check_whole(opened, chosen)
    return Graph(opened, chosen, Path(repo))
