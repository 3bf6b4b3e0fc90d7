"""What a build notes while it runs, for its run bundle: where it left its usual way, and how its statements ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class FallbackKind(StrEnum):
    """A way in which a build leaves its usual way."""

    FULL_BUILD = "full_build"
    """Every file is rebuilt where an update was expected."""
    RESTART = "restart"
    """Files changed while they were read, or another build was published: it starts over."""
    SPLIT_SHARD = "split_shard"
    """The indexer failed on several files at once, which are indexed again in halves."""
    MEMORY = "memory"
    """The machine has too little memory: it starts over and uses less."""


@dataclass(frozen=True)
class Fallback:
    """One time that a build left its usual way."""

    kind: FallbackKind
    detail: str


@dataclass(frozen=True)
class StatementPlan:
    """How Spark ran the union of some rules."""

    stage: str
    rules: Sequence[str]
    text: str

    def count(self, operator: str) -> int:
        """How many operators of the plan have a name that contains `operator`."""
        tree = self.text.partition("\n\n")[0]
        return sum(operator in name for name in _OPERATOR.findall(tree))


_OPERATOR = re.compile(r"^[\s:+*-]*([A-Z]\w+)", re.MULTILINE)
"""The name of an operator, behind the lines that EXPLAIN draws."""


@dataclass(frozen=True)
class Journal:
    """The notes of one build; only ever added to."""

    fallbacks: list[Fallback] = field(default_factory=list)
    plans: list[StatementPlan] = field(default_factory=list)

    def note(self, kind: FallbackKind, detail: str) -> None:
        """The build leaves its usual way."""
        self.fallbacks.append(Fallback(kind, detail))
