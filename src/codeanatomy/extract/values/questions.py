"""The questions of a content: what has to be looked up in other files to know what its sites refer to.

Runs once per content, after the walk and the scopes. A question is one or more terms (`terms`), joined by ` | `. Sites
with the same terms share a question.
"""

from __future__ import annotations

from array import array
from typing import Final

from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import MODULE_SCOPE
from codeanatomy.extract.values.forms import Form
from codeanatomy.extract.values.passes import Passes
from codeanatomy.extract.values.reaching import ReachingBindings
from codeanatomy.extract.values.slots import Slots
from codeanatomy.extract.values.terms import ASSIGNED, CALLED, LIMIT, SEPARATOR, Terms, ValueTerms
from codeanatomy.extract.walk import Walk

_NOT_NAMED_BY: Final = (CALLED, ASSIGNED)
_UNNAMED_ROOTS: Final = frozenset({b"v:", b"t:", b"n:"})
_UNNAMED_STEPS: Final = frozenset({b"(", b"@", b"[", b"^", b"+"})


def add_values(w: Walk) -> None:
    """Add what the content's names are bound to, and the questions of its sites."""
    bindings = ReachingBindings(w)
    terms = ValueTerms(w, bindings)
    slots = Slots(w, bindings, terms)
    slots.add()
    Passes(w, terms).add(slots.other_stores)
    _Questions(w, terms).number()


def _is_bound(term: bytes) -> bool:
    """Whether what a variable is bound to is not what the name names."""
    step = term.rpartition(b" ")[2]
    return term == LIMIT or term.endswith(_NOT_NAMED_BY) or step[:2] in _UNNAMED_ROOTS or step[:1] in _UNNAMED_STEPS


class _Questions:
    """The questions of one content."""

    def __init__(self, w: Walk, terms: ValueTerms) -> None:
        self._w = w
        self._terms = terms
        self._target_of = w.scopes.targets_of_symbols()
        self._scope_of = w.scopes.scope_of_symbol
        self._numbers: dict[bytes, int] = {}
        self._of_names: dict[tuple[int, int], int] = {}

    def number(self) -> None:
        """Replace the value in each site's row by the number of its question, and add the questions."""
        for dataset, column, question in (
            ("cst_callsites", "ask_no", self._question),
            ("cst_implicit_calls", "ask_no", self._implicit),
            ("cst_name_refs", "ask_no", self._reference),
            ("cst_bases", "ask_no", self._question),
            ("cst_decorators", "ask_no", self._question),
            ("cst_imports", "ask_no", self._question),
            ("cst_imports", "module_ask_no", self._question),
            ("cst_type_exprs", "ask_no", self._question),
            ("cst_defs", "overrides_ask_no", self._question),
        ):
            rows = self._w.cells.rows[dataset]
            cells = rows.column(column, self._w.first_rows[dataset])
            rows.cells[cells] = array("i", [question(number) for number in rows.cells[cells]])
        for text in self._numbers:
            self._w.cells.rows["asks"].add(question=self._w.pool[text])

    def _question(self, number: int) -> int:
        return self._number(self._terms.terms(number)) if number != NOTHING else NOTHING

    def _implicit(self, number: int) -> int:
        """The question of an implicit call; calls of builtin classes are left out."""
        return self._number(tuple(term for term in self._terms.terms(number) if not term.startswith((b"b:", b"n:"))))

    def _reference(self, number: int) -> int:
        """The question of a name that is read: what it names, not what a variable of that name is bound to."""
        if number == NOTHING:
            return NOTHING
        row = self._w.values[number]
        if row[0] != Form.NAME:
            return self._number(self._terms.terms(number))
        known = self._of_names.get(row[1:3])
        if known is None:
            terms = self._terms.terms(number)
            known = self._number(tuple(term for term in terms if not _is_bound(term)))
            target = self._target_of[row[1]]
            binding_scope = self._scope_of[target] if target != NOTHING else NOTHING
            if binding_scope == NOTHING or (
                binding_scope == MODULE_SCOPE and not self._terms.runs_as_part_of(row[2], binding_scope)
            ):
                self._of_names[row[1:3]] = known  # it refers to the same thing everywhere in its scope
        return known

    def _number(self, terms: Terms) -> int:
        if not terms:
            return NOTHING
        return self._numbers.setdefault(SEPARATOR.join(terms), len(self._numbers))
