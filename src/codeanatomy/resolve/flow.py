"""Value flow: what is passed where. Evaluates what a content passes on (`Pass`) over what is known to have arrived.

Terms
    slot    an unknown that code in other places writes to: a parameter, the items of a container, … (`slots`).
    pass    a call, or an assignment to an attribute or item of something: a constraint `slot ⊇ term` for every slot
            that it can write to. Which slots those are depends on what the callee, or the object, can be.
    write   a value that a pass puts into a slot.

Steps of evaluating a pass (`writes_of`)
    1. Evaluate what is called or written to, by the resolver, which reads slots as they are.
    2. Call: bind the arguments to the parameters of each function it can be; a class has its `__init__`, an instance
       its `__call__`; a method gets its receiver. What is outside the repository does what its model says (`models`).
    3. The trail has the modules that were looked at and the slots that were read. As long as neither changes, the
       writes stay the same.

A pass never decides anything by the absence of a value in a slot, with the exceptions that `docs/resolution.md` lists.
`solver` repeats this until nothing is added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property, partial
from typing import Final, NamedTuple

from codeanatomy.resolve.binding import bound_arguments
from codeanatomy.resolve.builtins import BUILTIN
from codeanatomy.resolve.index import Argument, ModuleFile, Pass
from codeanatomy.resolve.models import Held, Model, ModelledCall, Source, model_of
from codeanatomy.resolve.resolver import Resolver
from codeanatomy.resolve.slots import attribute_slot, instances_slot, item_slot, parameter_slot, variable_slot
from codeanatomy.resolve.values import (
    EMPTY,
    LIMIT,
    Class,
    Container,
    ContainerMethod,
    External,
    ExternalInstance,
    Found,
    Function,
    GeneratorObject,
    How,
    Instance,
    Module,
    Partial,
    Trail,
    Value,
)

_PASSED: Final = (
    Function,
    Class,
    Instance,
    Module,
    Container,
    ContainerMethod,
    Partial,
    GeneratorObject,
    External,
    ExternalInstance,
)
_TAKERS: Final[dict[str, tuple[type, ...]]] = {
    "call": (Function, Class, Instance, Partial, External, ContainerMethod),
    "attribute": (Instance, Class, Function, Module),
    "item": (Container,),
}
"""What something can be passed to; all else takes nothing, whatever is passed."""

_MEANINGLESS: Final = (BUILTIN, "typing.")
"""Instances of classes from outside that tell nobody anything."""

_MAX_PARTIALS: Final = 4
"""Partial applications of partial applications that are looked through."""


class Write(NamedTuple):
    """A value that is put into a slot; `how` is `How.ASSUMED` or 0."""

    slot: str
    value: Value
    how: int


class _Given:
    """An argument of a call: where it is passed, and what it can be, which is evaluated if something takes it."""

    def __init__(self, place: str, evaluate: Callable[[], Found]) -> None:
        self.place = place
        self._evaluate = evaluate

    @cached_property
    def found(self) -> Found:
        """What it can be."""
        return self._evaluate()

    def moved(self, by: int) -> _Given:
        """The same in a call with `by` more arguments before it."""
        return _Given(_moved(self.place, by), lambda: self.found)


Written = tuple[tuple[Write, ...], Trail, frozenset[str]]
"""What a pass writes, each once, and what that depends on: its trail, folded, and the slots that were read."""


class PassEvaluator:
    """Evaluates passes. That a target takes nothing is found out once for all passes of a file that have it."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._inert: dict[tuple[ModuleFile, str, tuple[str, ...]], Written] = {}

    def slots_changed(self, slots: Collection[str]) -> None:
        """Forget what was found in slots that hold something else now."""
        self._inert.clear()
        self._resolver.slots_changed(slots)

    def writes_of(self, file: ModuleFile, passed: Pass) -> Written:
        """What a pass writes."""
        group = (file, passed.kind, passed.target)
        if passed.target and group in self._inert:
            return self._inert[group]
        passing: list[_Passing] = []  # a search may be started several times: the last one counts

        def run() -> tuple[tuple[Write, ...], Trail]:
            passing.append(_Passing(self._resolver, file, passed))
            return passing[-1].run()

        written = self._resolver.search_reading(run)
        if passed.target and passing[-1].is_inert:
            self._inert[group] = written
        return written


class _Passing:
    """The evaluation of one pass."""

    def __init__(self, resolver: Resolver, file: ModuleFile, passed: Pass) -> None:
        self._resolver = resolver
        self._file = file
        self._passed = passed
        self._trail = {file.module}
        self._writes: dict[tuple[str, Value], int] = {}
        self.is_inert = False

    def run(self) -> tuple[tuple[Write, ...], Trail]:
        passed = self._passed
        if passed.kind == "container":
            self._fill(Container(self._file.file_id, passed.site or "", ""), 0)
        else:
            targets, trail = self._resolver.values(self._file, passed.target)
            self._trail |= trail
            operands, trail = self._resolver.operands(targets)
            self._trail |= trail
            takers = _TAKERS[passed.kind]
            self.is_inert = not any(isinstance(each, takers) and _can_take(each) for each, _ in operands)
            for target, how in operands:
                if passed.kind == "call":
                    self._call(target, how, self._given)
                elif passed.kind == "item" and isinstance(target, Container):
                    self._fill(target, how)
                elif passed.kind == "attribute":
                    self._assign(target, how)
        return tuple(Write(slot, value, how) for (slot, value), how in self._writes.items()), frozenset(self._trail)

    @cached_property
    def _given(self) -> list[_Given]:
        return [self._argument(self._file, each) for each in self._passed.arguments]

    def _argument(self, file: ModuleFile, argument: Argument) -> _Given:
        return _Given(argument.place, lambda: self._values(file, argument.terms))

    def _values(self, file: ModuleFile, terms: Sequence[str]) -> Found:
        found, trail = self._resolver.values(file, terms)
        self._trail |= trail
        return found

    def _write(self, slot: str, found: Found, how: int) -> None:
        """Put values into a slot; what reading a property gives, not the property."""
        operands, trail = self._resolver.operands(found)
        self._trail |= trail
        for value, value_how in operands:
            if not isinstance(value, _PASSED) and not (value is LIMIT and value_how & How.FLOW):
                continue
            if value_how & How.OUTSIDE or (
                isinstance(value, ExternalInstance) and value.class_name.startswith(_MEANINGLESS)
            ):
                continue
            combined = (how | value_how) & How.ASSUMED
            known = self._writes.get((slot, value))
            if known is None or combined < known:
                self._writes[slot, value] = combined

    def _write_item(self, container: Container, key: str, found: Found, how: int) -> None:
        """Put values into a container: under a key, or as containers whose items it has too."""
        if key not in ("**", "+"):
            self._write(item_slot(container, key), found, how)
            self._write(item_slot(container, ""), found, how)
            return
        containers: Found = {value: each for value, each in found.items() if isinstance(value, Container)}
        self._write(item_slot(container, key), containers, how)
        for value, each in found.items():
            if isinstance(value, (GeneratorObject, Instance)):
                items, trail = self._resolver.iterated(value)
                self._trail |= trail
                self._write_item(container, "*", items, how | each)

    def _fill(self, container: Container, how: int) -> None:
        for each in self._given:
            self._write_item(container, each.place, each.found, how)

    def _assign(self, target: Value, how: int) -> None:
        """An attribute of something is set."""
        for each in self._given:
            if isinstance(target, Instance):
                self._write(attribute_slot(target.cls, each.place, of_instances=True), each.found, how)
            elif isinstance(target, (Class, Function)):
                self._write(attribute_slot(target, each.place), each.found, how)
            elif isinstance(target, Module):
                for file in self._resolver.index.modules.get(target.name, ()):
                    self._write(variable_slot(file.file_id, each.place), each.found, how)

    # Calls.

    def _call(self, callee: Value, how: int, given: Sequence[_Given], depth: int = 0) -> None:
        if isinstance(callee, Function):
            self._call_function(callee, how, given)
        elif isinstance(callee, Class):
            if not (how & How.ASSUMED and self._is_own_class(callee)):
                self._write(instances_slot(callee), {callee: 0}, 0)
            for name in ("__init__", "__new__"):
                members, trail = self._resolver.member(callee, name)
                self._call_each(members, trail, how, given)
        elif isinstance(callee, Instance):
            self._call_each(*self._resolver.attribute(callee, "__call__"), how, given)
        elif isinstance(callee, Partial) and depth < _MAX_PARTIALS:
            self._call_partial(callee, how, given, depth + 1)
        elif isinstance(callee, (External, ContainerMethod)):
            model = model_of(callee)
            if model is not None:
                self._apply_model(model, callee, how, given)

    def _is_own_class(self, cls: Class) -> bool:
        """Whether a class is that of the method the call is in: called as a receiver that is only assumed."""
        roots = (term.partition(" ")[0].split(":") for term in self._passed.target)
        owners = {root[1] for root in roots if root[0] == "t"}
        return cls.file_id == self._file.file_id and cls.key in owners

    def _call_each(self, functions: Found, trail: Trail, how: int, given: Sequence[_Given]) -> None:
        self._trail |= trail
        for function, found_how in functions.items():
            if isinstance(function, Function):
                self._call_function(function, how | found_how, given)

    def _call_function(self, function: Function, how: int, given: Sequence[_Given]) -> None:
        """Bind arguments to parameters. A receiver of the method's own class need not be passed: it is assumed."""
        file = self._resolver.index.files[function.file_id]
        parameters = self._resolver.index.names(file).parameters(function.key)
        self._trail |= {file.module}
        receiver = function.receiver if function.is_bound else None
        if receiver is not None and parameters.names and parameters.marks[0] in ("", "/"):
            is_own = parameters.owner == receiver.key and function.file_id == receiver.file_id
            is_class = parameters.is_class if parameters.owner is not None else function.kind == "k"
            if not is_own:
                slot = parameter_slot(function.file_id, function.key, parameters.names[0])
                if parameters.owner is not None:
                    slot = parameter_slot(function.file_id, parameters.owner, "c" if is_class else "i")
                self._write(slot, {receiver if is_class else Instance(receiver): 0}, how)
        for bound in bound_arguments(parameters, [each.place for each in given], int(function.is_bound)):
            found = given[bound.argument].found
            if bound.step:
                found, trail = self._resolver.applied(self._file, found, bound.step)
                self._trail |= trail
            if bound.mark:
                container = Container(function.file_id, f"{function.key}{bound.mark}", "")
                self._write_item(container, bound.key, found, how)
            else:
                self._write(parameter_slot(function.file_id, function.key, bound.parameter), found, how)

    def _call_partial(self, callee: Partial, how: int, given: Sequence[_Given], depth: int) -> None:
        """A call with the arguments of a partial application before its own."""
        file = self._resolver.index.files[callee.file_id]
        self._trail |= {file.module}
        passed = self._resolver.index.names(file).sites.get(callee.site)
        functions: Found = EMPTY
        first: list[_Given] = []
        for argument in passed.arguments if passed else ():
            each = self._argument(file, argument)
            if argument.place == "0":
                functions = each.found
            else:
                first.append(each.moved(-1))
        count = sum(each.place.isdigit() for each in first)
        operands, trail = self._resolver.operands(functions)
        self._trail |= trail
        for function, found_how in operands:
            self._call(function, how | found_how, [*first, *(each.moved(count) for each in given)], depth)

    # Models.

    def _apply_model(self, model: Model, callee: Value, how: int, given: Sequence[_Given]) -> None:
        """What a function outside the repository does with what it is given."""
        for call in model.calls:
            self._modelled_call(call, callee, how, given)
        site = self._passed.site
        if model.makes and model.makes != "partial" and site:
            self._hold(Container(self._file.file_id, site, ""), model.holds, callee, how)
        if isinstance(callee, ContainerMethod):
            self._hold(callee.container, model.stores, callee, how)

    def _source(self, place: str, callee: Value, steps: tuple[str, ...] = ()) -> Found:
        found, trail = self._resolver.modelled_value(Source(place, steps), callee, self._file, self._passed.site or "")
        self._trail |= trail
        return found

    def _modelled_call(self, call: ModelledCall, callee: Value, how: int, given: Sequence[_Given]) -> None:
        functions = self._source(call.what, callee)
        arguments = [
            _Given(str(at), partial(self._source, each.place, callee, each.steps))
            for at, each in enumerate(call.arguments)
        ]
        if call.rest is not None:
            arguments += (
                each.moved(-call.rest) for each in given if not each.place.isdigit() or int(each.place) >= call.rest
            )
        for place, source in (("*0", call.spread), ("**", call.keywords)):
            if source is not None:
                arguments.append(_Given(place, partial(self._source, source, callee)))
        operands, trail = self._resolver.operands(functions)
        self._trail |= trail
        for function, found_how in operands:
            if not isinstance(function, (External, ContainerMethod)):
                self._call(function, how | found_how, arguments)

    def _hold(self, container: Container, held: Iterable[Held], callee: Value, how: int) -> None:
        """Put into a container what a model says."""
        for each in held:
            if each.key == "keywords":
                for argument in self._given:
                    if argument.place == "**":
                        self._write_item(container, "**", argument.found, how)
                    elif argument.place[0] not in "*+" and not argument.place.isdigit():
                        self._write_item(container, f"'{argument.place}", argument.found, how)
            elif each.parts:
                part = Container(self._file.file_id, f"{self._passed.site}#tuple", f"{BUILTIN}.tuple")
                for at, source in enumerate(each.parts):
                    if source is not None:
                        found = self._source(source.place, callee, source.steps)
                        self._write_item(part, str(at), found, how)
                self._write_item(container, each.key, {part: 0}, how)
            else:
                found = self._source(each.source.place, callee, each.source.steps)
                self._write_item(container, each.key, found, how)


def _can_take(value: Value) -> bool:
    """Whether something in the repository, or a model, can do anything with what is passed to a value."""
    return not isinstance(value, (External, ContainerMethod)) or model_of(value) is not None


def _moved(place: str, by: int) -> str:
    """A place of an argument in a call with `by` more arguments before it."""
    if place.isdigit():
        return str(int(place) + by)
    if place[0] in "*+" and place != "**":
        return f"{place[0]}{max(0, int(place[1:]) + by)}"
    return place
