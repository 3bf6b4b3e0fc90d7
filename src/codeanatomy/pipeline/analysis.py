"""Which files an update must rebuild, and why. Reads the last build and the new facts; writes nothing.

    1. Files that changed are rebuilt. What they hold for others is compared with what they held.
    2. A question is asked again if the trail of its answer meets a module that came, went or holds something else.
    3. A file is rebuilt if one of its answers came out otherwise, or its semantic document did.

Whatever is not asked again cannot have changed: an answer depends on the modules of its trail and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import table_of
from codeanatomy.catalogue.tables import ANSWERS, REPO_FILES, SCAN_FILES
from codeanatomy.impact.exports import EXPORT_DATASETS, ChangedExport, changed_exports
from codeanatomy.impact.reasons import (
    ROLE_DATASETS,
    ChangedAnswer,
    ImpactedFile,
    Names,
    ReasonKind,
    answers_by_question,
    changed_answers,
    roles_of,
)
from codeanatomy.impact.snapshots import (
    KnownFile,
    ModuleChanges,
    Snapshot,
    SnapshotChanges,
)
from codeanatomy.pipeline.facts import KnownFacts
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.lookups import Lookups
from codeanatomy.pipeline.reindexing import Documents
from codeanatomy.pipeline.request import Strategy
from codeanatomy.repo.modules import module_names
from codeanatomy.resolve import Asked
from codeanatomy.resolve.index import Index
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow

Ask = Callable[[Asked], pa.Table]
"""Answers questions."""


@dataclass(frozen=True)
class Reconsidered:
    """A file that looked at a module that changed; `impacted` if one of its answers came out otherwise."""

    path: str
    looked_at: str
    caused_by: str
    impacted: bool


@dataclass(frozen=True)
class Impact:
    """What an update has to do, and why."""

    changes: SnapshotChanges
    files: tuple[ImpactedFile, ...]
    reconsidered: tuple[Reconsidered, ...] = ()
    exports: tuple[ChangedExport, ...] = ()
    answers_changed: tuple[ChangedAnswer, ...] = ()
    answers: pa.Table = field(default_factory=ANSWERS.schema().empty_table)
    """All answers of the files of which one came out otherwise, if only for what it looked at."""
    asked: frozenset[str] = frozenset()
    """Ids of those files, and of the rebuilt."""
    depth: int = 0
    """How many files in a row a change was passed on through."""

    def rebuilt(self) -> frozenset[str]:
        """Ids of the files whose rows are made anew."""
        return frozenset(file.file_id for file in self.files if file.path in self.changes.after)

    def gone(self) -> frozenset[str]:
        """Ids of the files that have no rows any more."""
        return frozenset(self.changes.before[path].file_id for path in self.changes.gone()) - self.rebuilt()


def snapshot_of(inputs: BuildInputs) -> Snapshot:
    """The files of the tree as they are now."""
    files = inputs.snapshot.files
    modules = module_names([file.path for file in files], inputs.roots)
    return {
        file.path: KnownFile(
            file.path,
            file.file_id,
            file.content_id,
            _state(file.content_id, file.status, file.size, file.detail),
            module,
        )
        for file, module in zip(files, modules, strict=True)
    }


def snapshot_at(state: State, build: BuildRecord, roots: Sequence[str]) -> Snapshot:
    """The files of a build."""
    columns = ["path", "file_id", "content_id", "status", "size", "detail"]
    rows = read_arrow(state, REPO_FILES, build.tables[REPO_FILES.name].version, columns)
    found = sorted(zip(*(rows[name].to_pylist() for name in columns), strict=True), key=itemgetter(0))
    modules = module_names([path for path, *_ in found], roots)
    return {
        path: KnownFile(path, file_id, content_id, _state(content_id, status, size, detail), module)
        for (path, file_id, content_id, status, size, detail), module in zip(found, modules, strict=True)
    }


def _state(content_id: str | None, status: str, size: int, detail: str | None) -> str:
    """The content of a file; of one that was not read, all that is known."""
    return content_id or f"{status} {size} {detail or ''}"


def find_impact(
    state: State,
    last: BuildRecord,
    changes: SnapshotChanges,
    modules: ModuleChanges,
    exports: tuple[ChangedExport, ...],
    lookups: Lookups,
    facts: KnownFacts,
    index: Index,
    ask: Ask,
    strategy: Strategy,
    documents: Documents | None,
) -> Impact:
    """What the changes alter; `index` is of the new snapshot."""
    reached = _Reach(changes, lookups)
    reconsidered = reached.meeting(modules) if modules else {}
    depth = int(bool(reconsidered))
    if strategy is Strategy.IMPORT_CLOSURE:
        further, depth = reached.closure(modules, reconsidered)
        reconsidered |= further
    by_id = {file.file_id: file for file in changes.after.values()}
    own = {file.path: file for file in _changed_files(changes)}
    otherwise = {each for each in (documents.changed if documents else ()) if each in by_id} - {
        file.file_id for file in own.values()
    }
    rebuilt = {changes.after[path].file_id for path in changes.rebuilt()}
    also = {each for each in (documents.replaced if documents else ()) if each in by_id}
    last_answers = last.tables[ANSWERS.name].version
    stored = read_arrow(state, ANSWERS, last_answers, owners=(reconsidered.keys() | also) - rebuilt)
    numbers = _numbers_meeting(stored, modules.entries())
    some = {each: numbers.get(each, set()) for each in reconsidered.keys() - (rebuilt | also)}
    answers = ask({**some, **dict.fromkeys(rebuilt | also)})
    is_kept = _is_other_question(stored, some)
    before, after = stored.filter(pc.invert(is_kept)), answers.filter(~pc.field("file_id").isin(listed(rebuilt)))
    names = Names(lambda: Index(module_table(changes.before), facts.names), index)
    found = [
        each
        for each in _answers_that_changed(before, after, by_id, facts, names, modules)
        if each.ask_no >= 0 or changes.after[each.path].file_id not in otherwise  # a new document numbers anew
    ]
    impacted: dict[str, ImpactedFile] = {}
    for each in found:
        file_id = changes.after[each.path].file_id
        reason = ImpactedFile(each.path, file_id, each.reason_kind, each.reason_ref, each.caused_by)
        impacted.setdefault(each.path, reason)
    for file_id in otherwise:
        module, cause = documents.why[file_id] if documents and file_id in documents.why else (None, None)
        path = by_id[file_id].path
        impacted.setdefault(path, ImpactedFile(path, file_id, ReasonKind.SEMANTIC_DOCUMENT, module, cause))
    if strategy is Strategy.IMPORT_CLOSURE:
        for file_id, (entry, cause) in reconsidered.items():
            path = by_id[file_id].path
            ref = entry.removeprefix("?")
            impacted.setdefault(path, ImpactedFile(path, file_id, ReasonKind.IMPORT_CLOSURE, ref, cause))
    asked = rebuilt | also | _owners_of_differences(before, after) | {each.file_id for each in impacted.values()}
    return Impact(
        changes,
        tuple(sorted((*own.values(), *impacted.values()), key=lambda file: file.path)),
        tuple(
            Reconsidered(by_id[each].path, entry, cause, by_id[each].path in impacted)
            for each, (entry, cause) in sorted(reconsidered.items(), key=lambda item: by_id[item[0]].path)
        ),
        exports,
        tuple(found),
        pa.concat_tables([stored.filter(is_kept), answers]).filter(pc.field("file_id").isin(listed(asked))),
        frozenset(asked),
        max(depth, documents.depth if documents else 0),
    )


def _changed_files(changes: SnapshotChanges) -> Iterable[ImpactedFile]:
    """The files that are rebuilt for what they are, and those that are gone."""
    before, after, files = changes.before, changes.after, changes.files
    for path in files.added:
        yield ImpactedFile(path, after[path].file_id, ReasonKind.ADDED)
    for path in files.modified:
        yield ImpactedFile(path, after[path].file_id, ReasonKind.CONTENT_CHANGED)
    for path, old in files.renamed.items():
        yield ImpactedFile(path, after[path].file_id, ReasonKind.RENAMED, old)
    for path in files.deleted:
        yield ImpactedFile(path, before[path].file_id, ReasonKind.DELETED)
    came_or_went = sorted({*files.added, *files.renamed, *changes.gone()})
    for path in changes.moved_modules:
        above = (each for each in came_or_went if path.startswith(f"{each.rpartition('/')[0]}/"))
        name = after[path].module.module_fqn
        yield ImpactedFile(path, after[path].file_id, ReasonKind.MODULE_RENAMED, name, next(above, None))


class _Reach:
    """Which unchanged files looked at modules that changed."""

    def __init__(self, changes: SnapshotChanges, lookups: Lookups) -> None:
        self._lookups = lookups
        changed = {*changes.rebuilt(), *changes.gone()}
        left_out = {changes.before[path].file_id for path in changed if path in changes.before}
        self._modules = {
            file.file_id: file.module.module_fqn for file in changes.after.values() if file.file_id not in left_out
        }

    def meeting(self, modules: ModuleChanges) -> dict[str, tuple[str, str]]:
        """Those that looked at one of `modules`: what they looked at first, and whose change that is."""
        found: dict[str, tuple[str, str]] = {}
        for file_id, entry in self._lookups.of(modules.entries()):
            if file_id in self._modules:
                seen = (entry, min(modules.causes([entry])))
                found[file_id] = min(seen, found.get(file_id, seen))
        return found

    def closure(
        self, modules: ModuleChanges, reached: Mapping[str, tuple[str, str]]
    ) -> tuple[dict[str, tuple[str, str]], int]:
        """Those that look at a module that looks at … one of `modules`, and the longest such row."""
        lookers: dict[str, list[str]] = {}
        for file_id, entry in self._lookups.of():
            if file_id in self._modules:
                lookers.setdefault(entry.removeprefix("?"), []).append(file_id)
        causes = {entry.removeprefix("?"): min(modules.causes([entry])) for entry in modules.entries()}
        found: dict[str, tuple[str, str]] = {}
        level, depth = set(causes), 0
        while level:
            following = {file_id: module for module in sorted(level) for file_id in lookers.get(module, ())}
            new = {file_id: module for file_id, module in following.items() if file_id not in found}
            found |= {file_id: (module, causes[module]) for file_id, module in new.items()}
            level = {self._modules[file_id] for file_id in new} - causes.keys()
            for file_id, module in new.items():
                causes.setdefault(self._modules[file_id], causes[module])
            depth += bool(new)
        return {file_id: seen for file_id, seen in found.items() if file_id not in reached}, depth


def _numbers_meeting(answers: pa.Table, entries: Collection[str]) -> dict[str, set[int]]:
    """The questions whose trail meets one of `entries`, by file."""
    trails = answers["trail"].combine_chunks()
    meets = pc.is_in(pc.list_flatten(trails), pa.array(entries, pa.string()))
    rows = answers.select(["file_id", "ask_no"]).take(pc.unique(pc.list_parent_indices(trails).filter(meets)))
    found: dict[str, set[int]] = {}
    for file_id, number in zip(rows["file_id"].to_pylist(), rows["ask_no"].to_pylist(), strict=True):
        found.setdefault(file_id, set()).add(number)
    return found


def _is_other_question(answers: pa.Table, some: Mapping[str, Collection[int]]) -> pa.ChunkedArray:
    """Whether each row belongs to a file of `some`, and to none of these questions of it."""
    questions = pc.binary_join_element_wise(answers["file_id"], pc.cast(answers["ask_no"], pa.string()), " ")
    asked = pa.array([f"{file_id} {number}" for file_id, numbers in some.items() for number in numbers], pa.string())
    return pc.and_(pc.is_in(answers["file_id"], listed(some)), pc.invert(pc.is_in(questions, asked)))


def _owners_of_differences(before: pa.Table, after: pa.Table) -> set[str]:
    """The files of rows that are not the same on both sides."""
    columns = ("file_id", "ask_no", "outcome", "trail")
    sides = (
        {(*row, tuple(trail or ())) for *row, trail in zip(*(side[name].to_pylist() for name in columns), strict=True)}
        for side in (before, after)
    )
    return {file_id for file_id, *_ in set.symmetric_difference(*sides)}


def listed(file_ids: Iterable[str]) -> pa.Array:
    """Ids to look rows up by."""
    return pa.array(sorted(file_ids), pa.string())


def _answers_that_changed(
    before: pa.Table,
    after: pa.Table,
    by_id: Mapping[str, KnownFile],
    facts: KnownFacts,
    names: Names,
    modules: ModuleChanges,
) -> Iterable[ChangedAnswer]:
    """The questions that are answered otherwise than before, file by file."""
    differing = {file_id for file_id, *_ in _outcomes(before) ^ _outcomes(after)}
    is_one = pc.field("file_id").isin(listed(differing))
    old, new = answers_by_question(before.filter(is_one)), answers_by_question(after.filter(is_one))
    contents = {content for each in differing if (content := by_id[each].content_id)}
    roles = {content: roles_of(row) for content, row in facts.by_content(contents, ROLE_DATASETS).items()}
    for file_id in sorted(differing, key=lambda each: by_id[each].path):
        file = by_id[file_id]
        asked_for = roles.get(file.content_id or "", {})
        yield from changed_answers(file.path, old.get(file_id, {}), new.get(file_id, {}), asked_for, names, modules)


def _outcomes(rows: pa.Table) -> set[tuple[str, int, str]]:
    """What names the answers of each question that has any."""
    known = rows.select(["file_id", "ask_no", "outcome"]).filter(pc.not_equal(rows["status"], "unknown"))
    return set(zip(*(column.to_pylist() for column in known.columns), strict=True))


def exports_that_changed(changes: SnapshotChanges, facts: KnownFacts) -> Iterable[ChangedExport]:
    """The names that changed files offer otherwise than before."""
    before, after = changes.before, changes.after
    paths = sorted({*changes.rebuilt(), *changes.gone()})
    contents = {side[path].content_id for side in (before, after) for path in paths if path in side}
    rows = facts.by_content({each for each in contents if each}, EXPORT_DATASETS)
    for path in paths:
        sides: list[Mapping[str, Any] | None] = [
            rows.get(side[path].content_id or "") if path in side else None for side in (before, after)
        ]
        module = (after.get(path) or before[path]).module.module_fqn
        yield from changed_exports(path, module, *sides)


def module_table(files: Snapshot) -> pa.Table:
    """A snapshot in the form an index is built from."""
    columns = ("file_id", "path", "content_id", "module_fqn", "is_init", "is_stub")
    return table_of(
        pa.schema([SCAN_FILES.schema().field(name) for name in columns]),
        (
            (file.file_id, path, file.content_id, file.module.module_fqn, file.module.is_init, file.module.is_stub)
            for path, file in files.items()
        ),
    )
