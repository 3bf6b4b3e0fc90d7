"""Run pyrefly over a mirror, in shards, and yield its reports one by one.

The command line leaves nothing to the analysed repository: a configuration of ours, no interpreter asked, no file but
those of the mirror. A run that crashes or takes too long is split in two until it is clear which file is to blame.

Glossary
    shard    files that one run is asked about; a run also loads what they import.
    report   the folder a run leaves; see `report` for what is in it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from threading import Event
from typing import Any, Final

from codeanatomy.index.process import IndexerCancelledError, IndexerError, ProcessLimits, run_limited
from codeanatomy.index.provider import Failed, Split

PYTHON_VERSION: Final = "3.13"
"""The language version that is assumed; ours to choose, so that a report does not depend on the machine."""

SHARD_BYTES: Final = 48 << 20
"""Source bytes per shard; a report is about eight times as large."""

_FORMAT: Final = 1
_LINE_BREAK: Final = re.compile(r"[\r\n]")
"""What would make a name two lines of the list that pyrefly is given, the second of which could be an option."""
_SECONDS: Final = 120.0
_SECONDS_PER_MEGABYTE: Final = 30.0
_MEMORY_BYTES: Final = 16 << 30


@dataclass(frozen=True)
class Pyrefly:
    """The installed indexer."""

    executable: Path
    version: str

    @property
    def fingerprint(self) -> str:
        """Everything about it that can change a document."""
        return f"pyrefly {self.version} python {PYTHON_VERSION}"


@dataclass(frozen=True)
class Asked:
    """A file to index: its path in the repository, its link in the mirror, its size."""

    path: str
    link: Path
    size: int


@dataclass(frozen=True)
class Ran:
    """A finished run: the folder of its report, its files, and whether it is the last run."""

    folder: Path
    files: tuple[Asked, ...]
    is_last: bool


def find_pyrefly() -> Pyrefly | None:
    """The pyrefly of this Python environment; never one from PATH."""
    try:
        distribution = metadata.distribution("pyrefly")
    except metadata.PackageNotFoundError:
        return None
    names = {"pyrefly", "pyrefly.exe"}
    for file in distribution.files or ():
        place = Path(str(distribution.locate_file(file)))
        if file.name in names and os.access(place, os.X_OK) and place.is_file():
            return Pyrefly(place.resolve(), distribution.version)
    return None


def run_pyrefly(
    pyrefly: Pyrefly, files: Sequence[Asked], trees: Sequence[Path], scratch: Path, cancelled: Event
) -> Generator[Ran | Failed | Split, None, None]:
    """Index `files`; the report of a shard is deleted when the next one is requested."""
    broken = {file.path for file in files if _LINE_BREAK.search(str(file.link))}
    yield from (Failed(path, "its name has a line break") for path in sorted(broken))
    pending = list(_shards([file for file in files if file.path not in broken]))[::-1]
    number = 0
    while pending:
        shard = pending.pop()
        folder = scratch / f"report{number}"
        number += 1
        try:
            try:
                entries = _run(pyrefly, shard, trees, folder, cancelled)
            except IndexerCancelledError:
                return
            except IndexerError as error:
                if len(shard) == 1:
                    yield Failed(shard[0].path, str(error))
                else:
                    yield Split(len(shard), str(error))
                    middle = len(shard) // 2
                    pending += [shard[middle:], shard[:middle]]
                continue
            failed = [file for file in shard if "failed_to_load" in entries.get(file.link, {})]
            left_out = [file for file in shard if file.link not in entries]
            yield from (Failed(file.path, "pyrefly reads UTF-8 only") for file in failed)
            yield from (Failed(file.path, "pyrefly left it out") for file in left_out)
            read = tuple(file for file in shard if file not in failed and file not in left_out)
            yield Ran(folder, read, is_last=not pending)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _shards(files: Sequence[Asked]) -> Iterator[list[Asked]]:
    """Files in shards, neighbours together because they import the same modules."""
    shard: list[Asked] = []
    held = 0
    for file in sorted(files, key=lambda file: file.path):
        shard.append(file)
        held += file.size
        if held >= SHARD_BYTES:
            yield shard
            shard, held = [], 0
    if shard:
        yield shard


def _run(
    pyrefly: Pyrefly, shard: Sequence[Asked], trees: Sequence[Path], folder: Path, cancelled: Event
) -> dict[Path, Mapping[str, Any]]:
    """One run; what its list of modules says of each file."""
    folder.mkdir()
    config, listed, report = folder / "pyrefly.toml", folder / "files.txt", folder / "report"
    config.write_text("", encoding="utf-8")
    listed.write_text("".join(f"{file.link}\n" for file in shard), encoding="utf-8")
    megabytes = sum(file.size for file in shard) / (1 << 20)
    completed = run_limited(
        [
            str(pyrefly.executable),
            "check",
            f"--config={config}",
            "--skip-interpreter-query",
            f"--python-version={PYTHON_VERSION}",
            "--python-platform=linux",
            "--disable-project-excludes-heuristics=true",
            "--use-ignore-files=false",
            *(f"--search-path={tree}" for tree in trees),
            f"--report-pysa={report}",
            "--report-pysa-format=json",
            "--output-format=omit-errors",
            "--progress-bar=no",
            f"@{listed}",
        ],
        ProcessLimits(_SECONDS + _SECONDS_PER_MEGABYTE * megabytes, _MEMORY_BYTES, cancelled),
        cwd=folder,
        env={"HOME": str(folder), "TMPDIR": str(folder)},
    )
    if completed.returncode not in (0, 1):  # 1: it found type errors
        raise IndexerError(f"pyrefly failed with {completed.reason()}")
    try:
        found = json.loads((report / "pyrefly.pysa.json").read_bytes())
    except (OSError, ValueError) as error:
        raise IndexerError(f"pyrefly left no report: {completed.reason()}") from error
    if found["format_version"] != _FORMAT:
        raise IndexerError(f"pyrefly's report has format {found['format_version']}, not {_FORMAT}")
    places = ((entry["source_path"].get("FileSystem"), entry) for entry in found["modules"].values())
    return {Path(place): entry for place, entry in places if place is not None}
