"""What the walk notes of a content for this layer, beside its facts: definitions, suites, bindings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

_ACCESSORS: Final = frozenset({b"setter", b"deleter"})
_PROPERTIES: Final = frozenset({b"property", b"cached_property", b"abstractproperty", b"getter"})


class BindingSite(NamedTuple):
    """A place that binds a name: from where on, in which block, and the value bound."""

    position: int
    block: int
    value: int


class Block(NamedTuple):
    """A suite of statements."""

    start: int
    end: int
    parent: int
    is_loop: bool
    leaves: bool
    fork: int = -1  # the number of the statement whose branches it is one of, if one of them must be taken


@dataclass(frozen=True)
class Definition:
    """What has to be known of a definition to follow values through it."""

    kind: bytes
    name: bytes
    key: bytes
    container: int
    scope: int
    decorators: tuple[bytes, ...]
    shape: bytes

    def letter(self) -> bytes:
        """How it behaves as a member of a class."""
        if self.kind == b"class":
            return b"c"
        last = {decorator.rpartition(b".")[2] for decorator in self.decorators}
        if last & _PROPERTIES:
            return b"p"
        return b"s" if b"staticmethod" in last else b"k" if b"classmethod" in last else b"f"

    def is_accessor(self) -> bool:
        """Whether it only adds a way to write to a property of its name."""
        return any(d.partition(b".")[0] == self.name and d.partition(b".")[2] in _ACCESSORS for d in self.decorators)
