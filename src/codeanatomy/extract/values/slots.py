"""What other files can see of a content: the names of its module and classes, and what its functions return.

Each is a slot, a row of `sym_values`, with the terms it is bound to.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final, NamedTuple

from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import MODULE_SCOPE
from codeanatomy.extract.values.forms import Form
from codeanatomy.extract.values.reaching import ReachingBindings
from codeanatomy.extract.values.terms import ASSIGNED, CALLED, SEPARATOR, Terms, ValueTerms, extended
from codeanatomy.extract.walk import Walk

_MAX_NESTING: Final = 20


class _Slot(NamedTuple):
    """A row of `sym_values`: the module (`NOTHING`) or definition it belongs to, what it is, its name and its terms."""

    owner: int
    slot: bytes
    name: bytes
    value: bytes
    symbol: int = NOTHING
    kind: bytes = b""
    shape: bytes = b""
    stars_before: int = 0


class Slots:
    """The slots of one content."""

    def __init__(self, w: Walk, bindings: ReachingBindings, terms: ValueTerms) -> None:
        self._w = w
        self._bindings = bindings
        self._terms = terms
        self._texts = w.pool.texts
        self._target_of = w.scopes.targets_of_symbols()
        self._names = w.scopes.names_of_symbols()
        self._members = self._members_of_owners()
        self.other_stores: list[tuple[bytes, bytes, int]] = []
        """What is assigned to attributes of other things: their term, the name and the value."""

    def _members_of_owners(self) -> dict[int, list[int]]:
        """The symbols that the module (`NOTHING`) and each class bind, sorted by name."""
        definitions = enumerate(self._w.definitions)
        owners = {definition.scope: no for no, definition in definitions if definition.kind == b"class"}
        owners[MODULE_SCOPE] = NOTHING
        scope_of = self._w.scopes.scope_of_symbol
        members: dict[int, list[int]] = {}
        for symbol in sorted(self._bindings.symbols(), key=lambda s: self._texts[self._names[s]]):
            owner = owners.get(scope_of[symbol])
            if owner is not None and self._target_of[symbol] == symbol:
                members.setdefault(owner, []).append(symbol)
        return members

    def add(self) -> None:
        """Add the rows of `sym_values`."""
        for owner in sorted(self._members):
            for symbol in self._members[owner]:
                self._add_name(symbol, owner)
        self._add_attributes()
        self._add_results()
        w = self._w
        for number, (_, module) in enumerate(w.star_imports):
            self._add(_Slot(NOTHING, b"star", b"%d" % number, self._terms.joined([module]), kind=b"import"))
        for def_no, number, position, keyword in w.base_values:
            slot = b"metaclass" if keyword == b"metaclass" else b"base"
            if keyword in (b"", b"metaclass"):
                self._add(_Slot(def_no, slot, b"%d" % position, self._terms.joined([number])))
        for def_no, definition in enumerate(w.definitions):
            if definition.kind == b"class":
                self._add(_Slot(def_no, b"class", definition.name, b""))
            elif def_no in w.parameters:
                self._add(_Slot(def_no, b"parameters", b"", self._parameters(def_no)))
            if definition.is_accessor() and definition.decorators[-1].endswith(b".setter"):
                self._add(_Slot(definition.container, b"setter", definition.name, b"f:" + definition.key))

    def _add_results(self) -> None:
        """What functions return and yield."""
        for slot, results in ((b"returns", self._w.returns), (b"yields", self._w.yields)):
            for def_no, numbers in results.items():
                value = self._terms.joined(numbers)
                if value or slot == b"yields":
                    self._add(_Slot(def_no, slot, b"", value))
        for def_no, declared_type in self._w.return_types.items():
            if terms := extended(self._terms.terms(declared_type), CALLED):
                self._add(_Slot(def_no, b"return_type", b"", SEPARATOR.join(terms)))

    def _parameters(self, def_no: int) -> bytes:
        """The parameters of a function: what its first is the receiver of, and their names, marked by kind."""
        marks = {b"positional_only": b"/", b"keyword_only": b"!", b"var_positional": b"*", b"var_keyword": b"**"}
        names = [marks.get(kind, b"") + name for name, kind in self._w.parameters[def_no]]
        return b",".join([(self._terms.receiver_class(def_no, 0) or b"-").replace(b" ", b""), *names])

    def _add_name(self, symbol: int, owner: int) -> None:
        """One name of a module or class."""
        slot = b"global" if owner == NOTHING else b"member"
        value = self._terms.joined([site.value for site in self._bindings.final(symbol)])
        kind, shape = self._kind(symbol), self._shape(symbol)
        digest = sha256(shape).hexdigest()[:24].encode() if shape else b""
        bound = max((site.position for site in self._bindings.final(symbol)), default=0)
        stars = sum(position < bound for position, _ in self._w.star_imports) if owner == NOTHING else 0
        name = self._texts[self._names[symbol]]
        self._add(_Slot(owner, slot, name, value, symbol, kind, digest, stars))

    def _kind(self, symbol: int) -> bytes:
        """What a name is bound to: the kind of definition, `import`, `variable`, or `mixed`."""
        rows = [self._w.values[site.value] for site in self._bindings.final(symbol)]
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
        """What else users of a name can see: signatures, bases, members, the declared type."""
        w = self._w
        shapes = [w.declared_types.get(symbol, b"")]
        for site in self._bindings.final(symbol):
            if w.values[site.value][0] == Form.DEFINITION:
                number = w.values[site.value][1]
                shapes.append(w.definitions[number].shape)
                members = self._members.get(number, ()) if depth < _MAX_NESTING else ()
                shapes += (
                    b"%b %b %b" % (self._texts[self._names[m]], self._kind(m), self._shape(m, depth + 1))
                    for m in members
                )
        return b"\n".join(filter(None, shapes))

    def _add_attributes(self) -> None:
        """What is assigned to attributes of the content's own classes and of their instances."""
        numbers = {definition.key: no for no, definition in enumerate(self._w.definitions)}
        found: dict[tuple[int, bytes, bytes], list[int]] = {}
        certain: set[tuple[int, bytes, bytes]] = set()
        for base, name, number, is_certain in self._w.attribute_stores:
            for term in self._terms.terms(base):
                for own in self._own_classes((self._terms.receivers.get(term, term),)):
                    root, _, steps = own.replace(ASSIGNED, b"").partition(b" ")
                    slot = {b"": b"member", b"()": b"attribute"}.get(steps)
                    owner = numbers.get(root[2:]) if root.startswith(b"c:") else None
                    if slot and owner is not None:
                        found.setdefault((owner, slot, name), []).append(number)
                        in_module = self._w.values[base][0] == Form.NAME and self._w.values[base][2] == MODULE_SCOPE
                        if is_certain and in_module == (slot == b"member"):
                            certain.add((owner, slot, name))
                    else:
                        self.other_stores.append((term, name, number))
        for key, values in sorted(found.items()):
            kind = b"variable" if key in certain else b"mixed"
            self._add(_Slot(*key, self._terms.joined(values), kind=kind))

    def _own_classes(self, terms: Terms) -> list[bytes]:
        """Terms with global names of the content replaced by what they are bound to."""
        found: list[bytes] = []
        for term in terms:
            root, space, steps = term.partition(b" ")
            symbol = self._w.scopes.module_symbol(self._w.pool[root[2:]]) if root.startswith(b"g:") else None
            if symbol is None or self._target_of[symbol] != symbol:
                found.append(term)
            else:
                bound = self._terms.terms_of_sites(self._bindings.final(symbol), 1)
                found += (each + space + steps for each in bound)
        return found

    def _add(self, new: _Slot) -> None:
        w, pool = self._w, self._w.pool
        w.cells.rows["sym_values"].add(
            def_no=new.owner,
            qualname=pool[w.def_qualnames[new.owner]] if new.owner != NOTHING else NOTHING,
            slot=pool[new.slot],
            name=pool[new.name],
            binding_key=w.first_symbol + new.symbol if new.symbol != NOTHING else NOTHING,
            value=pool[new.value] if new.value else NOTHING,
            kind=pool[new.kind] if new.kind else NOTHING,
            shape=pool[new.shape] if new.shape else NOTHING,
            stars_before=new.stars_before,
        )
