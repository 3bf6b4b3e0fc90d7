"""Where options come from: the command line first, then `CODEANATOMY_*` variables, then the user's `--config` file.

The analysed repository's own configuration is not read here: it may choose files, never how a tool runs.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codeanatomy.errors import InputError

PREFIX = "CODEANATOMY_"
_NOT_OPTIONS = {"CODEANATOMY_CRASH_AT", "CODEANATOMY_PRELOAD"}


def with_defaults(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse `arguments`; options not given there come from the environment or the user's file."""
    given = parser.parse_args(arguments)
    command = _subparser(parser, given.command)
    known = {action.dest: action for action in command._actions if action.option_strings}
    from_environment = _from_environment(os.environ, known)
    from_file = _from_file(given.config or from_environment.get("config"), known)
    chosen = {**from_file, **from_environment}
    for option, value in chosen.items():
        if getattr(given, option) == command.get_default(option):  # not given on the command line
            setattr(given, option, value)
    return given


def _subparser(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    choices = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    found: argparse.ArgumentParser = choices[command]
    return found


def _from_environment(environ: Mapping[str, str], known: Mapping[str, argparse.Action]) -> dict[str, Any]:
    values = {}
    for name, text in environ.items():
        option = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and name not in _NOT_OPTIONS and option in known:
            values[option] = _converted(known[option], text, f"the variable {name}")
    return values


def _from_file(path: str | None, known: Mapping[str, argparse.Action]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read --config {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"--config {path} is not valid TOML: {error}") from error
    tool = content.get("tool")
    table = tool.get("codeanatomy", {}) if isinstance(tool, dict) else content
    options = {key.replace("-", "_"): value for key, value in table.items()}
    return {key: _converted(known[key], value, f"{key} in {path}") for key, value in options.items() if key in known}


def _converted(action: argparse.Action, value: object, where: str) -> object:
    """A value of the type the option has on the command line."""
    if isinstance(action, argparse._StoreTrueAction):
        return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes", "on")
    if isinstance(action, argparse._AppendAction):
        items = value if isinstance(value, list) else str(value).split(",")
        return [str(item) for item in items]
    try:
        converted = action.type(str(value)) if callable(action.type) else str(value)
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise InputError(f"{where}: {value!r} is not valid") from error
    if action.choices is not None and converted not in action.choices:
        raise InputError(f"{where}: choose one of {', '.join(map(str, action.choices))}")
    return converted
