"""The built-in indexer: pyrefly over a mirror of the snapshot, its reports read by Spark's workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from codeanatomy.catalogue.columns import table_of
from codeanatomy.index.documents import Symbol, as_batch, finished_or_failed, sites_in
from codeanatomy.index.mirror import Mirror
from codeanatomy.index.provider import IndexTask, Reader, Results
from codeanatomy.index.pyrefly import LISTING, Asked, Pyrefly, Ran, listable, reported, run_pyrefly
from codeanatomy.index.report import Report
from codeanatomy.index.warm import Answer

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
        """Ask the indexer that stays, if there is one that knows; else mirror the snapshot, then one run per shard."""
        with ExitStack() as stack:
            if task.warm is not None:
                answer = task.warm.answer(self.pyrefly, task)
                if answer is not None:
                    yield from self._answered(answer, task)
                    return
                stack.enter_context(task.warm.paused())
            yield from self._run(task)

    def _answered(self, answer: Answer, task: IndexTask) -> Results:
        yield from answer.mirror.failures(task.only)
        files, failures = listable(_asked(answer.mirror, task))
        yield from failures
        for result in reported(files, answer.files, answer.folder, is_last=True):
            yield PyreflyShard(result, answer.names) if isinstance(result, Ran) else result

    def _run(self, task: IndexTask) -> Results:
        readable = {file.path for file in task.files}
        mirror = Mirror(task.root, task.scratch / "mirror")
        mirror.add(module for module in task.modules if module.path in readable)
        names = task.scratch / "modules.json"
        names.write_text(json.dumps(mirror.names(task.modules)), encoding="utf-8")
        yield from mirror.failures(task.only)
        asked = _asked(mirror, task)
        for result in run_pyrefly(self.pyrefly, asked, mirror.trees, task.scratch, task.cancelled):
            yield PyreflyShard(result, names) if isinstance(result, Ran) else result

    def external_symbols(self) -> Sequence[Symbol]:
        """None: pyrefly does not report them."""
        return ()


def _asked(mirror: Mirror, task: IndexTask) -> list[Asked]:
    """The files of a task that its mirror has."""
    sizes = {file.path: file.size for file in task.files}
    return [Asked(path, link, sizes[path]) for path, link in mirror.links.items() if task.includes(path)]


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
        made = (self.folder / "report" / LISTING).stat()
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
