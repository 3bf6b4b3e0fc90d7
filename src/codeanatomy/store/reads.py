"""Which data files were opened, of those that a version of a table has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codeanatomy.store.delta import StoredFile


@dataclass(frozen=True)
class TableRead:
    """How much of a version of a table was opened."""

    table: str
    version: int
    files: int
    files_read: int
    bytes: int
    bytes_read: int


class ReadLog:
    """The files that were opened since the log was made."""

    def __init__(self) -> None:
        self._opened: dict[tuple[str, int], dict[StoredFile, bool]] = {}

    def note(self, table: str, version: int, files: Iterable[StoredFile], opened: Iterable[StoredFile]) -> None:
        """Of the files of a version, these are opened."""
        known = self._opened.setdefault((table, version), dict.fromkeys(files, False))
        known.update(dict.fromkeys(opened, True))

    def __iter__(self) -> Iterator[TableRead]:
        """Each version that was opened, by name."""
        for (table, version), files in sorted(self._opened.items()):
            opened = [file for file, is_opened in files.items() if is_opened]
            sizes = sum(file.size for file in files), sum(file.size for file in opened)
            yield TableRead(table, version, len(files), len(opened), *sizes)
