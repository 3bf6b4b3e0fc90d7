"""The stages of a build, in one list: `plan` prints it, and a build can run no stage that is not in it.

What an update has to do is known only after its analysis, so the list comes in two parts: up to there, and from there.
Which tables are made, and in which order, is what the rules say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter

from codeanatomy.catalogue.tables import ANSWERS, DOCUMENT_VIEWS, DOCUMENTS, SCIP_DOCUMENTS, STORED_TABLES
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.made import Scope
from codeanatomy.pipeline.plan import Plan
from codeanatomy.rules.compiler import CompiledRule, by_output, dependencies, needed_rules

SCAN = "scan"
START = "start"
EXTRACT = "extract"
INDEX = "index"
IMPACT = "impact"
PUBLISH = "publish"


def analysis_stages(inputs: BuildInputs) -> tuple[str, ...]:
    """How an update finds out what it has to do."""
    return (EXTRACT, *_index(inputs), IMPACT)


def update_stages(plan: Plan, inputs: BuildInputs, scope: Scope) -> tuple[str, ...]:
    """What an update does after its analysis."""
    rules = _needed(inputs)
    of_files = [rule for rule in rules if not rule.is_global]
    scoped = [table for table in tables_of(of_files) if table not in plan.whole] if scope else []
    return (START, *scoped, *(table for table in tables_of(rules) if table in plan.whole), PUBLISH)


def full_stages(inputs: BuildInputs) -> tuple[str, ...]:
    """What a full build does after its scan."""
    return (START, EXTRACT, *_index(inputs), *tables_of(_needed(inputs)), PUBLISH)


def needs_of(rules: Iterable[CompiledRule]) -> dict[str, set[str]]:
    """What is made with these rules, the answers and the documents among it, and what each dataset is made from."""
    said = {dataset.name for dataset in (SCIP_DOCUMENTS, *DOCUMENT_VIEWS)}
    needs = dependencies(by_output(rules))
    made = {name: {DOCUMENTS.name if each in said else each for each in needed} for name, needed in needs.items()}
    return {DOCUMENTS.name: set(), ANSWERS.name: {DOCUMENTS.name}, **made}


def sorter_of(needs: Mapping[str, Collection[str]]) -> TopologicalSorter[str]:
    """Hands out each dataset after all that it needs and that is made as well."""
    return TopologicalSorter({name: set(needed) & needs.keys() for name, needed in needs.items()})


def tables_of(rules: Iterable[CompiledRule]) -> list[str]:
    """The stored tables that are made with these rules, each after those that it needs."""
    stored = {table.name for table in STORED_TABLES}
    sorter = sorter_of(needs_of(rules))
    sorter.prepare()
    found: list[str] = []
    while ready := sorted(sorter.get_ready()):
        found += [name for name in ready if name in stored]
        sorter.done(*ready)
    return found


def _index(inputs: BuildInputs) -> tuple[str, ...]:
    return (INDEX,) if inputs.provider is not None else ()


def _needed(inputs: BuildInputs) -> tuple[CompiledRule, ...]:
    return needed_rules(inputs.rules, documents=inputs.provider is not None)
