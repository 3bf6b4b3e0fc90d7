"""Keep what pyrefly reports of the tricky tree as a file, so that it can be read without running pyrefly.

    python -m tests.index.make_report_fixture

A report of a few files is fifty megabytes, because it tells about every module that they load. Kept is what is read:
all of the tree's own modules, and of the modules they mention what their classes and functions are called.
"""

from __future__ import annotations

import json
import lzma
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codeanatomy.index.provider import Failed
from codeanatomy.index.pyrefly import Asked, Pyrefly, Ran, find_pyrefly
from codeanatomy.index.pyrefly_provider import PyreflyShard
from tests.index.indexing import FIXTURES, TRICKY, Indexed, Tree, mirrored, read, run_asked, tree

REPORT = FIXTURES / "tricky.report.json.xz"

_MIRROR = "{mirror}"
_LISTED = "pyrefly.pysa.json"
_ERRORS = "errors.json"
_CALLED = ("name", "name_location", "parent")


def trimmed(report: Path, mirror: Path) -> dict[str, str]:
    """The files of a report that are needed to read its documents, with a placeholder for the place of the mirror."""
    listed = json.loads((report / _LISTED).read_bytes())
    entries = listed["modules"]
    own = {number: entry for number, entry in entries.items() if "FileSystem" in entry["source_path"]}
    files = {}
    for entry in own.values():
        for part in ("call_graphs", "definitions", "type_of_expressions"):
            place = Path(part, entry["info_filename"])
            if (report / place).exists():  # not of a file that it could not load
                files[str(place)] = (report / place).read_text(encoding="utf-8")
    mentioned = {number for text in files.values() for number in re.findall(r'"module_id":(\d+)', text)} - own.keys()
    for number in mentioned:
        place = Path("definitions", entries[number]["info_filename"])
        files[str(place)] = _dumped(_named(json.loads((report / place).read_bytes())))
    files[_LISTED] = _dumped({**listed, "modules": {number: entries[number] for number in {*own, *mentioned}}})
    files[_ERRORS] = (report / _ERRORS).read_text(encoding="utf-8")
    return {name: files[name].replace(str(mirror), _MIRROR) for name in sorted(files)}


def _named(body: Mapping[str, Any]) -> dict[str, Any]:
    """Of the definitions of a module, what they are called."""
    parts = ("function_definitions", "class_definitions")
    return {
        part: {
            number: {key: each[key] for key in _CALLED if key in each} for number, each in sorted(body[part].items())
        }
        for part in parts
    }


def _dumped(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def kept_version() -> str:
    """The version of pyrefly that made the fixture."""
    version: str = _kept()["version"]
    return version


def read_kept(seen: Tree, scratch: Path) -> Indexed:
    """The documents of the tricky tree, from the report that is kept."""
    mirror, names = mirrored(seen, scratch)
    folder = scratch / "report0"
    for name, text in _kept()["files"].items():
        place = folder / "report" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.replace(_MIRROR, str(scratch / "mirror")), encoding="utf-8")
    failed = _kept()["failed"]
    asked = tuple(Asked(f.path, mirror.links[f.path], f.size) for f in seen.files if f.path not in failed)
    results = [Failed(path, detail) for path, detail in failed.items()]
    return read(seen, [*results, PyreflyShard(Ran(folder, asked, is_last=True), names)])


def _kept() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(lzma.decompress(REPORT.read_bytes()))
    return kept


def make(pyrefly: Pyrefly, seen: Tree, scratch: Path) -> bytes:
    """The fixture."""
    files: dict[str, str] = {}
    failed: dict[str, str] = {}
    for result in run_asked(seen, pyrefly, seen.files, scratch):
        if isinstance(result, Failed):
            failed[result.path] = result.detail
        else:
            assert isinstance(result, PyreflyShard)
            files |= trimmed(result.ran.folder / "report", scratch / "mirror")
    kept = {"version": pyrefly.version, "failed": failed, "files": files}
    return lzma.compress(_dumped(kept).encode(), preset=9)


if __name__ == "__main__":
    found = find_pyrefly()
    if found is None:
        raise SystemExit("pyrefly is not installed")
    with tempfile.TemporaryDirectory() as directory:
        REPORT.write_bytes(make(found, tree(TRICKY), Path(directory)))
