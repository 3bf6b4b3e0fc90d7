"""Run scip-python, a SCIP indexer based on pyright, on an untrusted tree.

What it would do by itself, and what keeps it from that:

    runs `python3`, then `python`, from PATH, in the tree,      PATH is an empty directory (an empty PATH would be
    to learn its version and search path                        the tree itself)
    runs `pip3` or `pip`, and a script with `python3`           `--environment`, a file that lists no package
    runs `git rev-parse` to learn a version                     `--project-version`; PATH
    obeys `scip-pyrightconfig.json`, `pyrightconfig.json` or    a `scip-pyrightconfig.json` of ours at the top of the
    `pyproject.toml` of the tree or of any directory above it   tree, which comes before all others
    node obeys `NODE_OPTIONS`, `NODE_PATH`, …                   an environment of our own

So no interpreter and no installed package is seen: what the tree imports from elsewhere stays external, and the same
tree gives the same index on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from codeanatomy.index.process import IndexerError, ProcessLimits, run_limited

CONFIGURATION: Final = "scip-pyrightconfig.json"
"""The first file that scip-python looks for."""

MEMORY_BYTES: Final = 6 << 30
_HEAP_SHARE: Final = 0.7  # of that for JavaScript objects; the rest is young objects, code and stacks


@dataclass(frozen=True)
class ScipPython:
    """An installed scip-python: the interpreter, the script and its version, all found without running it."""

    node: Path
    script: Path
    version: str


def find_scip_python(repo: Path) -> ScipPython | None:
    """The scip-python on PATH; one inside the analysed repository is ignored."""
    script, node = _find("scip-python", repo), _find("node", repo)
    if script is None or node is None or script.suffix not in (".js", ".cjs", ".mjs"):
        return None
    return ScipPython(node, script, _version(script))


def run_scip_python(
    tool: ScipPython, tree: Path, out: Path, limits: ProcessLimits, search: Sequence[Path] = ()
) -> None:
    """Index the directory `tree` into the file `out`; paths of documents are relative to `tree`.

    `tree` must be a directory of ours (links to the files will do): a configuration file is put there and taken away
    again. Imports are looked for in `tree`, then in the directories `search`.
    """
    top = tree.resolve()  # scip-python compares paths as texts
    with tempfile.TemporaryDirectory(prefix="scip-python-", dir=out.parent) as name, _configured(top, search):
        scratch = Path(name).resolve()
        command = command_line(tool, top, scratch, limits.memory_bytes or MEMORY_BYTES)
        finished = run_limited(command, limits, cwd=scratch, env=environment(scratch))
        written = scratch / "index.scip"
        if finished.returncode != 0 or not written.is_file():
            raise IndexerError(f"scip-python failed: {finished.reason()}")
        shutil.move(written, out)


def command_line(tool: ScipPython, tree: Path, scratch: Path, memory_bytes: int) -> list[str]:
    """The command to run, after its files are written to `scratch`."""
    packages = scratch / "packages.json"
    packages.write_text("[]", encoding="utf-8")
    heap = int(memory_bytes * _HEAP_SHARE) >> 20
    return [
        *(str(tool.node), f"--max-old-space-size={heap}", str(tool.script), "index", "--quiet"),
        *("--cwd", str(tree), "--output", str(scratch / "index.scip"), "--environment", str(packages)),
        *("--project-name", ".", "--project-version", "."),
    ]


def environment(scratch: Path) -> dict[str, str]:
    """The environment of the process; every directory in it is empty."""
    places = {"PATH": "nothing", "HOME": "home", "TMPDIR": "tmp"}
    for place in places.values():
        (scratch / place).mkdir()
    return {variable: str(scratch / place) for variable, place in places.items()} | {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def configuration(search: Sequence[Path]) -> Mapping[str, Any]:
    """The configuration of pyright: read every file, use no other configuration, assume one platform."""
    return {
        "include": ["."],
        "exclude": ["**/__pycache__"],  # by default it leaves out hidden directories and virtual environments
        "extraPaths": [str(place.resolve()) for place in search],
        "pythonPlatform": "Linux",
    }


@contextmanager
def _configured(tree: Path, search: Sequence[Path]) -> Iterator[None]:
    place = tree / CONFIGURATION
    text = json.dumps(configuration(search), indent=1) + "\n"
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise IndexerError(f"{CONFIGURATION} is in the tree already: it would be obeyed") from None
    try:
        yield
    finally:
        place.unlink()


def _find(name: str, repo: Path) -> Path | None:
    """An executable on PATH, links followed; neither the link nor the file may be part of the repository."""
    inside = repo.resolve()
    for entry in map(Path, os.get_exec_path()):
        if entry.is_absolute() and not entry.resolve().is_relative_to(inside):
            found = shutil.which(name, path=str(entry))
            if found and not (place := Path(found).resolve()).is_relative_to(inside):
                return place
    return None


def _version(script: Path) -> str:
    """The version in `package.json`, or a hash of the script."""
    try:
        version = json.loads((script.parent / "package.json").read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return hashlib.sha256(script.read_bytes()).hexdigest()[:12]
    return str(version)
