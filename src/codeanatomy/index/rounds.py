"""What a pyrefly that stays has reported, round after round: of each module the latest report.

A round reports the modules that it worked out again; those of earlier rounds are kept beside them. Reports identify
modules, classes and functions by numbers. Modules are numbered in order of their names, so that all get other numbers
when one comes or goes; a kept report has those of the round that made it, and is read in the new ones. Classes and
functions are numbered in their module; a report that mentions a module in which that has changed since is not current.

Glossary
    count      a numbering of modules; another one begins when a module has another number than before.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from codeanatomy.index.process import IndexerError
from codeanatomy.index.pyrefly import LISTING, files_in
from codeanatomy.index.report import NUMBERS, numbering

_PARTS: Final = ("definitions", "call_graphs", "type_of_expressions")
_ERRORS: Final = "errors.json"
_MODULE_ID: Final = re.compile(rb'"module_id":(\d+)')

_Entry = Mapping[str, Any]
_Module = tuple[str, str, str]
"""A module in all rounds: what kind of place it is in, the place, its name."""


class _Kept(NamedTuple):
    """The report of a module: its file, the round and the count that it is from."""

    name: str
    since: int
    counted: int


class Rounds:
    """The reports that pyrefly leaves in `out`, gathered in `report`."""

    def __init__(self, out: Path, report: Path) -> None:
        self.done = 0
        self.files: dict[Path, _Entry] = {}
        self._out = out
        self._report = report
        self._kept: dict[_Module, _Kept] = {}
        self._listed: dict[_Module, _Entry] = {}
        self._counts: list[dict[int, _Module]] = [{}]
        self._upset: dict[_Module, int] = {}
        """Modules that went, or whose classes and functions got other numbers, and the last round where they did."""

    @property
    def counts(self) -> int:
        """How often modules were counted."""
        return len(self._counts)

    def finished(self, marker: Path, mark: bytes) -> Mapping[str, Any] | None:
        """The list of modules of the round that found a variable `mark` in the file `marker`, if it is over."""
        listed = self._out / LISTING
        try:
            written = listed.stat().st_mtime_ns
            listing: Mapping[str, Any] = json.loads(listed.read_bytes())
        except (OSError, ValueError):  # not there yet, or not all of it
            return None
        try:
            reported = self._out / "definitions" / files_in(listing)[marker]["info_filename"]
            is_seen = b'"%s"' % mark in reported.read_bytes() and reported.stat().st_mtime_ns < written
        except OSError:
            return None
        return listing if is_seen else None

    def take(self, listing: Mapping[str, Any], *, may_renumber: bool) -> None:
        """Put what a round reported over what there is."""
        self.done += 1
        listed = {_module(entry): entry for entry in listing["modules"].values()}
        self._count(listed, may_renumber=may_renumber)
        self._upset.update(dict.fromkeys(self._listed.keys() - listed.keys(), self.done))
        written = {each.name for each in (self._out / _PARTS[0]).iterdir()}
        for module, entry in listed.items():
            if entry["info_filename"] in written:
                self._keep(module, entry["info_filename"])
        for part in _PARTS:  # what is left is of modules that went
            shutil.rmtree(self._out / part)
        (self._out / _ERRORS).replace(self._report / _ERRORS)
        self._listed = listed
        self._list(listing)

    def is_current(self, link: Path) -> bool:
        """Whether the report of a file says now what it said when it was made."""
        entry = self.files.get(link)
        if entry is None:
            return False
        if "failed_to_load" in entry:
            return True
        kept = self._kept[_module(entry)]
        upset = {module for module, number in self._upset.items() if number > kept.since}
        if not upset:
            return True
        parts = ((self._report / part / kept.name).read_bytes() for part in _PARTS)
        numbers = {int(number) for part in parts for number in set(_MODULE_ID.findall(part))}
        return upset.isdisjoint(self._counts[kept.counted][number] for number in numbers)

    def _count(self, listed: Mapping[_Module, _Entry], *, may_renumber: bool) -> None:
        """Note the numbers of modules."""
        numbers = {entry["module_id"]: module for module, entry in listed.items()}
        last = self._counts[-1]
        if all(last.get(number, module) == module for number, module in numbers.items()):
            last |= numbers
        elif may_renumber:
            self._counts.append(numbers)
        else:
            raise IndexerError("modules have other numbers")

    def _keep(self, module: _Module, name: str) -> None:
        """Move the report of a module to those that are kept."""
        count = len(self._counts) - 1
        kept, before = _Kept(f"{count}:{name}", self.done, count), self._kept.get(module)
        if before is not None:
            parts = (self._report / _PARTS[0] / before.name, self._out / _PARTS[0] / name)
            if _renumbers(*(part.read_bytes() for part in parts)):
                self._upset[module] = self.done
        for part in _PARTS:
            folder = self._report / part
            folder.mkdir(parents=True, exist_ok=True)
            if before is not None and before.name != kept.name:
                (folder / before.name).unlink()
            (self._out / part / name).replace(folder / kept.name)
        self._kept[module] = kept

    def _list(self, listing: Mapping[str, Any]) -> None:
        """Write the list of modules, with the files that are kept, and how to read their numbers."""
        now = {module: entry["module_id"] for module, entry in self._listed.items()}
        latest = len(self._counts) - 1
        entries = {}
        for module, entry in self._listed.items():
            kept = self._kept.get(module)
            of_kept = {"info_filename": kept.name, NUMBERS: kept.counted} if kept and entry["info_filename"] else {}
            entries[str(entry["module_id"])] = {**entry, **of_kept}
        used = {kept.counted for kept in self._kept.values()} - {latest}
        numbers = {
            count: {number: now[module] for number, module in self._counts[count].items() if module in now}
            for count in used
        }
        listing = {**listing, "modules": entries, NUMBERS: numbers}
        (self._out / LISTING).unlink()
        incoming = self._report / "incoming"
        incoming.write_text(json.dumps(listing), encoding="utf-8")
        incoming.replace(self._report / LISTING)
        self.files = files_in(listing)


def _module(entry: _Entry) -> _Module:
    ((kind, place),) = entry["source_path"].items()
    return kind, place, entry["module_name"]


def _renumbers(old: bytes, new: bytes) -> bool:
    """Whether the classes or functions of a module have other numbers than before."""
    return old != new and numbering(json.loads(old)) != numbering(json.loads(new))
