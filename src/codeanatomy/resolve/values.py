"""What a question can mean: the values that evaluation works with, and how each was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the repository, or a package without a file of its own."""

    name: str


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the repository."""

    file_id: str
    key: str


@dataclass(frozen=True, slots=True)
class Function:
    """A function, method or lambda of the repository.

    `letter` says how it behaves as a member of a class, `receiver` is the class it was looked for in.
    """

    file_id: str
    key: str
    letter: str
    receiver: Class | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a class of the repository."""

    of: Class


@dataclass(frozen=True, slots=True)
class Super:
    """What the bases of a class have, seen from an instance of it."""

    of: Class


@dataclass(frozen=True, slots=True)
class Generated:
    """What a generator function gives when called."""

    by: Function


@dataclass(frozen=True, slots=True)
class Variable:
    """A name of a module or class of the repository that holds something else than a definition or an import."""

    file_id: str
    key: str


@dataclass(frozen=True, slots=True)
class External:
    """A dotted name outside the repository; builtins start with `<builtin>`."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternalInstance:
    """What calling an external class gives."""

    of: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of an indexer that stands for no definition here: a variable, or something of another package."""

    symbol: str
    kind: str
    status: str


@dataclass(frozen=True, slots=True)
class Absent:
    """A dotted name that ought to be in the repository and is not; a class may still get such a member as it runs."""

    name: str
    is_member: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A base class that nothing is known of: whatever is not found may come from there."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Something that was not followed to its end, because a limit was hit: there may be more than what was found."""


Value = (
    Module
    | Function
    | Class
    | Instance
    | Super
    | Generated
    | Variable
    | External
    | ExternalInstance
    | Symbol
    | Absent
    | Unknown
    | Limit
)


class How:
    """What it took to find a value: bits of a plain number, for there are millions of them."""

    IMPORT: Final = 1
    STAR: Final = 2
    MRO: Final = 4
    ASSIGNMENT: Final = 8
    RETURN: Final = 16
    ANNOTATION: Final = 32
    ALIAS: Final = 64  # the last hop was an assignment: the name that was read is a variable


Found = dict[Value, int]
Trail = frozenset[str]
EMPTY: Found = {}
LIMIT: Final = Limit()
