"""Values as terms: what an expression means, written down as far as its content alone can tell.

A term is a root and steps, joined by spaces. A value has several terms if it can be one of several things. Terms have
no paths in them, so that the same content has the same terms wherever it is; the room `resolve` evaluates them.

    g:NAME          a global name of the module: its own, else of a star import, else a builtin; o: not its own
    i:LEVEL:MODULE  an imported module, LEVEL dots up
    c:KEY f:KEY     a class, a function of this content; p: a property, s: a static, k: a class method
    b:NAME          a builtin class        l:      a limit was hit
    v:KEY:NAME      a parameter of a function: what callers pass
    t:KEY:i t:KEY:c the receiver of the methods of a class: an instance, a class
    n:PLACE:CLASS   a container that is made at one place; PLACE is KEY* or KEY** for those of a function's parameters
    .NAME           an attribute           ()      the result of a call   (PLACE)  of a call with arguments
    .NAME*          an attribute whose name starts so
    ^               `super()` of a class   ^KEY    `super()` of a receiver, in a method of the class KEY
    []              an item                [KEY]   of a constant key      [:]  a slice
    @0              one of several targets that a value is unpacked into
    +               a sum of it and something else                       +r   of something else and it
    @enter          the target of `with`   @next   the target of a loop
    &PLACE          what a decorator makes of it
    =               by assignment: the name that was read is a variable, bound to something with a name of its own
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from codeanatomy.catalogue.ids import short_hash
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import COMPREHENSIONS, MODULE_SCOPE
from codeanatomy.extract.values.forms import Form
from codeanatomy.extract.values.reaching import ReachingBindings
from codeanatomy.extract.values.structure import BindingSite
from codeanatomy.extract.walk import Walk

Terms = tuple[bytes, ...]

SEPARATOR: Final = b" | "
CALLED: Final = b" ()"
ASSIGNED: Final = b" ="
LIMIT: Final = b"l:"

_MAX_TERMS: Final = 8
_MAX_LENGTH: Final = 400
_MAX_KEY: Final = 60
_MAX_DEPTH: Final = 120

_NONE: Final[Terms] = ()
_TRANSPARENT: Final = COMPREHENSIONS | {b"type_params", b"type_alias", b"type_bound"}
_CLASS_METHODS: Final = frozenset({b"__new__", b"__init_subclass__", b"__class_getitem__"})
_FLOWING: Final = re.compile(rb"v:|n:\S+ [\[@]|\S.* @\d")
_WORD: Final = re.compile(rb"\w+", re.ASCII)


class ValueTerms:
    """The terms of the values of one content whose scopes are resolved."""

    def __init__(self, w: Walk, bindings: ReachingBindings) -> None:
        self._w = w
        self._bindings = bindings
        self._texts = w.pool.texts
        self._target_of = w.scopes.targets_of_symbols()
        self._scope_of = w.scopes.scope_of_symbol
        self._names = w.scopes.names_of_symbols()
        self._remembered: dict[int, Terms] = {}
        self._in_progress: set[int] = set()
        self._hit_depth_limit = False
        self.receivers: dict[bytes, bytes] = {}
        """The term of the own class, or of an instance of it, by the term of a receiver."""
        self._item_sites: dict[tuple[int, object], list[BindingSite]] = {}
        for base, key, _, site in w.item_stores:
            row = w.values[base]
            if row[0] == Form.NAME and key is not None and self._target_of[row[1]] != NOTHING:
                self._item_sites.setdefault((self._target_of[row[1]], key), []).append(site)

    def joined(self, numbers: Iterable[int]) -> bytes:
        """The terms of several values as one text."""
        return SEPARATOR.join(_bounded(tuple(term for number in numbers for term in self.terms(number))))

    def terms(self, number: int, depth: int = 0) -> Terms:
        """The terms of a value."""
        if number == NOTHING:
            return _NONE
        known = self._remembered.get(number)
        if known is not None:
            return known
        if number in self._in_progress:
            return _NONE
        if depth > _MAX_DEPTH:
            self._hit_depth_limit = True
            return (LIMIT,)
        if depth == 0:
            self._hit_depth_limit = False
        self._in_progress.add(number)
        row = self._w.values[number]
        found = _bounded(_BUILDERS[row[0]](self, row, depth + 1))
        self._in_progress.discard(number)
        if depth == 0 or not self._hit_depth_limit:
            self._remembered[number] = found
        return found

    def _name(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, scope, position = row
        target = self._target_of[symbol]
        if target == NOTHING:
            return (b"g:" + self._texts[self._names[symbol]],)
        binding_scope = self._scope_of[target]
        if binding_scope == MODULE_SCOPE:
            global_name = (b"g:" + self._texts[self._names[target]],)
            if not self.runs_as_part_of(scope, binding_scope):
                return global_name
            sites = self._bindings.reaching(target, position)
            if all(self._w.values[site.value][0] == Form.DELETED for site in sites):
                return (b"o:" + self._texts[self._names[target]],)  # not yet bound, or no longer
            return global_name if sites == self._bindings.final(target) else self.terms_of_sites(sites, depth)
        in_comprehension = self._w.scopes.kinds[binding_scope] in COMPREHENSIONS
        if in_comprehension or not self.runs_as_part_of(scope, binding_scope):
            return self.terms_of_sites(self._bindings.all(target), depth)
        return self.terms_of_sites(self._bindings.reaching(target, position), depth)

    def runs_as_part_of(self, scope: int, binding_scope: int) -> bool:
        """Whether code of `scope` runs in place, as part of the code of `binding_scope`."""
        kinds, parents = self._w.scopes.kinds, self._w.scopes.parents
        while scope != binding_scope and kinds[scope] in _TRANSPARENT:
            scope = parents[scope]
        return scope == binding_scope

    def terms_of_sites(self, sites: Sequence[BindingSite], depth: int) -> Terms:
        """The terms of a name that these sites bind."""
        if len(sites) == 1:
            return self.terms(sites[0].value, depth)
        return tuple(term for site in sites for term in self.terms(site.value, depth))

    def _attribute(self, row: tuple[Any, ...], depth: int) -> Terms:
        base, name = self.terms(row[1], depth), row[2]
        if name.startswith(b"__") and not name.endswith(b"__"):  # a private name belongs to the class it is written in
            base = tuple(self.receivers.get(term, term) for term in base)
        return extended(base, b" ." + name)

    def _call(self, row: tuple[Any, ...], depth: int) -> Terms:
        place = row[3] if len(row) > 2 else b""
        return extended(self.terms(row[1], depth), b" (%b)" % place)

    def _super(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, scope, given = row
        if self._target_of[symbol] != NOTHING:
            return _NONE
        if given != NOTHING:
            return extended(self.terms(given, depth), b" ^")
        w = self._w
        method = NOTHING
        while scope != MODULE_SCOPE and w.scopes.kinds[scope] != b"class":
            method = w.scope_defs[scope]
            scope = w.scopes.parents[scope]
        if scope == MODULE_SCOPE:
            return _NONE
        owner = w.definitions[w.scope_defs[scope]].key
        parameters = w.parameters.get(method, ())
        if parameters and self.receiver_class(method, 0) is not None and not parameters[0][1].startswith(b"var"):
            return (self._receiver_term(method) + b" ^" + owner,)
        return (b"c:" + owner + b" ^",)

    def _getattr(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, of, name = row
        return extended(self.terms(of, depth), b" ." + name) if self._target_of[symbol] == NOTHING else _NONE

    def _class_of(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, symbol, of = row
        return extended(self.terms(of, depth), b" .__class__") if self._target_of[symbol] == NOTHING else _NONE

    def _literal(self, row: tuple[Any, ...], depth: int) -> Terms:
        return (b"b:" + row[1] + CALLED,)

    def _item(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, of, key = row
        name = self._global_by_name(of, key)
        if name is not None:
            return name
        stored = self._stored_item(of, key)
        if stored is not None:
            return self.terms(stored, depth)
        found = self._display_item(of, key, depth) or _NONE
        if found and isinstance(key, int) and key < 0:
            return found
        return (*found, *extended(self.terms(of, depth), item_step(key)))

    def _global_by_name(self, number: int, key: object) -> Terms | None:
        """`globals()["name"]`."""
        row = self._w.values[number]
        of = self._w.values[row[1]] if row[0] == Form.CALL else row
        if row[0] != Form.CALL or of[0] != Form.NAME or not isinstance(key, bytes) or not _WORD.fullmatch(key):
            return None
        is_builtin = self._target_of[of[1]] == NOTHING and self._texts[self._names[of[1]]] == b"globals"
        return (b"g:" + key,) if is_builtin else None

    def _stored_item(self, number: int, key: object) -> int | None:
        """The value that an item of a name was set to before, if that is certain."""
        row = self._w.values[number]
        if row[0] != Form.NAME or key is None:
            return None
        _, symbol, scope, position = row
        target = self._target_of[symbol]
        if target == NOTHING or not self.runs_as_part_of(scope, self._scope_of[target]):
            return None
        sites = self._item_sites.get((target, key), ())
        return self._bindings.certain(target, sites, position)

    def _display_item(self, number: int, key: object, depth: int) -> Terms | None:
        """The terms of the item of a display at a key; None if the value is not a display."""
        displays = self._displays(number, depth)
        if displays is None:
            return None
        found: list[bytes] = []
        for _, kind, keys, values, *_ in displays:
            if self._is_truncated(values) and key not in keys:
                found.append(LIMIT)
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

    def _is_truncated(self, values: Sequence[int]) -> bool:
        """Whether a display has more values than these."""
        return bool(values) and values[-1] != NOTHING and self._w.values[values[-1]][0] == Form.LIMIT

    def _displays(self, number: int, depth: int) -> list[tuple[Any, ...]] | None:
        """The displays that a value can be; None if it can be anything else."""
        row = self._w.values[number] if number != NOTHING and depth <= _MAX_DEPTH else (NOTHING,)
        if row[0] == Form.ITEMS:
            return [row]
        if row[0] == Form.NAME:
            _, symbol, scope, position = row
            target = self._target_of[symbol]
            if target != NOTHING and self.runs_as_part_of(scope, self._scope_of[target]):
                numbers: Iterable[int] = [site.value for site in self._bindings.reaching(target, position)]
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
        return (*extended(self.terms(row[1], depth), b" +"), *extended(self.terms(row[2], depth), b" +r"))

    def _slice(self, row: tuple[Any, ...], depth: int) -> Terms:
        return extended(self.terms(row[1], depth), b" [:]")

    def _display(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, kind, keys, values, place, spread = row
        is_of_literals = bool(keys) and not spread and all(number == NOTHING for number in values)
        if is_of_literals or (kind == b"tuple" and not keys):
            return (b"b:" + kind + CALLED,)  # nothing that is followed will be in it
        return (b"n:%b:%b" % (place, kind),)

    def _comprehension(self, row: tuple[Any, ...], depth: int) -> Terms:
        return (b"n:%b:%b" % (row[3], row[1]),)

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
        term = definition.root_letter() + b":" + definition.key
        for decorator, place in self._w.decorations.get(row[1], ()):
            if not definition.is_accessor() and self.terms(decorator, depth) != _NONE:
                term += b" &" + place
        return (term,)

    def receiver_class(self, def_no: int, position: int) -> bytes | None:
        """The term of the own class, or of an instance of it, that a parameter is; None if it is no receiver."""
        definition = self._w.definitions[def_no]
        container = self._w.definitions[definition.container] if definition.container != NOTHING else None
        if position or container is None or container.kind != b"class" or definition.root_letter() == b"s":
            return None
        owner = b"c:" + container.key
        is_class = definition.root_letter() == b"k" or definition.name in _CLASS_METHODS
        return owner if is_class else owner + CALLED

    def _receiver_term(self, def_no: int) -> bytes:
        """The term of the receiver of a method."""
        receiver = self.receiver_class(def_no, 0) or b""
        kind = b"i" if receiver.endswith(CALLED) else b"c"
        term = b"t:%b:%b" % (receiver[2:].removesuffix(CALLED), kind)
        self.receivers[term] = receiver
        return term

    def _parameter(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, def_no, position, kind, declared_type, default, name = row
        key = self._w.definitions[def_no].key
        if kind == b"var_positional":
            return (b"n:%b*:tuple" % key,)
        if kind == b"var_keyword":
            return (b"n:%b**:dict" % key,)
        if self.receiver_class(def_no, position) is not None:
            return (self._receiver_term(def_no),)
        found = extended(self.terms(declared_type, depth), CALLED)
        if default != NOTHING and self._w.values[default][0] not in (Form.LITERAL, Form.ITEMS):
            found += extended(self.terms(default, depth), ASSIGNED)
        return (*found, b"v:%b:%b" % (key, name))

    def _assigned(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, number, declared_type = row
        found = self.terms(number, depth)
        declared = extended(self.terms(declared_type, depth), CALLED)
        if not declared:
            return extended(found, ASSIGNED)
        followed = tuple(term for term in found if not _FLOWING.match(term))
        is_vague = not followed or any(_is_vague(term) for term in followed)
        if not is_vague:
            return extended(found, ASSIGNED)
        return (*declared, *extended(tuple(term for term in found if _FLOWING.match(term)), ASSIGNED))

    def _element(self, row: tuple[Any, ...], depth: int) -> Terms:
        displays = self._displays(row[1], depth)
        if displays is None:
            return extended(self.terms(row[1], depth), b" @next")
        values = [v for _, kind, _, values, *_ in displays if kind != b"dict" for v in values]
        items = extended(tuple(term for v in values for term in self.terms(v, depth)), ASSIGNED)
        return (*items, *extended(self.terms(row[1], depth), b" @next"))

    def _entered(self, row: tuple[Any, ...], depth: int) -> Terms:
        return extended(self.terms(row[1], depth), b" @enter")

    def _raised(self, row: tuple[Any, ...], depth: int) -> Terms:
        of: tuple[Any, ...] = self._w.values[row[1]]
        classes = of[3] if of[0] == Form.ITEMS else (row[1],)
        return extended(tuple(term for each in classes for term in self.terms(each, depth)), CALLED)

    def _unpacked(self, row: tuple[Any, ...], depth: int) -> Terms:
        _, number, path = row
        if not path:
            return self.terms(number, depth)
        displays = self._displays(number, depth) or []
        found: list[bytes] = []
        if not displays:
            whole = self.terms(number, depth)
            for step in path:
                whole = extended(whole, b" [:]" if step == b"*" else b" @" + step)
            found += whole
        for _, _, keys, values, *_ in displays:
            is_truncated = self._is_truncated(values)
            known = keys[:-1] if is_truncated else keys
            if path[0] == b"*" or None in known:
                continue
            step = int(path[0])
            if is_truncated and not 0 <= step < len(known):
                found.append(LIMIT)
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
        return (LIMIT,)


_BUILDERS: Final[dict[int, Callable[[ValueTerms, tuple[Any, ...], int], Terms]]] = {
    Form.NAME: ValueTerms._name,
    Form.ATTRIBUTE: ValueTerms._attribute,
    Form.CALL: ValueTerms._call,
    Form.SUPER: ValueTerms._super,
    Form.GETATTR: ValueTerms._getattr,
    Form.CLASS_OF: ValueTerms._class_of,
    Form.LITERAL: ValueTerms._literal,
    Form.ITEMS: ValueTerms._display,
    Form.COMPREHENSION: ValueTerms._comprehension,
    Form.SLICE: ValueTerms._slice,
    Form.ITEM: ValueTerms._item,
    Form.SUM: ValueTerms._sum,
    Form.EITHER: ValueTerms._either,
    Form.LAMBDA: ValueTerms._lambda,
    Form.TYPE_NAME: ValueTerms._type_name,
    Form.IMPORT: ValueTerms._import,
    Form.DEFINITION: ValueTerms._definition,
    Form.PARAMETER: ValueTerms._parameter,
    Form.ASSIGNED: ValueTerms._assigned,
    Form.ELEMENT: ValueTerms._element,
    Form.ENTERED: ValueTerms._entered,
    Form.RAISED: ValueTerms._raised,
    Form.PART: ValueTerms._unpacked,
    Form.DELETED: ValueTerms._nothing,
    Form.UNKNOWN: ValueTerms._nothing,
    Form.LIMIT: ValueTerms._limited,
    Form.OVERRIDDEN: ValueTerms._overridden,
}


def item_step(key: object) -> bytes:
    """The step that reads the item of a constant key, or any item if the key is not known."""
    return b" [%b]" % key_name(key)


def key_name(key: object) -> bytes:
    """A constant key as it is spelled in terms; empty if it is not known."""
    if isinstance(key, int):
        return b"%d" % key if key >= 0 else b""
    if not isinstance(key, bytes):
        return b""
    return b"'" + (key if _WORD.fullmatch(key) and len(key) < _MAX_KEY else short_hash(key)[:12].encode())


def _is_vague(term: bytes) -> bool:
    """Whether a declared type says more than a term."""
    return term == LIMIT or term.endswith(b"@next") or term.rpartition(b" ")[2].startswith(b"[")


def extended(terms: Terms, step: bytes) -> Terms:
    """Terms with one more step; a term that gets too long becomes a limit."""
    return tuple(
        term
        if term == LIMIT or (step == ASSIGNED and term.endswith(step))
        else term + step
        if len(term) < _MAX_LENGTH
        else LIMIT
        for term in terms
    )


def _bounded(terms: Terms) -> Terms:
    """Distinct terms: the first ones, and a limit if there are more."""
    if len(terms) < 2:
        return terms
    distinct = [term for term in dict.fromkeys(terms) if term != LIMIT]
    if len(distinct) <= _MAX_TERMS and LIMIT not in terms:
        return tuple(distinct)
    return (*distinct[:_MAX_TERMS], LIMIT)
