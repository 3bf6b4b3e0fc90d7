"""Evaluate questions over an index: follow imports, star imports, class hierarchies and what names hold.

Every evaluation returns what was found and its **trail**: the names of the modules that were looked at, present or
absent, with a `?` before those of which only that mattered. Whatever happens outside the trail cannot change the
answer.

Evaluation is a search that may come back to where it is (`from a import x` in `b`, `from b import x` in `a`). A search
that does finds nothing there; what depended on it is remembered only until the question at the top is answered, because
another question would enter the circle elsewhere. So an answer depends on the question and the index alone, never on
what was asked before.

Why that holds: call a search *plain* if, started with nothing open, neither it nor any search below it comes back to
itself. A plain search reads plain searches only, in the same order whoever started it, so none of them is ever open
when it is read, and what it finds is the same in every question. Exactly the plain searches are remembered for good.

There is no limit on depth: a search that would nest too deep for the interpreter's stack is put on a list, done first,
and the one that needed it runs again, over what is known by then. What is limited is width: how many values a step is
applied to, and how many orders of bases are followed. A limit that is hit is a value of its own, `Limit`.

The language of questions is described in `codeanatomy.extract.values.terms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from operator import itemgetter
from typing import Any, Final, cast

from codeanatomy.index import symbols
from codeanatomy.resolve.builtins import BUILTIN, BUILTINS, LOWERCASE_CLASSES, MODULE_MEMBERS, OBJECT_MEMBERS
from codeanatomy.resolve.index import FileNames, Index, ModuleFile, Slot
from codeanatomy.resolve.mro import Order, linearized, without
from codeanatomy.resolve.values import (
    EMPTY,
    LIMIT,
    Absent,
    Class,
    External,
    ExternalInstance,
    Found,
    Function,
    Generated,
    How,
    Instance,
    Limit,
    Module,
    Super,
    Symbol,
    Trail,
    Unknown,
    Value,
    Variable,
)

_MAX_VALUES: Final = 16
"""Values of an expression that a step is applied to."""

_MAX_ORDERS: Final = 4
"""Orders in which the bases of one class are searched, if a base can be one of several classes."""

_NESTED: Final = 100
"""Searches that run inside each other before the next one is put on a list."""
_NO_TRAIL: Final[Trail] = frozenset()
_WIDE_TRAIL: Final = 16
"""A trail of more entries is folded into one, so that handing it on along a chain of searches costs no copy of it."""

_LETTERS: Final = frozenset("fpsk")

Result = tuple[Any, Trail]


class _TooDeepError(Exception):
    """A search has to wait for another one, which its arguments are: it would nest too deep."""


class Resolver:
    """Answers questions over one index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._known: dict[tuple[Any, ...], Result] = {}
        self._passing: dict[tuple[Any, ...], Result] = {}
        self._open: dict[tuple[Any, ...], None] = {}
        self._nested = 0
        self._cuts = 0
        self._has_folded = False

    def evaluate(self, file: ModuleFile, question: str) -> tuple[Found, Trail]:
        """What a question of a file can mean."""
        self._passing.clear()
        self._cuts = 0
        if question.startswith("y:"):
            return self._symbol(question[2:])
        return self._run(lambda: self._alternatives(file, question.split(" | ")))

    def _symbol(self, symbol: str) -> tuple[Found, Trail]:
        """What a symbol of an indexer is: a definition of the repository, or just itself."""
        index = self.index
        module = symbols.module_of(symbol)
        trail = frozenset((module,)) if module else _NO_TRAIL
        found: Found = {}
        for place in index.symbols.places(symbol) if index.symbols else ():
            trail |= {index.files[place.file_id].module}
            if place.binding_key is not None:
                found[Variable(place.file_id, place.binding_key)] = 0
            elif place.def_key is None:
                found[Symbol(symbol, place.kind, "internal")] = 0
            elif place.kind == "class":
                found[Class(place.file_id, place.def_key)] = 0
            else:
                found[Function(place.file_id, place.def_key, "f")] = 0
        if not found:
            kind = symbols.kind_of(symbol)
            ours = module if module is not None and index.is_module(module) else None
            if ours and kind in ("module", "meta"):
                found[Module(ours)] = 0
            else:
                found[Symbol(symbol, kind, "absent" if ours else "external")] = 0
        return found, trail

    def member(self, of: Class, name: str) -> tuple[Found, Trail]:
        """What a class has under a name, its bases included; nothing if that is not in the repository."""
        found, trail = self._run(lambda: self._in_classes(of, name))
        return (found if found is not None else EMPTY), trail

    def called(self, function: Function) -> tuple[Found, Trail]:
        """What a call of a function gives."""
        return self._run(lambda: self._called(function))

    def setter(self, function: Function) -> str | None:
        """The key of the function that writes the property `function`."""
        for names in self._file_names(function.file_id).classes.values():
            for name, slot in sorted(names.setters.items(), key=itemgetter(0)):
                if name in names.members and names.members[name].alternatives == (f"p:{function.key}",):
                    return slot.alternatives[0][2:]
        return None

    # The search.

    def _run(self, search: Callable[[], Result]) -> Result:
        """What a search finds, however deep it leads.

        The list has the searches that wait, each for the next one, with the number of keys that were open before it.
        """
        waiting: list[tuple[Callable[[], Result], int]] = [(search, 0)]
        while True:
            current, opened = waiting[-1]
            while len(self._open) > opened:
                self._open.popitem()
            self._nested = 0
            try:
                result = current()
            except _TooDeepError as deeper:
                waiting.append((partial(self._solve, *deeper.args), len(self._open)))
            else:
                waiting.pop()
                if not waiting:
                    return (result[0], _unfolded(result[1])) if self._has_folded else result

    def _solve(self, key: tuple[Any, ...], search: Callable[..., Result], nothing: Any) -> Result:
        """`search(*key[1:])`, once; `nothing` where the search comes back to itself."""
        known = self._known.get(key)
        if known is not None:
            return known
        if key in self._passing:
            self._cuts += 1
            return self._passing[key]
        if key in self._open:
            self._cuts += 1
            return nothing, _NO_TRAIL
        if self._nested == _NESTED:
            raise _TooDeepError(key, search, nothing)
        cuts = self._cuts
        self._nested += 1
        self._open[key] = None
        result = search(*key[1:])
        del self._open[key]
        self._nested -= 1
        if len(result[1]) > _WIDE_TRAIL:
            result = result[0], cast("Trail", frozenset((result[1],)))
            self._has_folded = True
        (self._known if self._cuts == cuts else self._passing)[key] = result
        return result

    def _alternatives(self, file: ModuleFile, terms: Sequence[str]) -> tuple[Found, Trail]:
        if len(terms) == 1:
            return self._term(file, terms[0])
        found: Found = {}
        trail = _NO_TRAIL
        for term in terms:
            values, looked_at = self._term(file, term)
            _merge(found, values)
            trail |= looked_at
        return found, trail

    def _term(self, file: ModuleFile, term: str) -> tuple[Found, Trail]:
        return self._solve(("term", file, term), self._search_term, EMPTY)

    def _search_term(self, file: ModuleFile, term: str) -> Result:
        before, _, step = term.rpartition(" ")
        if not before:
            return self._root(file, term)
        if step.startswith(".") and before.startswith("i:") and " " not in before:
            return self._imported_name(file, before, step[1:])
        found, trail = self._term(file, before)
        return self._step(found, trail, step)

    def _step(self, found: Found, trail: Trail, step: str) -> Result:
        if step == "=":
            return {value: how | How.ASSIGNMENT | How.ALIAS for value, how in found.items()}, trail
        result: Found = {LIMIT: 0} if len(found) > _MAX_VALUES else {}
        for value, how in islice(found.items(), _MAX_VALUES):
            held: Found = {value: 0}
            if isinstance(value, Function) and value.letter == "p":  # a property is what it gives
                held, looked_at = self._called(value)
                trail |= looked_at
            for each, read in held.items():
                values, looked_at = self._apply(each, step)
                _merge(result, values, (how | read) & ~How.ALIAS)
                trail |= looked_at
        return result, trail

    def _apply(self, value: Value, step: str) -> tuple[Found, Trail]:
        if value is LIMIT:
            return {LIMIT: 0}, _NO_TRAIL
        if step.startswith("."):
            return self._attribute(value, step[1:])
        return _STEPS[step](self, value)

    # Roots.

    def _root(self, file: ModuleFile, token: str) -> Result:
        letter, _, rest = token.partition(":")
        if letter == "g":
            return self._global(file, rest)
        if letter == "o":
            return self._global(file, rest, own=False)
        if letter == "c":
            return {Class(file.file_id, rest): 0}, _NO_TRAIL
        if letter in _LETTERS:
            return {Function(file.file_id, rest, letter): 0}, _NO_TRAIL
        if letter == "l":
            return {LIMIT: 0}, _NO_TRAIL
        if letter == "b":
            return {External(f"{BUILTIN}.{rest}"): 0}, _NO_TRAIL
        name = _absolute(file, token)
        if name is None:
            return {Absent(rest.partition(":")[2] or "."): How.IMPORT}, _NO_TRAIL
        return self._module(file, name)

    def _module(self, file: ModuleFile, name: str) -> Result:
        """An imported module, by its absolute name."""
        index = self.index
        top = name.partition(".")[0]
        trail = frozenset((_whether(name), _whether(top)))
        if index.is_module(name):
            return {Module(name): How.IMPORT}, trail
        folder = file.package()
        if folder and not index.is_module(top):
            beside = f"{folder}.{name}"  # a script finds the modules beside it
            trail |= {_whether(folder), _whether(beside)}
            if folder not in index.modules and index.is_module(beside):
                return {Module(beside): How.IMPORT}, trail
        if top in index.modules:
            return {Absent(name): How.IMPORT}, trail
        return {External(name): How.IMPORT}, trail

    def _imported_name(self, file: ModuleFile, module: str, name: str) -> Result:
        """`from module import name`: an attribute of the module, else a module inside it."""
        found, trail = self._term(file, module)
        result: Found = {}
        for value in found:
            if isinstance(value, Module) and value.name == file.module and len(self.index.modules[value.name]) == 1:
                # A package that imports its own submodule: the attribute is what this import makes.
                inside = f"{value.name}.{name}"
                trail |= {_whether(inside)}
                if self.index.is_module(inside):
                    result[Module(inside)] = How.IMPORT
                    continue
            values, looked_at = self._attribute(value, name)
            _merge(result, values, How.IMPORT)
            trail |= looked_at
        return result, trail

    def _global(self, file: ModuleFile, name: str, *, own: bool = True) -> Result:
        """A name as code of the file reads it: its own, one of a star import, a builtin."""
        found, trail = self._name(file, name) if own else self._starred(file, name, 0)
        if found is not None:
            return found, trail
        if file.is_init:
            inside = f"{file.module}.{name}"
            trail |= {_whether(inside)}
            if self.index.is_module(inside):
                return {Module(inside): How.IMPORT}, trail
        if name in MODULE_MEMBERS:
            return EMPTY, trail
        if name in BUILTINS:
            return {External(f"{BUILTIN}.{name}"): 0}, trail
        stars, looked_at = self._external_stars(file)
        if stars:
            return {External(f"{stars[0]}.{name}"): How.STAR}, trail | looked_at
        return {Absent(f"{file.module}.{name}"): 0}, trail | looked_at

    def _external_stars(self, file: ModuleFile) -> tuple[list[str], Trail]:
        """Modules outside the repository whose every name the file imports."""
        stars: list[str] = []
        trail = _NO_TRAIL
        for slot in self.index.names(file).stars:
            found, looked_at = self._alternatives(file, slot.alternatives)
            trail |= looked_at
            stars += (value.name for value in found if isinstance(value, External))
        return stars, trail

    # Names of modules.

    def _name(self, file: ModuleFile, name: str) -> tuple[Found | None, Trail]:
        """What a file has under a name; None if it has no such name."""
        return self._solve(("name", file, name), self._search_name, None)

    def _search_name(self, file: ModuleFile, name: str) -> Result:
        slot = self.index.names(file).names.get(name)
        if slot is None:
            return self._starred(file, name, 0)
        later, trail = self._starred(file, name, slot.stars_before)
        if later is not None:
            return later, trail
        found, looked_at = self._slot(file, slot)
        return found, trail | looked_at

    def _starred(self, file: ModuleFile, name: str, start: int) -> tuple[Found | None, Trail]:
        """What the star imports of a file, from the one numbered `start`, bind under a name; the last one wins."""
        trail = {file.module}
        for star in reversed(self.index.names(file).stars[start:]):
            modules, looked_at = self._alternatives(file, star.alternatives)
            trail |= looked_at
            for module in modules:
                if isinstance(module, Module):
                    starred, looked_at = self._starred_name(module.name, name)
                    trail |= looked_at
                    if starred:
                        found = {value: how | How.IMPORT | How.STAR for value, how in starred.items()}
                        return found, frozenset(trail)
        return None, frozenset(trail)

    def _starred_name(self, module: str, name: str) -> tuple[Found | None, Trail]:
        """What `from module import *` binds under a name."""
        trail = frozenset((module,))
        for file in self.index.modules.get(module, ()):
            exported, looked_at = self._exports(file)
            trail |= looked_at
            if exported is None or ("*" in exported and name not in exported):
                offered = not name.startswith("_")
            else:
                offered = name in exported
            if offered:
                found, looked_at = self._module_name(file, name, submodules=exported is not None)
                trail |= looked_at
                if found is not None:
                    return found, trail
        return None, trail

    def _exports(self, file: ModuleFile) -> tuple[frozenset[str] | None, Trail]:
        """The names of `__all__`, with a `*` if they are not all known; None if there is no `__all__`."""
        return self._solve(("exports", file), self._search_exports, frozenset(("*",)))

    def _search_exports(self, file: ModuleFile) -> Result:
        held = self.index.names(file)
        if not held.exports:
            return None, frozenset((file.module,))
        names: set[str] = set()
        trail = frozenset((file.module,))
        for op, name, ref in held.exports:
            if op == "set":
                names.clear()
            elif name is not None:
                (names.discard if op == "remove" else names.add)(name)
            else:
                added, looked_at = self._exports_of(file, ref)
                names |= added
                trail |= looked_at
        return frozenset(names), trail

    def _exports_of(self, file: ModuleFile, ref: str | None) -> tuple[frozenset[str], Trail]:
        """The names of another module's `__all__`, given as an expression."""
        unknown = frozenset(("*",))
        first, *rest = (ref or "").split(".")
        slot = self.index.names(file).names.get(first)
        if rest and rest[-1] == "__all__":
            term = " .".join([f"g:{first}", *rest[:-1]])
        elif slot and not rest and len(slot.alternatives) == 1 and slot.alternatives[0].endswith(" .__all__"):
            term = slot.alternatives[0].removesuffix(" .__all__")  # `from module import __all__ as …`
        else:
            return unknown, _NO_TRAIL
        found, trail = self._term(file, term)
        names: frozenset[str] = frozenset()
        for module in found:
            if isinstance(module, Module):
                for each in self.index.modules.get(module.name, ())[:1]:
                    exported, looked_at = self._exports(each)
                    names |= exported or unknown
                    trail |= looked_at
        return names or unknown, trail

    def _slot(self, file: ModuleFile, slot: Slot) -> tuple[Found, Trail]:
        """What stands in a slot: the variable itself, and what it holds."""
        found, trail = self._alternatives(file, slot.alternatives) if slot.alternatives else (EMPTY, _NO_TRAIL)
        result = dict(found)
        if slot.kind in ("variable", "mixed") and slot.binding_key:
            result[Variable(file.file_id, slot.binding_key)] = 0
        if slot.kind == "import":
            result = {value: how | How.IMPORT for value, how in result.items()}
        return result, trail

    # Attributes.

    def _attribute(self, value: Value, name: str) -> tuple[Found, Trail]:
        if isinstance(value, Module):
            return self._module_attribute(value.name, name)
        if isinstance(value, Instance):
            return self._solve(("instance", value.of, name), self._search_instance, EMPTY)
        if isinstance(value, Class):
            return self._solve(("class", value, name), self._search_class, EMPTY)
        if isinstance(value, Super):
            return self._solve(("super", value.of, name), self._search_super, EMPTY)
        if isinstance(value, External):
            return {External(f"{value.name}.{name}"): 0}, _NO_TRAIL
        if isinstance(value, ExternalInstance):
            if name == "__class__":
                return {External(value.of): 0}, _NO_TRAIL
            return {External(f"{value.of}.{name}"): How.MRO}, _NO_TRAIL
        if isinstance(value, Absent):
            return (EMPTY if value.is_member else {Absent(f"{value.name}.{name}"): 0}), _NO_TRAIL
        return EMPTY, _NO_TRAIL

    def _module_attribute(self, module: str, name: str) -> tuple[Found, Trail]:
        """An attribute of a module: of the sources that claim its name, else of its stubs, else a submodule."""
        files = self.index.modules.get(module, ())
        result: Found = {}
        trail = frozenset((module,))
        for stubs in (False, True):
            for file in files:
                if file.is_stub == stubs:
                    found, looked_at = self._name(file, name)
                    trail |= looked_at
                    _merge(result, found or EMPTY)
            if result:
                return result, trail
        inside = f"{module}.{name}"
        trail |= {_whether(inside)}
        if self.index.is_module(inside):
            return {Module(inside): How.IMPORT}, trail
        for file in files:
            stars, looked_at = self._external_stars(file)
            trail |= looked_at
            if stars:
                return {External(f"{stars[0]}.{name}"): How.STAR}, trail
            if "__getattr__" in self.index.names(file).names:
                return EMPTY, trail
        return {(Absent if files else External)(inside): 0}, trail

    def _module_name(self, file: ModuleFile, name: str, *, submodules: bool) -> tuple[Found | None, Trail]:
        found, trail = self._name(file, name)
        inside = f"{file.module}.{name}"
        if found is None and submodules and file.is_init:
            trail |= {_whether(inside)}
            if self.index.is_module(inside):
                return {Module(inside): How.IMPORT}, trail
        return found, trail

    def _search_instance(self, of: Class, name: str) -> Result:
        if name == "__class__":
            return {of: 0}, _NO_TRAIL
        order, trail = self._order(of)
        member, looked_at = self._in_classes(of, name)
        trail |= looked_at
        if member and any(isinstance(value, Function) and value.letter == "p" for value in member):
            return member, trail
        holder = order.first("attribute", name)
        if holder and holder.file and holder.names:
            slot = holder.names.attributes[name]
            found, looked_at = self._slot(holder.file, slot)
            trail |= looked_at | {holder.file.module}
            result = {value: how | How.MRO for value, how in found.items()}
            if not result or slot.kind != "variable":  # not always assigned before it is read
                _merge(result, member or EMPTY)
            return result, trail
        if member is not None:
            return member, trail
        return self._missing(of, order, name, "__getattr__"), trail

    def _search_class(self, of: Class, name: str) -> Result:
        found, trail = self._in_classes(of, name)
        if found is not None:
            return {_unread(value): how for value, how in found.items()}, trail
        order, looked_at = self._order(of)
        trail |= looked_at
        meta, looked_at = self._metaclass(order)
        trail |= looked_at
        if meta is not None:
            found, looked_at = self._in_classes(meta, name)
            trail |= looked_at
            if found is not None:
                return found, trail
        return self._missing(of, order, name), trail

    def _metaclass(self, order: Order) -> tuple[Class | None, Trail]:
        """The metaclass that the first class of an order to name one names."""
        holder = order.first("metaclass")
        if holder is None or not (holder.file and holder.names and holder.names.metaclass):
            return None, _NO_TRAIL
        found, trail = self._alternatives(holder.file, holder.names.metaclass.alternatives)
        return next((value for value in found if isinstance(value, Class)), None), trail

    def _search_super(self, of: Class, name: str) -> Result:
        found, trail = self._in_classes(of, name, bases=True)
        if found is not None:
            return found, trail
        order, looked_at = self._order(of)
        return self._missing(of, order.rest, name, "__getattr__"), trail | looked_at

    def _missing(self, of: Class, order: Order | None, name: str, fallback: str | None = None) -> Found:
        """A member that no class of the repository has: it is a base's from elsewhere, or there is none."""
        outside = order.first("outside") if order else None
        if order and fallback:
            gives_any = order.first("member", fallback)
            if gives_any and gives_any is not outside and gives_any.length > (outside.length if outside else 0):
                return EMPTY
        if outside:
            if isinstance(outside.value, External):
                return {External(f"{outside.value.name}.{name}"): How.MRO}
            return {LIMIT: How.MRO} if outside.value is LIMIT else EMPTY
        if name in OBJECT_MEMBERS:
            return {External(f"{BUILTIN}.object.{name}"): How.MRO}
        names = self._file_names(of.file_id).classes.get(of.key)
        qualname = names.qualname if names else "?"
        return {Absent(f"{self.index.files[of.file_id].module}.{qualname}.{name}", is_member=True): How.MRO}

    def _in_classes(self, of: Class, name: str, *, bases: bool = False) -> tuple[Found | None, Trail]:
        """What the first class of each order that has the name has under it; with `bases`, the class itself aside."""
        orders, trail = self._orders(of)
        found: Found | None = None
        for order in orders:
            start = order.rest if bases else order
            holder = start.first("member", name) if start else None
            if holder is None:
                continue
            found = dict(found or EMPTY)
            if holder.value is LIMIT:
                _merge(found, {LIMIT: How.MRO})
            elif holder.file and holder.names:
                values, looked_at = self._slot(holder.file, holder.names.members[name])
                _merge(found, {_bound(value, of): how | How.MRO for value, how in values.items()})
                trail |= looked_at | {holder.file.module}
        return found, trail

    def _file_names(self, file_id: str) -> FileNames:
        return self.index.names(self.index.files[file_id])

    def _order(self, of: Class) -> tuple[Order, Trail]:
        """A class and its bases in the order attributes are looked for; the first, if there are alternatives."""
        orders, trail = self._orders(of)
        return orders[0], trail

    def _orders(self, of: Class) -> tuple[list[Order], Trail]:
        """The orders a class can have: more than one only if a base can be one of several classes.

        If there are too many, the last one has the class itself, and then a limit.
        """
        return self._solve(("orders", of), self._search_orders, [self._place(of)])

    def _place(self, of: Class) -> Order:
        file = self.index.files[of.file_id]
        return Order(of, None, file, self.index.names(file).classes.get(of.key))

    def _search_orders(self, of: Class) -> Result:
        place = self._place(of)
        file = self.index.files[of.file_id]
        trail = frozenset((file.module,))
        cuts = self._cuts
        choices: list[list[Order]] = []
        for slot in place.names.bases if place.names else ():
            found, looked_at = self._alternatives(file, slot.alternatives)
            trail |= looked_at
            orders: list[Order] = []
            for base in found:
                if isinstance(base, Class) and base != of:
                    inherited, looked_at = self._orders(base)
                    trail |= looked_at
                    orders += inherited if self._cuts == cuts else _those_of(without(of, each) for each in inherited)
                elif isinstance(base, (External, Limit)):
                    orders.append(Order(base))
            if of not in found or orders:
                choices.append(orders[: _MAX_ORDERS + 1] or [Order(Unknown())])
        combinations = list(islice(product(*choices), _MAX_ORDERS + 1))
        orders = [linearized(place, combination) for combination in combinations[:_MAX_ORDERS]]
        return (orders if len(combinations) <= _MAX_ORDERS else [*orders, place.before(Order(LIMIT))]), trail

    # Calls and what they give.

    def _call(self, value: Value) -> tuple[Found, Trail]:
        if isinstance(value, Class):
            return {Instance(value): 0}, _NO_TRAIL
        if isinstance(value, Function):
            return self._called(value)
        if isinstance(value, Instance):
            return self._method_result(value, "__call__")
        if isinstance(value, External) and _looks_like_class(value.name):
            return {ExternalInstance(value.name): 0}, _NO_TRAIL
        return EMPTY, _NO_TRAIL

    def _called(self, function: Function) -> tuple[Found, Trail]:
        """What a call of a function gives."""
        return self._solve(("called", function), self._search_called, EMPTY)

    def _search_called(self, function: Function) -> Result:
        names = self._file_names(function.file_id)
        file = self.index.files[function.file_id]
        trail = frozenset((file.module,))
        if function.key in names.yields:
            return {Generated(function): How.RETURN}, trail
        found: Found = {}
        for slot, how in (
            (names.returns.get(function.key), How.RETURN),
            (names.return_types.get(function.key), _TYPED),
        ):
            if slot is not None and not found:
                for term in slot.alternatives:
                    values, looked_at = self._result_term(file, term, function.receiver)
                    trail |= looked_at
                    _merge(found, values, how)
        return _given(found), trail

    def _result_term(self, file: ModuleFile, term: str, receiver: Class | None) -> tuple[Found, Trail]:
        """A term of a method's result: where it starts from `self`, it starts from the receiver."""
        root, _, steps = term.partition(" ")
        own = Class(file.file_id, root[2:])
        if receiver is None or receiver == own or not root.startswith("c:"):
            return self._term(file, term)
        order, trail = self._order(receiver)
        if order.first("class", own) is None:
            return self._term(file, term)
        found: Found = {receiver: How.MRO}
        for step in steps.split():
            found, trail = self._step(found, trail, step)
        return found, trail

    def _method_result(self, value: Instance, name: str) -> tuple[Found, Trail]:
        """What calling a method of an instance gives."""
        methods, trail = self._attribute(value, name)
        result: Found = {}
        for method in methods:
            if isinstance(method, Function):
                found, looked_at = self._called(method)
                trail |= looked_at
                _merge(result, found)
        return result, trail

    def _sum(self, value: Value) -> tuple[Found, Trail]:
        builtin = isinstance(value, ExternalInstance) and value.of.startswith(BUILTIN)
        return ({value: 0} if builtin else EMPTY), _NO_TRAIL

    def _super_of(self, value: Value) -> tuple[Found, Trail]:
        return ({Super(value): How.MRO} if isinstance(value, Class) else EMPTY), _NO_TRAIL

    def _item(self, value: Value) -> tuple[Found, Trail]:
        if isinstance(value, Class):
            return {value: 0}, _NO_TRAIL
        if isinstance(value, External) and _looks_like_class(value.name):
            return {value: 0}, _NO_TRAIL
        if isinstance(value, Instance):
            return self._method_result(value, "__getitem__")
        return EMPTY, _NO_TRAIL

    def _entered(self, value: Value) -> tuple[Found, Trail]:
        if isinstance(value, Generated):
            return self._yielded(value)
        if isinstance(value, Instance):
            trail = _NO_TRAIL
            for name in ("__enter__", "__aenter__"):
                found, looked_at = self._method_result(value, name)
                trail |= looked_at
                if found:
                    return {each: how | How.ASSIGNMENT for each, how in found.items()}, trail
            return EMPTY, trail
        return ({value: How.ASSIGNMENT} if isinstance(value, ExternalInstance) else EMPTY), _NO_TRAIL

    def _next(self, value: Value) -> tuple[Found, Trail]:
        if isinstance(value, Generated):
            return self._yielded(value)
        if not isinstance(value, Instance):
            return EMPTY, _NO_TRAIL
        result: Found = {}
        iterators, trail = self._method_result(value, "__iter__")
        for iterator in iterators:
            if isinstance(iterator, Generated):
                found, looked_at = self._yielded(iterator)
            elif isinstance(iterator, Instance):
                found, looked_at = self._method_result(iterator, "__next__")
            else:
                continue
            trail |= looked_at
            _merge(result, found)
        return result, trail

    def _yielded(self, value: Generated) -> tuple[Found, Trail]:
        file = self.index.files[value.by.file_id]
        slot = self.index.names(file).yields[value.by.key]
        found, trail = self._alternatives(file, slot.alternatives) if slot.alternatives else (EMPTY, _NO_TRAIL)
        return _given(found, How.RETURN), trail | {file.module}


_TYPED: Final = How.RETURN | How.ANNOTATION
_STEPS: Final[dict[str, Callable[[Resolver, Value], tuple[Found, Trail]]]] = {
    "()": Resolver._call,
    "^": Resolver._super_of,
    "[]": Resolver._item,
    "+": Resolver._sum,
    "@enter": Resolver._entered,
    "@next": Resolver._next,
}


def _given(found: Found, how: int = 0) -> Found:
    """What a function hands out: values, not the variables that hold them."""
    return {
        value: (found_how | how) & ~How.ALIAS for value, found_how in found.items() if not isinstance(value, Variable)
    }


def _unfolded(trail: Trail) -> Trail:
    """A trail with the entries of those that were folded into it."""
    entries: set[str] = set()
    pending: list[Any] = [trail]
    seen: set[int] = set()
    while pending:
        for entry in pending.pop():
            if isinstance(entry, str):
                entries.add(entry)
            elif id(entry) not in seen:
                seen.add(id(entry))
                pending.append(entry)
    return frozenset(entries)


def _those_of(orders: Iterable[Order | None]) -> list[Order]:
    return [order for order in orders if order is not None]


def _bound(value: Value, receiver: Class) -> Value:
    """A method as found in a class, which may be another than the one that defines it."""
    return replace(value, receiver=receiver) if isinstance(value, Function) and value.letter != "s" else value


def _unread(value: Value) -> Value:
    """What a class gives for a member: a property is itself there, not what it returns."""
    is_property = isinstance(value, Function) and value.letter == "p"
    return replace(value, letter="d") if isinstance(value, Function) and is_property else value


def _absolute(file: ModuleFile, token: str) -> str | None:
    """The absolute name of an imported module; None if its dots lead out of the top."""
    _, level, module = token.split(":", 2)
    if level == "0":
        return module
    package = file.package()
    for _ in range(int(level) - 1):
        if not package:
            return None
        package = package.rpartition(".")[0]
    return f"{package}.{module}".strip(".") or None


def _whether(module: str) -> str:
    """The mark a trail keeps of a module that was only asked for its existence."""
    return f"?{module}"


def _looks_like_class(name: str) -> bool:
    """Whether an external name is that of a class, as far as names can tell."""
    last = name.rpartition(".")[2]
    return name in LOWERCASE_CLASSES or (last[:1].isupper() and not last.isupper())


def _merge(into: Found, values: Found, how: int = 0) -> None:
    """Add values; one that was found in two ways keeps the simpler."""
    for value, found_how in values.items():
        combined = found_how | how
        if value not in into or combined < into[value]:
            into[value] = combined
