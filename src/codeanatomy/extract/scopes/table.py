"""Scopes of one content, the names in them, and what each name means there.

The walk opens scopes and reports uses and bindings as it meets them; a name may be used before it is bound, so
meaning is decided once, at the end, by `resolve`. It decides as CPython's `symtable.c` does and knows no syntax.

Glossary
    symbol     a name in a scope that mentions it. Its final number, by scope and name, is its `binding_no`.
    key        what two spellings of one name share: private names are mangled, others normalised to NFKC.
    free       means a name of an enclosing function, reached through a closure.
    cell       a local name that is free in an inner scope.
    annotation scope
               the scope of type parameters, of their bounds and of a `type` alias. Alone among inner scopes it sees
               the names of the class it stands in.
"""

from __future__ import annotations

import unicodedata
from array import array
from functools import cached_property
from typing import Final

from codeanatomy.extract.cells import BINDING_FLAGS, NOTHING, AddRow, Pool

LOCAL, GLOBAL, DECLARED_GLOBAL, NONLOCAL, FREE, CELL, PARAMETER, IMPORTED, ANNOTATED, ASSIGNED, REFERENCED = (
    1 << bit for bit in range(len(BINDING_FLAGS))
)
_BOUND: Final = PARAMETER | IMPORTED | ASSIGNED

MODULE_SCOPE: Final = 0
COMPREHENSIONS: Final = frozenset({b"listcomp", b"setcomp", b"dictcomp", b"genexpr"})
_FUNCTIONS: Final = COMPREHENSIONS | {b"function", b"lambda"}
_ANNOTATION_SCOPES: Final = frozenset({b"type_params", b"type_alias", b"type_bound"})

_CLASS_CELL: Final = -1
"""Key of a class's implicit `__class__`."""


class ScopeTable:
    """The scopes of one content and their symbols."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._odd = pool.odd_names
        self._class_cell = pool[b"__class__"]
        self.kinds: list[bytes] = []
        self.parents: list[int] = []
        self._privates: list[bytes] = []
        self._tables: list[dict[int, int]] = []
        # One element per symbol.
        self._names: list[int] = []
        self._flags: list[int] = []
        self._targets: list[int] = []
        self._sites: list[tuple[int, int, int]] = []
        self._site_counts: list[int] = []

    def meanings(self) -> list[int]:
        """For each symbol, the one it means; -1 when it leaves the content. Known once resolved."""
        return self._targets

    def names_of_symbols(self) -> list[int]:
        """For each symbol, its name."""
        return self._names

    @cached_property
    def scope_of_symbol(self) -> list[int]:
        """For each symbol, the scope that mentions it; known once resolved."""
        scopes = [MODULE_SCOPE] * len(self._names)
        for scope, table in enumerate(self._tables):
            for symbol in table.values():
                scopes[symbol] = scope
        return scopes

    def module_symbol(self, name: int) -> int | None:
        """The symbol of a name of the module."""
        return self._tables[MODULE_SCOPE].get(name)

    def open(self, kind: bytes, parent: int, class_name: bytes = b"") -> int:
        """A new scope inside `parent`; `class_name` mangles the private names in it."""
        self.kinds.append(kind)
        self.parents.append(parent)
        self._privates.append(class_name or (self._privates[parent] if self._privates else b""))
        self._tables.append({})
        return len(self.kinds) - 1

    def in_function(self, scope: int) -> bool:
        """Whether `scope` is, or is inside, the body of a function."""
        while scope != MODULE_SCOPE:
            if self.kinds[scope] in _FUNCTIONS:
                return True
            scope = self.parents[scope]
        return False

    def use(self, scope: int, name: int) -> int:
        """`name` is read in `scope`; its symbol."""
        symbol = self.symbol(scope, name)
        self._flags[symbol] |= REFERENCED
        return symbol

    def use_super(self, scope: int) -> None:
        """`super` is read in `scope`: inside a function that means reading `__class__` too."""
        if self.kinds[scope] in _FUNCTIONS:
            self.use(scope, self._class_cell)

    def bind(self, scope: int, name: int, site: bytes, start: int, end: int, flags: int = ASSIGNED) -> int:
        """`name` is bound in `scope` at a site; its symbol."""
        symbol = self.symbol(scope, name)
        self._flags[symbol] |= flags
        if not self._site_counts[symbol]:
            self._sites[symbol] = (self._pool[site], start, end)
        self._site_counts[symbol] += 1
        return symbol

    def bind_walrus(self, scope: int, name: int, start: int, end: int) -> int:
        """`name := …` in `scope`: a comprehension binds it in the scope around it, and only passes it on."""
        around = scope
        while self.kinds[around] in COMPREHENSIONS:
            around = self.parents[around]
        if around != scope:
            in_module = around == MODULE_SCOPE
            if in_module or self._flags[self.symbol(around, name)] & DECLARED_GLOBAL:
                self.declare_global(scope, name)
            else:
                self.declare_nonlocal(scope, name)
            self.bind(around, name, b"walrus", start, end, flags=0 if in_module else ASSIGNED)
        return self.bind(scope, name, b"walrus", start, end)

    def declare_global(self, scope: int, name: int) -> None:
        """`global name` in `scope`."""
        key = self._key(scope, name)
        self._flags[self._at(scope, key, name)] |= DECLARED_GLOBAL
        self._flags[self._at(MODULE_SCOPE, key, key)] |= DECLARED_GLOBAL

    def declare_nonlocal(self, scope: int, name: int) -> None:
        """`nonlocal name` in `scope`."""
        self._flags[self.symbol(scope, name)] |= NONLOCAL

    def resolve(self, add_binding: AddRow, binding_of_symbol: array[int]) -> None:
        """Add the rows of `sym_bindings`, and for each symbol the binding it means."""
        for scope, table in enumerate(self._tables):
            for key, symbol in list(table.items()):
                self._resolve(scope, key, symbol)
        texts, names = self._pool.texts, self._names
        ordered = [
            (scope, symbol)
            for scope, table in enumerate(self._tables)
            for symbol in sorted(table.values(), key=lambda symbol: texts[names[symbol]])
        ]
        numbers = [0] * len(ordered)
        for number, (_, symbol) in enumerate(ordered):
            numbers[symbol] = number
        targets = [NOTHING if target == NOTHING else numbers[target] for target in self._targets]
        for scope, symbol in ordered:
            kind, start, end = self._sites[symbol]
            add_binding(
                scope_no=scope,
                name=names[symbol],
                flags=self._flags[symbol],
                target_no=targets[symbol],
                site_kind=kind,
                site_bstart=start,
                site_bend=end,
                site_count=self._site_counts[symbol],
            )
        binding_of_symbol.fromlist(targets)

    def symbol(self, scope: int, name: int) -> int:
        """The symbol of `name` in `scope`, which thereby mentions it."""
        if name in self._odd:
            return self._at(scope, self._key(scope, name), name)
        table = self._tables[scope]
        symbol = table.get(name)
        if symbol is None:
            symbol = table[name] = self._add(name)
        return symbol

    def _at(self, scope: int, key: int, name: int) -> int:
        table = self._tables[scope]
        symbol = table.get(key)
        if symbol is None:
            symbol = table[key] = self._add(name)
        return symbol

    def _add(self, name: int) -> int:
        self._names.append(name)
        self._flags.append(0)
        self._targets.append(NOTHING)
        self._sites.append((NOTHING, NOTHING, NOTHING))
        self._site_counts.append(0)
        return len(self._names) - 1

    def _key(self, scope: int, name: int) -> int:
        """The spelling that stands for `name` in `scope`."""
        text = self._pool.texts[name]
        private = self._privates[scope].lstrip(b"_")
        if private and text.startswith(b"__") and not text.endswith(b"__"):
            text = b"_" + private + text
        return self._pool[unicodedata.normalize("NFKC", text.decode()).encode()]

    def _resolve(self, scope: int, key: int, symbol: int) -> None:
        """Decide what a symbol means; those of enclosing scopes are decided already."""
        flags = self._flags[symbol]
        if flags & DECLARED_GLOBAL:
            self._mean_global(symbol, key)
            if scope == MODULE_SCOPE:
                self._flags[symbol] |= LOCAL if flags & _BOUND else 0
                self._imply(symbol)
        elif flags & _BOUND and not flags & NONLOCAL:
            self._flags[symbol] |= LOCAL | GLOBAL if scope == MODULE_SCOPE else LOCAL
            self._targets[symbol] = symbol
        else:
            self._mean_enclosing(scope, key, symbol)

    def _mean_global(self, symbol: int, key: int) -> None:
        """The symbol means the module's name, which this content may not bind."""
        self._flags[symbol] |= GLOBAL
        target = self._tables[MODULE_SCOPE].get(key, NOTHING)
        if target != NOTHING and self._flags[target] & (_BOUND | DECLARED_GLOBAL):
            self._targets[symbol] = target

    def _mean_enclosing(self, scope: int, key: int, symbol: int) -> None:
        """The symbol is not bound in its scope: find the nearest enclosing one that binds or decides it."""
        if self.kinds[scope] in _ANNOTATION_SCOPES and self._mean_class(scope, key, symbol):
            return
        passed: list[int] = []
        around = self.parents[scope] if scope != MODULE_SCOPE else MODULE_SCOPE
        while around != MODULE_SCOPE:
            if self.kinds[around] != b"class":
                found = self._tables[around].get(key)
            else:
                found = self._class_cell_of(around) if key == self._class_cell else None
            if found is not None:
                if self._flags[found] & GLOBAL:
                    break
                self._flags[found] |= CELL if self._flags[found] & LOCAL else 0
                self._flags[symbol] |= FREE
                self._targets[symbol] = self._targets[found]
                self._pass_on(passed, key, symbol)
                return
            passed.append(around)
            around = self.parents[around]
        if self._flags[symbol] & NONLOCAL:
            self._flags[symbol] |= FREE
        else:
            self._mean_global(symbol, key)

    def _mean_class(self, scope: int, key: int, symbol: int) -> bool:
        """Whether an annotation scope's name is one of the class it stands in."""
        around = scope
        while self.kinds[around] in _ANNOTATION_SCOPES:
            around = self.parents[around]
        found = self._tables[around].get(key) if self.kinds[around] == b"class" else None
        if found is None or not self._flags[found] & LOCAL:
            return False
        # The interpreter looks in the class first and, failing that, among the globals: it calls that global.
        self._flags[symbol] |= GLOBAL
        self._targets[symbol] = found
        return True

    def _class_cell_of(self, scope: int) -> int:
        """The implicit `__class__` of a class, which is not a name that its body can read or bind."""
        table = self._tables[scope]
        symbol = table.get(_CLASS_CELL)
        if symbol is None:
            written = self._class_cell in table
            symbol = table[_CLASS_CELL] = self._add(self._pool[b".__class__"] if written else self._class_cell)
            self._flags[symbol] = LOCAL
            self._targets[symbol] = symbol
            self._imply(symbol)
        return symbol

    def _imply(self, symbol: int) -> None:
        """A binding without a site of its own."""
        if not self._site_counts[symbol]:
            self._sites[symbol] = (self._pool[b"implicit"], NOTHING, NOTHING)

    def _pass_on(self, scopes: list[int], key: int, symbol: int) -> None:
        """Scopes between a free name and its binding hold it too: the closure goes through them."""
        for scope in scopes:
            if key not in self._tables[scope]:
                passing = self._tables[scope][key] = self._add(key)
                self._flags[passing] |= FREE
                self._targets[passing] = self._targets[symbol]
