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
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol

from codeanatomy.index.process import IndexerCancelledError, IndexerError, ProcessLimits, run_limited
from codeanatomy.index.provider import Failed, Split

PYTHON_VERSION: Final = "3.13"
"""The language version that is assumed; ours to choose, so that a report does not depend on the machine."""

SHARD_BYTES: Final = 48 << 20
"""Source bytes per shard; a report is about eight times as large."""

LISTING: Final = "pyrefly.pysa.json"
"""The list of modules of a report, which is written last."""

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


class Sized(Protocol):
    """Has a number of bytes."""

    @property
    def size(self) -> int:
        """The number."""


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
    listed, failures = listable(files)
    yield from failures
    pending = list(_shards(listed))[::-1]
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
            yield from reported(shard, entries, folder, is_last=not pending)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def listable(files: Sequence[Asked]) -> tuple[list[Asked], list[Failed]]:
    """The files that pyrefly can be asked about, and the others."""
    broken = {file.path for file in files if _LINE_BREAK.search(str(file.link))}
    failures = [Failed(path, "its name has a line break") for path in sorted(broken)]
    return [file for file in files if file.path not in broken], failures


def reported(
    files: Sequence[Asked], entries: Mapping[Path, Mapping[str, Any]], folder: Path, *, is_last: bool
) -> Iterator[Ran | Failed]:
    """The files that a report has a document of, and the others."""
    failed = [file for file in files if "failed_to_load" in entries.get(file.link, {})]
    left_out = [file for file in files if file.link not in entries]
    yield from (Failed(file.path, "pyrefly reads UTF-8 only") for file in failed)
    yield from (Failed(file.path, "pyrefly left it out") for file in left_out)
    yield Ran(folder, tuple(file for file in files if file not in failed and file not in left_out), is_last)


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
    config, listed, report = empty_config(folder), folder / "files.txt", folder / "report"
    listed.write_text("".join(f"{file.link}\n" for file in shard), encoding="utf-8")
    completed = run_limited(
        [*check_command(pyrefly, config, trees, report), f"@{listed}"],
        ProcessLimits(seconds_for(shard), _MEMORY_BYTES, cancelled),
        cwd=folder,
        env={"HOME": str(folder), "TMPDIR": str(folder)},
    )
    if completed.returncode not in (0, 1):  # 1: it found type errors
        raise IndexerError(f"pyrefly failed with {completed.reason()}")
    try:
        listing = json.loads((report / LISTING).read_bytes())
    except (OSError, ValueError) as error:
        raise IndexerError(f"pyrefly left no report: {completed.reason()}") from error
    return files_in(listing)


def empty_config(folder: Path) -> Path:
    """A configuration that leaves everything to the command line.

    It is alone in a folder, because pyrefly also looks there for what is imported.
    """
    config = folder / "config" / "pyrefly.toml"
    config.parent.mkdir()
    config.write_text("", encoding="utf-8")
    return config


def check_command(pyrefly: Pyrefly, config: Path, trees: Sequence[Path], report: Path) -> list[str]:
    """The command that checks and reports, up to what it is asked about."""
    return [
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
    ]


def seconds_for(files: Iterable[Sized]) -> float:
    """How long a run on these files may take."""
    return _SECONDS + _SECONDS_PER_MEGABYTE * sum(file.size for file in files) / (1 << 20)


def files_in(listing: Mapping[str, Any]) -> dict[Path, Mapping[str, Any]]:
    """What the list of modules of a report says of each file of the mirror."""
    if listing["format_version"] != _FORMAT:
        raise IndexerError(f"pyrefly's report has format {listing['format_version']}, not {_FORMAT}")
    places = ((entry["source_path"].get("FileSystem"), entry) for entry in listing["modules"].values())
    return {Path(place): entry for place, entry in places if place is not None}
