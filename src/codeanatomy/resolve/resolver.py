"""Answer questions over an index: follow imports, star imports, class hierarchies, and what names are bound to.

Motivation
    Extraction sees one content at a time. Whatever it cannot decide there, it writes down as a question, such as
    `g:shop .price ()`: the result of calling the attribute `price` of the global name `shop`. A question is answered
    here, over the index of all files of a snapshot. An incremental build asks only the questions whose answer can have
    changed, so two properties matter more than speed:

    - An answer is a function of the question and the index alone. It does not depend on which questions were asked
      before, in which order, or in which process.
    - An answer comes with a complete trail. What happens to a module that is not on the trail cannot change the answer.

Terms
    question     one or more terms, joined by ` | `; the language is described in `codeanatomy.extract.values.terms`.
    term         a root and steps, joined by spaces: `i:0:shop .price ()`.
    root         what a term starts from: a global name, an imported module, a class or function of the file, a builtin.
    step         what is done with it: read an attribute, call, take an item, enter, iterate.
    value        what a term can mean (`values`). A term can have several values: a name may be bound in two branches.
    found        the values of a term, each with how it was found (`How`), from which its confidence follows.
    slot         what the facts say of one name, base or return: the terms it is bound to, in its own file (`index`).
    trail        the names of the modules that were looked at, whether they exist or not; `?name` for a module of which
                 only the existence mattered.
    search       an evaluation whose result is remembered, under a key: a term, a name in a file, an attribute, an MRO.
    in progress  a search that has started and not returned. A search that needs one in progress has met a *cycle*.
    MRO          method resolution order: a class and its bases in the order in which they are searched (`mro`).

Steps of answering a question (`Resolver.evaluate`)
    1. Split it into terms; the values of a question are those of all its terms.
    2. Evaluate a term from its end: the values of the term without its last step, then that step applied to each value.
    3. Evaluate the root. A global name is what the file binds it to, by itself or by a star import, whichever comes
       last (`_name_in_file`); else a submodule, a builtin, or absent. A module is looked up by its absolute name.
    4. A name in a file leads to a slot, whose terms are evaluated the same way, in the file of the slot.
    5. An attribute of a module is a name in its files, else a submodule. An attribute of a class or an instance is
       looked up along the MRO; the bases are slots again. A call leads to the slot of what the function returns.
    6. Trails of everything that was looked at are united on the way back.

Cycles
    `from b import x` in `a` and `from a import x` in `b`: a search that meets itself finds nothing there. What it
    returns then depends on where the cycle was entered, so such results are *provisional*: they are forgotten when the
    question is answered. Call a search *plain* if neither it nor any search it needs meets a cycle when it is started
    with nothing in progress. A plain search needs plain searches only, in the same order in every question, so none of
    them is in progress when it is needed, and its result is the same in every question. Exactly the plain searches are
    remembered for good. Others are remembered with what they depended on (`cycles`).

Limits
    Depth is not limited: a search that would nest too deep for the interpreter's stack is put on a list and done first;
    then the one that needed it runs again, over what is remembered by then. Width is limited: the number of values that
    a step is applied to, and the number of MROs of one class. These limits are properties of the question, not of the
    state of the resolver. Where one is hit, the value `Limit` stands for what was left out.

Where it is tested
    tests/resolve: what questions mean (test_resolution), hand-written cases with expected calls (test_ledger), depth,
    order and limits (test_depth). tests/incremental: trails are complete on real code (test_random_edits records every
    look at the index), and answers do not depend on other questions (test_splices).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, islice, product
from operator import itemgetter
from typing import Any, Final, TypeVar, cast

from codeanatomy.index import symbols
from codeanatomy.resolve.binding import bound_arguments
from codeanatomy.resolve.builtins import BUILTIN, BUILTINS, LOWERCASE_CLASSES, MODULE_MEMBERS, OBJECT_MEMBERS
from codeanatomy.resolve.cycles import Cycle, CyclicSearch, Event, ReadingResult, SearchKey, SearchResult, cyclic_search
from codeanatomy.resolve.index import FileNames, Index, ModuleFile, Slot
from codeanatomy.resolve.models import MAPPINGS, Model, Source, model_of
from codeanatomy.resolve.mro import MroEntry, linearize, without_class
from codeanatomy.resolve.slots import (
    Flow,
    attribute_slot,
    entry_of,
    instances_slot,
    item_slot,
    parameter_slot,
    variable_slot,
)
from codeanatomy.resolve.values import (
    EMPTY,
    LIMIT,
    Absent,
    Class,
    Container,
    ContainerMethod,
    Decorated,
    External,
    ExternalInstance,
    Found,
    Function,
    GeneratorObject,
    How,
    Instance,
    Limit,
    Module,
    Partial,
    Result,
    SuperObject,
    Symbol,
    Trail,
    Unknown,
    Value,
    Variable,
)

RECURSION_LIMIT: Final = 10_000
"""Python frames: enough for the searches that the resolver nests, and for the caller's own."""

_MAX_VALUES: Final = 16
"""The number of values that a step is applied to."""

_MAX_FLOWING: Final = 64
"""The number of values that were passed that a step is applied to."""

_MAX_MROS: Final = 4
"""The number of MROs of one class that are searched, if a base can be one of several classes."""

_MAX_DEPTH: Final = 100
"""The number of searches that nest before the next one is put on a list."""

_WIDE_TRAIL: Final = 16
"""A trail with more entries is folded into one entry of a new trail, so that uniting it with others copies little."""

_ITEMS_VIEW: Final = "#items"
_PAIR: Final = "#pair"

_NO_TRAIL: Final[Trail] = frozenset()
_FUNCTION_KINDS: Final = frozenset("fpsk")
_UNKNOWN_EXPORTS: Final = frozenset(("*",))

_RUNNABLE: Final = (Function, Class, Instance, Partial)

_T = TypeVar("_T")


class _TooDeepError(Exception):
    """Another search, given by the arguments, must be done first: here it would nest too deep."""


class Resolver:
    """Answers questions over one index."""

    def __init__(self, index: Index, flow: Flow | None = None) -> None:
        self.index = index
        self.flow = flow or Flow()
        # What classes inherit never depends on what is passed: MROs are searched for by a resolver without slots.
        self._without_flow = Resolver(index) if flow is not None else None
        self._final: dict[SearchKey, SearchResult] = {}
        # What was found in slots, with those; and what is to be forgotten when one of them changes.
        self._flowing: dict[SearchKey, ReadingResult] = {}
        self._dependents: dict[str, set[SearchKey]] = {}
        self._read: set[str] = set()
        self._provisional: dict[SearchKey, ReadingResult] = {}
        self._in_progress: dict[SearchKey, None] = {}
        # What the question at hand has met of cycles, and the searches that met some.
        self._events: list[Event] = []
        self._cyclic: dict[SearchKey, CyclicSearch] = {}
        self._depth = 0
        self._has_folded_trails = False

    def evaluate(self, file: ModuleFile, question: str) -> Result:
        """The values of a question that is asked in `file`."""
        if question.startswith("y:"):
            return self._symbol(question[2:])
        found, trail = self.search(lambda: self.values(file, question.split(" | ")))
        return found, trail

    def search(self, search: Callable[[], tuple[_T, Trail]]) -> tuple[_T, Trail]:
        """The result of a search of its own: it depends on no other, and may be as deep as it needs.

        The search may be started several times. It consists of calls of the methods below that say so.
        """
        self._provisional.clear()
        self._events.clear()
        return self._search_at_any_depth(search)

    def search_reading(self, search: Callable[[], tuple[_T, Trail]]) -> tuple[_T, Trail, frozenset[str]]:
        """The same as `search`, and the slots that were read; the trail is folded (`unfolded`)."""
        self._provisional.clear()
        self._events.clear()
        result, trail = self._search_nested(search)
        return result, trail, frozenset(self._read)

    def slots_changed(self, slots: Iterable[str]) -> None:
        """Forget what was found in slots that hold something else now."""
        for slot in slots:
            for key in self._dependents.pop(slot, ()):
                self._flowing.pop(key, None)
                self._cyclic.pop(key, None)

    def member(self, cls: Class, name: str) -> Result:
        """The same as `class_member`, to be called in a search."""
        found, trail = self._find_member(cls, name)
        return (found if found is not None else EMPTY), trail

    def attribute(self, value: Value, name: str) -> Result:
        """An attribute of a value. To be called in a search."""
        return self._attribute(value, name)

    def iterated(self, value: Value) -> Result:
        """What iterating over a value gives. To be called in a search."""
        return self._step_next(value)

    def class_member(self, cls: Class, name: str) -> Result:
        """The member of a class, its bases included; nothing if it is not in the repository."""
        found, trail = self._search_at_any_depth(lambda: self._find_member(cls, name))
        return (found if found is not None else EMPTY), trail

    def call_result(self, function: Function) -> Result:
        """What a call of a function returns."""
        return self._search_at_any_depth(lambda: self._call_result(function))

    def property_setter(self, getter: Function) -> str | None:
        """The key of the function that sets a property."""
        for names in self._names_of(getter.file_id).classes.values():
            for name, slot in sorted(names.setters.items(), key=itemgetter(0)):
                if name in names.members and _first_root(names.members[name]) == f"p:{getter.key}":
                    return slot.alternatives[0][2:]
        return None

    def _symbol(self, symbol: str) -> Result:
        """The definitions of an indexer's symbol in the repository, or the symbol itself."""
        index = self.index
        module = symbols.module_of(symbol)
        trail = frozenset((module,)) if module else _NO_TRAIL
        found: Found = {}
        for definition in index.symbols.of(symbol) if index.symbols else ():
            file_id, def_key, binding_key, kind = definition
            trail |= {index.files[file_id].module}
            if binding_key is not None:
                found[Variable(file_id, binding_key)] = 0
            elif def_key is None:
                found[Symbol(symbol, kind, "internal")] = 0
            elif kind == "class":
                found[Class(file_id, def_key)] = 0
            else:
                found[Function(file_id, def_key, "f")] = 0
        if not found:
            kind = symbols.kind_of(symbol)
            if module is None or not index.is_module(module):
                found[Symbol(symbol, kind, "external")] = 0
            elif kind in ("module", "meta"):
                found[Module(module)] = 0
            else:
                found[Symbol(symbol, kind, "absent")] = 0
        return found, trail

    # Searches.

    def _search_at_any_depth(self, search: Callable[[], SearchResult]) -> SearchResult:
        """The result of a search, however deep it leads."""
        result = self._search_nested(search)
        return (result[0], unfolded(result[1])) if self._has_folded_trails else result

    def _search_nested(self, search: Callable[[], SearchResult]) -> SearchResult:
        """The result of a search, however deep it leads, with a folded trail.

        Each search of the list waits for the next one. With it is the number of searches that were in progress before
        it.
        """
        waiting: list[tuple[Callable[[], SearchResult], int]] = [(search, 0)]
        while True:
            current, in_progress_before = waiting[-1]
            while len(self._in_progress) > in_progress_before:
                self._in_progress.popitem()
            self._depth = 0
            self._read = set()
            try:
                result = current()
            except _TooDeepError as needed:
                waiting.append((partial(self._search_once, *needed.args), len(self._in_progress)))
            else:
                waiting.pop()
                if not waiting:
                    return result

    def _search_once(self, key: SearchKey, search: Callable[..., SearchResult], nothing: Any) -> SearchResult:
        """The result of `search(*key[1:])`, from memory if it is there; `nothing` if the search is in progress."""
        remembered = self._final.get(key)
        if remembered is not None:
            return remembered
        flowing = self._flowing.get(key)
        if flowing is not None:
            self._read |= flowing[1]
            return flowing[0]
        if key in self._provisional:
            self._events.append((Cycle.READ, key))
            result, read = self._provisional[key]
            self._read |= read
            return result
        if key in self._in_progress:
            self._events.append((Cycle.MET, key))
            return nothing, _NO_TRAIL
        cyclic = self._cyclic.get(key)
        if cyclic is not None and cyclic.is_the_same(self._in_progress, self._provisional):
            self._read |= cyclic.read
            self._events += cyclic.events
            self._provisional |= cyclic.ended
            return cyclic.result
        if self._depth == _MAX_DEPTH:
            raise _TooDeepError(key, search, nothing)
        return self._start(key, search)

    def _start(self, key: SearchKey, search: Callable[..., SearchResult]) -> SearchResult:
        """The result of a search of which nothing is known."""
        events_before, read_before = len(self._events), self._read
        read: set[str] = set()
        self._read = read
        self._depth += 1
        self._in_progress[key] = None
        result = search(*key[1:])
        del self._in_progress[key]
        self._depth -= 1
        read_before |= read
        self._read = read_before
        if len(result[1]) > _WIDE_TRAIL:
            result = result[0], cast("Trail", frozenset((result[1],)))
            self._has_folded_trails = True
        if len(self._events) != events_before:
            self._provisional[key] = result, frozenset(read)
            self._events.append((Cycle.ENDED, key))
            cyclic = cyclic_search(self._events[events_before:], self._provisional)
            if cyclic is None:
                return result
            self._cyclic[key] = cyclic
        elif not read:
            self._final[key] = result
        else:
            self._flowing[key] = result, frozenset(read)
        for slot in read if not self.flow.is_complete else ():
            self._dependents.setdefault(slot, set()).add(key)
        return result

    # Terms.

    def values(self, file: ModuleFile, terms: Sequence[str], step: str = "") -> Result:
        """The values of terms, with one more step. To be called in a search."""
        found, trail = self._evaluate_terms(file, terms) if terms else (EMPTY, _NO_TRAIL)
        return self._apply_step(file, found, trail, step) if step else (found, trail)

    def _evaluate_terms(self, file: ModuleFile, terms: Sequence[str]) -> Result:
        """The values of all terms together."""
        if len(terms) == 1:
            return self._evaluate_term(file, terms[0])
        found: Found = {}
        trail = _NO_TRAIL
        for term in terms:
            values, looked_at = self._evaluate_term(file, term)
            _merge(found, values)
            trail |= looked_at
        return found, trail

    def _evaluate_term(self, file: ModuleFile, term: str) -> Result:
        return self._search_once(("term", file, term), self._search_term, EMPTY)

    def _search_term(self, file: ModuleFile, term: str) -> Result:
        before, _, step = term.rpartition(" ")
        if not before:
            return self._evaluate_root(file, term)
        if step.startswith(".") and before.startswith("i:") and " " not in before:
            return self._imported_name(file, before, step[1:])
        found, trail = self._evaluate_term(file, before)
        return self._apply_step(file, found, trail, step)

    def _apply_step(self, file: ModuleFile, found: Found, trail: Trail, step: str) -> Result:
        """The values after one more step of a term of `file`, which may look at more than `trail`."""
        if step == "=":
            return {value: how | How.ASSIGNMENT | How.ALIAS for value, how in found.items()}, trail
        result: Found = {}
        operands, looked_at = self.operands(found)
        trail |= looked_at
        for value, how in operands:
            values, looked_at = self._apply_to_value(file, value, step)
            if how & How.FLOW and isinstance(value, (External, ExternalInstance)):
                how |= How.OUTSIDE  # noqa: PLW2901 - attributes of attributes have no end
            _merge(result, values, how & ~How.ALIAS)
            trail |= looked_at
        return result, trail

    def applied(self, file: ModuleFile, found: Found, step: str) -> Result:
        """Values after one more step of a term of `file`. To be called in a search."""
        return self._apply_step(file, found, _NO_TRAIL, step)

    def operands(self, found: Found) -> tuple[list[tuple[Value, int]], Trail]:
        """The values that a step is applied to: of a property, what it returns.

        Those that were passed are counted apart, so that they never take the place of others.
        """
        if len(found) == 1:
            ((only, _),) = found.items()
            if not isinstance(only, Function) or only.kind != "p":
                return list(found.items()), _NO_TRAIL
        followed = [each for each in found.items() if not each[1] & How.FLOW]
        flowing = [each for each in found.items() if each[1] & How.FLOW] if len(followed) < len(found) else []
        operands: list[tuple[Value, int]] = [(LIMIT, 0)] if len(followed) > _MAX_VALUES else []
        operands += [(LIMIT, How.FLOW)] if len(flowing) > _MAX_FLOWING else []
        trail = _NO_TRAIL
        for value, how in chain(followed[:_MAX_VALUES], flowing[:_MAX_FLOWING]):
            if isinstance(value, Function) and value.is_property:
                returned, looked_at = self._call_result(value)
                trail |= looked_at
                operands += ((each, how | each_how) for each, each_how in returned.items())
            else:
                operands.append((value, how))
        return operands, trail

    def _apply_to_value(self, file: ModuleFile, value: Value, step: str) -> Result:
        if value is LIMIT:
            return {LIMIT: 0}, _NO_TRAIL
        first = step[0]
        if first == ".":
            return self._attribute(value, step[1:])
        if first == "(":
            return self._step_call(value, file, step[1:-1])
        if first == "[":
            return self._step_item(value, step[1:-1])
        if first == "&":
            return self._step_decorated(value, file, step[1:])
        if first == "^" and len(step) > 1:
            return self._step_super(value, Class(file.file_id, step[1:]))
        if first == "@" and step not in _STEPS:
            return self._items(value, step[1:]) if isinstance(value, Container) else (EMPTY, _NO_TRAIL)
        return _STEPS[step](self, value)

    # Slots.

    def read_slot(self, slot: str) -> Result:
        """What a slot of value flow holds. To be called in a search."""
        if self._without_flow is None:
            return EMPTY, _NO_TRAIL
        self._read.add(slot)
        return self.flow.read(slot), frozenset((entry_of(slot),))

    def _with_slots(self, found: Found, slots: Iterable[str], how: int = 0) -> Result:
        """Values, and what these slots hold."""
        trail = _NO_TRAIL
        for slot in slots:
            held, looked_at = self.read_slot(slot)
            trail |= looked_at
            if held:
                found = dict(found)
                _merge(found, held, how)
        return found, trail

    def _attribute_entry(self, name: str) -> Trail:
        """The entry of a trail for an attribute that could be set from elsewhere, if anything was followed so far."""
        return _NO_TRAIL if self._without_flow is None else frozenset((f"=.{name}",))

    def _parameter(self, file: ModuleFile, key: str, name: str) -> Result:
        """What callers pass to a parameter."""
        held, trail = self.read_slot(parameter_slot(file.file_id, key, name))
        return {value: how | How.ALIAS for value, how in held.items()}, trail

    def _receiver(self, file: ModuleFile, key: str, kind: str) -> Result:
        """The receiver of the methods of a class: what they are called on.

        That is assumed to be an instance of the method's own class, or that class, as well. But if instances of
        subclasses arrive, and nothing makes an instance of the class itself, the answer is what arrives.
        """
        cls = Class(file.file_id, key)
        own: Value = cls if kind == "c" else Instance(cls)
        arriving, trail = self.read_slot(parameter_slot(file.file_id, key, kind))
        if not self.flow.is_complete:
            return {**arriving, own: How.ASSUMED}, trail
        found: Found = {}
        for value, how in {**arriving, own: How.ASSUMED}.items():
            if how & How.ASSUMED and LIMIT not in arriving and value is not LIMIT:
                made, looked_at = self._is_made(value)
                trail |= looked_at
                if not made:
                    continue
            found[value] = how if value != own else 0
        return (found or {own: 0}), trail

    def _is_made(self, value: Value) -> tuple[bool, Trail]:
        """Whether an assumed receiver is one that exists: something makes an instance of its class."""
        cls = value.cls if isinstance(value, Instance) else value
        if not isinstance(cls, Class):
            return True, _NO_TRAIL
        made, trail = self.read_slot(instances_slot(cls))
        return bool(made), trail

    def _items(self, container: Container, key: str) -> Result:
        """The items of a container: of a constant key, or all of them."""
        key = "" if container.is_moved or key.startswith("-") else key
        return self._search_once(("items", container._replace(is_moved=False), key), self._search_items, EMPTY)

    def _search_items(self, container: Container, key: str) -> Result:
        if container.key.endswith(_ITEMS_VIEW):
            pair = f"{container.key.removesuffix(_ITEMS_VIEW)}{_PAIR}"
            return {Container(container.file_id, pair, f"{BUILTIN}.tuple"): How.FLOW}, _NO_TRAIL
        if container.key.endswith(_PAIR):
            of = container._replace(key=container.key.removesuffix(_PAIR))
            return self._items(of, "") if key in ("", "1") else (EMPTY, _NO_TRAIL)
        keys = (key, "*") if key else ("",)
        found, trail = self._with_slots(EMPTY, [item_slot(container, each) for each in keys], How.ASSIGNMENT)
        for spread, inside in (("**", key), ("+", "")):
            others, looked_at = self.read_slot(item_slot(container, spread))
            trail |= looked_at
            for other, how in others.items():
                if isinstance(other, Container):
                    values, looked_at = self._items(other, inside)
                    trail |= looked_at
                    found = dict(found)
                    _merge(found, values, how)
        return found, trail

    # Roots.

    def _evaluate_root(self, file: ModuleFile, root: str) -> Result:
        letter, _, rest = root.partition(":")
        if letter == "g":
            return self._global_name(file, rest)
        if letter == "o":
            return self._global_name(file, rest, is_bound=False)
        if letter == "c":
            return {Class(file.file_id, rest): 0}, _NO_TRAIL
        if letter in _FUNCTION_KINDS:
            return {Function(file.file_id, rest, letter): 0}, _NO_TRAIL
        if letter in ("v", "t"):
            key, _, name = rest.partition(":")
            return (self._parameter if letter == "v" else self._receiver)(file, key, name)
        if letter == "n":
            key, _, kind = rest.partition(":")
            return {Container(file.file_id, key, f"{BUILTIN}.{kind}" if kind else ""): 0}, _NO_TRAIL
        if letter == "l":
            return {LIMIT: 0}, _NO_TRAIL
        if letter == "b":
            return {External(f"{BUILTIN}.{rest}"): 0}, _NO_TRAIL
        module = _absolute_module(file, root)
        if module is None:
            return {Absent(rest.partition(":")[2] or "."): How.IMPORT}, _NO_TRAIL
        return self._imported_module(file, module)

    def _imported_module(self, file: ModuleFile, name: str) -> Result:
        """The module that `import name` in `file` means; the name is absolute."""
        index = self.index
        top = name.partition(".")[0]
        trail = frozenset((_existence_of(name), _existence_of(top)))
        if index.is_module(name):
            return {Module(name): How.IMPORT}, trail
        folder = file.package()
        if folder and not index.is_module(top):
            sibling = f"{folder}.{name}"  # a script finds the modules in its own directory
            trail |= {_existence_of(folder), _existence_of(sibling)}
            if folder not in index.modules and index.is_module(sibling):
                return {Module(sibling): How.IMPORT}, trail
        if top in index.modules:
            return {Absent(name): How.IMPORT}, trail
        return {External(name): How.IMPORT}, trail

    def _submodule(self, package: str, name: str) -> tuple[Found | None, Trail]:
        """The module `name` of a package; None if there is none."""
        submodule = f"{package}.{name}"
        found: Found | None = {Module(submodule): How.IMPORT} if self.index.is_module(submodule) else None
        return found, frozenset((_existence_of(submodule),))

    def _imported_name(self, file: ModuleFile, module: str, name: str) -> Result:
        """`from module import name`: an attribute of the module, else its submodule."""
        found, trail = self._evaluate_term(file, module)
        result: Found = {}
        for value in found:
            if isinstance(value, Module) and value.name == file.module and len(self.index.modules[value.name]) == 1:
                # A package that imports its own submodule: this import is what binds the attribute.
                submodule, looked_at = self._submodule(value.name, name)
                trail |= looked_at
                if submodule is not None:
                    result |= submodule
                    continue
            values, looked_at = self._attribute(value, name)
            _merge(result, values, How.IMPORT)
            trail |= looked_at
        return result, trail

    def _global_name(self, file: ModuleFile, name: str, *, is_bound: bool = True) -> Result:
        """A global name as code of the file reads it: bound by the file, by one of its star imports, or a builtin.

        With `is_bound=False`, where it is read before the file binds it, or after it was deleted.
        """
        found, trail = self._name_in_file(file, name) if is_bound else self._star_imported_name(file, name, 0)
        if found is not None:
            return found, trail
        if file.is_init:
            submodule, looked_at = self._submodule(file.module, name)
            trail |= looked_at
            if submodule is not None:
                return submodule, trail
        if name in MODULE_MEMBERS:
            return EMPTY, trail
        if name in BUILTINS:
            return {External(f"{BUILTIN}.{name}"): 0}, trail
        stars, looked_at = self._external_stars(file)
        if stars:
            return {External(f"{stars[0]}.{name}"): How.STAR}, trail | looked_at
        return {Absent(f"{file.module}.{name}"): 0}, trail | looked_at

    def _external_stars(self, file: ModuleFile) -> tuple[list[str], Trail]:
        """The modules outside the repository that the file star-imports."""
        stars: list[str] = []
        trail = _NO_TRAIL
        for slot in self.index.names(file).stars:
            found, looked_at = self._evaluate_terms(file, slot.alternatives)
            trail |= looked_at
            stars += (value.name for value in found if isinstance(value, External))
        return stars, trail

    # Names of modules.

    def _name_in_file(self, file: ModuleFile, name: str) -> tuple[Found | None, Trail]:
        """What the file binds a name to, by itself or by a star import; None if it does not."""
        return self._search_once(("name", file, name), self._search_name_in_file, None)

    def _search_name_in_file(self, file: ModuleFile, name: str) -> tuple[Found | None, Trail]:
        slot = self.index.names(file).names.get(name)
        found, trail = self._star_imported_name(file, name, slot.stars_before if slot else 0)
        if found is None and slot is not None:
            found, looked_at = self._evaluate_slot(file, slot)
            trail |= looked_at
        if name not in self.flow.assigned:
            return found, trail | self._attribute_entry(name)
        assigned, looked_at = self._with_slots(EMPTY, [variable_slot(file.file_id, name)], How.ASSIGNMENT)
        if assigned:
            found = dict(found or EMPTY)
            _merge(found, assigned)
        return found, trail | looked_at

    def _star_imported_name(self, file: ModuleFile, name: str, start: int) -> tuple[Found | None, Trail]:
        """What the star imports of a file bind a name to, from the one numbered `start` on; the last one wins."""
        trail = {file.module}
        for star in reversed(self.index.names(file).stars[start:]):
            modules, looked_at = self._evaluate_terms(file, star.alternatives)
            trail |= looked_at
            for module in modules:
                if isinstance(module, Module):
                    starred, looked_at = self._name_from_star(module.name, name)
                    trail |= looked_at
                    if starred:
                        found = {value: how | How.IMPORT | How.STAR for value, how in starred.items()}
                        return found, frozenset(trail)
        return None, frozenset(trail)

    def _name_from_star(self, module: str, name: str) -> tuple[Found | None, Trail]:
        """What `from module import *` binds a name to; None if it does not."""
        trail = frozenset((module,))
        for file in self.index.modules.get(module, ()):
            exported, looked_at = self._exported_names(file)
            trail |= looked_at
            if exported is None or ("*" in exported and name not in exported):
                is_exported = not name.startswith("_")
            else:
                is_exported = name in exported
            if is_exported:
                found, looked_at = self._name_in_file(file, name)
                trail |= looked_at
                if found is None and exported is not None and file.is_init:
                    found, looked_at = self._submodule(file.module, name)
                    trail |= looked_at
                if found is not None:
                    return found, trail
        return None, trail

    def _exported_names(self, file: ModuleFile) -> tuple[frozenset[str] | None, Trail]:
        """The names of `__all__`, with a `*` if they are not all known; None if there is no `__all__`."""
        return self._search_once(("exports", file), self._search_exported_names, _UNKNOWN_EXPORTS)

    def _search_exported_names(self, file: ModuleFile) -> tuple[frozenset[str] | None, Trail]:
        exports = self.index.names(file).exports
        trail = frozenset((file.module,))
        if not exports:
            return None, trail
        names: set[str] = set()
        for op, name, ref in exports:
            if op == "set":
                names.clear()
            elif name is not None:
                (names.discard if op == "remove" else names.add)(name)
            else:
                added, looked_at = self._exported_names_of(file, ref)
                names |= added
                trail |= looked_at
        return frozenset(names), trail

    def _exported_names_of(self, file: ModuleFile, ref: str | None) -> tuple[frozenset[str], Trail]:
        """The names of another module's `__all__`, to which the dotted name `ref` refers."""
        first, *rest = (ref or "").split(".")
        slot = self.index.names(file).names.get(first)
        if rest and rest[-1] == "__all__":
            term = " .".join([f"g:{first}", *rest[:-1]])
        elif slot and not rest and len(slot.alternatives) == 1 and slot.alternatives[0].endswith(" .__all__"):
            term = slot.alternatives[0].removesuffix(" .__all__")  # `from module import __all__ as …`
        else:
            return _UNKNOWN_EXPORTS, _NO_TRAIL
        found, trail = self._evaluate_term(file, term)
        names: frozenset[str] = frozenset()
        for module in found:
            if isinstance(module, Module):
                for each in self.index.modules.get(module.name, ())[:1]:
                    exported, looked_at = self._exported_names(each)
                    names |= exported or _UNKNOWN_EXPORTS
                    trail |= looked_at
        return names or _UNKNOWN_EXPORTS, trail

    def _evaluate_slot(self, file: ModuleFile, slot: Slot) -> Result:
        """The values of a slot. A variable is itself one of them, in addition to what it is bound to."""
        found, trail = self._evaluate_terms(file, slot.alternatives) if slot.alternatives else (EMPTY, _NO_TRAIL)
        result = dict(found)
        if slot.kind in ("variable", "mixed") and slot.binding_key:
            result[Variable(file.file_id, slot.binding_key)] = 0
        if slot.kind == "import":
            result = {value: how | How.IMPORT for value, how in result.items()}
        return result, trail

    # Attributes.

    def _attribute(self, value: Value, name: str) -> Result:
        if isinstance(value, Module):
            return self._module_attribute(value.name, name)
        if name.endswith("*"):
            return self._attributes_by_prefix(value, name[:-1])
        if isinstance(value, Instance):
            return self._search_once(("instance", value.cls, name), self._search_instance_and_slots, EMPTY)
        if isinstance(value, Class):
            return self._search_once(("class", value, name), self._search_class_and_slots, EMPTY)
        if isinstance(value, SuperObject):
            return self._search_once(("super", value.cls, value.receiver, name), self._search_super, EMPTY)
        if isinstance(value, (Function, Decorated)):
            function = value if isinstance(value, Function) else value.value
            if name not in self.flow.assigned:
                return EMPTY, self._attribute_entry(name)
            return self._with_slots(EMPTY, [attribute_slot(function, name)])
        if isinstance(value, Container):
            if name == "__class__" or not value.class_name:
                return ({External(value.class_name): 0} if value.class_name else EMPTY), _NO_TRAIL
            return {ContainerMethod(value, name): How.MRO}, _NO_TRAIL
        if isinstance(value, External):
            return {External(f"{value.name}.{name}"): 0}, _NO_TRAIL
        if isinstance(value, ExternalInstance):
            if name == "__class__":
                return {External(value.class_name): 0}, _NO_TRAIL
            return {External(f"{value.class_name}.{name}"): How.MRO}, _NO_TRAIL
        if isinstance(value, Absent):
            return (EMPTY if value.is_member else {Absent(f"{value.name}.{name}"): 0}), _NO_TRAIL
        return EMPTY, _NO_TRAIL

    def _module_attribute(self, module: str, name: str) -> Result:
        """An attribute of a module: a name in its sources, else in its stubs, else a submodule."""
        files = self.index.modules.get(module, ())
        result: Found = {}
        trail = frozenset((module,))
        for stubs in (False, True):
            for file in files:
                if file.is_stub == stubs:
                    found, looked_at = self._name_in_file(file, name)
                    trail |= looked_at
                    _merge(result, found or EMPTY)
            if result:
                return result, trail
        submodule, looked_at = self._submodule(module, name)
        trail |= looked_at
        if submodule is not None:
            return submodule, trail
        for file in files:
            stars, looked_at = self._external_stars(file)
            trail |= looked_at
            if stars:
                return {External(f"{stars[0]}.{name}"): How.STAR}, trail
            if "__getattr__" in self.index.names(file).names:
                return EMPTY, trail
        return {(Absent if files else External)(f"{module}.{name}"): 0}, trail

    def _attributes_by_prefix(self, value: Value, prefix: str) -> Result:
        """The methods of a class or an instance whose names start with a prefix."""
        cls = value.cls if isinstance(value, Instance) else value
        if not isinstance(cls, Class):
            return EMPTY, _NO_TRAIL
        mro, trail = self._mro(cls)
        names = sorted(
            {name for entry in mro if entry.names for name in entry.names.members if name.startswith(prefix)}
        )
        result: Found = {LIMIT: How.FLOW} if len(names) > _MAX_FLOWING else {}
        for name in names[:_MAX_FLOWING]:
            found, looked_at = self._attribute(value, name)
            trail |= looked_at
            _merge(result, found, How.FLOW)
        return result, trail

    def _search_instance_and_slots(self, cls: Class, name: str) -> Result:
        found, trail = self._search_instance(cls, name)
        if name not in self.flow.assigned:
            return found, trail | self._attribute_entry(name)
        mro, _ = self._mro(cls)
        classes = [entry.value for entry in mro if isinstance(entry.value, Class)]
        assigned, looked_at = self._with_slots(
            EMPTY, [attribute_slot(each, name, of_instances=True) for each in classes]
        )
        held, _ = self._with_slots(EMPTY, [attribute_slot(each, name) for each in classes])
        if not assigned and not held:
            return found, trail | looked_at
        result = dict(found)
        _merge(result, assigned, How.ASSIGNMENT)
        _merge(result, {_with_receiver(value, cls): how for value, how in held.items()}, How.ASSIGNMENT)
        return result, trail | looked_at

    def _search_class_and_slots(self, cls: Class, name: str) -> Result:
        found, trail = self._search_class(cls, name)
        if name not in self.flow.assigned:
            return found, trail | self._attribute_entry(name)
        mro, _ = self._mro(cls)
        slots = [attribute_slot(entry.value, name) for entry in mro if isinstance(entry.value, Class)]
        result, looked_at = self._with_slots(found, slots, How.ASSIGNMENT)
        return result, trail | looked_at

    def _search_instance(self, cls: Class, name: str) -> Result:
        """An attribute of an instance: a property, else an attribute that is assigned to instances, else a member."""
        if name == "__class__":
            return {cls: 0}, _NO_TRAIL
        mro, trail = self._mro(cls)
        member, looked_at = self._find_member(cls, name)
        trail |= looked_at
        if member and any(isinstance(value, Function) and value.is_property for value in member):
            return member, trail
        holder = mro.first("attribute", name)
        if holder and holder.file and holder.names:
            slot = holder.names.attributes[name]
            found, looked_at = self._evaluate_slot(holder.file, slot)
            trail |= looked_at | {holder.file.module}
            result = {value: how | How.MRO for value, how in found.items()}
            if not result or slot.kind != "variable":  # it may be read before it is assigned
                _merge(result, member or EMPTY)
            return result, trail
        if member is not None:
            return member, trail
        return self._missing_member(cls, mro, name, "__getattr__"), trail

    def _search_class(self, cls: Class, name: str) -> Result:
        """An attribute of a class: a member of it or of its metaclass."""
        found, trail = self._find_member(cls, name)
        if found is not None:
            return {_as_class_attribute(value): how for value, how in found.items()}, trail
        mro, looked_at = self._mro(cls)
        trail |= looked_at
        metaclass, looked_at = self._metaclass(mro)
        trail |= looked_at
        if metaclass is not None:
            found, looked_at = self._find_member(metaclass, name)
            trail |= looked_at
            if found is not None:
                return found, trail
        return self._missing_member(cls, mro, name), trail

    def _metaclass(self, mro: MroEntry) -> tuple[Class | None, Trail]:
        """The metaclass that the first class of an MRO with a `metaclass` argument names."""
        holder = mro.first("metaclass")
        if holder is None or not (holder.file and holder.names and holder.names.metaclass):
            return None, _NO_TRAIL
        found, trail = self._evaluate_terms(holder.file, holder.names.metaclass.alternatives)
        return next((value for value in found if isinstance(value, Class)), None), trail

    def _search_super(self, cls: Class, receiver: Class, name: str) -> Result:
        """An attribute of `super()` in a class: of what comes after it in the MRO of the receiver."""
        if receiver != cls:
            return self._search_after(cls, receiver, name)
        found, trail = self._find_member(cls, name, bases_only=True)
        if found is not None:
            return found, trail
        mro, looked_at = self._mro(cls)
        return self._missing_member(cls, mro.rest, name, "__getattr__"), trail | looked_at

    def _search_after(self, cls: Class, receiver: Class, name: str) -> Result:
        mro, trail = self._mro(receiver)
        entry = mro.first("class", cls)
        if entry is None:
            return self._search_super(cls, cls, name)
        holder = entry.rest.first("member", name) if entry.rest else None
        if holder is None or not (holder.file and holder.names):
            return self._missing_member(receiver, entry.rest, name, "__getattr__"), trail
        values, looked_at = self._evaluate_slot(holder.file, holder.names.members[name])
        found = {_with_receiver(value, receiver): how | How.MRO for value, how in values.items()}
        return found, trail | looked_at | {holder.file.module}

    def _missing_member(self, cls: Class, mro: MroEntry | None, name: str, fallback: str | None = None) -> Found:
        """A member that no class of the repository has: that of a base from outside, or an absent one.

        Nothing is found if a class before that base defines the method `fallback`, which may return anything.
        """
        outside = mro.first("outside") if mro else None
        if mro and fallback:
            catch_all = mro.first("member", fallback)
            if catch_all and catch_all is not outside and catch_all.length > (outside.length if outside else 0):
                return EMPTY
        if outside:
            if isinstance(outside.value, External):
                return {External(f"{outside.value.name}.{name}"): How.MRO}
            return {LIMIT: How.MRO} if outside.value is LIMIT else EMPTY
        if name in OBJECT_MEMBERS:
            return {External(f"{BUILTIN}.object.{name}"): How.MRO}
        names = self._names_of(cls.file_id).classes.get(cls.key)
        qualname = names.qualname if names else "?"
        return {Absent(f"{self.index.files[cls.file_id].module}.{qualname}.{name}", is_member=True): How.MRO}

    def _find_member(self, cls: Class, name: str, *, bases_only: bool = False) -> tuple[Found | None, Trail]:
        """The member of the first class that defines it, for each MRO; None if no class does."""
        mros, trail = self._mros(cls)
        found: Found | None = None
        for mro in mros:
            start = mro.rest if bases_only else mro
            holder = start.first("member", name) if start else None
            if holder is None:
                continue
            found = dict(found or EMPTY)
            if holder.value is LIMIT:
                _merge(found, {LIMIT: How.MRO})
            elif holder.file and holder.names:
                values, looked_at = self._evaluate_slot(holder.file, holder.names.members[name])
                _merge(found, {_with_receiver(value, cls): _member_how(value, how) for value, how in values.items()})
                trail |= looked_at | {holder.file.module}
        return found, trail

    def _names_of(self, file_id: str) -> FileNames:
        return self.index.names(self.index.files[file_id])

    # Method resolution orders.

    def _mro(self, cls: Class) -> tuple[MroEntry, Trail]:
        """The first MRO of a class."""
        mros, trail = self._mros(cls)
        return mros[0], trail

    def _mros(self, cls: Class) -> tuple[list[MroEntry], Trail]:
        """The MROs that a class can have: more than one only if a base can be one of several classes.

        If there are too many, the last one consists of the class itself and a limit.
        """
        if self._without_flow is None:
            return self._search_once(("mros", cls), self._search_mros, [self._mro_entry(cls)])
        known = self._final.get(("mros", cls))
        if known is None:
            mros, trail = self._without_flow.search(lambda: self._without_flow._mros(cls))  # type: ignore[union-attr]
            if len(trail) > _WIDE_TRAIL:
                trail = cast("Trail", frozenset((trail,)))
                self._has_folded_trails = True
            known = self._final["mros", cls] = (mros, trail)
        return known

    def _mro_entry(self, cls: Class) -> MroEntry:
        file = self.index.files[cls.file_id]
        return MroEntry(cls, None, file, self.index.names(file).classes.get(cls.key))

    def _search_mros(self, cls: Class) -> tuple[list[MroEntry], Trail]:
        entry = self._mro_entry(cls)
        file = self.index.files[cls.file_id]
        trail = frozenset((file.module,))
        events_before = len(self._events)
        choices: list[list[MroEntry]] = []
        for slot in entry.names.bases if entry.names else ():
            found, looked_at = self._evaluate_terms(file, slot.alternatives)
            trail |= looked_at
            choice: list[MroEntry] = []
            for base in found:
                if isinstance(base, Class) and base != cls:
                    inherited, looked_at = self._mros(base)
                    trail |= looked_at
                    if len(self._events) != events_before:  # the class may be among its own bases
                        inherited = [mro for each in inherited if (mro := without_class(each, cls)) is not None]
                    choice += inherited
                elif isinstance(base, (External, Limit)):
                    choice.append(MroEntry(base))
            if cls not in found or choice:
                choices.append(choice[: _MAX_MROS + 1] or [MroEntry(Unknown())])
        combinations = list(islice(product(*choices), _MAX_MROS + 1))
        mros = [linearize(entry, combination) for combination in combinations[:_MAX_MROS]]
        return (mros if len(combinations) <= _MAX_MROS else [*mros, entry.followed_by(MroEntry(LIMIT))]), trail

    # Calls, and the other steps.

    def _step_call(self, value: Value, file: ModuleFile | None, site: str) -> Result:
        """What a call returns; the arguments are those of the place `site` of `file`, or not known if that is None."""
        if isinstance(value, Class):
            return {Instance(value): 0}, _NO_TRAIL
        if isinstance(value, Function):
            return self._call_result(value, file, site)
        if isinstance(value, Instance):
            return self._method_result(value, "__call__", file, site)
        if isinstance(value, Partial):
            return self._partial_result(value)
        if isinstance(value, (External, ContainerMethod)) and file is not None and (model := model_of(value)):
            found, trail = self._modelled_result(model, value, file, site)
            if found or model.returns or model.makes:
                return found, trail
        if isinstance(value, External) and _looks_like_class(value.name):
            return {ExternalInstance(value.name): 0}, _NO_TRAIL
        return EMPTY, _NO_TRAIL

    def _partial_result(self, value: Partial) -> Result:
        """What a call of a partial application returns: that of its function, where the first arguments are known."""
        file = self.index.files[value.file_id]
        functions, trail = self.argument(file, value.site, "0")
        result: Found = {}
        for function, how in functions.items():
            found, looked_at = self._step_call(function, None, "")
            trail |= looked_at
            _merge(result, found, how)
        return result, trail

    def argument(self, file: ModuleFile, site: str, places: str) -> Result:
        """The values of an argument of a call: at a position or by a keyword. To be called in a search."""
        passed = self.index.names(file).sites.get(site)
        wanted = places.split("/")
        found: Found = {}
        trail = frozenset((file.module,))
        for argument in passed.arguments if passed else ():
            if argument.place in wanted:
                values, looked_at = self._evaluate_terms(file, argument.terms)
                trail |= looked_at
                _merge(found, values)
        return found, trail

    def _modelled_result(self, model: Model, value: Value, file: ModuleFile, site: str) -> Result:
        """What a function outside the repository returns, by its model."""
        if model.makes == "partial":
            return ({Partial(file.file_id, site): 0} if site else EMPTY), _NO_TRAIL
        if model.makes:
            kind = model.makes if "." in model.makes else f"{BUILTIN}.{model.makes}"
            if not site:
                return {ExternalInstance(kind): 0}, _NO_TRAIL
            return {Container(file.file_id, site, kind): 0}, _NO_TRAIL
        result: Found = {}
        trail = _NO_TRAIL
        for source in model.returns:
            found, looked_at = self.modelled_value(source, value, file, site)
            trail |= looked_at
            _merge(result, found, How.RETURN)
        return result, trail

    def modelled_value(self, source: Source, value: Value, file: ModuleFile, site: str) -> Result:
        """What a source of a model stands for, in a call of `value`. To be called in a search."""
        if source.place == "self":
            found: Found = {value.container: 0} if isinstance(value, ContainerMethod) else {}
            trail = _NO_TRAIL
        else:
            found, trail = self.argument(file, site, source.place)
        for step in source.steps:
            found, trail = self._apply_modelled_step(found, trail, step)
        return found, trail

    def _apply_modelled_step(self, found: Found, trail: Trail, step: str) -> Result:
        result: Found = {}
        operands, looked_at = self.operands(found)
        trail |= looked_at
        for value, how in operands:
            if step == "()":
                values, looked_at = self._step_call(value, None, "")
            elif step in ("|property", "|static"):
                values, looked_at = {_as_member(value, step[1]): 0}, _NO_TRAIL
            elif step in ("|values", "|items"):
                values, looked_at = ({_view(value, step[1:]): 0} if isinstance(value, Container) else EMPTY), _NO_TRAIL
            elif step == "[]":
                values, looked_at = self._step_next(value)
            elif isinstance(value, Container):
                values, looked_at = self._items(value, "")
            else:
                continue
            trail |= looked_at
            _merge(result, values, how & ~How.ALIAS)
        return result, trail

    def _step_decorated(self, value: Value, file: ModuleFile, site: str) -> Result:
        """What a decorator of the repository makes of a definition; one from outside leaves it as it is.

        Which of the two it is, and whether it makes anything of it, never depends on what was passed somewhere.
        """
        passed = self.index.names(file).sites.get(site)
        if passed is None or not isinstance(value, (Function, Class)):
            return {value: 0}, _NO_TRAIL
        decorators, trail = self._evaluate_terms(file, passed.target)
        result: Found = {}
        for decorator, how in decorators.items():
            if not how & How.FLOW and isinstance(decorator, (Function, Class, Instance)):
                found, looked_at = self._step_call(decorator, file, site)
                trail |= looked_at
                _merge(result, {_of_kind(each, value): how | How.ALIAS for each, how in found.items()})
        if value in result:
            result[value] &= ~(How.ALIAS | How.RETURN)
        elif any(not how & How.FLOW and isinstance(each, _RUNNABLE) for each, how in result.items()):
            result[Decorated(value)] = 0
        else:
            result[value] = 0
        return result, trail

    def _call_result(self, function: Function, file: ModuleFile | None = None, site: str = "") -> Result:
        """What a call of a function returns; where it is called matters only if it can return what it is given."""
        if file is None or function.key not in self._names_of(function.file_id).returns_parameters:
            return self._search_once(("call", function, None, ""), self._search_call_result, EMPTY)
        return self._search_once(("call", function, file, site), self._search_call_result, EMPTY)

    def _search_call_result(self, function: Function, called_in: ModuleFile | None, site: str) -> Result:
        """The values of its `return` statements; if there are none, an instance of its declared return type."""
        names = self._names_of(function.file_id)
        file = self.index.files[function.file_id]
        trail = frozenset((file.module,))
        if function.key in names.yields:
            return {GeneratorObject(function): How.RETURN}, trail
        found: Found = {}
        for slot, how in (
            (names.returns.get(function.key), How.RETURN),
            (names.return_types.get(function.key), How.RETURN | How.ANNOTATION),
        ):
            if slot is not None and all(each_how & How.FLOW for each_how in found.values()):
                for term in slot.alternatives:
                    values, looked_at = self._evaluate_result_term(file, term, function, called_in, site)
                    trail |= looked_at
                    _merge(found, values, how)
        return _as_result(found), trail

    def _evaluate_result_term(
        self, file: ModuleFile, term: str, function: Function, called_in: ModuleFile | None, site: str
    ) -> Result:
        """A term of what a function returns. Where it starts from a parameter, it starts from what is passed there."""
        root, _, steps = term.partition(" ")
        letter, _, rest = root.partition(":")
        key, _, name = rest.partition(":")
        if letter == "t":
            if function.receiver is None or key != self.index.names(file).parameters(function.key).owner:
                return self._evaluate_term(file, term)
            own = key == function.receiver.key and file.file_id == function.receiver.file_id
            first: Value = function.receiver if name == "c" else Instance(function.receiver)
            found: Found = {first: 0 if own else How.MRO}
            trail = _NO_TRAIL
        elif letter != "v" or key != function.key or called_in is None:
            return self._evaluate_term(file, term)
        else:
            found, trail = self._passed_argument(function, name, called_in, site)
        for step in steps.split():
            found, trail = self._apply_step(file, found, trail, step)
        return found, trail

    def _passed_argument(self, function: Function, name: str, file: ModuleFile, site: str) -> Result:
        """What is passed to a parameter of a function at one place."""
        passed = self.index.names(file).sites.get(site)
        found: Found = {}
        trail = frozenset((file.module,))
        if passed is None:
            return found, trail
        parameters = self._names_of(function.file_id).parameters(function.key)
        places = [argument.place for argument in passed.arguments]
        for bound in bound_arguments(parameters, places, int(function.is_bound)):
            if bound.parameter == name and not bound.mark:
                values, looked_at = self.values(file, passed.arguments[bound.argument].terms, bound.step)
                trail |= looked_at
                _merge(found, values)
        return found, trail

    def _method_result(self, value: Instance, name: str, file: ModuleFile | None = None, site: str = "") -> Result:
        """What a call of a method of an instance returns."""
        methods, trail = self._attribute(value, name)
        result: Found = {}
        for method, how in methods.items():
            if isinstance(method, Function):
                found, looked_at = self._call_result(method, file, site)
                trail |= looked_at
                _merge(result, found, how & How.FLOW)
        return result, trail

    def _step_sum(self, value: Value) -> Result:
        if isinstance(value, Container):
            return {value._replace(is_moved=True): 0}, _NO_TRAIL
        is_builtin = isinstance(value, ExternalInstance) and value.class_name.startswith(BUILTIN)
        return ({value: 0} if is_builtin else EMPTY), _NO_TRAIL

    def _step_right_of_sum(self, value: Value) -> Result:
        return ({value._replace(is_moved=True): 0} if isinstance(value, Container) else EMPTY), _NO_TRAIL

    def _step_super(self, value: Value, cls: Class | None = None) -> Result:
        receiver = value.cls if isinstance(value, Instance) and cls else value
        if not isinstance(receiver, Class):
            return EMPTY, _NO_TRAIL
        return {SuperObject(cls or receiver, receiver): How.MRO}, _NO_TRAIL

    def _step_item(self, value: Value, key: str = "") -> Result:
        if isinstance(value, Container):
            return ({value._replace(is_moved=True): 0}, _NO_TRAIL) if key == ":" else self._items(value, key)
        if isinstance(value, Class):
            return {value: 0}, _NO_TRAIL
        if isinstance(value, External) and _looks_like_class(value.name):
            return {value: 0}, _NO_TRAIL
        if isinstance(value, Instance):
            return self._method_result(value, "__getitem__")
        return EMPTY, _NO_TRAIL

    def _step_enter(self, value: Value) -> Result:
        if isinstance(value, GeneratorObject):
            return self._yielded_values(value)
        if isinstance(value, Instance):
            trail = _NO_TRAIL
            for name in ("__enter__", "__aenter__"):
                found, looked_at = self._method_result(value, name)
                trail |= looked_at
                if found:
                    return {each: how | How.ASSIGNMENT for each, how in found.items()}, trail
            return EMPTY, trail
        return ({value: How.ASSIGNMENT} if isinstance(value, ExternalInstance) else EMPTY), _NO_TRAIL

    def _step_next(self, value: Value) -> Result:
        if isinstance(value, GeneratorObject):
            return self._yielded_values(value)
        if isinstance(value, Container):
            return self._items(value, "") if value.class_name not in MAPPINGS else (EMPTY, _NO_TRAIL)
        if not isinstance(value, Instance):
            return EMPTY, _NO_TRAIL
        result: Found = {}
        iterators, trail = self._method_result(value, "__iter__")
        for iterator in iterators:
            if isinstance(iterator, GeneratorObject):
                found, looked_at = self._yielded_values(iterator)
            elif isinstance(iterator, Instance):
                found, looked_at = self._method_result(iterator, "__next__")
            else:
                continue
            trail |= looked_at
            _merge(result, found)
        return result, trail

    def _yielded_values(self, value: GeneratorObject) -> Result:
        file = self.index.files[value.function.file_id]
        slot = self.index.names(file).yields[value.function.key]
        found, trail = self._evaluate_terms(file, slot.alternatives) if slot.alternatives else (EMPTY, _NO_TRAIL)
        return _as_result(found, How.RETURN), trail | {file.module}


_STEPS: Final[dict[str, Callable[[Resolver, Value], Result]]] = {
    "^": Resolver._step_super,
    "+": Resolver._step_sum,
    "+r": Resolver._step_right_of_sum,
    "@enter": Resolver._step_enter,
    "@next": Resolver._step_next,
}


def _as_result(found: Found, how: int = 0) -> Found:
    """What a function returns or yields: the values, without the variables that were bound to them."""
    return {
        value: (found_how | how) & ~How.ALIAS for value, found_how in found.items() if not isinstance(value, Variable)
    }


def _as_member(value: Value, kind: str) -> Value:
    """A function as a property or static method."""
    return value._replace(kind=kind, receiver=None, is_bound=False) if isinstance(value, Function) else value


def _view(container: Container, name: str) -> Container:
    """The values or items of a dict: a container whose items follow from those of the dict."""
    if container.key.endswith((_ITEMS_VIEW, _PAIR)):
        return container
    if name == "values":
        return container._replace(class_name=f"{BUILTIN}.list", is_moved=True)
    return Container(container.file_id, f"{container.key}{_ITEMS_VIEW}", f"{BUILTIN}.list")


def _first_root(slot: Slot) -> str | None:
    """The root of a slot with one term, whatever decorators make of it."""
    return slot.alternatives[0].partition(" ")[0] if len(slot.alternatives) == 1 else None


def unfolded(trail: Trail) -> Trail:
    """A trail with the entries of the trails that were folded into it."""
    entries: set[str] = set()
    pending: list[Any] = [trail]
    unfolded: set[int] = set()
    while pending:
        for entry in pending.pop():
            if isinstance(entry, str):
                entries.add(entry)
            elif id(entry) not in unfolded:
                unfolded.add(id(entry))
                pending.append(entry)
    return frozenset(entries)


def _with_receiver(value: Value, receiver: Class) -> Value:
    """A method as it was looked up in a class, which may inherit it."""
    if not isinstance(value, Function) or value.kind == "s":
        return value
    return value._replace(receiver=receiver, is_bound=True)


def _member_how(value: Value, how: int) -> int:
    """How a member was found; the name of a property names it, however it was made."""
    is_property = isinstance(value, Function) and value.is_property
    return (how & ~How.ALIAS if is_property else how) | How.MRO


def _as_class_attribute(value: Value) -> Value:
    """A member as it is read from a class: there, a property is itself, and a method is not bound."""
    if not isinstance(value, Function) or value.kind not in ("p", "f"):
        return value
    return value._replace(kind="d" if value.is_property else value.kind, is_bound=False)


def _of_kind(value: Value, decorated: Function | Class) -> Value:
    """What a decorator made of a member of a class, which is a property or static method if the member was."""
    if isinstance(value, Function) and isinstance(decorated, Function) and value.kind == "f":
        return value._replace(kind=decorated.kind)
    return value


def _absolute_module(file: ModuleFile, root: str) -> str | None:
    """The absolute name of the module of an import root; None if its dots lead above the top-level package."""
    _, level, module = root.split(":", 2)
    if level == "0":
        return module
    package = file.package()
    for _ in range(int(level) - 1):
        if not package:
            return None
        package = package.rpartition(".")[0]
    return f"{package}.{module}".strip(".") or None


def _existence_of(module: str) -> str:
    """The entry of a trail for a module that was only asked whether it exists."""
    return f"?{module}"


def _looks_like_class(name: str) -> bool:
    """Whether an external name is a class by its spelling."""
    last = name.rpartition(".")[2]
    return name in LOWERCASE_CLASSES or (last[:1].isupper() and not last.isupper())


def _merge(into: Found, values: Found, how: int = 0) -> None:
    """Add values; one that was found in two ways keeps the simpler way."""
    for value, found_how in values.items():
        combined = found_how | how
        if value not in into or combined < into[value]:
            into[value] = combined
