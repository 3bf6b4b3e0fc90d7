"""Find out what a build has to do: extract new contents, index what must be indexed, tell which files are affected.

`plan` and `build` run the same stages. Of a full build there is nothing to find out: every file is affected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import GLOBAL_OWNER, Dataset
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, MODULE_LOOKUPS
from codeanatomy.engine.rows import computed, in_driver, rows_of
from codeanatomy.impact.affected import (
    AnswersToCompare,
    Impact,
    exports_that_changed,
    find_impact,
    impact_of_everything,
    owners_to_compare,
    questions_to_ask,
    with_rule_changes,
)
from codeanatomy.impact.dependents import Dependents, Lookups, direct_dependents, transitive_dependents
from codeanatomy.impact.documents import IDENTITY, DocumentChanges, Propagation
from codeanatomy.impact.evidence import Evidence
from codeanatomy.impact.propagation import SourceWords
from codeanatomy.impact.reasons import Names, ReasonKind
from codeanatomy.impact.snapshots import SnapshotChanges, module_changes, snapshot_changes
from codeanatomy.pipeline.answering import Knowledge, answer
from codeanatomy.pipeline.context import Build, fits_driver
from codeanatomy.pipeline.documents import Documents
from codeanatomy.pipeline.extraction import extract
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.indexing import Indexing, indexing, read_documents
from codeanatomy.pipeline.inputs import files_at
from codeanatomy.pipeline.plan import Plan, changes_entry_points
from codeanatomy.pipeline.progress import EXTRACT, IMPACT, INDEX
from codeanatomy.pipeline.request import Mode, Strategy
from codeanatomy.pipeline.scope import ALL, Scope
from codeanatomy.pipeline.work import Work
from codeanatomy.repo.files import file_table
from codeanatomy.resolve.index import Index
from codeanatomy.store.owners import OWNER_DIGESTS, read_owner_digests
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_arrow, read_kept

ASSUMED_RATIO = 2.0
"""What rebuilding a file costs in an update, next to a full build, until that was measured."""


@dataclass(frozen=True)
class LastTable:
    """A table of the last build."""

    state: State
    table: Dataset
    version: int

    @classmethod
    def of(cls, build: Build, table: Dataset) -> LastTable:
        """The version that was published."""
        pin = build.pin(table.name)
        if pin is None:
            raise AssertionError(f"the last build has no table {table.name}")
        return cls(build.state, table, pin.version)

    def read(self, columns: Sequence[str] | None = None, owners: Collection[str] | None = None) -> pa.Table:
        """Some columns of the rows of these owners, or of all."""
        return read_arrow(self.state, self.table, self.version, columns, owners=owners)

    def read_all(self, columns: Sequence[str]) -> pa.Table:
        """Some columns of all rows, which are kept for the next build."""
        return read_kept(self.state, self.table, self.version, columns)


def file_changes(build: Build) -> SnapshotChanges:
    """What changed since the last build."""
    before = files_at(build.state, build.last, build.inputs.roots) if build.last else {}
    return snapshot_changes(before, build.inputs.files)


def affects_everything(build: Build) -> Impact:
    """The impact of a full build."""
    settings = any(each.kind != "rule" for each in build.plan.invalidations)
    kind = ReasonKind.SETTINGS_CHANGED if settings else ReasonKind.FULL_REFRESH
    return impact_of_everything(file_changes(build), kind, "; ".join(build.plan.reasons))


def work_of(build: Build, started: Indexing | None = None) -> Work:
    """What a build knows before its first stage."""
    return Work(Facts(build.state, build.pin(FACTS.name)), Impact(file_changes(build), ()), started=started)


def extract_facts(build: Build, work: Work) -> Work:
    """Extract what is missing of the facts of the snapshot."""
    with build.clock.stage(EXTRACT) as stage:
        facts = extract(build)
        stage.rows = facts.extracted
    return replace(work, facts=facts)


def index_documents(build: Build, work: Work) -> Work:
    """Index the files whose documents can have changed; of a full build, every file."""
    with build.clock.stage(INDEX) as stage:
        if work.started is not None:
            from codeanatomy.pipeline.tables import write_documents  # noqa: PLC0415 - loads Spark

            rows = read_documents(build, work.facts, work.started, build.inputs.source_bytes())
            written = write_documents(build, rows)
            stage.rows = written.pin.rows
            return replace(work, written={DOCUMENTS.name: written}, indexing_seconds=work.started.seconds)
        evidence = _evidence(build, work)
        changes, seconds = _changed_documents(build, work.facts, evidence)
        stage.rows = changes.indexed
    evidence = evidence.with_redefined(changes.redefined)
    return replace(work, evidence=evidence, documents=changes, indexing_seconds=seconds)


def find_affected(build: Build, work: Work) -> Work:
    """Find the files that the changes affect, and whose rows that replaces; of a full build, all."""
    with build.clock.stage(IMPACT) as stage:
        if build.is_full:
            return replace(work, impact=affects_everything(build), scope=ALL)
        impact = _impact(build, work.facts, work.evidence or _evidence(build, work), work.documents)
        stage.rows = len(impact.files)
    work = replace(work, impact=impact)
    return replace(work, scope=_scope_of(build, work))


def _evidence(build: Build, work: Work) -> Evidence:
    """What changed, and what the last build knows."""
    changes, facts = work.impact.changes, work.facts
    return Evidence(
        changes=changes,
        modules=module_changes(changes, facts.names),
        exports=tuple(exports_that_changed(changes, facts)),
        facts=facts,
        lookups=Lookups(LastTable.of(build, MODULE_LOOKUPS).read_all(["file_id", "looked_at"])),
        answers=LastTable.of(build, ANSWERS),
        documents=LastTable.of(build, DOCUMENTS) if build.inputs.provider else None,
        words=SourceWords(build.inputs.root),
    )


def _changed_documents(build: Build, facts: Facts, evidence: Evidence) -> tuple[DocumentChanges, float]:
    """Index, wave by wave, the files whose documents can have changed; how long the indexer took."""
    provider = build.inputs.provider
    if provider is None or evidence.documents is None:
        raise AssertionError("without an index there are no documents")
    propagation = Propagation(evidence, evidence.documents, all_at_once=provider.reports_all)
    wave = propagation.first_wave()
    indexed: set[str] = set()
    differing, seconds = [DOCUMENTS.schema().empty_table()], 0.0
    while wave.files:
        paths = None if provider.reports_all else {propagation.path_of[file_id] for file_id in wave.files}
        with indexing(build.inputs, paths, build.indexer) as started:
            rows = computed(read_documents(build, facts, started, build.inputs.source_bytes(wave.files)))
            seconds += started.seconds
        documents = in_driver(rows_of(rows, columns=IDENTITY))
        indexed.update(documents["file_id"].to_pylist())
        differing.append(in_driver(rows_of(rows, owners=propagation.differing(documents))))
        wave = propagation.next_wave(wave, documents)
    return propagation.compare(wave, indexed, pa.concat_tables(differing)), seconds


def _impact(build: Build, facts: Facts, evidence: Evidence, documents: DocumentChanges | None) -> Impact:
    """Ask again what may have another answer, and compare."""
    changes, modules, lookups = evidence.changes, evidence.modules, evidence.lookups
    find = transitive_dependents if build.strategy is Strategy.IMPORT_CLOSURE else direct_dependents
    dependents = find(changes, modules, lookups) if modules else Dependents()
    changed = documents or DocumentChanges()
    stored = LastTable.of(build, ANSWERS).read(owners=owners_to_compare(evidence, dependents, changed))
    asked = questions_to_ask(evidence, dependents, changed, stored)
    known = Knowledge.of(build, facts, _documents_after(build, documents))
    compared = AnswersToCompare(asked.questions, stored, in_driver(answer(build, known, asked.questions)))
    names = Names(lambda: Index(file_table(changes.before.values()), facts.names), known.index)
    return find_impact(evidence, dependents, changed, compared, names)


def _documents_after(build: Build, changed: DocumentChanges | None) -> Documents | None:
    """The documents as the build will have them."""
    if changed is None:
        return None
    return Documents(build.state, LastTable.of(build, DOCUMENTS).version, changed.replaced, changed.rows)


def cheaper_in_full(build: Build, impact: Impact, max_depth: int | None) -> Plan | None:
    """The plan of a full build, if a change propagates too far, or builds so far say that an update costs more."""
    plan = build.plan
    if max_depth is not None and impact.depth > max_depth:
        reason = f"a change propagates through a chain of {impact.depth} files, more than {max_depth}"
        return replace(plan, mode=Mode.FULL, reasons=(*plan.reasons, reason))
    costs = build.last.figures.get("costs", {}) if build.last else {}
    if fits_driver(build.inputs.source_bytes(impact.rebuilt())) or "full_seconds" not in costs:
        return None
    rebuilt, total = len(impact.rebuilt()), len(impact.changes.after)
    full_each = costs["full_seconds"] / max(costs["full_files"], 1)
    update_each = costs.get("update_seconds_per_file", ASSUMED_RATIO * full_each)
    if rebuilt * update_each <= total * full_each:
        return None
    reason = (
        f"{rebuilt} of {total} files are affected: at {update_each:.3f} s each an update costs more than "
        f"a full build at {full_each:.3f} s each"
    )
    return replace(plan, mode=Mode.FULL, reasons=(*plan.reasons, reason))


def _scope_of(build: Build, work: Work) -> Scope:
    """Whose rows the impact of an update replaces."""
    impact, documents = work.impact, work.documents
    rebuilt, gone, asked = impact.rebuilt(), impact.gone(), impact.asked
    if documents is not None:
        rebuilt |= documents.changed & {GLOBAL_OWNER}
    stored = LastTable.of(build, ANSWERS).read(EXTERNAL_COLUMNS, asked | gone)
    if _external_names(stored) != _external_names(impact.answers) or _has_other_patterns(build):
        rebuilt |= {GLOBAL_OWNER}
    owners = None if build.plan.whole else rebuilt | gone | asked
    pin = build.pin(OWNER_DIGESTS.name)
    before = read_owner_digests(build.state, pin, owners) if pin else {}
    return Scope(rebuilt, gone, asked, before)


def _has_other_patterns(build: Build) -> bool:
    return build.last is not None and changes_entry_points(build.last.fingerprints, build.inputs.fingerprints)


EXTERNAL_COLUMNS = ("file_id", "target_id", "target_name", "kind", "status", "question")
"""All that rules whose rows belong to no file may read of answers. How often something is answered does not matter."""


def _external_names(answers: pa.Table) -> set[tuple[Any, ...]]:
    """What answers say of things that no file defines; the text of a question tells what a symbol is."""
    named = answers.filter(pc.is_valid(answers["target_name"]))
    columns = (named[name].to_pylist() for name in EXTERNAL_COLUMNS[1:])
    return {
        (target, name, kind, status, question if question.startswith("y:") else None)
        for target, name, kind, status, question in zip(*columns, strict=True)
    }


def with_rules(impact: Impact, plan: Plan) -> Impact:
    """The impact, with the files that are rebuilt in some tables because a rule changed."""
    changed = ", ".join(sorted(each.name for each in plan.invalidations if each.tables))
    return with_rule_changes(impact, changed) if changed and plan.mode is not Mode.FULL else impact
