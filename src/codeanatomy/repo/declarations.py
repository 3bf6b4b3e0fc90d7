"""What project files declare as entry points: scripts and plug-ins of `pyproject.toml` and `setup.cfg`, at the top.

Untrusted, and nobody's first interest: a file that cannot be read declares nothing. Nothing is executed, so `setup.py`
is not read. Links are not followed.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codeanatomy.repo.reading import read_optional

_MAX_BYTES: Final = 1 << 20
_MAX_DECLARATIONS: Final = 10_000

_TARGET: Final = re.compile(r"\s*([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[[^]]*\]\s*)?")
"""`package.module:object [extra]`"""

CONSOLE, GUI, PLUGIN = "console_script", "gui_script", "plugin"
_KINDS: Final = {"console_scripts": CONSOLE, "gui_scripts": GUI}


class Declaration(NamedTuple):
    """A script or plug-in: the table of the file that it stands in, its name there, and the dotted name it runs."""

    file: str
    table: str
    kind: str
    name: str
    target: str


def read_declarations(root: Path) -> tuple[Declaration, ...]:
    """What the project files of a tree declare, in a fixed order."""
    found = {each for read in (_of_pyproject, _of_setup_cfg) for each in read(root)}
    return tuple(sorted(found)[:_MAX_DECLARATIONS])


def _of_pyproject(root: Path) -> Iterator[Declaration]:
    file = "pyproject.toml"
    try:
        content = tomllib.loads((read_optional(root / file, _MAX_BYTES) or b"").decode())
    except (ValueError, RecursionError):
        return
    project, poetry = _table(content, "project"), _table(content, "tool", "poetry")
    for table, kind, names in (
        ("project.scripts", CONSOLE, _table(project, "scripts")),
        ("project.gui-scripts", GUI, _table(project, "gui-scripts")),
        ("tool.poetry.scripts", CONSOLE, _table(poetry, "scripts")),
    ):
        yield from _declared(file, table, kind, names)
    for above, groups in (
        ("project.entry-points", _table(project, "entry-points")),
        ("tool.poetry.plugins", _table(poetry, "plugins")),
    ):
        for group in groups:
            yield from _declared(file, f"{above}.{group}", _KINDS.get(group, PLUGIN), _table(groups, group))


def _of_setup_cfg(root: Path) -> Iterator[Declaration]:
    file, section = "setup.cfg", "options.entry_points"
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    try:
        parser.read_string((read_optional(root / file, _MAX_BYTES) or b"").decode())
    except (ValueError, configparser.Error):
        return
    for group, text in parser.items(section) if parser.has_section(section) else ():
        lines = (line.partition("=") for line in (text or "").splitlines())
        names = {name.strip(): target for name, equals, target in lines if equals}
        yield from _declared(file, f"{section}.{group}", _KINDS.get(group, PLUGIN), names)


def _declared(file: str, table: str, kind: str, names: Mapping[str, object]) -> Iterator[Declaration]:
    """The names of a table that have a target."""
    for name, value in names.items():
        text = value.get("reference") if isinstance(value, dict) else value  # Poetry's long form
        if isinstance(text, str) and (target := _TARGET.fullmatch(text)):
            yield Declaration(file, table, kind, name, ".".join(filter(None, target.groups())))


def _table(content: Mapping[str, object], *keys: str) -> Mapping[str, object]:
    """A table inside of others; empty if it is missing, or something else."""
    for key in keys:
        inner = content.get(key)
        content = inner if isinstance(inner, dict) else {}
    return content
