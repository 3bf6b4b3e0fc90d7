"""Which bindings of a name reach a use of it, decided from the blocks they are in.

The last binding before the use whose block contains the use hides those before it. A binding after the use reaches it
if both are in a loop. Other functions see the bindings that are in effect at the end of a module or class.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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
        self._final_sites: dict[int, list[BindingSite]] = {}
        self._limit = limit_value(w)
        # Bindings in the symbol's own scope, in order, and in functions that declare it `global` or `nonlocal`.
        self._own_sites: dict[int, list[BindingSite]] = {}
        self._foreign_sites: dict[int, list[BindingSite]] = {}
        meaning = w.scopes.targets_of_symbols()
        for symbol, bound in w.binding_sites.items():
            target = meaning[symbol]
            sites = [site for site in bound if not self._is_accessor(site.value)]
            if target in (symbol, NOTHING):
                self._own_sites[symbol] = sorted(sites)
            else:
                self._foreign_sites.setdefault(target, []).extend(sites)

    def _is_accessor(self, number: int) -> bool:
        row = self._w.values[number]
        return bool(row[0] == Form.DEFINITION and self._w.definitions[row[1]].is_accessor())

    def symbols(self) -> set[int]:
        """The symbols that have a binding."""
        return self._own_sites.keys() | self._foreign_sites.keys()

    def all(self, symbol: int) -> list[BindingSite]:
        """Every binding of a symbol."""
        return [*self._own_sites.get(symbol, ()), *self._foreign_sites.get(symbol, ())]

    def final(self, symbol: int) -> list[BindingSite]:
        """The bindings of a symbol that are in effect at the end of its scope."""
        known = self._final_sites.get(symbol)
        if known is None:
            top = self._w.scope_blocks.get(self._scope_of[symbol], 0)
            known = self._final_sites[symbol] = self._reaching_sites(
                symbol, self._blocks[top].end - 1, len(self._w.text) + 1
            )
        return known

    def reaching(self, symbol: int, position: int) -> list[BindingSite]:
        """The bindings that reach a use at a position in the symbol's scope."""
        sites = self._own_sites.get(symbol, ())
        if len(sites) == 1 and symbol not in self._foreign_sites and sites[0].position <= position:
            return list(sites)
        return self._reaching_sites(symbol, position, position)

    def certain(self, symbol: int, sites: Sequence[BindingSite], position: int) -> int | None:
        """The value of the last of `sites` before a position, if each of its bindings that reach it is before that."""
        before = [site for site in sites if site.position <= position and self._contains(site.block, position)]
        if not before or any(position < site.position and self._loops_back(site, position, None) for site in sites):
            return None
        last = max(before)
        bound = self.reaching(symbol, position)
        is_last = all(site.position <= last.position for site in bound)
        between = any(last.position < site.position <= position for site in sites)
        return last.value if is_last and not between else None

    def _reaching_sites(self, symbol: int, inside: int, before: int) -> list[BindingSite]:
        """The bindings before a position that reach a use at `inside`, and those that reach it through a loop.

        Of many, only the nearest are looked at, and a limit stands for the others.
        """
        found: list[BindingSite] = []
        hiding: BindingSite | None = None
        binding_blocks: set[int] = set()
        sites = self._own_sites.get(symbol, [])
        first_after = bisect_right(sites, before, key=_position)
        for site in reversed(sites[max(0, first_after - _MAX_SITES) : first_after]):
            surrounds = self._contains(site.block, inside)
            if surrounds or not self._leaves_before(site.block, inside):
                found.append(site)
            if surrounds or self._all_branches_bind(site.block, inside, binding_blocks):
                hiding = site
                break
        is_truncated = hiding is None and first_after > _MAX_SITES
        found.reverse()
        after = sites[first_after : first_after + _MAX_SITES]
        looping = [site for site in after if self._loops_back(site, inside, hiding)]
        found += looping
        if is_truncated or (looping and len(sites) > first_after + _MAX_SITES):
            found.append(BindingSite(before, 0, self._limit))
        return found + self._foreign_sites.get(symbol, [])

    def _all_branches_bind(self, block: int, position: int, binding_blocks: set[int]) -> bool:
        """Whether all branches of the statement of `block`, before the position, bind the name or leave the function.

        `binding_blocks` has the blocks that are known to bind it; `block` is added.
        """
        fork = self._blocks[block].fork
        binding_blocks.add(block)
        if fork == NOTHING or not self._contains(self._blocks[block].parent, position):
            return False
        branches = self._w.forks[fork]
        return position > self._blocks[branches[-1]].end and all(
            branch in binding_blocks or self._blocks[branch].always_leaves for branch in branches
        )

    def _contains(self, block: int, position: int) -> bool:
        start, end = self._blocks[block][:2]
        return start <= position < end

    def _leaves_before(self, block: int, position: int) -> bool:
        """Whether the function is left at the end of the block, before the position can be reached."""
        while not self._contains(block, position):
            if self._blocks[block].always_leaves:
                return True
            block = self._blocks[block].parent
        return False

    def _loops_back(self, site: BindingSite, position: int, hiding: BindingSite | None) -> bool:
        """Whether a binding after the position reaches it in the next iteration of a loop."""
        block = site.block
        while block != NOTHING:
            if self._blocks[block].is_loop and self._contains(block, position):
                return hiding is None or not self._contains(block, hiding.position)
            block = self._blocks[block].parent
        return False
