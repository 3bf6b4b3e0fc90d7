"""The unknowns of value flow: slots that code in other places writes to, and what they hold.

A slot is named by what it belongs to, so that its name depends on no offset:

    p:FILE:FUNCTION:NAME   a parameter: what callers pass
    p:FILE:CLASS:i         the receivers of the methods of a class: instances of subclasses; c: classes
    i:FILE:CONTAINER:KEY   the items of a container: of a constant key, `*` of an unknown one, empty for all of them;
                           `**` other containers whose items it has too, `+` those that it has at other places
    a:FILE:CLASS:NAME      an attribute of the instances of a class that is set somewhere else
    m:FILE:CLASS:NAME      an attribute of a class that is set somewhere else; f: of a function, g: of a module
    n:FILE:CLASS:          whether instances of a class are made: holds the class itself if so
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from codeanatomy.resolve.values import EMPTY, Class, Container, Found, Function

_BY_NAME: Final = frozenset("amfg")

Contents = Mapping[str, Found]
"""What slots hold: values, each with the bits `How.FLOW` and `How.ASSUMED`; slots that hold nothing may be missing."""

NOTHING_FLOWS: Final[Contents] = {}


def parameter_slot(file_id: str, function: str, name: str) -> str:
    """The slot of a parameter."""
    return f"p:{file_id}:{function}:{name}"


def item_slot(container: Container, key: str) -> str:
    """The slot of items of a container."""
    return f"i:{container.file_id}:{container.key}:{key}"


def attribute_slot(owner: Class | Function, name: str, *, of_instances: bool = False) -> str:
    """The slot of an attribute of a class, of its instances, or of a function."""
    kind = "f" if isinstance(owner, Function) else "a" if of_instances else "m"
    return f"{kind}:{owner.file_id}:{owner.key}:{name}"


def variable_slot(file_id: str, name: str) -> str:
    """The slot of a variable of a module."""
    return f"g:{file_id}::{name}"


def instances_slot(cls: Class) -> str:
    """The slot that tells whether instances of a class are made."""
    return f"n:{cls.file_id}:{cls.key}:"


def file_of(slot: str) -> str:
    """The file a slot belongs to."""
    return slot.split(":", 2)[1]


def is_attribute(slot: str) -> bool:
    """Whether a slot is one of the attributes that are read by name."""
    return slot[0] in _BY_NAME


def entry_of(slot: str) -> str:
    """The entry of a trail of something that read this slot."""
    return f"=.{slot.rpartition(':')[2]}" if is_attribute(slot) else f"={slot}"


class Flow:
    """What slots hold, as a resolver reads it.

    `assigned` are the names of the attributes that may be set from elsewhere, if something may still be added: no other
    name needs a look. Otherwise they are those that slots hold.
    """

    def __init__(
        self,
        contents: Contents = NOTHING_FLOWS,
        assigned: Collection[str] | None = None,
        *,
        is_complete: bool | None = None,
    ) -> None:
        self.contents = contents
        self.is_complete = assigned is None if is_complete is None else is_complete
        self.assigned = (
            frozenset(slot.rpartition(":")[2] for slot in contents if is_attribute(slot))
            if assigned is None
            else frozenset(assigned)
        )

    def read(self, slot: str) -> Found:
        """What a slot holds."""
        return self.contents.get(slot, EMPTY)
