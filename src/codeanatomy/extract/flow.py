"""What names hold where they are used, as far as one content can tell, and what it has to ask about the rest.

Runs once per content, after the walk and the scopes. The result is text: a **question** is what a call, a name or a
base means, written from the roots that this content cannot see through. It has no paths in it; `resolve` answers it.

A question is one or more alternatives, joined by ` | `. An alternative is a root and steps, joined by spaces:

    g:NAME          the module's own name, else one of its star imports, else a builtin; o: not its own
    i:LEVEL:MODULE  an imported module, LEVEL dots up
    c:KEY f:KEY     a class, a function of this content; p: a property, s: a static, k: a class method
    b:NAME          a builtin class        l:      not followed: a limit was hit
    .NAME           an attribute           ()      the result of a call
    ^               `super()` of a class   []      an item                +   a sum of it and something
    @enter          what `with` gives      @next   what a loop gives
    =               by assignment: the name that was read is a variable, the thing has a name of its own

Which bindings of a name reach a use is decided from blocks: the last one whose block contains the use hides those
before it; one in a common loop reaches from below. Other functions see what a module or class ends with.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

from codeanatomy.extract.columns import STORED
from codeanatomy.extract.scopes import COMPREHENSIONS, MODULE_SCOPE
from codeanatomy.extract.structure import Block, Event
from codeanatomy.extract.values import Form, limit_value
from codeanatomy.extract.walk import NOTHING, Walk

_MAX_ALTERNATIVES: Final = 8
_MAX_QUESTION: Final = 400
_MAX_DEPTH: Final = 120
_MAX_NESTING: Final = 20
_MAX_EVENTS: Final = 50

_ALTERNATIVE: Final = b" | "
_CALLED: Final = b" ()"
_ASSIGNED: Final = b" ="
_TRANSPARENT: Final = COMPREHENSIONS | {b"type_params", b"type_alias", b"type_bound"}
_CLASS_METHODS: Final = frozenset({b"__new__", b"__init_subclass__", b"__class_getitem__"})

Terms = tuple[bytes, ...]
_NONE: Final[Terms] = ()
_LIMIT: Final = b"l:"


def emit_flow(w: Walk) -> None:
    """Emit what the content's names hold, and number the questions of its sites."""
    flow = _Flow(w)
    flow.emit_values()
    flow.number_questions()


class _Flow:
    """The flow of one content whose scopes are resolved."""

    def __init__(self, w: Walk) -> None:
        self._w = w
        self._texts = w.pool.texts
        self._meaning = w.scopes.meanings()
        self._scope_of = w.scopes.scopes_of_symbols()
        self._names = w.scopes.names_of_symbols()
        self._blocks: list[Block] = w.blocks
        self._known: dict[int, Terms] = {}
        self._open: set[int] = set()
        self._cut = False
        self._questions: dict[bytes, int] = {}
        self._events, self._foreign = self._grouped_events()
        self._finals: dict[int, list[Event]] = {}
        self._members: dict[int, list[int]] = {}
        self._names_asked: dict[tuple[int, int], int] = {}
        self._limit = limit_value(w)

    def _grouped_events(self) -> tuple[dict[int, list[Event]], dict[int, list[Event]]]:
        """Events of each binding: in its own scope in order, and those of functions that name it `global`."""
        own: dict[int, list[Event]] = {}
        foreign: dict[int, list[Event]] = {}
        for symbol, bound in self._w.events.items():
            target = self._meaning[symbol]
            events = [event for event in bound if not self._is_accessor(event.value)]
            if target in (symbol, NOTHING):
                own[symbol] = sorted(events)
            else:
                foreign.setdefault(target, []).extend(events)
        return own, foreign

    # What reaches a use.

    def _all_events(self, symbol: int) -> list[Event]:
        return [*self._events.get(symbol, ()), *self._foreign.get(symbol, ())]

    def _final(self, symbol: int) -> list[Event]:
        """What a scope ends with."""
        known = self._finals.get(symbol)
        if known is None:
            top = self._w.scope_blocks.get(self._scope_of[symbol], 0)
            known = self._finals[symbol] = self._last_events(symbol, self._blocks[top].end - 1, len(self._w.text) + 1)
        return known

    def _reaching(self, symbol: int, position: int) -> list[Event]:
        events = self._events.get(symbol, ())
        if len(events) == 1 and symbol not in self._foreign and events[0].position <= position:
            return list(events)
        return self._last_events(symbol, position, position)

    def _last_events(self, symbol: int, inside: int, before: int) -> list[Event]:
        """Bindings before a position that reach a use in the blocks around `inside`; the nearest, if they are many.

        Then a limit stands for the others.
        """
        found: list[Event] = []
        hiding: Event | None = None
        taken: set[int] = set()
        events = self._events.get(symbol, [])
        first_after = bisect_right(events, before, key=_position)
        for event in reversed(events[max(0, first_after - _MAX_EVENTS) : first_after]):
            surrounds = self._contains(event.block, inside)
            if surrounds or not self._leaves_before(event.block, inside):
                found.append(event)
            if surrounds or self._covers(event.block, inside, taken):
                hiding = event
                break
        is_cut = hiding is None and first_after > _MAX_EVENTS
        found.reverse()
        after = events[first_after : first_after + _MAX_EVENTS]
        looping = [event for event in after if self._loops_back(event, inside, hiding)]
        found += looping
        if is_cut or (looping and len(events) > first_after + _MAX_EVENTS):
            found.append(Event(before, 0, self._limit))
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

    def _loops_back(self, event: Event, position: int, hiding: Event | None) -> bool:
        block = event.block
        while block != NOTHING:
            if self._blocks[block].is_loop and self._contains(block, position):
                return hiding is None or not self._contains(block, hiding.position)
            block = self._blocks[block].parent
        return False

    # Values as terms.

    def terms(self, number: int, depth: int = 0) -> Terms:
        """The alternatives of a value."""
        if number == NOTHING:
            return _NONE
        known = self._known.get(number)
        if known is not None:
            return known
        if number in self._open:
            return _NONE
        if depth > _MAX_DEPTH:
            self._cut = True
            return (_LIMIT,)
        if depth == 0:
            self._cut = False
        self._open.add(number)
        row = self._w.values[number]
        found = _bounded(_MAKERS[row[0]](self, row, depth + 1))
        self._open.discard(number)
        if depth == 0 or not self._cut:
            self._known[number] = found
        return found

    def _name(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, scope, position = row
        target = self._meaning[symbol]
        if target == NOTHING:
            return (b"g:" + self._texts[self._names[symbol]],)
        home = self._scope_of[target]
        if home == MODULE_SCOPE:
            shared = (b"g:" + self._texts[self._names[target]],)
            if not self._runs_in(scope, home):
                return shared
            events = self._reaching(target, position)
            if all(self._w.values[event.value][0] == Form.DELETED for event in events):
                return (b"o:" + self._texts[self._names[target]],)  # not yet bound, or no longer
            return shared if events == self._final(target) else self._union(events, depth)
        runs_here = self._runs_in(scope, home) and self._w.scopes.kinds[home] not in COMPREHENSIONS
        return self._union(self._reaching(target, position) if runs_here else self._all_events(target), depth)

    def _runs_in(self, scope: int, home: int) -> bool:
        """Whether code of `scope` runs where it stands, as part of `home`."""
        kinds, parents = self._w.scopes.kinds, self._w.scopes.parents
        while scope != home and kinds[scope] in _TRANSPARENT:
            scope = parents[scope]
        return scope == home

    def _union(self, events: Sequence[Event], depth: int) -> Terms:
        if len(events) == 1:
            return self.terms(events[0].value, depth)
        return tuple(term for event in events for term in self.terms(event.value, depth))

    def _attribute(self, row: tuple[Any, ...], depth: int) -> Terms:
        return _extended(self.terms(row[1], depth), b" ." + row[2])

    def _call(self, row: tuple[Any, ...], depth: int) -> Terms:
        return _extended(self.terms(row[1], depth), _CALLED)

    def _super(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, scope, given = row
        if self._meaning[symbol] != NOTHING:
            return _NONE
        if given != NOTHING:
            return _extended(self.terms(given, depth), b" ^")
        w = self._w
        while scope != MODULE_SCOPE and w.scopes.kinds[scope] != b"class":
            scope = w.scopes.parents[scope]
        return (b"c:" + w.definitions[w.scope_defs[scope]].key + b" ^",) if scope != MODULE_SCOPE else _NONE

    def _getattr(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, of, name = row
        return _extended(self.terms(of, depth), b" ." + name) if self._meaning[symbol] == NOTHING else _NONE

    def _class_of(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, of = row
        return _extended(self.terms(of, depth), b" .__class__") if self._meaning[symbol] == NOTHING else _NONE

    def _literal(self, row: tuple[Any, ...], depth: int) -> Terms:
        return (b"b:" + row[1] + _CALLED,)

    def _item(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, of, key = row
        found = self._part(of, key, depth)
        return found if found is not None else _extended(self.terms(of, depth), b" []")

    def _part(self, number: int, key: object, depth: int) -> Terms | None:
        """What a display has at a key; None if the value is no display."""
        displays = self._displays(number, depth)
        if displays is None:
            return None
        found: list[bytes] = []
        for _, kind, keys, values in displays:
            if self._is_cut(values) and key not in keys:
                found.append(_LIMIT)
                continue
            at = key + len(keys) if isinstance(key, int) and key < 0 and kind != b"dict" else key
            if at is not None and (kind == b"dict" or None not in keys[: at if isinstance(at, int) else 0]):
                found += (
                    t
                    for k, v in zip(keys, values, strict=True)
                    if k == at and k is not None
                    for t in self.terms(v, depth)
                )
        return tuple(found)

    def _is_cut(self, values: Sequence[int]) -> bool:
        """Whether these are not all values of a display."""
        return bool(values) and values[-1] != NOTHING and self._w.values[values[-1]][0] == Form.LIMIT

    def _displays(self, number: int, depth: int) -> list[tuple[Any, ...]] | None:
        """The displays a value can be; None if it can be anything else."""
        row = self._w.values[number] if number != NOTHING and depth <= _MAX_DEPTH else (NOTHING,)
        if row[0] == Form.ITEMS:
            return [row]
        if row[0] == Form.NAME:
            _, symbol, scope, position = row
            target = self._meaning[symbol]
            if target != NOTHING and self._runs_in(scope, self._scope_of[target]):
                numbers: Iterable[int] = [event.value for event in self._reaching(target, position)]
                return self._all_displays(numbers, depth)
        return None

    def _all_displays(self, numbers: Iterable[int], depth: int) -> list[tuple[Any, ...]] | None:
        found: list[tuple[Any, ...]] = []
        for number in numbers:
            row = self._w.values[number]
            below = self._displays(row[1] if row[0] == Form.ASSIGNED else number, depth + 10)
            if below is None:
                return None
            found += below
        return found or None

    def _sum(self, row: tuple[Any, ...], depth: int) -> Terms:
        return _extended(self.terms(row[1], depth), b" +")

    def _either(self, row: tuple[Any, ...], depth: int) -> Terms:
        return tuple(term for number in row[1] for term in self.terms(number, depth))

    def _lambda(self, row: tuple[Any, ...], depth: int) -> Terms:
        number = self._w.lambdas.get(row[1])
        return (b"f:" + self._w.definitions[number].key,) if number is not None else _NONE

    def _type_name(self, row: tuple[Any, ...], depth: int) -> Terms:
        first, *rest = row[1].split(b".")
        return (b" .".join([b"g:" + first, *rest]),)

    def _import(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, level, module, name = row
        return (b"i:%d:%b" % (level, module) + (b" ." + name if name else b""),)

    def _definition(self, row: tuple[Any, ...], depth: int) -> Terms:
        definition = self._w.definitions[row[1]]
        return (definition.letter() + b":" + definition.key,)

    def _parameter(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, def_no, position, kind, typed, default = row
        definition = self._w.definitions[def_no]
        if kind == b"var_positional":
            return (b"b:tuple ()",)
        if kind == b"var_keyword":
            return (b"b:dict ()",)
        container = self._w.definitions[definition.container] if definition.container != NOTHING else None
        in_class = container is not None and container.kind == b"class"
        if position == 0 and in_class and container and definition.letter() != b"s":
            owner = b"c:" + container.key
            is_class = definition.letter() == b"k" or definition.name in _CLASS_METHODS
            return (owner if is_class else owner + _CALLED,)
        found = _extended(self.terms(typed, depth), _CALLED)
        if default != NOTHING and self._w.values[default][0] not in (Form.LITERAL, Form.ITEMS):
            found += _extended(self.terms(default, depth), _ASSIGNED)
        return found

    def _assigned(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, held, typed = row
        found = self.terms(held, depth)
        declared = _extended(self.terms(typed, depth), _CALLED)
        vague = not found or (declared and any(term.endswith((b"[]", b"@next", _LIMIT)) for term in found))
        return declared if vague else _extended(found, _ASSIGNED)

    def _element(self, row: tuple[Any, ...], depth: int) -> Terms:
        displays = self._displays(row[1], depth)
        if displays is None:
            return _extended(self.terms(row[1], depth), b" @next")
        values = [v for _, kind, _, values in displays if kind != b"dict" for v in values]
        return _extended(tuple(term for v in values for term in self.terms(v, depth)), _ASSIGNED)

    def _entered(self, row: tuple[Any, ...], depth: int) -> Terms:
        return _extended(self.terms(row[1], depth), b" @enter")

    def _raised(self, row: tuple[Any, ...], depth: int) -> Terms:
        of: tuple[Any, ...] = self._w.values[row[1]]
        classes = of[3] if of[0] == Form.ITEMS else (row[1],)
        return _extended(tuple(term for each in classes for term in self.terms(each, depth)), _CALLED)

    def _unpacked(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, number, path = row
        if not path:
            return self.terms(number, depth)
        displays = self._displays(number, depth) or []
        found: list[bytes] = []
        for _, _, keys, values in displays:
            is_cut = self._is_cut(values)
            known = keys[:-1] if is_cut else keys
            if path[0] == b"*" or None in known:
                continue
            step = int(path[0])
            if is_cut and not 0 <= step < len(known):
                found.append(_LIMIT)
                continue
            at = step + len(known) if step < 0 else step
            if 0 <= at < len(known) and values[at] != NOTHING:
                inner = (Form.PART, values[at], path[1:])
                found += self._unpacked(inner, depth)
        return tuple(found)

    def _overridden(self, row: tuple[Any, ...], depth: int) -> Terms:
        return (b"c:" + self._w.definitions[row[1]].key + b" ^",)

    def _nothing(self, row: tuple[Any, ...], depth: int) -> Terms:
        return _NONE

    def _limited(self, row: tuple[Any, ...], depth: int) -> Terms:
        return (_LIMIT,)

    # What the content holds and asks.

    def emit_values(self) -> None:
        """Emit what modules, classes and functions hold and give."""
        w = self._w
        owners = {definition.scope: no for no, definition in enumerate(w.definitions) if definition.kind == b"class"}
        owners[MODULE_SCOPE] = NOTHING
        for symbol in sorted(self._events.keys() | self._foreign.keys(), key=lambda s: self._texts[self._names[s]]):
            owner = owners.get(self._scope_of[symbol])
            if owner is not None and self._meaning[symbol] == symbol:
                self._members.setdefault(owner, []).append(symbol)
        for owner in sorted(self._members):
            for symbol in self._members[owner]:
                self._emit_name(symbol, owner)
        self._emit_attributes()
        for op, results in (("returns", w.returns), ("yields", w.yields)):
            for def_no, numbers in results.items():
                value = self._joined(numbers)
                if value or op == "yields":
                    self._emit(def_no, op.encode(), b"", NOTHING, value, b"", b"")
        for def_no, typed in w.return_types.items():
            if terms := _extended(self.terms(typed), _CALLED):
                self._emit(def_no, b"return_type", b"", NOTHING, _ALTERNATIVE.join(terms), b"", b"")
        for number, (_, module) in enumerate(w.star_imports):
            self._emit(NOTHING, b"star", b"%d" % number, NOTHING, self._joined([module]), b"import", b"")
        for def_no, number, position, keyword in w.base_values:
            slot = b"metaclass" if keyword == b"metaclass" else b"base"
            if keyword in (b"", b"metaclass"):
                self._emit(def_no, slot, b"%d" % position, NOTHING, self._joined([number]), b"", b"")
        for def_no, definition in enumerate(w.definitions):
            if definition.kind == b"class":
                self._emit(def_no, b"class", definition.name, NOTHING, b"", b"", b"")
            if definition.is_accessor() and definition.decorators[-1].endswith(b".setter"):
                self._emit(definition.container, b"setter", definition.name, NOTHING, b"f:" + definition.key, b"", b"")

    def _emit_name(self, symbol: int, owner: int) -> None:
        """One name of a module or class."""
        slot = b"global" if owner == NOTHING else b"member"
        value = self._joined([event.value for event in self._final(symbol)])
        kind, shape = self._kind(symbol), self._shape(symbol)
        digest = sha256(shape).hexdigest()[:24].encode() if shape else b""
        bound = max((event.position for event in self._final(symbol)), default=0)
        stars = sum(position < bound for position, _ in self._w.star_imports) if owner == NOTHING else 0
        self._emit(owner, slot, self._texts[self._names[symbol]], symbol, value, kind, digest, stars)

    def _kind(self, symbol: int) -> bytes:
        """What sort of thing a name holds."""
        rows = [self._w.values[event.value] for event in self._final(symbol)]
        kinds = {
            self._w.definitions[row[1]].kind
            if row[0] == Form.DEFINITION
            else b"import"
            if row[0] == Form.IMPORT
            else b"variable"
            for row in rows
        }
        return b"variable" if not kinds else kinds.pop() if len(kinds) == 1 else b"mixed"

    def _shape(self, symbol: int, depth: int = 0) -> bytes:
        """What can be seen of a name besides what it is: signatures, bases, members, the declared type."""
        w = self._w
        shapes = [w.declared_types.get(symbol, b"")]
        for event in self._final(symbol):
            if w.values[event.value][0] == Form.DEFINITION:
                number = w.values[event.value][1]
                shapes.append(w.definitions[number].shape)
                members = self._members.get(number, ()) if depth < _MAX_NESTING else ()
                shapes += (
                    b"%b %b %b" % (self._texts[self._names[m]], self._kind(m), self._shape(m, depth + 1))
                    for m in members
                )
        return b"\n".join(filter(None, shapes))

    def _is_accessor(self, number: int) -> bool:
        row = self._w.values[number]
        return bool(row[0] == Form.DEFINITION and self._w.definitions[row[1]].is_accessor())

    def _emit_attributes(self) -> None:
        """What is assigned to attributes of this content's classes and of their instances."""
        numbers = {definition.key: no for no, definition in enumerate(self._w.definitions)}
        found: dict[tuple[int, bytes, bytes], list[int]] = {}
        certain: set[tuple[int, bytes, bytes]] = set()
        for base, name, held, is_certain in self._w.attribute_stores:
            for term in self._own_classes(self.terms(base)):
                root, _, steps = term.replace(_ASSIGNED, b"").partition(b" ")
                slot = {b"": b"member", b"()": b"attribute"}.get(steps)
                owner = numbers.get(root[2:]) if root.startswith(b"c:") else None
                if slot and owner is not None:
                    found.setdefault((owner, slot, name), []).append(held)
                    if is_certain:
                        certain.add((owner, slot, name))
        for key, values in sorted(found.items()):
            kind = b"variable" if key in certain else b"mixed"
            self._emit(*key, NOTHING, self._joined(values), kind, b"")

    def _own_classes(self, terms: Terms) -> list[bytes]:
        """Terms with names of the module replaced by what they hold."""
        found: list[bytes] = []
        for term in terms:
            root, space, steps = term.partition(b" ")
            symbol = self._w.scopes.module_symbol(self._w.pool[root[2:]]) if root.startswith(b"g:") else None
            if symbol is None or self._meaning[symbol] != symbol:
                found.append(term)
            else:
                found += (held + space + steps for held in self._union(self._final(symbol), 1))
        return found

    def _joined(self, numbers: Iterable[int]) -> bytes:
        return _ALTERNATIVE.join(_bounded(tuple(term for number in numbers for term in self.terms(number))))

    def _emit(
        self,
        owner: int,
        slot: bytes,
        name: bytes,
        symbol: int,
        value: bytes,
        kind: bytes,
        shape: bytes,
        stars_before: int = 0,
    ) -> None:
        w, pool = self._w, self._w.pool
        w.cells.rows["sym_values"].fromlist(
            [
                owner,
                pool[w.def_qualnames[owner]] if owner != NOTHING else NOTHING,
                pool[slot],
                pool[name],
                w.first_symbol + symbol if symbol != NOTHING else NOTHING,
                pool[value] if value else NOTHING,
                pool[kind] if kind else NOTHING,
                pool[shape] if shape else NOTHING,
                stars_before,
            ]
        )

    def number_questions(self) -> None:
        """Put the number of its question into each site's row, in place of its value."""
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
            cells = slice(self._w.first_cells[dataset] + STORED[dataset].index(column), None, len(STORED[dataset]))
            rows[cells] = array("i", [question(number) for number in rows[cells]])
        asks = self._w.cells.rows["asks"]
        for text in self._questions:
            asks.append(self._w.pool[text])

    def _question(self, number: int) -> int:
        return self._number(self.terms(number)) if number != NOTHING else NOTHING

    def _implicit(self, number: int) -> int:
        """The question of a call that is not written; those of builtin classes tell nobody anything."""
        return self._number(tuple(term for term in self.terms(number) if not term.startswith(b"b:")))

    def _reference(self, number: int) -> int:
        """The question of a name that is read: a variable is not what it holds."""
        if number == NOTHING:
            return NOTHING
        row = self._w.values[number]
        if row[0] != Form.NAME:
            return self._number(self.terms(number))
        known = self._names_asked.get(row[1:3])
        if known is None:
            terms = self.terms(number)
            known = self._number(tuple(term for term in terms if not term.endswith(_NO_REFERENCE) and term != _LIMIT))
            target = self._meaning[row[1]]
            home = self._scope_of[target] if target != NOTHING else NOTHING
            if home == NOTHING or (home == MODULE_SCOPE and not self._runs_in(row[2], home)):
                self._names_asked[row[1:3]] = known  # it means the same all over its scope
        return known

    def _number(self, terms: Terms) -> int:
        if not terms:
            return NOTHING
        return self._questions.setdefault(_ALTERNATIVE.join(terms), len(self._questions))


_NO_REFERENCE: Final = (_CALLED, _ASSIGNED, b" @enter", b" @next", b" []", b" ^")
_MAKERS: Final[dict[Form, Callable[[_Flow, tuple[Any, ...], int], Terms]]] = {
    Form.NAME: _Flow._name,
    Form.ATTRIBUTE: _Flow._attribute,
    Form.CALL: _Flow._call,
    Form.SUPER: _Flow._super,
    Form.GETATTR: _Flow._getattr,
    Form.CLASS_OF: _Flow._class_of,
    Form.LITERAL: _Flow._literal,
    Form.ITEMS: _Flow._literal,
    Form.ITEM: _Flow._item,
    Form.SUM: _Flow._sum,
    Form.EITHER: _Flow._either,
    Form.LAMBDA: _Flow._lambda,
    Form.TYPE_NAME: _Flow._type_name,
    Form.IMPORT: _Flow._import,
    Form.DEFINITION: _Flow._definition,
    Form.PARAMETER: _Flow._parameter,
    Form.ASSIGNED: _Flow._assigned,
    Form.ELEMENT: _Flow._element,
    Form.ENTERED: _Flow._entered,
    Form.RAISED: _Flow._raised,
    Form.PART: _Flow._unpacked,
    Form.DELETED: _Flow._nothing,
    Form.UNKNOWN: _Flow._nothing,
    Form.LIMIT: _Flow._limited,
    Form.OVERRIDDEN: _Flow._overridden,
}


_position: Final = attrgetter("position")


def _extended(terms: Terms, step: bytes) -> Terms:
    """Terms with one more step; one that is too long for it is a limit."""
    return tuple(
        term
        if term == _LIMIT or (step == _ASSIGNED and term.endswith(step))
        else term + step
        if len(term) < _MAX_QUESTION
        else _LIMIT
        for term in terms
    )


def _bounded(terms: Terms) -> Terms:
    """Distinct alternatives: the first few of them, and a limit if there are more."""
    if len(terms) < 2:
        return terms
    distinct = [term for term in dict.fromkeys(terms) if term != _LIMIT]
    if len(distinct) <= _MAX_ALTERNATIVES and _LIMIT not in terms:
        return tuple(distinct)
    return (*distinct[:_MAX_ALTERNATIVES], _LIMIT)
