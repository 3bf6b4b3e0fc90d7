"""Index a directory in this process, without Spark: scan, extract, run a provider, read what its shards say."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from codeanatomy.extract import extract_batch
from codeanatomy.extract.source import Source, read_source
from codeanatomy.index.documents import SITE_FIELDS
from codeanatomy.index.mirror import Mirror
from codeanatomy.index.provider import Failed, IndexTask, Provider, Results, Shard, Split
from codeanatomy.index.pyrefly import Asked, Pyrefly, Ran, find_pyrefly, run_pyrefly
from codeanatomy.index.pyrefly_provider import PyreflyProvider, PyreflyShard
from codeanatomy.index.scip_provider import ScipFileProvider
from codeanatomy.repo.modules import ModuleName, module_names
from codeanatomy.repo.scan import ScanOptions, scan
from codeanatomy.repo.snapshot import ScannedFile, StatCache

FIXTURES = Path(__file__).parent / "fixtures"
TRICKY = FIXTURES / "tricky"
TRICKY_SCIP = FIXTURES / "tricky.scip"
PYREFLY = find_pyrefly()

Row = Mapping[str, Any]

needs_pyrefly = pytest.mark.skipif(PYREFLY is None, reason="pyrefly is not installed")


@dataclass(frozen=True)
class Tree:
    """A directory as a build sees it: its files, their names and their facts."""

    root: Path
    files: tuple[ScannedFile, ...]
    modules: tuple[ModuleName, ...]

    @cached_property
    def sources(self) -> dict[str, bytes]:
        """The bytes of each file, by path."""
        return {file.path: (self.root / file.path).read_bytes() for file in self.files}

    @cached_property
    def facts(self) -> dict[str, Row]:
        """The facts of each file, by path."""
        return dict(zip(self.sources, self._extracted.to_pylist(), strict=True))

    def text(self, path: str) -> bytes:
        """The text of a file that its facts speak of."""
        source = read_source(self.sources[path])
        assert isinstance(source, Source)
        return source.text

    def batch(self, asked: pa.Table) -> pa.RecordBatch:
        """What a reader is given: what a shard says of each file, and the sites of the file."""
        places = {path: place for place, path in enumerate(self.sources)}
        known = {file.path: file for file in self.files}
        paths = asked["path"].to_pylist()
        decoded = [path for path in paths if self.facts[path]["line_starts"] is not None]
        asked = asked.filter(pa.array([path in decoded for path in paths], pa.bool_()))
        facts = self._extracted.take(pa.array([places[path] for path in decoded], pa.int64()))
        columns = {name: asked[name].combine_chunks() for name in asked.column_names}
        columns["file_id"] = pa.array([known[path].file_id for path in decoded], pa.string())
        columns["size"] = pa.array([known[path].size for path in decoded], pa.int64())
        columns["line_starts"] = facts["line_starts"]
        for dataset, fields in SITE_FIELDS.items():
            lists = facts[dataset]
            for name in fields:
                columns[f"{dataset}_{name}"] = pa.ListArray.from_arrays(lists.offsets, lists.values.field(name))
        return pa.RecordBatch.from_pydict(columns)

    @cached_property
    def _extracted(self) -> pa.RecordBatch:
        return extract_batch(list(self.sources), list(self.sources.values()))


@dataclass
class Indexed:
    """Rows of `documents` by path, the files that have none with the reason, and how many shards there were."""

    documents: dict[str, Row] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    shards: int = 0
    splits: list[Split] = field(default_factory=list)

    def occurrences(self, path: str) -> list[Row]:
        """The occurrences in one file."""
        found: list[Row] = self.documents[path]["scip_occurrences"]
        return found

    def fingerprints(self) -> dict[str, tuple[str, str]]:
        """Fingerprint and interface of every document."""
        return {path: (row["fingerprint"], row["interface"]) for path, row in self.documents.items()}


def tree(root: Path, roots: Sequence[str] = ()) -> Tree:
    """The directory `root`, with source roots in it."""
    files = scan(root, ScanOptions(), StatCache()).files
    return Tree(root, files, module_names([file.path for file in files], roots))


def read(seen: Tree, results: Iterable[Shard | Failed | Split], onto: Indexed | None = None) -> Indexed:
    """Read every shard while it can be read; its reader is pickled, as for a worker."""
    indexed = onto or Indexed()
    for result in results:
        if isinstance(result, Failed):
            assert result.path not in indexed.failed
            indexed.failed[result.path] = result.detail
            continue
        if isinstance(result, Split):
            indexed.splits.append(result)
            continue
        indexed.shards += 1
        reader = pickle.loads(pickle.dumps(result.reader()))
        for batch in reader(iter([seen.batch(result.rows())])):
            for row in batch.to_pylist():
                assert row["path"] not in indexed.documents
                indexed.documents[row["path"]] = row
    return indexed


def index(seen: Tree, provider: Provider, scratch: Path, cancelled: Event | None = None) -> Indexed:
    """The documents that a provider makes of a tree."""
    scratch.mkdir(parents=True)
    return read(seen, provider.run(IndexTask(seen.root, seen.files, seen.modules, scratch, cancelled or Event())))


def mirrored(seen: Tree, scratch: Path) -> tuple[Mirror, Path]:
    """A mirror of a tree, and the file that tells the names of its modules."""
    mirror = Mirror(seen.root, scratch / "mirror")
    mirror.add(seen.modules)
    names = scratch / "modules.json"
    names.parent.mkdir(parents=True, exist_ok=True)
    names.write_text(json.dumps({str(mirror.links[each.path]): each.module_fqn for each in seen.modules}))
    return mirror, names


def run_asked(seen: Tree, pyrefly: Pyrefly, asked: Iterable[ScannedFile], scratch: Path) -> Results:
    """Run pyrefly on some files of a tree; the mirror has them all."""
    mirror, names = mirrored(seen, scratch)
    files = [Asked(file.path, mirror.links[file.path], file.size) for file in asked]
    for result in run_pyrefly(pyrefly, files, mirror.trees, scratch, Event()):
        yield PyreflyShard(result, names) if isinstance(result, Ran) else result


def pyrefly_index(root: Path, scratch: Path) -> Indexed:
    """The documents that pyrefly makes of a directory."""
    return index(tree(root), pyrefly_provider(), scratch)


def scip_index(root: Path, scip: Path, scratch: Path) -> Indexed:
    """The documents that a SCIP index has of a directory."""
    return index(tree(root), ScipFileProvider.of(scip), scratch)


def pyrefly_provider() -> PyreflyProvider:
    """The built-in indexer."""
    assert PYREFLY is not None
    return PyreflyProvider(PYREFLY)
