"""The stages of a build, in one list: `plan` prints it, `build` runs it.

What a build has to rebuild is known only after its analysis, so the list comes in two parts: up to there, and from
there. A full build runs the same stages on top of nothing. It waits for Spark first, because its workers extract; an
update does most of its analysis before it needs Spark, which starts meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS
from codeanatomy.pipeline.analysis import extract_facts, find_affected, index_documents, work_of
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.indexing import Indexing
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import EXTRACT, IMPACT, INDEX, PUBLISH, START
from codeanatomy.pipeline.request import Mode
from codeanatomy.pipeline.scope import ALL, Scope
from codeanatomy.pipeline.work import Stage, Work, run_stages
from codeanatomy.rules.compiled import CompiledRule, needed_rules
from codeanatomy.rules.order import tables_of


def analysis_stages(plan: Plan, inputs: BuildInputs) -> tuple[Stage, ...]:
    """How a build finds out what it has to do."""
    is_full, why = plan.mode is Mode.FULL, "; ".join(plan.reasons)
    files = len(inputs.snapshot.files) if is_full else None
    extract = Stage(EXTRACT, "extract facts that are missing", extract_facts, files, why)
    index = Stage(INDEX, "index files whose documents can have changed", index_documents, files, why)
    impact = Stage(IMPACT, "find the files that are affected", find_affected, files, why)
    stages = (extract, index, impact) if inputs.provider else (extract, impact)
    return (_START, *stages) if is_full else stages


def analyse(build: Build, started: Indexing | None = None) -> Work:
    """Run these stages; `started` is an indexer at work on all files."""
    return run_stages(build, analysis_stages(build.plan, build.inputs), work_of(build, started))


def rebuild_stages(plan: Plan, inputs: BuildInputs, scope: Scope = ALL) -> tuple[Stage, ...]:
    """What a build does once it knows what is affected: compute rows, write them, publish."""
    is_full, why = plan.mode is Mode.FULL, "; ".join(plan.reasons)
    total = len(inputs.snapshot.files)
    rebuilt = total if scope.rebuilt is None else len(scope.rebuilt - {GLOBAL_OWNER})
    rules = needed_rules(inputs.rules, documents=inputs.provider is not None)
    tables, whole = tables_of(rules), frozenset() if is_full else plan.whole
    scoped = () if scope.is_empty else tuple(table for table in _in_scope(tables, rules, scope) if table not in whole)
    stages = [] if is_full else [_START]
    if inputs.provider and not is_full:
        stages.append(Stage(DOCUMENTS.name, "replace the documents that changed", _replace_documents, why=why))
    if scoped:
        stages.append(Stage("tables", "replace the rows of affected files", _replace_rows, rebuilt, why, scoped))
    if whole:
        every = tuple(table for table in tables if table in whole)
        stages.append(Stage("rules", "replace the rows of every file", _replace_tables, total, why, every))
    return (*stages, Stage(PUBLISH, "publish the build by one commit", _publish))


def _in_scope(tables: Sequence[str], rules: Sequence[CompiledRule], scope: Scope) -> Sequence[str]:
    """The tables that can have rows of a scope: not those that have rows of no file alone, if these are not in it."""
    if scope.is_rebuilt(GLOBAL_OWNER):
        return tables
    of_files = {ANSWERS.name, *(each.rule.output.name for each in rules if not each.is_global)}
    return [table for table in tables if table in of_files]


def _start(build: Build, work: Work) -> Work:
    if build.engine is not None:
        build.engine.session()
    return work


_START = Stage(START, "wait until Spark has started", _start)

# What follows loads Spark, which a preview does not need.


def _replace_documents(build: Build, work: Work) -> Work:
    from codeanatomy.pipeline.rebuild import replace_documents  # noqa: PLC0415

    return replace_documents(build, work)


def _replace_rows(build: Build, work: Work) -> Work:
    from codeanatomy.pipeline.rebuild import replace_rows_of_scope  # noqa: PLC0415

    return replace_rows_of_scope(build, work)


def _replace_tables(build: Build, work: Work) -> Work:
    from codeanatomy.pipeline.rebuild import replace_whole_tables  # noqa: PLC0415

    return replace_whole_tables(build, work)


def _publish(build: Build, work: Work) -> Work:
    from codeanatomy.pipeline.publishing import publish_build  # noqa: PLC0415
    from codeanatomy.pipeline.rebuild import outcome_of  # noqa: PLC0415

    return replace(work, result=publish_build(build, outcome_of(build, work)))
