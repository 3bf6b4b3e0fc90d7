"""What makes a function an entry point, as rows that the rules of `entry_points` match: descriptions and declarations.

A description is a TOML file: that of this package, `entry_points.toml`, and the one that a user adds. Nothing in the
code knows a framework. The rows are part of a build (`entry_point_patterns`), and a hash of them is one of its
fingerprints.

Glossary
    pattern       an `[[entry_point]]` of a description: a kind, how it is recognised (one matcher), how sure that is.
    matcher       the way: decorated_by, decorators_written, passed_to, methods, functions, modules or main_block.
    declaration   a script or plug-in of a project file (`repo.declarations`); it names its target itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from codeanatomy.catalogue.tables import GIVEN_PATTERNS
from codeanatomy.errors import InputError
from codeanatomy.repo.declarations import Declaration, read_declarations
from codeanatomy.repo.reading import read_named

OWN_DESCRIPTION: Final = "entry_points.toml"

_MAX_BYTES: Final = 1 << 20
_MAX_ARGUMENT: Final = 1_000
_KIND: Final = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_DOTTED: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KEYWORD: Final = re.compile(r"[^\W\d]\w*")
_GLOB_PART: Final = re.compile(r"\*\*/|\*\*|.", re.DOTALL)
_NAME_PART: Final = re.compile(r"\*\*|.", re.DOTALL)
_LIKE_ANY: Final = re.compile(r"\*+")
_BUILTIN: Final = "<builtin>."

Cells = Mapping[str, Any]
"""A row, by column."""

Row = tuple[Any, ...]
Rows = tuple[Row, ...]
"""Rows of `given_patterns`, in order."""


def patterns_of(root: Path, description: str | None) -> Rows:
    """The patterns of this package and of the user's description, and what the project files of `root` declare."""
    own = (resources.files("codeanatomy.pipeline") / OWN_DESCRIPTION).read_bytes()
    patterns = _described(OWN_DESCRIPTION, own)
    if description is not None:
        patterns += _described(f"--entry-points {description}", _read(description))
    patterns += [[_declared(each)] for each in read_declarations(root)]
    rows = ({**row, "pattern_no": number} for number, pattern in enumerate(patterns) for row in pattern)
    return tuple(tuple(row.get(name) for name in GIVEN_PATTERNS.names()) for row in rows)


def fingerprint_of(rows: Sequence[Row]) -> str:
    """Equal fingerprints mean equal patterns, however they are written."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:24]


def path_pattern(glob: str) -> str:
    """A regular expression, alike for Spark and DuckDB: `*` is any part of a name, `**/` any directories."""
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    known = (wildcards.get(part) or _regular(part) for part in _GLOB_PART.findall(glob))
    return f"(?s)\\A{''.join(known)}\\z"


def path_like(glob: str) -> str:
    """A LIKE pattern that matches all that `path_pattern` does, and more: far quicker to compare with."""
    return _LIKE_ANY.sub("%", glob.replace("**/", "*").replace("?", "_").replace("\\", "_"))


def name_like(glob: str) -> str:
    """A LIKE pattern with the escape character `!`: `*` and `**` are any text."""
    wildcards = {"**": "%", "*": "%", "?": "_", "%": "!%", "_": "!_", "!": "!!"}
    return "".join(wildcards.get(part, part) for part in _NAME_PART.findall(glob))


def _dots(glob: str) -> int | None:
    """How many dots a name has in which no `*` stands for one; None if they may."""
    return None if "**" in glob else glob.count(".")


def _regular(character: str) -> str:
    return character if character.isalnum() or character == "_" else f"\\x{{{ord(character):x}}}"


def _read(path: str) -> bytes:
    try:
        return read_named(Path(path), _MAX_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot read --entry-points {path}: {reason}") from error


def _declared(declaration: Declaration) -> Cells:
    return {
        "kind": declaration.kind,
        "matcher": "declaration",
        "name": declaration.target,
        "path": declaration.file,
        "evidence": f"[{declaration.table}]",
        "detail": declaration.name,
        "confidence": 1.0,
    }


def _described(where: str, content: bytes) -> list[list[Cells]]:
    """The rows of each pattern of a description; an InputError that says what is wrong with it."""
    try:
        found = tomllib.loads(content.decode())
    except RecursionError as error:
        raise InputError(f"{where} is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"{where} is not valid TOML: {error}") from error
    patterns = found.pop("entry_point", None)
    if found or not isinstance(patterns, list) or not all(isinstance(each, dict) for each in patterns):
        raise InputError(f"{where} must consist of [[entry_point]] tables")
    rows = []
    for number, pattern in enumerate(patterns, 1):
        try:
            rows.append(_rows_of(pattern))
        except ValueError as error:
            raise InputError(f"{where}: [[entry_point]] {number}: {error}") from error
    return rows


def _rows_of(pattern: Mapping[str, Any]) -> list[Cells]:
    """The rows of one pattern; a ValueError that says what is wrong with it."""
    matchers = [key for key in _MATCHERS if key in pattern]
    if len(matchers) != 1:
        raise ValueError(f"give one of {', '.join(_MATCHERS)}")
    (matcher,) = matchers
    matched, keys = _MATCHERS[matcher]
    if unknown := pattern.keys() - {"kind", "confidence", matcher, *keys}:
        raise ValueError(f"{min(unknown)!r} does not go with {matcher}")
    kind, confidence = pattern.get("kind"), pattern.get("confidence", 1.0)
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ValueError("kind must be a name of lower-case letters, digits and underscores")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise ValueError("confidence must be a number from 0 to 1")
    return [{"kind": kind, "confidence": float(confidence), **row} for row in matched(pattern)]


def _decorated(pattern: Mapping[str, Any]) -> list[Cells]:
    makes = pattern.get("makes")
    if makes is not None and not (isinstance(makes, str) and _DOTTED.fullmatch(makes)):
        raise ValueError("makes must be a dotted name")
    same = {"matcher": "decorator", "makes": makes, **_detail(pattern)}
    return [{"name": name, **same} for name in _names(pattern, "decorated_by")]


def _written(pattern: Mapping[str, Any]) -> list[Cells]:
    detail = _detail(pattern)
    return [{"matcher": "written", **_member(glob), **detail} for glob in _texts(pattern, "decorators_written")]


def _passed(pattern: Mapping[str, Any]) -> list[Cells]:
    arguments = _arguments(pattern, "argument")
    if not arguments:
        raise ValueError("argument must say which argument is the entry point")
    same = {"matcher": "argument", **_detail(pattern)}
    return [
        {"name": name, "position" if isinstance(each, int) else "keyword": each, **same}
        for name in _names(pattern, "passed_to")
        for each in arguments
    ]


def _methods(pattern: Mapping[str, Any]) -> list[Cells]:
    methods = [{"matcher": "method", **_member(glob)} for glob in _texts(pattern, "methods")]
    return [*methods, *({"matcher": "base", "name": base} for base in _names(pattern, "of_subclasses_of"))]


def _functions(pattern: Mapping[str, Any]) -> list[Cells]:
    return [
        {"matcher": "function", "name": glob, **_member(glob), **_path(path)}
        for glob in _texts(pattern, "functions")
        for path in _texts(pattern, "in_files")
    ]


def _modules(pattern: Mapping[str, Any]) -> list[Cells]:
    return [{"matcher": "module", "name": each, **_path(each)} for each in _texts(pattern, "modules")]


def _main_block(pattern: Mapping[str, Any]) -> list[Cells]:
    if pattern["main_block"] is not True:
        raise ValueError("main_block can only be true")
    return [{"matcher": "main_block"}]


def _member(glob: str) -> Cells:
    return {"member": name_like(glob), "member_dots": _dots(glob)}


def _path(glob: str) -> Cells:
    return {"path": path_pattern(glob), "path_like": path_like(glob)}


_Matched = Callable[[Mapping[str, Any]], list[Cells]]
_MATCHERS: Final[Mapping[str, tuple[_Matched, tuple[str, ...]]]] = {
    "decorated_by": (_decorated, ("detail", "makes")),
    "decorators_written": (_written, ("detail",)),
    "passed_to": (_passed, ("argument", "detail")),
    "methods": (_methods, ("of_subclasses_of",)),
    "functions": (_functions, ("in_files",)),
    "modules": (_modules, ()),
    "main_block": (_main_block, ()),
}
"""For the key of each matcher, what reads it, and the other keys that go with it."""


def _texts(pattern: Mapping[str, Any], key: str) -> list[str]:
    values = pattern.get(key)
    if not isinstance(values, list) or not values or not all(isinstance(each, str) and each for each in values):
        raise ValueError(f"{key} must be a list of texts")
    return [str(each) for each in values]


def _names(pattern: Mapping[str, Any], key: str) -> list[str]:
    """Dotted names, as the graph spells them: a name without a dot is a builtin."""
    names = _texts(pattern, key)
    for name in names:
        if not _DOTTED.fullmatch(name):
            raise ValueError(f"{name!r} in {key} is not a dotted name")
    return [name if "." in name else _BUILTIN + name for name in names]


def _arguments(pattern: Mapping[str, Any], key: str) -> list[int | str]:
    """Positions and keywords of arguments."""
    given = pattern.get(key, [])
    found: list[int | str] = []
    for each in given if isinstance(given, list) else [given]:
        is_position = isinstance(each, int) and not isinstance(each, bool) and 0 <= each < _MAX_ARGUMENT
        if not is_position and not (isinstance(each, str) and _KEYWORD.fullmatch(each)):
            raise ValueError(f"{key} must be a position, a keyword, or a list of these")
        found.append(each)
    return found


def _detail(pattern: Mapping[str, Any]) -> Cells:
    """The cells for the argument that is the detail."""
    arguments = _arguments(pattern, "detail")
    positions = [each for each in arguments if isinstance(each, int)]
    keywords = [each for each in arguments if isinstance(each, str)]
    if len(positions) > 1 or len(keywords) > 1:
        raise ValueError("detail can be one position and one keyword")
    return {"detail_position": next(iter(positions), None), "detail_keyword": next(iter(keywords), None)}
