"""SCIP indexes: one that is there, or one that scip-python makes of a mirror of the snapshot.

Columns of an index count characters, so a document is read together with the bytes of its file.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from codeanatomy.catalogue.columns import table_of
from codeanatomy.errors import InputError
from codeanatomy.index.documents import Symbol, as_batch, finished_or_failed, sites_in
from codeanatomy.index.mirror import Mirror
from codeanatomy.index.process import IndexerCancelledError, ProcessLimits
from codeanatomy.index.provider import Failed, IndexTask, Reader, Results
from codeanatomy.index.scip import ScipIndex, open_index, read_document, read_external_symbols
from codeanatomy.index.scip_python import MEMORY_BYTES, ScipPython, run_scip_python
from codeanatomy.repo.reading import open_regular, read_regular

SHARD_BYTES: Final = 64 << 20
"""Bytes of documents and sources that the driver holds at a time."""

NAME: Final = "scip"
_BYTES: Final = pa.schema([("path", pa.string()), ("document", pa.binary()), ("source", pa.binary())])
_SECONDS: Final = 600.0
_SECONDS_PER_MEGABYTE: Final = 120.0


@dataclass
class ScipFileProvider:
    """An existing index file."""

    path: Path
    content: str
    name: str = NAME
    fingerprint: str = NAME
    reports_all: bool = True
    _external: list[Symbol] = field(default_factory=list)

    @classmethod
    def of(cls, path: Path) -> ScipFileProvider:
        """The index at `path`; a hash of its bytes identifies it."""
        try:
            with open_regular(path, follow_link=True) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:24]
        except OSError as error:
            raise InputError(f"cannot read --scip {path}: {error.strerror}") from error
        return cls(path, digest)

    def choice(self) -> dict[str, str | None]:
        """The options that choose it."""
        return {"choice": NAME, "scip": str(self.path)}

    def run(self, task: IndexTask) -> Results:
        """Yield the documents of `files`; a file without a document is a failure."""
        index = open_index(self.path)
        self._external = read_external_symbols(index.read(index.external))
        names = {file.path: file.path for file in task.files if task.includes(file.path)}
        yield from _shards(index, names, task.root)

    def external_symbols(self) -> Sequence[Symbol]:
        """Symbols of other packages."""
        return self._external


@dataclass
class ScipPythonProvider:
    """An index that scip-python creates."""

    tool: ScipPython
    name: str = NAME
    content: None = None
    reports_all: bool = True
    _external: list[Symbol] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """Everything about it that can change a document."""
        return f"scip-python {self.tool.version}"

    def choice(self) -> dict[str, str | None]:
        """The options that choose it."""
        return {"choice": NAME, "scip": None}

    def run(self, task: IndexTask) -> Results:
        """Mirror the snapshot, index it in one run, yield the documents."""
        readable = {file.path: file.size for file in task.files}
        mirror = Mirror(task.root, task.scratch / "mirror")
        mirror.add(module for module in task.modules if module.path in readable)
        yield from mirror.failures(task.only)
        if not mirror.trees:
            return
        tree, *others = mirror.trees
        made = task.scratch / "index.scip"
        seconds = _SECONDS + _SECONDS_PER_MEGABYTE * sum(readable.values()) / (1 << 20)
        try:
            run_scip_python(self.tool, tree, made, ProcessLimits(seconds, MEMORY_BYTES, task.cancelled), others)
        except IndexerCancelledError:
            return
        index = open_index(made)
        self._external = read_external_symbols(index.read(index.external))
        names = {
            path: link.relative_to(tree).as_posix() if link.is_relative_to(tree) else ""
            for path, link in mirror.links.items()
            if task.includes(path)
        }
        yield from _shards(index, names, task.root)

    def external_symbols(self) -> Sequence[Symbol]:
        """Symbols of other packages."""
        return self._external


@dataclass(frozen=True)
class ScipShard:
    """Documents of an index and the files they are about."""

    index: ScipIndex
    names: Mapping[str, str]
    root: Path
    is_last: bool

    @property
    def paths(self) -> Sequence[str]:
        """The files."""
        return list(self.names)

    def rows(self) -> pa.Table:
        """The bytes of each document and of each file."""
        sources = (read_regular(self.root / path, sys.maxsize)[0] for path in self.names)
        documents = (b"".join(self.index.read(self.index.documents[name])) for name in self.names.values())
        return table_of(_BYTES, zip(self.names, documents, sources, strict=True))

    def reader(self) -> Reader:
        """Parses the documents."""
        return _ScipReader(self.index.tool)


@dataclass(frozen=True)
class _ScipReader:
    tool: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = ("file_id", "path", "document", "source")
        for batch in batches:
            keys = zip(*(batch.column(name).to_pylist() for name in names), strict=True)
            yield as_batch(
                [
                    finished_or_failed(
                        partial(read_document, document, source, sites.line_starts, self.tool, path),
                        sites,
                        file_id,
                        path,
                        NAME,
                    )
                    for (file_id, path, document, source), sites in zip(keys, sites_in(batch), strict=True)
                ]
            )


def _shards(index: ScipIndex, names: Mapping[str, str], root: Path) -> Results:
    """Documents in shards of bounded size; `names` are those of the files in the index."""
    known = {path: name for path, name in names.items() if name in index.documents}
    yield from (Failed(path, "the SCIP index has no document of it") for path in names if path not in known)
    shard: dict[str, str] = {}
    held = 0
    for place, (path, name) in enumerate(sorted(known.items()), start=1):
        shard[path] = name
        held += sum(part.length for part in index.documents[name]) + (root / path).stat().st_size
        if held >= SHARD_BYTES or place == len(known):
            yield ScipShard(index, shard, root, is_last=place == len(known))
            shard, held = {}, 0
