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
    remembered for good.

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

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from operator import itemgetter
from typing import Any, Final, cast

from codeanatomy.index import symbols
from codeanatomy.resolve.builtins import BUILTIN, BUILTINS, LOWERCASE_CLASSES, MODULE_MEMBERS, OBJECT_MEMBERS
from codeanatomy.resolve.index import FileNames, Index, ModuleFile, Slot
from codeanatomy.resolve.mro import MroEntry, linearize, without_class
from codeanatomy.resolve.values import (
    EMPTY,
    LIMIT,
    Absent,
    Class,
    External,
    ExternalInstance,
    Found,
    Function,
    GeneratorObject,
    How,
    Instance,
    Limit,
    Module,
    Result,
    SuperObject,
    Symbol,
    Trail,
    Unknown,
    Value,
    Variable,
)

_MAX_VALUES: Final = 16
"""The number of values that a step is applied to."""

_MAX_MROS: Final = 4
"""The number of MROs of one class that are searched, if a base can be one of several classes."""

_MAX_DEPTH: Final = 100
"""The number of searches that nest before the next one is put on a list."""

_WIDE_TRAIL: Final = 16
"""A trail with more entries is folded into one entry of a new trail, so that uniting it with others copies little."""

_NO_TRAIL: Final[Trail] = frozenset()
_FUNCTION_KINDS: Final = frozenset("fpsk")
_UNKNOWN_EXPORTS: Final = frozenset(("*",))

_Key = tuple[Any, ...]
_SearchResult = tuple[Any, Trail]


class _TooDeepError(Exception):
    """Another search, given by the arguments, must be done first: here it would nest too deep."""


class Resolver:
    """Answers questions over one index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._final: dict[_Key, _SearchResult] = {}
        self._provisional: dict[_Key, _SearchResult] = {}
        self._in_progress: dict[_Key, None] = {}
        self._depth = 0
        self._cycles_met = 0
        self._has_folded_trails = False

    def evaluate(self, file: ModuleFile, question: str) -> Result:
        """The values of a question that is asked in `file`."""
        self._provisional.clear()
        self._cycles_met = 0
        if question.startswith("y:"):
            return self._symbol(question[2:])
        return self._search_at_any_depth(lambda: self._evaluate_terms(file, question.split(" | ")))

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
                if name in names.members and names.members[name].alternatives == (f"p:{getter.key}",):
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

    def _search_at_any_depth(self, search: Callable[[], _SearchResult]) -> _SearchResult:
        """The result of a search, however deep it leads.

        Each search of the list waits for the next one. With it is the number of searches that were in progress before
        it.
        """
        waiting: list[tuple[Callable[[], _SearchResult], int]] = [(search, 0)]
        while True:
            current, in_progress_before = waiting[-1]
            while len(self._in_progress) > in_progress_before:
                self._in_progress.popitem()
            self._depth = 0
            try:
                result = current()
            except _TooDeepError as needed:
                waiting.append((partial(self._search_once, *needed.args), len(self._in_progress)))
            else:
                waiting.pop()
                if not waiting:
                    return (result[0], _unfolded(result[1])) if self._has_folded_trails else result

    def _search_once(self, key: _Key, search: Callable[..., _SearchResult], nothing: Any) -> _SearchResult:
        """The result of `search(*key[1:])`, from memory if it is there; `nothing` if the search is in progress."""
        remembered = self._final.get(key)
        if remembered is not None:
            return remembered
        if key in self._provisional:
            self._cycles_met += 1
            return self._provisional[key]
        if key in self._in_progress:
            self._cycles_met += 1
            return nothing, _NO_TRAIL
        if self._depth == _MAX_DEPTH:
            raise _TooDeepError(key, search, nothing)
        cycles_before = self._cycles_met
        self._depth += 1
        self._in_progress[key] = None
        result = search(*key[1:])
        del self._in_progress[key]
        self._depth -= 1
        if len(result[1]) > _WIDE_TRAIL:
            result = result[0], cast("Trail", frozenset((result[1],)))
            self._has_folded_trails = True
        (self._final if self._cycles_met == cycles_before else self._provisional)[key] = result
        return result

    # Terms.

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
        return self._apply_step(found, trail, step)

    def _apply_step(self, found: Found, trail: Trail, step: str) -> Result:
        """The values after one more step, which may look at more than `trail`."""
        if step == "=":
            return {value: how | How.ASSIGNMENT | How.ALIAS for value, how in found.items()}, trail
        result: Found = {LIMIT: 0} if len(found) > _MAX_VALUES else {}
        for value, how in islice(found.items(), _MAX_VALUES):
            operands: Found = {value: 0}
            if isinstance(value, Function) and value.is_property:
                operands, looked_at = self._call_result(value)
                trail |= looked_at
            for operand, operand_how in operands.items():
                values, looked_at = self._apply_to_value(operand, step)
                _merge(result, values, (how | operand_how) & ~How.ALIAS)
                trail |= looked_at
        return result, trail

    def _apply_to_value(self, value: Value, step: str) -> Result:
        if value is LIMIT:
            return {LIMIT: 0}, _NO_TRAIL
        if step.startswith("."):
            return self._attribute(value, step[1:])
        return _STEPS[step](self, value)

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
        if slot is None:
            return self._star_imported_name(file, name, 0)
        later, trail = self._star_imported_name(file, name, slot.stars_before)
        if later is not None:
            return later, trail
        found, looked_at = self._evaluate_slot(file, slot)
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
        if isinstance(value, Instance):
            return self._search_once(("instance", value.cls, name), self._search_instance, EMPTY)
        if isinstance(value, Class):
            return self._search_once(("class", value, name), self._search_class, EMPTY)
        if isinstance(value, SuperObject):
            return self._search_once(("super", value.cls, name), self._search_super, EMPTY)
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

    def _search_super(self, cls: Class, name: str) -> Result:
        """An attribute of `super()` in a class."""
        found, trail = self._find_member(cls, name, bases_only=True)
        if found is not None:
            return found, trail
        mro, looked_at = self._mro(cls)
        return self._missing_member(cls, mro.rest, name, "__getattr__"), trail | looked_at

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
                _merge(found, {_with_receiver(value, cls): how | How.MRO for value, how in values.items()})
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
        return self._search_once(("mros", cls), self._search_mros, [self._mro_entry(cls)])

    def _mro_entry(self, cls: Class) -> MroEntry:
        file = self.index.files[cls.file_id]
        return MroEntry(cls, None, file, self.index.names(file).classes.get(cls.key))

    def _search_mros(self, cls: Class) -> tuple[list[MroEntry], Trail]:
        entry = self._mro_entry(cls)
        file = self.index.files[cls.file_id]
        trail = frozenset((file.module,))
        cycles_before = self._cycles_met
        choices: list[list[MroEntry]] = []
        for slot in entry.names.bases if entry.names else ():
            found, looked_at = self._evaluate_terms(file, slot.alternatives)
            trail |= looked_at
            choice: list[MroEntry] = []
            for base in found:
                if isinstance(base, Class) and base != cls:
                    inherited, looked_at = self._mros(base)
                    trail |= looked_at
                    if self._cycles_met != cycles_before:  # the class may be among its own bases
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

    def _step_call(self, value: Value) -> Result:
        if isinstance(value, Class):
            return {Instance(value): 0}, _NO_TRAIL
        if isinstance(value, Function):
            return self._call_result(value)
        if isinstance(value, Instance):
            return self._method_result(value, "__call__")
        if isinstance(value, External) and _looks_like_class(value.name):
            return {ExternalInstance(value.name): 0}, _NO_TRAIL
        return EMPTY, _NO_TRAIL

    def _call_result(self, function: Function) -> Result:
        """What a call of a function returns."""
        return self._search_once(("call", function), self._search_call_result, EMPTY)

    def _search_call_result(self, function: Function) -> Result:
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
            if slot is not None and not found:
                for term in slot.alternatives:
                    values, looked_at = self._evaluate_result_term(file, term, function.receiver)
                    trail |= looked_at
                    _merge(found, values, how)
        return _as_result(found), trail

    def _evaluate_result_term(self, file: ModuleFile, term: str, receiver: Class | None) -> Result:
        """A term of what a method returns. Where it starts from the method's class, it starts from the receiver's."""
        root, _, steps = term.partition(" ")
        cls = Class(file.file_id, root[2:])
        if receiver is None or receiver == cls or not root.startswith("c:"):
            return self._evaluate_term(file, term)
        mro, trail = self._mro(receiver)
        if mro.first("class", cls) is None:
            return self._evaluate_term(file, term)
        found: Found = {receiver: How.MRO}
        for step in steps.split():
            found, trail = self._apply_step(found, trail, step)
        return found, trail

    def _method_result(self, value: Instance, name: str) -> Result:
        """What a call of a method of an instance returns."""
        methods, trail = self._attribute(value, name)
        result: Found = {}
        for method in methods:
            if isinstance(method, Function):
                found, looked_at = self._call_result(method)
                trail |= looked_at
                _merge(result, found)
        return result, trail

    def _step_sum(self, value: Value) -> Result:
        is_builtin = isinstance(value, ExternalInstance) and value.class_name.startswith(BUILTIN)
        return ({value: 0} if is_builtin else EMPTY), _NO_TRAIL

    def _step_super(self, value: Value) -> Result:
        return ({SuperObject(value): How.MRO} if isinstance(value, Class) else EMPTY), _NO_TRAIL

    def _step_item(self, value: Value) -> Result:
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
    "()": Resolver._step_call,
    "^": Resolver._step_super,
    "[]": Resolver._step_item,
    "+": Resolver._step_sum,
    "@enter": Resolver._step_enter,
    "@next": Resolver._step_next,
}


def _as_result(found: Found, how: int = 0) -> Found:
    """What a function returns or yields: the values, without the variables that were bound to them."""
    return {
        value: (found_how | how) & ~How.ALIAS for value, found_how in found.items() if not isinstance(value, Variable)
    }


def _unfolded(trail: Trail) -> Trail:
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
    return replace(value, receiver=receiver) if isinstance(value, Function) and value.kind != "s" else value


def _as_class_attribute(value: Value) -> Value:
    """A member as it is read from a class: there, a property is itself and not what it returns."""
    return replace(value, kind="d") if isinstance(value, Function) and value.is_property else value


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
