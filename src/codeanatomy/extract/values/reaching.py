"""Which bindings of a name reach a use of it, decided from the blocks they stand in.

The last binding whose block contains the use hides those before it; one in a common loop reaches from below. Other
functions see what a module or class ends with.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.values.forms import Form, limit_value
from codeanatomy.extract.values.structure import BindingSite
from codeanatomy.extract.walk import Walk

_MAX_SITES: Final = 50

_position: Final = attrgetter("position")


class ReachingBindings:
    """The binding sites of one content whose scopes are resolved, by the symbol they bind."""

    def __init__(self, w: Walk) -> None:
        self._w = w
        self._blocks = w.blocks
        self._scope_of = w.scopes.scope_of_symbol
        self._finals: dict[int, list[BindingSite]] = {}
        self._limit = limit_value(w)
        # In the scope of the symbol, in order; and in functions that name it `global` or `nonlocal`.
        self._own: dict[int, list[BindingSite]] = {}
        self._foreign: dict[int, list[BindingSite]] = {}
        meaning = w.scopes.meanings()
        for symbol, bound in w.binding_sites.items():
            target = meaning[symbol]
            sites = [site for site in bound if not self._is_accessor(site.value)]
            if target in (symbol, NOTHING):
                self._own[symbol] = sorted(sites)
            else:
                self._foreign.setdefault(target, []).extend(sites)

    def _is_accessor(self, number: int) -> bool:
        row = self._w.values[number]
        return bool(row[0] == Form.DEFINITION and self._w.definitions[row[1]].is_accessor())

    def symbols(self) -> set[int]:
        """The symbols that something binds."""
        return self._own.keys() | self._foreign.keys()

    def all(self, symbol: int) -> list[BindingSite]:
        """Every binding of a symbol."""
        return [*self._own.get(symbol, ()), *self._foreign.get(symbol, ())]

    def final(self, symbol: int) -> list[BindingSite]:
        """The bindings that a symbol's scope ends with."""
        known = self._finals.get(symbol)
        if known is None:
            top = self._w.scope_blocks.get(self._scope_of[symbol], 0)
            known = self._finals[symbol] = self._last_sites(symbol, self._blocks[top].end - 1, len(self._w.text) + 1)
        return known

    def reaching(self, symbol: int, position: int) -> list[BindingSite]:
        """The bindings that reach a use at a position in the symbol's scope."""
        sites = self._own.get(symbol, ())
        if len(sites) == 1 and symbol not in self._foreign and sites[0].position <= position:
            return list(sites)
        return self._last_sites(symbol, position, position)

    def _last_sites(self, symbol: int, inside: int, before: int) -> list[BindingSite]:
        """Bindings before a position that reach a use in the blocks around `inside`; the nearest, if they are many.

        Then a limit stands for the others.
        """
        found: list[BindingSite] = []
        hiding: BindingSite | None = None
        taken: set[int] = set()
        sites = self._own.get(symbol, [])
        first_after = bisect_right(sites, before, key=_position)
        for site in reversed(sites[max(0, first_after - _MAX_SITES) : first_after]):
            surrounds = self._contains(site.block, inside)
            if surrounds or not self._leaves_before(site.block, inside):
                found.append(site)
            if surrounds or self._covers(site.block, inside, taken):
                hiding = site
                break
        is_cut = hiding is None and first_after > _MAX_SITES
        found.reverse()
        after = sites[first_after : first_after + _MAX_SITES]
        looping = [site for site in after if self._loops_back(site, inside, hiding)]
        found += looping
        if is_cut or (looping and len(sites) > first_after + _MAX_SITES):
            found.append(BindingSite(before, 0, self._limit))
        return found + self._foreign.get(symbol, [])

    def _covers(self, block: int, position: int, taken: set[int]) -> bool:
        """Whether every branch of a statement before the position binds, now that `block` does; or leaves."""
        fork = self._blocks[block].fork
        taken.add(block)
        if fork == NOTHING or not self._contains(self._blocks[block].parent, position):
            return False
        branches = self._w.forks[fork]
        return position > self._blocks[branches[-1]].end and all(
            branch in taken or self._blocks[branch].leaves for branch in branches
        )

    def _contains(self, block: int, position: int) -> bool:
        start, end = self._blocks[block][:2]
        return start <= position < end

    def _leaves_before(self, block: int, position: int) -> bool:
        """Whether control leaves the function at the end of a block that does not contain the position."""
        while not self._contains(block, position):
            if self._blocks[block].leaves:
                return True
            block = self._blocks[block].parent
        return False

    def _loops_back(self, site: BindingSite, position: int, hiding: BindingSite | None) -> bool:
        block = site.block
        while block != NOTHING:
            if self._blocks[block].is_loop and self._contains(block, position):
                return hiding is None or not self._contains(block, hiding.position)
            block = self._blocks[block].parent
        return False
