"""What impact is decided from: values of the last build and of the new snapshot. Nothing here can be written to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from codeanatomy.impact.dependents import Lookups
from codeanatomy.impact.exports import ChangedExport
from codeanatomy.impact.propagation import SourceWords
from codeanatomy.impact.snapshots import ModuleChanges, SnapshotChanges
from codeanatomy.resolve.index import FileNames


class Facts(Protocol):
    """The facts of contents, old and new."""

    def names(self, content_id: str) -> FileNames | None:
        """What a content defines for others."""

    def by_content(self, contents: Collection[str], columns: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
        """Some columns of the facts of these contents."""


class StoredTable(Protocol):
    """A table of the last build."""

    def read(self, columns: Sequence[str], owners: Collection[str] | None = None) -> pa.Table:
        """Some columns of the rows of these owners, or of all."""


@dataclass(frozen=True)
class Evidence:
    """What changed, and what the last build knows of the files that this may affect."""

    changes: SnapshotChanges
    modules: ModuleChanges
    exports: tuple[ChangedExport, ...]
    facts: Facts
    lookups: Lookups
    answers: StoredTable
    documents: StoredTable | None
    words: SourceWords

    def with_redefined(self, modules: Iterable[tuple[str, str]]) -> Evidence:
        """The same, with modules (and the paths of their files) that define something else for others."""
        return replace(self, modules=self.modules.with_contents(modules))
