"""What was opened of a state, and what is kept of it so that it is not read again.

A version of a table never changes, and neither does a data file: what was read of one is known for good, as long as the
state is the same. Whoever hands this to another build answers for that (`pipeline/warm.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from codeanatomy.store.delta import StoredFile

Value = TypeVar("Value")


@dataclass(frozen=True)
class TableRead:
    """How much of a version of a table was opened."""

    table: str
    version: int
    files: int
    files_read: int
    bytes: int
    bytes_read: int


class Opened:
    """The data files that were opened since this value was made, and what is kept of versions and data files."""

    def __init__(self) -> None:
        self._reads: dict[tuple[str, int], dict[StoredFile, bool]] = {}
        self._before: dict[tuple[str, Hashable], Any] = {}
        self._kept: dict[tuple[str, Hashable], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Opened, ()

    def for_next_build(self) -> Opened:
        """The same knowledge, without what was not used since this value was made; nothing is opened yet."""
        following = Opened()
        following._before = self._kept
        return following

    def keep(self, table: str, key: Hashable, read: Callable[[], Value]) -> Value:
        """What `key` names of a table, read if it is not known yet."""
        place = (table, key)
        if place not in self._kept:
            self._kept[place] = self._before[place] if place in self._before else read()
        value: Value = self._kept[place]
        return value

    def put(self, table: str, key: Hashable, value: object) -> None:
        """Let the next build know `value` under this key."""
        self._kept[table, key] = value

    def known(self, table: str, key: Hashable) -> Any:
        """What the last build put there; None if nothing."""
        return self._before.get((table, key))

    def forget(self, table: str) -> None:
        """Versions of a table start again."""
        for kept in (self._before, self._kept):
            for place in [each for each in kept if each[0] == table]:
                del kept[place]

    def note(self, table: str, version: int, files: Iterable[StoredFile], opened: Iterable[StoredFile]) -> None:
        """Of the files of a version, these are opened."""
        known = self._reads.setdefault((table, version), dict.fromkeys(files, False))
        known.update(dict.fromkeys(opened, True))

    def reads(self) -> Iterator[TableRead]:
        """Each version that was opened, by name."""
        for (table, version), files in sorted(self._reads.items()):
            opened = [file for file, is_opened in files.items() if is_opened]
            sizes = sum(file.size for file in files), sum(file.size for file in opened)
            yield TableRead(table, version, len(files), len(opened), *sizes)
