"""The values that evaluation works with: what a term can mean, and how each value was found.

A value names something; it has no contents of its own. A `Class` is a file and a key: what the class has is in the
index. So values are small, compare by name, and can be keys. They are tuples, which hash and compare without running
Python code; the `tag` tells values of different classes with the same fields apart.

Three values stand for what is not known. They differ in what may be concluded when a name is not found:

    Absent    the name would have to be in the repository, and is not there: the answer says so.
    Unknown   a base class that could not be evaluated: a name that is not found may come from it. Nothing is answered.
    Limit     evaluation stopped because a limit was hit: there may be more values. Nothing is called absent.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Module(NamedTuple):
    """A module of the repository, or a package without a file of its own."""

    name: str
    tag: Literal["module"] = "module"


class Class(NamedTuple):
    """A class of the repository."""

    file_id: str
    key: str
    tag: Literal["class"] = "class"


class Function(NamedTuple):
    """A function, method or lambda of the repository.

    `kind` says how it behaves as a member of a class. It is the letter of the term's root: `f` a function or method,
    `p` a property, `s` a static method, `k` a class method; `d` is a property that was read from the class, not from an
    instance. `receiver` is the class the method was looked up in, which may inherit it; a call of a bound method passes
    it, or an instance of it.
    """

    file_id: str
    key: str
    kind: str
    receiver: Class | None = None
    is_bound: bool = False
    tag: Literal["function"] = "function"

    @property
    def is_property(self) -> bool:
        """Whether reading it from an instance calls it."""
        return self.kind == "p"


class Instance(NamedTuple):
    """An instance of a class of the repository."""

    cls: Class
    tag: Literal["instance"] = "instance"


class SuperObject(NamedTuple):
    """What `super()` returns in a class of the repository: attributes are looked up after it, in the receiver's MRO."""

    cls: Class
    receiver: Class
    tag: Literal["super object"] = "super object"


class GeneratorObject(NamedTuple):
    """What a call of a generator function returns."""

    function: Function
    tag: Literal["generator object"] = "generator object"


class Container(NamedTuple):
    """A list, tuple, set, dict or generator that is made at one place of a file; what it holds are slots.

    A part or a sum of containers has their items at other places (`is_moved`).
    """

    file_id: str
    key: str
    class_name: str
    is_moved: bool = False
    tag: Literal["container"] = "container"


class ContainerMethod(NamedTuple):
    """A method of a container."""

    container: Container
    name: str
    tag: Literal["container method"] = "container method"


class Partial(NamedTuple):
    """What `functools.partial` returns at one place of a file: its first argument, with the others."""

    file_id: str
    site: str
    tag: Literal["partial"] = "partial"


class Decorated(NamedTuple):
    """A definition that its name names, although a call of that name runs what a decorator made of it."""

    value: Function | Class
    tag: Literal["decorated"] = "decorated"


class Variable(NamedTuple):
    """A variable of a module or class of the repository: a name bound to neither a definition nor an import."""

    file_id: str
    key: str
    tag: Literal["variable"] = "variable"


class External(NamedTuple):
    """A dotted name outside the repository; builtins start with `<builtin>`."""

    name: str
    tag: Literal["external"] = "external"


class ExternalInstance(NamedTuple):
    """An instance of a class outside the repository."""

    class_name: str
    tag: Literal["external instance"] = "external instance"


class Symbol(NamedTuple):
    """A symbol of an indexer without a definition in the facts: an attribute, or something of another package."""

    symbol: str
    kind: str
    status: str
    tag: Literal["symbol"] = "symbol"


class Absent(NamedTuple):
    """A dotted name that would have to be in the repository and is not.

    A missing member of a class (`is_member`) may still be set at run time, so its own attributes are not called absent.
    """

    name: str
    is_member: bool = False
    tag: Literal["absent"] = "absent"


class Unknown(NamedTuple):
    """A base class that could not be evaluated."""

    tag: Literal["unknown"] = "unknown"


class Limit(NamedTuple):
    """Stands for the values that were not evaluated because a limit was hit."""

    tag: Literal["limit"] = "limit"


Value = (
    Module
    | Function
    | Class
    | Instance
    | SuperObject
    | GeneratorObject
    | Container
    | ContainerMethod
    | Partial
    | Decorated
    | Variable
    | External
    | ExternalInstance
    | Symbol
    | Absent
    | Unknown
    | Limit
)


class How:
    """What it took to find a value, as bits of an integer: there are millions of them, and an enumeration is slower."""

    IMPORT: Final = 1
    STAR: Final = 2
    MRO: Final = 4
    ASSIGNMENT: Final = 8
    RETURN: Final = 16
    ANNOTATION: Final = 32
    ALIAS: Final = 64  # the last step was an assignment: the name that was read is a variable, not the value itself
    FLOW: Final = 128  # it was passed: as an argument, or to an attribute or a container somewhere else
    OUTSIDE: Final = 512  # an attribute of something from outside the repository that was passed: not passed on
    ASSUMED: Final = 256  # the receiver is assumed to be an instance of the method's own class


Found = dict[Value, int]
"""The values of a term, each with the `How` bits of the simplest way in which it was found."""

Trail = frozenset[str]
"""The modules that were looked at, by name; `?name` where only the existence of the module mattered.

`=slot` is a slot of value flow that was read, `=.name` the slots of all attributes of a name.
"""

Result = tuple[Found, Trail]
"""What an evaluation found, and the modules it looked at."""

EMPTY: Found = {}
LIMIT: Final = Limit()
