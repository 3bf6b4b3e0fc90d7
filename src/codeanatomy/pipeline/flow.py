"""The stage of value flow: what is passed where in the new snapshot, and which slots hold something else than before.

The solution is that of all files of the snapshot. A process that stays keeps it, so that an update evaluates again only
what the changes reach; a process that has none solves from nothing, which gives the same. What slots hold is stored as
the table `passed_values`, with which the next build compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codeanatomy.catalogue.tables import PASSED_VALUES
from codeanatomy.engine.rows import as_frame
from codeanatomy.impact.evidence import Evidence
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.passed import PassedValues
from codeanatomy.repo.files import Files
from codeanatomy.resolve import Index, flow_of
from codeanatomy.resolve.passed import Held, changed_slots, entries_of, held_in, held_in_rows, rows_of
from codeanatomy.resolve.slots import file_of
from codeanatomy.resolve.solver import PassKey, Solution, stale_passes
from codeanatomy.store.datafiles import CollectedRows, digest_rows
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.failures import damaged
from codeanatomy.store.tables import Replaced, WrittenTable, read_arrow, replace_rows

_SOLUTION = "solution"


@dataclass(frozen=True)
class ValueFlow:
    """What value flow found in a snapshot; `changed` are the slots that hold something else than in the last build."""

    values: PassedValues
    held: Held = field(default_factory=dict)
    changed: frozenset[str] = frozenset()

    def owners(self) -> frozenset[str]:
        """The files whose rows of `passed_values` change."""
        return frozenset(map(file_of, self.changed))


def solve(build: Build, index: Index, evidence: Evidence | None) -> ValueFlow:
    """Follow values through the snapshot; `evidence` is what changed since the last build, if there is one."""
    opened = build.state.location.opened
    previous: Solution[PassKey] | None = opened.known(PASSED_VALUES.name, _SOLUTION) if evidence else None
    if previous is None or evidence is None:
        solution = flow_of(index)
    else:
        changed = {*_ids(evidence.changes.before, evidence), *_ids(evidence.changes.after, evidence)}
        solution = flow_of(index, previous, stale_passes(previous, changed, evidence.modules.entries()))
    opened.put(PASSED_VALUES.name, _SOLUTION, solution)
    held = held_in(solution.contents)
    before = _held_before(build) if evidence else {}
    return ValueFlow(PassedValues.of(solution.contents), held, frozenset(changed_slots(before, held)))


def seen_by_others(flow: ValueFlow, changes: SnapshotChanges) -> list[tuple[str, str]]:
    """What is on the trails of answers that read a changed slot, each with the files whose change that comes from."""
    sides = (changes.before, changes.after)
    module_of = {file.file_id: file.module.module_fqn for side in sides for file in side.values()}
    paths = sorted({*changes.rebuilt(), *changes.gone()})
    return [(entry, path) for entry in sorted(set(entries_of(flow.changed, module_of))) for path in paths]


def write_passed_values(build: Build, flow: ValueFlow, before: Mapping[str, SetDigest]) -> WrittenTable:
    """Replace the rows of the files whose slots hold something else; of a full build, all."""
    owners = None if build.is_full else flow.owners()
    rows = rows_of(flow.held, owners)
    found = CollectedRows(rows, digest_rows(as_frame(build.spark, rows), PASSED_VALUES))
    replaced = None if owners is None else Replaced(owners, before)
    return replace_rows(found, PASSED_VALUES, build.state, build.pin(PASSED_VALUES.name), replaced)


def _held_before(build: Build) -> Held:
    """What slots held in the last build."""
    pin = build.pin(PASSED_VALUES.name)
    if pin is None:
        raise damaged(build.state.location, f"the last build has no table {PASSED_VALUES.name}")
    return held_in_rows(read_arrow(build.state, PASSED_VALUES, pin.version))


def _ids(files: Files, evidence: Evidence) -> set[str]:
    """The ids of changed files on one side."""
    changes = evidence.changes
    return {files[path].file_id for path in (*changes.rebuilt(), *changes.gone()) if path in files}
