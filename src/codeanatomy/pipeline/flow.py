"""The stage of value flow: what is passed where in the new snapshot, and which slots hold something else than before.

An update starts from the solution of the last build and evaluates again what the changes reach; a full build starts
from nothing. Both come to the same solution, evaluation for evaluation (`resolve/solver.py`). Its rows are owned by the
file that passes something on. A process that stays keeps the solution; another one reads of it what it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import FLOW_EVALUATIONS, FLOW_FILES
from codeanatomy.engine.rows import as_frame
from codeanatomy.impact.evidence import Evidence
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.passed import PassedValues
from codeanatomy.repo.files import Files
from codeanatomy.resolve import Index, flow_after, flow_of
from codeanatomy.resolve.flow_tables import FlowTables, from_tables, to_tables
from codeanatomy.resolve.solution import Solution
from codeanatomy.store.datafiles import CollectedRows, digest_rows
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.failures import damaged
from codeanatomy.store.tables import Replaced, WrittenTable, read_arrow, replace_rows

_SOLUTION = "solution"


@dataclass(frozen=True)
class ValueFlow:
    """Value flow through a snapshot, and through that of the last build if there is one."""

    solution: Solution
    before: Solution | None = None
    changed: frozenset[str] = frozenset()
    """Files that changed, came or went."""

    @property
    def values(self) -> PassedValues:
        """What slots hold."""
        assigned = (each.assigned for each in self.solution.files.values())
        return PassedValues(self.solution.contents, frozenset().union(*assigned))

    def owners(self) -> frozenset[str] | None:
        """The files whose rows change; None for all there are."""
        if self.before is None:
            return None
        return self.changed | self.solution.changed_owners(self.before)


def solve(build: Build, index: Index, evidence: Evidence | None) -> ValueFlow:
    """Follow values through the snapshot; `evidence` is what changed since the last build, if there is one."""
    if evidence is None:
        flow = ValueFlow(flow_of(index))
    else:
        changes = evidence.changes
        changed = frozenset(_ids(changes.before, changes) | _ids(changes.after, changes))
        before = build.state.location.opened.known(FLOW_EVALUATIONS.name, _SOLUTION) or _stored(build)
        flow = ValueFlow(flow_after(before, index, changed, evidence.modules.entries()), before, changed)
    build.state.location.opened.put(FLOW_EVALUATIONS.name, _SOLUTION, flow.solution)
    return flow


def seen_by_others(flow: ValueFlow, changes: SnapshotChanges) -> list[tuple[str, str]]:
    """What is on the trails of answers that read a changed slot, each with the files whose change that comes from."""
    if flow.before is None:
        return []
    paths = sorted({*changes.rebuilt(), *changes.gone()})
    return [(entry, path) for entry in sorted(flow.solution.changed_entries(flow.before)) for path in paths]


def write_flow(build: Build, flow: ValueFlow, before: Mapping[str, Mapping[str, SetDigest]]) -> dict[str, WrittenTable]:
    """Replace the rows of the files that pass something else on; of a full build, all. `before` has their digests."""
    owners = flow.owners()
    written = {}
    for dataset, rows in zip((FLOW_EVALUATIONS, FLOW_FILES), to_tables(flow.solution, owners), strict=True):
        with build.clock.stage(dataset.name) as stage:
            found = CollectedRows(rows.cast(dataset.schema()), digest_rows(as_frame(build.spark, rows), dataset))
            replaced = None if owners is None else Replaced(owners, before.get(dataset.name, {}))
            written[dataset.name] = replace_rows(found, dataset, build.state, build.pin(dataset.name), replaced)
            stage.rows = rows.num_rows
    return written


def _stored(build: Build) -> Solution:
    """The solution of the last build, as its tables have it."""
    order = [("file_id", "ascending"), ("pass_no", "ascending"), ("round", "ascending")]
    evaluations = _rows(build, FLOW_EVALUATIONS)
    return from_tables(FlowTables(evaluations.sort_by(order), _rows(build, FLOW_FILES)))


def _rows(build: Build, table: Dataset) -> pa.Table:
    pin = build.pin(table.name)
    if pin is None:
        raise damaged(build.state.location, f"the last build has no table {table.name}")
    return read_arrow(build.state, table, pin.version)


def _ids(files: Files, changes: SnapshotChanges) -> set[str]:
    """The ids of changed files on one side."""
    return {files[path].file_id for path in (*changes.rebuilt(), *changes.gone()) if path in files}
