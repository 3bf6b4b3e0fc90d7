"""Which files a build must rebuild, and why: pure functions from evidence to an `Impact`.

Motivation
    A file's rows are a function of its facts, the answers to its questions, its semantic document, and the rules. So a
    file must be rebuilt exactly when one of these changed.

Terms
    dependent      an unchanged file with an answer that looked at a changed module.
    trail          the modules an answer looked at, present or absent. An answer depends on those and on nothing else.
    outcome        a name for all candidates of a question: equal outcomes mean equal answers.

Steps
    1. Changed files are rebuilt. What they define for others is compared with what they defined (`snapshots`).
    2. Of the dependents, the questions whose trail contains a changed module are asked again (`questions_to_ask`).
    3. A file is rebuilt if an outcome changed, or what its semantic document says (`find_impact`).

Whatever is not asked again cannot have changed.
Tested by the step cases, random edits and kill switches of tests/incremental, and by bench/splices.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import ANSWERS
from codeanatomy.impact.dependents import Dependents
from codeanatomy.impact.documents import DocumentChanges
from codeanatomy.impact.evidence import Evidence, Facts
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
from codeanatomy.impact.snapshots import SnapshotChanges
from codeanatomy.resolve import Asked


@dataclass(frozen=True)
class Reconsidered:
    """A file that looked at a module that changed; `impacted` if one of its answers changed."""

    path: str
    looked_at: str
    caused_by: str
    impacted: bool


@dataclass(frozen=True)
class Impact:
    """The files that a build rebuilds, and why."""

    changes: SnapshotChanges
    files: tuple[ImpactedFile, ...]
    reconsidered: tuple[Reconsidered, ...] = ()
    exports: tuple[ChangedExport, ...] = ()
    answers_changed: tuple[ChangedAnswer, ...] = ()
    answers: pa.Table = field(default_factory=ANSWERS.schema().empty_table)
    """All answers of the files in `asked`."""
    asked: frozenset[str] = frozenset()
    """Ids of the files with an answer that changed, if only in its trail, and of the rebuilt files."""
    depth: int = 0
    """The length of the longest chain of files through which a change propagated."""

    def rebuilt(self) -> frozenset[str]:
        """Ids of the files whose rows are computed."""
        return frozenset(file.file_id for file in self.files if file.path in self.changes.after)

    def gone(self) -> frozenset[str]:
        """Ids of the files that have no rows any more."""
        return frozenset(self.changes.before[path].file_id for path in self.changes.gone()) - self.rebuilt()


def impact_of_everything(changes: SnapshotChanges, kind: ReasonKind, ref: str) -> Impact:
    """The impact of a full build: every file, for the one reason, and the files that are gone."""
    files = [ImpactedFile(path, file.file_id, kind, ref) for path, file in changes.after.items()]
    files += [ImpactedFile(path, changes.before[path].file_id, ReasonKind.DELETED) for path in changes.files.deleted]
    return Impact(changes, tuple(sorted(files, key=lambda file: file.path)))


@dataclass(frozen=True)
class AnswersToCompare:
    """The questions that may have other answers now, by file id; the stored answers of those files; the new ones."""

    questions: Asked
    stored: pa.Table
    new: pa.Table = field(default_factory=ANSWERS.schema().empty_table)


def owners_to_compare(evidence: Evidence, dependents: Dependents, documents: DocumentChanges) -> set[str]:
    """Ids of the files whose stored answers are compared with new ones."""
    return (dependents.files.keys() | _in_snapshot(documents.replaced, evidence)) - _changed_ids(evidence.changes)


def questions_to_ask(
    evidence: Evidence, dependents: Dependents, documents: DocumentChanges, stored: pa.Table
) -> AnswersToCompare:
    """All questions of changed files and of files with another document; of dependents, those that met a change."""
    every = _changed_ids(evidence.changes) | _in_snapshot(documents.replaced, evidence)
    met = _questions_meeting(stored, evidence.modules.entries())
    some = {each: met.get(each, set()) for each in dependents.files.keys() - every}
    return AnswersToCompare({**some, **dict.fromkeys(every)}, stored)


def find_impact(
    evidence: Evidence, dependents: Dependents, documents: DocumentChanges, compared: AnswersToCompare, names: Names
) -> Impact:
    """Tell from the answers, and from the documents, which files are rebuilt and why."""
    changes = evidence.changes
    by_id = {file.file_id: file for file in changes.after.values()}
    own = tuple(_changed_files(changes))
    changed_ids = _changed_ids(changes)
    is_kept = _is_other_question(compared)
    before = compared.stored.filter(pc.invert(is_kept))
    after = compared.new.filter(~pc.field("file_id").isin(id_array(changed_ids)))
    redescribed = _in_snapshot(documents.changed, evidence) - {file.file_id for file in own}
    answers_changed = tuple(
        each
        for each in _changed_answers(before, after, evidence, names)
        if each.ask_no >= 0 or changes.after[each.path].file_id not in redescribed  # a new document numbers differently
    )
    impacted: dict[str, ImpactedFile] = {}
    for each in answers_changed:
        file_id = changes.after[each.path].file_id
        reason = ImpactedFile(each.path, file_id, each.reason_kind, each.reason_ref, each.caused_by)
        impacted.setdefault(each.path, reason)
    for file_id in redescribed:
        module, cause = documents.why.get(file_id, (None, None))
        path = by_id[file_id].path
        impacted.setdefault(path, ImpactedFile(path, file_id, ReasonKind.SEMANTIC_DOCUMENT, module, cause))
    for file_id, (entry, cause) in dependents.files.items() if dependents.are_rebuilt else ():
        path, ref = by_id[file_id].path, entry.removeprefix("?")
        impacted.setdefault(path, ImpactedFile(path, file_id, ReasonKind.IMPORT_CLOSURE, ref, cause))
    asked = changed_ids | _in_snapshot(documents.replaced, evidence) | _owners_of_differences(before, after)
    asked |= {each.file_id for each in impacted.values()}
    answers = pa.concat_tables([compared.stored.filter(is_kept), compared.new])
    return Impact(
        changes=changes,
        files=tuple(sorted((*own, *impacted.values()), key=lambda file: file.path)),
        reconsidered=tuple(
            Reconsidered(by_id[each].path, entry, cause, by_id[each].path in impacted)
            for each, (entry, cause) in sorted(dependents.files.items(), key=lambda item: by_id[item[0]].path)
        ),
        exports=evidence.exports,
        answers_changed=answers_changed,
        answers=answers.filter(pc.field("file_id").isin(id_array(asked))),
        asked=frozenset(asked),
        depth=max(dependents.depth, documents.depth),
    )


def _changed_ids(changes: SnapshotChanges) -> set[str]:
    return {changes.after[path].file_id for path in changes.rebuilt()}


def _in_snapshot(file_ids: Iterable[str], evidence: Evidence) -> set[str]:
    return {file.file_id for file in evidence.changes.after.values()} & set(file_ids)


def _changed_files(changes: SnapshotChanges) -> Iterator[ImpactedFile]:
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


def _questions_meeting(answers: pa.Table, entries: Collection[str]) -> dict[str, set[int]]:
    """The questions whose trail contains one of `entries`, by file."""
    trails = answers["trail"].combine_chunks()
    meets = pc.is_in(pc.list_flatten(trails), pa.array(entries, pa.string()))
    rows = answers.select(["file_id", "ask_no"]).take(pc.unique(pc.list_parent_indices(trails).filter(meets)))
    found: dict[str, set[int]] = {}
    for file_id, number in zip(rows["file_id"].to_pylist(), rows["ask_no"].to_pylist(), strict=True):
        found.setdefault(file_id, set()).add(number)
    return found


def _is_other_question(compared: AnswersToCompare) -> pa.ChunkedArray:
    """Whether each stored row belongs to a question that is not asked again, of a file of which others are."""
    stored = compared.stored
    partly = {file_id: numbers for file_id, numbers in compared.questions.items() if numbers is not None}
    questions = pc.binary_join_element_wise(stored["file_id"], pc.cast(stored["ask_no"], pa.string()), " ")
    asked = pa.array([f"{file_id} {number}" for file_id, numbers in partly.items() for number in numbers], pa.string())
    return pc.and_(pc.is_in(stored["file_id"], id_array(partly)), pc.invert(pc.is_in(questions, asked)))


def _owners_of_differences(before: pa.Table, after: pa.Table) -> set[str]:
    """The files of rows that are not the same on both sides."""
    columns = ("file_id", "ask_no", "outcome", "trail")
    sides = (
        {(*row, tuple(trail or ())) for *row, trail in zip(*(side[name].to_pylist() for name in columns), strict=True)}
        for side in (before, after)
    )
    return {file_id for file_id, *_ in set.symmetric_difference(*sides)}


def id_array(file_ids: Iterable[str]) -> pa.Array:
    """Ids to filter rows by."""
    return pa.array(sorted(file_ids), pa.string())


def _changed_answers(before: pa.Table, after: pa.Table, evidence: Evidence, names: Names) -> Iterator[ChangedAnswer]:
    """The questions whose answers differ, file by file."""
    by_id = {file.file_id: file for file in evidence.changes.after.values()}
    differing = {file_id for file_id, *_ in _outcomes(before) ^ _outcomes(after)}
    is_one = pc.field("file_id").isin(id_array(differing))
    old, new = answers_by_question(before.filter(is_one)), answers_by_question(after.filter(is_one))
    contents = {content for each in differing if (content := by_id[each].content_id)}
    facts = evidence.facts.by_content(contents, ROLE_DATASETS)
    roles = {content: roles_of(row) for content, row in facts.items()}
    for file_id in sorted(differing, key=lambda each: by_id[each].path):
        file = by_id[file_id]
        pair = (old.get(file_id, {}), new.get(file_id, {}))
        yield from changed_answers(file.path, pair, roles.get(file.content_id or "", {}), names, evidence.modules)


def _outcomes(rows: pa.Table) -> set[tuple[str, int, str]]:
    """The outcome of each question that has one."""
    known = rows.select(["file_id", "ask_no", "outcome"]).filter(pc.not_equal(rows["status"], "unknown"))
    return set(zip(*(column.to_pylist() for column in known.columns), strict=True))


def exports_that_changed(changes: SnapshotChanges, facts: Facts) -> Iterator[ChangedExport]:
    """The names that changed files offer differently."""
    before, after = changes.before, changes.after
    paths = sorted({*changes.rebuilt(), *changes.gone()})
    contents = {side[path].content_id for side in (before, after) for path in paths if path in side}
    rows = facts.by_content({each for each in contents if each}, EXPORT_DATASETS)
    for path in paths:
        sides = [rows.get(side[path].content_id or "") if path in side else None for side in (before, after)]
        module = (after.get(path) or before[path]).module.module_fqn
        yield from changed_exports(path, module, *sides)


def with_rule_changes(impact: Impact, rules: str) -> Impact:
    """The impact, with every other file: all are rebuilt in some tables because `rules` changed."""
    known = {file.path for file in impact.files}
    others = [
        ImpactedFile(path, file.file_id, ReasonKind.RULE_CHANGED, rules)
        for path, file in impact.changes.after.items()
        if path not in known
    ]
    return replace(impact, files=tuple(sorted((*impact.files, *others), key=lambda file: file.path)))
