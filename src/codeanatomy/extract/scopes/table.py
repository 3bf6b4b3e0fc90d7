"""Scopes of one content, the names in them, and which binding each name refers to.

The walk opens scopes and reports uses and bindings as it meets them. A name may be used before it is bound, so names
are resolved once, at the end, by `resolve`, with the rules of CPython's `symtable.c`. This module knows no syntax.

Glossary
    symbol     a name in a scope that uses or binds it. Its final number, by scope and name, is its `binding_no`.
    target     the symbol that a symbol refers to: itself if its scope binds it, or one of an enclosing scope.
    key        what two spellings of one name share: private names are mangled, others normalised to NFKC.
    free       refers to a name of an enclosing function, through a closure.
    cell       a local name that is free in an inner scope.
    annotation scope
               the scope of type parameters, of their bounds and of a `type` alias. Alone among inner scopes, it sees
               the names of the class around it.
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

Span = tuple[int, int]
"""The first byte of something, and the byte after it."""

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
        self._respelled = pool.respelled_names
        self._class_cell = pool[b"__class__"]
        self.kinds: list[bytes] = []
        self.parents: list[int] = []
        self._class_names: list[bytes] = []
        self._tables: list[dict[int, int]] = []
        # One element per symbol.
        self._names: list[int] = []
        self._flags: list[int] = []
        self._targets: list[int] = []
        self._first_sites: list[tuple[int, int, int]] = []
        self._site_counts: list[int] = []

    def targets_of_symbols(self) -> list[int]:
        """For each symbol, its target; -1 if that is not in the content. Known once resolved."""
        return self._targets

    def names_of_symbols(self) -> list[int]:
        """For each symbol, its name."""
        return self._names

    @cached_property
    def scope_of_symbol(self) -> list[int]:
        """For each symbol, its scope; known once resolved."""
        scopes = [MODULE_SCOPE] * len(self._names)
        for scope, table in enumerate(self._tables):
            for symbol in table.values():
                scopes[symbol] = scope
        return scopes

    def module_symbol(self, name: int) -> int | None:
        """The symbol of a name of the module."""
        return self._tables[MODULE_SCOPE].get(name)

    def open(self, kind: bytes, parent: int, class_name: bytes = b"") -> int:
        """Open a scope inside `parent`; private names in it are mangled with `class_name`."""
        self.kinds.append(kind)
        self.parents.append(parent)
        self._class_names.append(class_name or (self._class_names[parent] if self._class_names else b""))
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
        """Record that `name` is read in `scope`; returns its symbol."""
        symbol = self.symbol(scope, name)
        self._flags[symbol] |= REFERENCED
        return symbol

    def use_super(self, scope: int) -> None:
        """Record that `super` is read in `scope`: inside a function, that reads `__class__` too."""
        if self.kinds[scope] in _FUNCTIONS:
            self.use(scope, self._class_cell)

    def bind(self, scope: int, name: int, site_kind: bytes, span: Span, flags: int = ASSIGNED) -> int:
        """Record that `name` is bound in `scope`; returns its symbol."""
        symbol = self.symbol(scope, name)
        self._flags[symbol] |= flags
        if not self._site_counts[symbol]:
            self._first_sites[symbol] = (self._pool[site_kind], *span)
        self._site_counts[symbol] += 1
        return symbol

    def bind_walrus(self, scope: int, name: int, span: Span) -> int:
        """Record `name := …` in `scope`; returns its symbol. In a comprehension, it binds in the scope around that."""
        enclosing = scope
        while self.kinds[enclosing] in COMPREHENSIONS:
            enclosing = self.parents[enclosing]
        if enclosing != scope:
            in_module = enclosing == MODULE_SCOPE
            if in_module or self._flags[self.symbol(enclosing, name)] & DECLARED_GLOBAL:
                self.declare_global(scope, name)
            else:
                self.declare_nonlocal(scope, name)
            self.bind(enclosing, name, b"walrus", span, flags=0 if in_module else ASSIGNED)
        return self.bind(scope, name, b"walrus", span)

    def declare_global(self, scope: int, name: int) -> None:
        """Record `global name` in `scope`."""
        key = self._key(scope, name)
        self._flags[self._symbol_of_key(scope, key, name)] |= DECLARED_GLOBAL
        self._flags[self._symbol_of_key(MODULE_SCOPE, key, key)] |= DECLARED_GLOBAL

    def declare_nonlocal(self, scope: int, name: int) -> None:
        """Record `nonlocal name` in `scope`."""
        self._flags[self.symbol(scope, name)] |= NONLOCAL

    def resolve(self, add_binding: AddRow, binding_of_symbol: array[int]) -> None:
        """Resolve all symbols: add the rows of `sym_bindings`, and for each symbol the binding it refers to."""
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
            kind, start, end = self._first_sites[symbol]
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
        """The symbol of `name` in `scope`, which is added if it is new."""
        if name in self._respelled:
            return self._symbol_of_key(scope, self._key(scope, name), name)
        table = self._tables[scope]
        symbol = table.get(name)
        if symbol is None:
            symbol = table[name] = self._add(name)
        return symbol

    def _symbol_of_key(self, scope: int, key: int, name: int) -> int:
        table = self._tables[scope]
        symbol = table.get(key)
        if symbol is None:
            symbol = table[key] = self._add(name)
        return symbol

    def _add(self, name: int) -> int:
        self._names.append(name)
        self._flags.append(0)
        self._targets.append(NOTHING)
        self._first_sites.append((NOTHING, NOTHING, NOTHING))
        self._site_counts.append(0)
        return len(self._names) - 1

    def _key(self, scope: int, name: int) -> int:
        """The key of `name` in `scope`."""
        text = self._pool.texts[name]
        private = self._class_names[scope].lstrip(b"_")
        if private and text.startswith(b"__") and not text.endswith(b"__"):
            text = b"_" + private + text
        return self._pool[unicodedata.normalize("NFKC", text.decode()).encode()]

    def _resolve(self, scope: int, key: int, symbol: int) -> None:
        """Find the target of a symbol; symbols of enclosing scopes have theirs already."""
        flags = self._flags[symbol]
        if flags & DECLARED_GLOBAL:
            self._resolve_to_global(symbol, key)
            if scope == MODULE_SCOPE:
                self._flags[symbol] |= LOCAL if flags & _BOUND else 0
                self._mark_implicit(symbol)
        elif flags & _BOUND and not flags & NONLOCAL:
            self._flags[symbol] |= LOCAL | GLOBAL if scope == MODULE_SCOPE else LOCAL
            self._targets[symbol] = symbol
        else:
            self._resolve_in_enclosing(scope, key, symbol)

    def _resolve_to_global(self, symbol: int, key: int) -> None:
        """The symbol refers to a name of the module; it has no target if the content does not bind that."""
        self._flags[symbol] |= GLOBAL
        target = self._tables[MODULE_SCOPE].get(key, NOTHING)
        if target != NOTHING and self._flags[target] & (_BOUND | DECLARED_GLOBAL):
            self._targets[symbol] = target

    def _resolve_in_enclosing(self, scope: int, key: int, symbol: int) -> None:
        """The symbol is not bound in its scope: find the nearest enclosing scope that has it."""
        if self.kinds[scope] in _ANNOTATION_SCOPES and self._resolve_in_class(scope, key, symbol):
            return
        passed: list[int] = []
        enclosing = self.parents[scope] if scope != MODULE_SCOPE else MODULE_SCOPE
        while enclosing != MODULE_SCOPE:
            if self.kinds[enclosing] != b"class":
                found = self._tables[enclosing].get(key)
            else:
                found = self._class_cell_of(enclosing) if key == self._class_cell else None
            if found is not None:
                if self._flags[found] & GLOBAL:
                    break
                self._flags[found] |= CELL if self._flags[found] & LOCAL else 0
                self._flags[symbol] |= FREE
                self._targets[symbol] = self._targets[found]
                self._add_to_closures(passed, key, symbol)
                return
            passed.append(enclosing)
            enclosing = self.parents[enclosing]
        if self._flags[symbol] & NONLOCAL:
            self._flags[symbol] |= FREE
        else:
            self._resolve_to_global(symbol, key)

    def _resolve_in_class(self, scope: int, key: int, symbol: int) -> bool:
        """Whether a symbol of an annotation scope refers to a name of the class around that."""
        enclosing = scope
        while self.kinds[enclosing] in _ANNOTATION_SCOPES:
            enclosing = self.parents[enclosing]
        found = self._tables[enclosing].get(key) if self.kinds[enclosing] == b"class" else None
        if found is None or not self._flags[found] & LOCAL:
            return False
        # The interpreter looks in the class first, then among the globals; its symbol table calls such a name global.
        self._flags[symbol] |= GLOBAL
        self._targets[symbol] = found
        return True

    def _class_cell_of(self, scope: int) -> int:
        """The symbol of a class's implicit `__class__`, which its body can neither read nor bind."""
        table = self._tables[scope]
        symbol = table.get(_CLASS_CELL)
        if symbol is None:
            is_taken = self._class_cell in table
            symbol = table[_CLASS_CELL] = self._add(self._pool[b".__class__"] if is_taken else self._class_cell)
            self._flags[symbol] = LOCAL
            self._targets[symbol] = symbol
            self._mark_implicit(symbol)
        return symbol

    def _mark_implicit(self, symbol: int) -> None:
        """Mark a symbol that is bound without a site in the source."""
        if not self._site_counts[symbol]:
            self._first_sites[symbol] = (self._pool[b"implicit"], NOTHING, NOTHING)

    def _add_to_closures(self, scopes: list[int], key: int, symbol: int) -> None:
        """Make the name free in the scopes between a free name and its binding: the closure goes through them."""
        for scope in scopes:
            if key not in self._tables[scope]:
                between = self._tables[scope][key] = self._add(key)
                self._flags[between] |= FREE
                self._targets[between] = self._targets[symbol]
