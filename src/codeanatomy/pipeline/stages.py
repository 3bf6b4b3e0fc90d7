"""The stages of a build, in one list: `plan` prints it, and a build can run no stage that is not in it.

What an update has to do is known only after its analysis, so the list comes in two parts: up to there, and from there.
Which tables are computed, and in which order, is what the rules say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter

from codeanatomy.catalogue.tables import ANSWERS, STORED_TABLES
from codeanatomy.pipeline.inputs import BuildInputs
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.scope import Scope
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
    tables = tables_of(_needed(inputs))
    scoped = [table for table in tables if table not in plan.whole] if scope.owners else []
    return (START, *scoped, *(table for table in tables if table in plan.whole), PUBLISH)


def full_stages(inputs: BuildInputs) -> tuple[str, ...]:
    """What a full build does after its scan."""
    return (START, EXTRACT, *_index(inputs), *tables_of(_needed(inputs)), PUBLISH)


def needs_of(rules: Iterable[CompiledRule]) -> dict[str, set[str]]:
    """What is computed with these rules, the answers among it, and what each dataset is computed from."""
    return {ANSWERS.name: set(), **dependencies(by_output(rules))}


def sorter_of(needs: Mapping[str, Collection[str]]) -> TopologicalSorter[str]:
    """Hands out each dataset after all that it needs and that is computed as well."""
    return TopologicalSorter({name: set(needed) & needs.keys() for name, needed in needs.items()})


def tables_of(rules: Iterable[CompiledRule]) -> list[str]:
    """The stored tables that are computed with these rules, each after those that it needs."""
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
