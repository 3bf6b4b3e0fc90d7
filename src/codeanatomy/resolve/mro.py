"""The order in which a class and its bases are searched: C3, as Python computes it.

An order is a linked list, because that of a class with one base is the class and then the base's own order: it is
shared, not copied, and what was looked for in it once is found there again. So a long chain of classes costs little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

from codeanatomy.resolve.index import ClassNames, ModuleFile
from codeanatomy.resolve.values import LIMIT, Class, Value

_REMEMBERING: Final = 16
"""One place in so many remembers what was looked for from it on: short orders are searched as fast without."""


class Order:
    """A place in an order: a class, what it holds and in which file, if it is in the repository, and the next place."""

    __slots__ = ("_found", "file", "length", "names", "rest", "value")

    def __init__(
        self,
        value: Value,
        rest: Order | None = None,
        file: ModuleFile | None = None,
        names: ClassNames | None = None,
    ) -> None:
        self.value = value
        self.file = file
        self.names = names
        self.rest = rest
        self.length: int = rest.length + 1 if rest else 1
        self._found: dict[tuple[str, Hashable], Order | None] = {}

    def __iter__(self) -> Iterator[Order]:
        """Itself and the places after it."""
        place: Order | None = self
        while place is not None:
            yield place
            place = place.rest

    def before(self, rest: Order | None) -> Order:
        """The same class, before other ones."""
        return Order(self.value, rest, self.file, self.names)

    def first(self, kind: str, what: Any = None) -> Order | None:
        """The first place from here on that has something of a kind in `_HAS`, such as a `member` of that name."""
        has = _HAS[kind]
        passed: list[Order] = []
        found: Order | None = None
        for place in self:
            if (kind, what) in place._found:
                found = place._found[kind, what]
                break
            if has(place, what):
                found = place
                break
            if place.length % _REMEMBERING == 0:
                passed.append(place)
        for place in passed:
            place._found[kind, what] = found
        return found


_HAS: Final[dict[str, Callable[[Order, Any], bool]]] = {
    "member": lambda place, name: name in place.names.members if place.names else place.value is LIMIT,
    "attribute": lambda place, name: place.names is not None and name in place.names.attributes,
    "metaclass": lambda place, _: place.names is not None and place.names.metaclass is not None,
    "class": lambda place, of: bool(place.value == of),
    "outside": lambda place, _: not isinstance(place.value, Class),
}


def linearized(of: Order, orders: Sequence[Order]) -> Order:
    """A class, then its bases, whose own orders are given, merged.

    Python refuses bases that cannot be merged, and a class among its own bases; here they come in the order in which
    they are written, depth first, so that such code has a graph too.
    """
    if len(orders) == 1:
        return of.before(orders[0])
    merged, rest = _merged(orders) or (_as_written(orders), None)
    for place in reversed(merged):
        rest = place.before(rest)
    return of.before(rest)


def without(of: Class, order: Order) -> Order | None:
    """An order, less the class that it is the order of bases of: it comes there only in a circle."""
    rest = None
    for place in reversed([place for place in order if place.value != of]):
        rest = place.before(rest)
    return rest


def _merged(orders: Sequence[Order]) -> tuple[list[Order], Order | None] | None:
    """C3: the places that come first, and the rest, which all orders that are left share; None if it cannot be done."""
    bases: Order | None = None
    for order in reversed(orders):
        bases = order.before(bases)
    pending = [*orders, *([bases] if bases else [])]
    later = Counter(place.value for order in pending for place in order.rest or ())
    merged: list[Order] = []
    while pending and any(order is not pending[0] for order in pending):
        head = next((order for order in pending if not later[order.value]), None)
        if head is None:
            return None
        merged.append(head)
        left = []
        for order in pending:
            if order is not head and order.value != head.value:
                left.append(order)
            elif order.rest is not None:
                later[order.rest.value] -= 1
                left.append(order.rest)
        pending = left
    return merged, (pending[0] if pending else None)


def _as_written(orders: Sequence[Order]) -> list[Order]:
    places: dict[Value, Order] = {}
    for order in orders:
        for place in order:
            places.setdefault(place.value, place)
    return list(places.values())
