"""Where semantic documents come from: a provider runs an indexer, or reads an index that is there, shard by shard.

Glossary
    shard    files whose documents can be read together, and a reader that Spark's workers run over them.
    reader   a function over Arrow batches: what a shard says of its files and their sites, to rows of `documents`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from codeanatomy.index.documents import Symbol
from codeanatomy.repo.modules import ModuleName
from codeanatomy.repo.snapshot import ScannedFile

if TYPE_CHECKING:
    from codeanatomy.index.warm import WarmPyrefly

Reader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Failed:
    """A file that has no document, and why."""

    path: str
    detail: str


@dataclass(frozen=True)
class Split:
    """A shard of so many files that the indexer failed on, which is indexed again in two halves."""

    files: int
    detail: str


@dataclass(frozen=True)
class IndexTask:
    """What a provider is to index: files of the repository at `root`, all of them or those at the paths in `only`.

    `modules` are those of all files, readable or not. The provider may write to `scratch`, and ends when `cancelled`.
    `warm` is an indexer that stays, for providers that can ask one.
    """

    root: Path
    files: Sequence[ScannedFile]
    modules: Sequence[ModuleName]
    scratch: Path
    cancelled: Event = field(default_factory=Event)
    only: Collection[str] | None = None
    warm: WarmPyrefly | None = None

    def includes(self, path: str) -> bool:
        """Whether a file is to be indexed."""
        return self.only is None or path in self.only


class Shard(Protocol):
    """Files whose documents can be read now."""

    @property
    def paths(self) -> Sequence[str]:
        """The files, by their path in the repository."""

    @property
    def is_last(self) -> bool:
        """Whether it is the last shard, and no failure follows."""

    def rows(self) -> pa.Table:
        """The input of the reader for each file, by `path`."""

    def reader(self) -> Reader:
        """The function that reads the documents; pickled for workers."""


Results = Generator[Shard | Failed | Split, None, None]


class Provider(Protocol):
    """A source of documents."""

    @property
    def name(self) -> str:
        """The name of the provider in documents."""

    @property
    def fingerprint(self) -> str:
        """Identifies everything about it, but for its content, that can change a document."""

    def choice(self) -> dict[str, str | None]:
        """The options that choose it: `choice` of an index, and the file of a SCIP index."""

    @property
    def content(self) -> str | None:
        """The digest of an index that exists already; another digest may mean other documents."""

    @property
    def reports_all(self) -> bool:
        """Whether it always reports the documents of all files: which of them changed is found by comparison."""

    def run(self, task: IndexTask) -> Results:
        """Index files; a shard can be read until the next result is asked for."""

    def external_symbols(self) -> Sequence[Symbol]:
        """Symbols that no file defines; known after the last shard."""
