"""In which order the rules let datasets be computed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import TopologicalSorter

from codeanatomy.catalogue.tables import ANSWERS, STORED_TABLES
from codeanatomy.rules.compiled import CompiledRule, by_output, dependencies


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
