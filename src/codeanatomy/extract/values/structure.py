"""What the walk records for this layer, in addition to facts: definitions, blocks, binding sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

_ACCESSORS: Final = frozenset({b"setter", b"deleter"})
_PROPERTIES: Final = frozenset({b"property", b"cached_property", b"abstractproperty", b"getter"})


class BindingSite(NamedTuple):
    """A binding of a name: the position from which it is in effect, its block, and the value."""

    position: int
    block: int
    value: int


class Block(NamedTuple):
    """An indented block of statements; `parent` is the block around it."""

    start: int
    end: int
    parent: int
    is_loop: bool
    always_leaves: bool
    fork: int = -1  # the statement it is a branch of, if one of the branches of that is always taken


@dataclass(frozen=True)
class Definition:
    """A definition, as far as values are followed through it; `shape` is its decorators and head, as written."""

    kind: bytes
    name: bytes
    key: bytes
    container: int
    scope: int
    decorators: tuple[bytes, ...]
    shape: bytes

    def root_letter(self) -> bytes:
        """The letter of its root in terms, which says how it behaves as a member of a class."""
        if self.kind == b"class":
            return b"c"
        last = {decorator.rpartition(b".")[2] for decorator in self.decorators}
        if last & _PROPERTIES:
            return b"p"
        return b"s" if b"staticmethod" in last else b"k" if b"classmethod" in last else b"f"

    def is_accessor(self) -> bool:
        """Whether it adds a setter or deleter to the property of its name."""
        return any(d.partition(b".")[0] == self.name and d.partition(b".")[2] in _ACCESSORS for d in self.decorators)
