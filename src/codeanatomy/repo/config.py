"""Settings that the analysed repository may choose for its own analysis: which files, and where its modules start.

Read from `codeanatomy.toml`, or else from `[tool.codeanatomy]` in `pyproject.toml`, at the top of the
tree. No setting here may choose a program, a path outside the tree or anything else with an effect: the file
belongs to the authors of the repository, not to the user who analyses it. Links are not followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codeanatomy.errors import InputError
from codeanatomy.repo.reading import read_optional

_MAX_BYTES = 1 << 20
_KEYS = ("include", "exclude", "roots")


@dataclass(frozen=True, slots=True)
class RepoConfig:
    """Patterns for `ScanOptions`, and source roots for `module_names`: relative, `''` for the top."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


def read_config(root: Path) -> RepoConfig:
    """The repository's own settings; all empty if it has none."""
    own = read_optional(root / "codeanatomy.toml", _MAX_BYTES)
    if own is not None:
        return _config(_parsed("codeanatomy.toml", own), "codeanatomy.toml")
    project = read_optional(root / "pyproject.toml", _MAX_BYTES)
    # A project file that does not mention codeanatomy may be invalid; that is not an error here.
    if project is None or b"codeanatomy" not in project:
        return RepoConfig()
    tool = _parsed("pyproject.toml", project).get("tool")
    table = tool.get("codeanatomy", {}) if isinstance(tool, dict) else {}
    return _config(table, "[tool.codeanatomy] in pyproject.toml")


def _parsed(name: str, content: bytes) -> Mapping[str, object]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name} is not UTF-8 (at line {line})", hint="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}", hint="correct it") from error
    except RecursionError as error:
        raise InputError(f"{name} is nested too deeply", hint="simplify it") from error


def _config(table: object, where: str) -> RepoConfig:
    if not isinstance(table, dict):
        raise InputError(f"{where} must be a table with {', '.join(_KEYS)}")
    for key, value in table.items():
        if key not in _KEYS:
            continue  # an option of the user, who may name this file with --config
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InputError(f"'{key}' in {where} must be a list of strings")
    return RepoConfig(
        tuple(table.get("include", ())),
        tuple(table.get("exclude", ())),
        tuple(source_root(text, where) for text in table.get("roots", ())),
    )


def source_root(text: str, where: str) -> str:
    """A source root, normalized: relative to the top, which is the empty text."""
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"root '{text}' in {where} leaves the repository", hint="give a directory relative to its top")
    return "" if path == PurePosixPath() else str(path)
