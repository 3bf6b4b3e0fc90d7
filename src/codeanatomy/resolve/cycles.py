"""What searches that met a cycle found, so that they need not be started again in every question.

A search that meets itself finds nothing there; what it finds then depends on where the cycle was entered, which is
*provisional* (`resolver`). But it depends on nothing else than this:

    - the searches that it met in progress were in progress, and not started by itself;
    - those that it started were neither in progress nor provisional before.

Where both hold again, in the same or another question, starting it again would do exactly the same. So it is taken
from memory, together with the provisional results that it left behind.

Terms
    event   that a search in progress was met, that a provisional result was read, or that a search ended provisionally.
    log     the events of the question at hand, in order; those of a search are a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any, Final, NamedTuple

_MAX_EVENTS: Final = 400
"""A search with more events is started again: searches nest, and each keeps its events."""

SearchKey = tuple[Any, ...]
SearchResult = tuple[Any, frozenset[str]]

ReadingResult = tuple[SearchResult, frozenset[str]]
"""A result, and the slots that were read for it."""


class Cycle(Enum):
    """What happened to a search."""

    MET = 0
    """It was in progress and was needed."""
    READ = 1
    """Its provisional result was read."""
    ENDED = 2
    """It ended with a provisional result."""


Event = tuple[Cycle, SearchKey]


class CyclicSearch(NamedTuple):
    """A search that met a cycle: what it found, what it met in progress, the results it left behind, what it read."""

    result: SearchResult
    met: Set[SearchKey]
    ended: Mapping[SearchKey, ReadingResult]
    events: Sequence[Event]
    read: frozenset[str]

    def is_the_same(self, in_progress: Mapping[SearchKey, None], provisional: Mapping[SearchKey, Any]) -> bool:
        """Whether starting it over these would do the same again."""
        ended = self.ended.keys()
        return (
            self.met <= in_progress.keys()
            and ended.isdisjoint(provisional.keys())
            and ended.isdisjoint(in_progress.keys())
        )


def cyclic_search(events: Sequence[Event], provisional: Mapping[SearchKey, ReadingResult]) -> CyclicSearch | None:
    """The search whose events these are, the last of which is its end; None if it cannot be told what it depends on."""
    if len(events) > _MAX_EVENTS:
        return None
    ended = {key: provisional[key] for cycle, key in events if cycle is Cycle.ENDED}
    if any(cycle is Cycle.READ and key not in ended for cycle, key in events):
        return None
    met = frozenset(key for cycle, key in events if cycle is Cycle.MET and key not in ended)
    result, read = ended[events[-1][1]]
    return CyclicSearch(result, met, ended, tuple(events), read)
