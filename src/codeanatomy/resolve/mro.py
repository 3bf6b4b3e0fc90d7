"""The order in which a class and its bases are searched: C3, as Python computes it."""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.resolve.values import Class, Value


def linearized(of: Class, orders: Sequence[Sequence[Value]]) -> list[Value]:
    """A class, then its bases, whose own orders are given, merged.

    Python refuses bases that cannot be merged, and a class among its own bases; here they come in the order in which
    they are written, depth first, so that such code has a graph too.
    """
    bases = [order[0] for order in orders]
    pending = [list(order) for order in (*orders, bases) if order]
    merged: list[Value] = [of]
    while pending:
        head = next((seq[0] for seq in pending if not any(seq[0] in other[1:] for other in pending)), None)
        if head is None:
            return list(dict.fromkeys([of, *(each for order in orders for each in order)]))
        if head != of:
            merged.append(head)
        pending = [rest for seq in pending if (rest := [each for each in seq if each != head])]
    return merged
