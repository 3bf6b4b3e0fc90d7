"""The built-in indexer: pyrefly over a mirror of the snapshot, its reports read by Spark's workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from codeanatomy.catalogue.columns import table_of
from codeanatomy.index.documents import Symbol, as_batch, finished_or_failed, sites_in
from codeanatomy.index.mirror import Mirror
from codeanatomy.index.provider import IndexTask, Reader, Results
from codeanatomy.index.pyrefly import Asked, Pyrefly, Ran, run_pyrefly
from codeanatomy.index.report import Report

_LINKS: Final = pa.schema([("path", pa.string()), ("link", pa.string())])


@dataclass(frozen=True)
class PyreflyProvider:
    """The built-in indexer."""

    pyrefly: Pyrefly
    name: str = "pyrefly"
    content: None = None
    reports_all: bool = False

    @property
    def fingerprint(self) -> str:
        """Everything about it that can change a document."""
        return self.pyrefly.fingerprint

    def choice(self) -> dict[str, str | None]:
        """The options that choose it."""
        return {"choice": "pyrefly", "scip": None}

    def run(self, task: IndexTask) -> Results:
        """Mirror the snapshot, then one run per shard."""
        readable = {file.path: file.size for file in task.files}
        mirror = Mirror(task.root, task.scratch / "mirror")
        mirror.add(module for module in task.modules if module.path in readable)
        names = task.scratch / "modules.json"
        named = {str(mirror.links[m.path]): m.module_fqn for m in task.modules if m.path in mirror.links}
        names.write_text(json.dumps(named), encoding="utf-8")
        yield from mirror.failures(task.only)
        about = [Asked(path, link, readable[path]) for path, link in mirror.links.items() if task.includes(path)]
        for result in run_pyrefly(self.pyrefly, about, mirror.trees, task.scratch, task.cancelled):
            yield PyreflyShard(result, names) if isinstance(result, Ran) else result

    def external_symbols(self) -> Sequence[Symbol]:
        """None: pyrefly does not report them."""
        return ()


@dataclass(frozen=True)
class PyreflyShard:
    """The report of one run."""

    ran: Ran
    names: Path

    @property
    def paths(self) -> Sequence[str]:
        """Its files."""
        return [file.path for file in self.ran.files]

    @property
    def is_last(self) -> bool:
        """Whether it is the last run."""
        return self.ran.is_last

    def rows(self) -> pa.Table:
        """The link of each file in the report."""
        return table_of(_LINKS, ((file.path, str(file.link)) for file in self.ran.files))

    def reader(self) -> Reader:
        """Reads the report's JSON."""
        return _PyreflyReader(self.ran.folder, self.names)


@dataclass(frozen=True)
class _PyreflyReader:
    folder: Path
    names: Path

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = self.folder.stat()
        report = _report(self.folder, self.names, (made.st_ino, made.st_mtime_ns))
        for batch in batches:
            keys = zip(*(batch.column(name).to_pylist() for name in ("file_id", "path", "link")), strict=True)
            yield as_batch(
                [
                    finished_or_failed(
                        partial(report.document, link, sites), sites, file_id, path, PyreflyProvider.name
                    )
                    for (file_id, path, link), sites in zip(keys, sites_in(batch), strict=True)
                ]
            )


@lru_cache(maxsize=1)
def _report(folder: Path, names: Path, stamp: tuple[int, int]) -> Report:
    """The report that this process reads; its tasks share what was read of it, until another is made in its place."""
    del stamp
    return Report(folder, json.loads(names.read_bytes()))
