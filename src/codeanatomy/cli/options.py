"""Where options come from: the command line first, then `CODEANATOMY_*` variables, then the user's `--config` file.

An option of an earlier source wins, also when its value is the default. The analysed repository's own configuration is
not read here: it may choose files, never how a tool runs.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

from codeanatomy.api.configuration import read_configuration
from codeanatomy.cli.terminal import print_lines
from codeanatomy.errors import InputError

PREFIX = "CODEANATOMY_"
_NOT_OPTIONS = {"CODEANATOMY_BUILD", "CODEANATOMY_CRASH_AT", "CODEANATOMY_PRELOAD"}


class Parser(argparse.ArgumentParser):
    """A parser that raises our errors, and whose commands take options between their arguments as well."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise InputError(f"{self.prog.partition(' ')[2]}: {message}".removeprefix(": "), hint=f"see {self.prog} --help")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments of a command wherever its options are; argparse would stop at the first option."""
        if args is None or any(action.nargs == argparse.PARSER for action in self._actions):
            return super().parse_known_args(args, namespace)
        found, unknown = super().parse_known_args(self._options_first(args), namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, []

    def _options_first(self, args: Sequence[str]) -> list[str]:
        options: list[str] = []
        words: list[str] = []
        remaining = iter(args)
        for each in remaining:
            name = each.partition("=")[0]
            known = [
                option for option in self._option_string_actions if name.startswith("-") and option.startswith(name)
            ]
            if each == "--":
                words += remaining
            elif known:
                takes_value = self._option_string_actions[known[0]].nargs != 0 and name == each
                options += [each, *islice(remaining, 1 if takes_value else 0)]
            elif each.startswith("--") and " " not in each:
                self.error(f"unrecognized option {name}")
            else:
                words.append(each)
        return [*options, "--", *words] if words else options

    def _print_message(self, message: str, file: object = None) -> None:
        print_lines(*message.splitlines())  # help and versions: errors are raised


def with_defaults(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse `arguments`; options not given there come from the environment or the user's file."""
    defaults = {command: _take_defaults(each) for command, each in _commands(parser).items()}
    given = vars(parser.parse_args(arguments))
    known = {action.dest: action for action in _commands(parser)[given["command"]]._actions if action.option_strings}
    from_environment = _from_environment(os.environ, known)
    from_file = _from_file(given.get("config", from_environment.get("config")), known)
    return argparse.Namespace(**{**defaults[given["command"]], **from_file, **from_environment, **given})


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether errors should be printed as JSON, as far as is known before the arguments are parsed."""
    written = arguments[: arguments.index("--")] if "--" in arguments else arguments
    from_environment = os.environ.get(f"{PREFIX}JSON", "")
    return any(len(each) > 2 and "--json".startswith(each) for each in written) or _is_yes(from_environment)


def whole_number(at_least: int) -> Callable[[str], int]:
    """The type of an option that is a whole number, `at_least` this."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if number < at_least:
            raise argparse.ArgumentTypeError(f"{text} is less than {at_least}")
        return number

    return convert


def real_number(at_most: float) -> Callable[[str], float]:
    """The type of an option that is a number from 0 to `at_most`."""

    def convert(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if math.isnan(number) or not 0 <= number <= at_most:
            raise argparse.ArgumentTypeError(f"{text} is not between 0 and {at_most:,.0f}")
        return number

    return convert


def _take_defaults(command: argparse.ArgumentParser) -> dict[str, Any]:
    """Remove the defaults of a command's options and return them, so that parsing finds only what was given."""
    defaults = {}
    for action in command._actions:
        if action.option_strings and action.default is not argparse.SUPPRESS:
            defaults[action.dest], action.default = action.default, argparse.SUPPRESS
    return defaults


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found: Mapping[str, argparse.ArgumentParser] = next(
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ).choices
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
    options = read_configuration(path)
    return {key: _converted(known[key], value, f"{key} in {path}") for key, value in options.items() if key in known}


def _converted(action: argparse.Action, value: object, where: str) -> object:
    """A value of the type the option has on the command line."""
    if isinstance(action, argparse._StoreTrueAction):
        return value if isinstance(value, bool) else _is_yes(str(value))
    if isinstance(action, argparse._AppendAction):
        items = value if isinstance(value, list) else str(value).split(",")
        return [str(item) for item in items]
    try:
        converted = action.type(str(value)) if callable(action.type) else str(value)
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{where}: {error}") from error
    if action.choices is not None and converted not in action.choices:
        raise InputError(f"{where}: choose one of {', '.join(map(str, action.choices))}")
    return converted


def _is_yes(text: str) -> bool:
    return text.lower() in ("1", "true", "yes", "on")
