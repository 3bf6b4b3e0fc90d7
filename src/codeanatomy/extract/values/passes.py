"""What a content passes on: facts from which the room `resolve` follows values into other functions and files.

A row of `sym_passes` is one of four kinds. A *call* has the terms of what is called and of its arguments. A store to an
*attribute* or *item* has the terms of what is written to, and of the value. A *container* has what it holds where it
is made. An argument that means nothing to anyone (a literal, or what cannot be followed) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.values.forms import Form
from codeanatomy.extract.values.terms import LIMIT, SEPARATOR, Terms, ValueTerms, key_name
from codeanatomy.extract.walk import Walk

_CONTAINERS: Final = (Form.ITEMS, Form.COMPREHENSION)


class Passes:
    """The rows of `sym_passes` of one content."""

    def __init__(self, w: Walk, terms: ValueTerms) -> None:
        self._w = w
        self._terms = terms
        self._added: set[tuple[bytes, bytes, bytes, bytes]] = set()

    def add(self, attribute_stores: Iterable[tuple[bytes, bytes, int]]) -> None:
        """Add the rows; `attribute_stores` has a term, a name and the value assigned to that attribute of it."""
        for term, name, number in attribute_stores:
            if passed := self._passed(number):
                self._add(b"attribute", b"", (term,), [(name, passed)])
        for base, key, number, _ in self._w.item_stores:
            if passed := self._passed(number):
                self._add(b"item", b"", self._terms.terms(base), [(key_name(key) or b"*", passed)])
        for number in self._w.call_values:
            _, callee, arguments, place = self._w.values[number]
            self._add_call(self._terms.terms(callee), arguments, place)
        for def_no in sorted(self._w.decorations):
            self._add_decorators(def_no)
        for row in self._w.values:
            if row[0] in _CONTAINERS:
                self._add_container(row)

    def _add_call(self, callee: Terms, arguments: Sequence[tuple[bytes, int]], place: bytes) -> None:
        given = [(where, passed) for where, number in arguments if (passed := self._passed(number))]
        followed = tuple(term for term in callee if term != LIMIT)
        if given or place or any(not term.startswith((b"b:", b"n:")) for term in followed):
            self._add(b"call", place, followed, given)

    def _add_decorators(self, def_no: int) -> None:
        """A decorator is called with what the one below it made of the definition."""
        definition = self._w.definitions[def_no]
        term = definition.root_letter() + b":" + definition.key
        for decorator, place in self._w.decorations[def_no]:
            called = self._terms.terms(decorator)
            if called and not definition.is_accessor():
                self._add(b"call", place, called, [(b"0", term)])
                term += b" &" + place

    def _add_container(self, row: tuple[object, ...]) -> None:
        """What a display or comprehension holds."""
        held: list[tuple[bytes, bytes]] = []
        if row[0] == Form.COMPREHENSION:
            number = self._w.comprehension_values.get(row[2], NOTHING)  # type: ignore[call-overload]
            held.append((b"*", self._passed(number)))
            place = row[3]
        else:
            _, kind, keys, values, place, spread = row
            for key, number in zip(keys, values, strict=True):  # type: ignore[call-overload]
                where = b"*" if kind == b"set" else key_name(key) or b"*"
                held.append((where, self._passed(number)))
            held += ((b"**" if keyed else b"+", self._passed(number)) for keyed, number in spread)  # type: ignore[attr-defined]
        self._add(b"container", place, (), [(where, passed) for where, passed in held if passed])  # type: ignore[arg-type]

    def _passed(self, number: int) -> bytes:
        """The terms of a value that is passed on; empty if it means nothing to anyone."""
        terms = self._terms.terms(number)
        return SEPARATOR.join(term for term in terms if term != LIMIT and not _is_literal(term))

    def _add(self, kind: bytes, place: bytes, target: Terms, passed: Sequence[tuple[bytes, bytes]]) -> None:
        value = b"\n".join(b"%b\t%b" % each for each in passed)
        row = (kind, place, SEPARATOR.join(target), value)
        if row in self._added or (kind == b"container" and not value) or (kind != b"container" and not target):
            return
        self._added.add(row)
        pool = self._w.pool
        cells = (pool[cell] if cell else NOTHING for cell in row)
        self._w.cells.rows["sym_passes"].add(**dict(zip(("kind", "site", "target", "value"), cells, strict=True)))


def _is_literal(term: bytes) -> bool:
    """Whether a term is a literal of a builtin class: `b:str ()`."""
    return term.startswith(b"b:") and term.count(b" ") <= 2 and term.removesuffix(b" =").endswith(b" ()")
