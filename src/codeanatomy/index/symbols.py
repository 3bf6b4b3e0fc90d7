"""Symbols as SCIP spells them: `scheme manager package version descriptors`, where descriptors tell kind and path.

    `pkg.mod`/         a namespace (a module)      name.      a term (a variable)
    Name#              a type (a class)            (name)     a parameter
    name().            a method or function        [T]        a type parameter
    name(+1).          its second definition       name:      a meta descriptor, name! a macro

A name that is not plain is put in backticks. `local N` has no descriptors. The version of a package is always `.`:
a version (often a commit hash) would make another symbol of the same thing at every commit.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

SCHEME: Final = "codeanatomy python . ."
"""How symbols begin that are named by us; with spaces that separate."""

_PLAIN: Final = re.compile(r"[\w+\-$]+", re.ASCII)
_DESCRIPTOR: Final = re.compile(
    r"(?:\((?P<parameter>`(?:[^`]|``)*`|[\w+\-$]+)\)"
    r"|\[(?P<type_parameter>`(?:[^`]|``)*`|[\w+\-$]+)\]"
    r"|(?P<name>`(?:[^`]|``)*`|[\w+\-$]+)(?:(?P<method>\((?P<which>[\w+\-$]*)\)\.)|(?P<suffix>[/#.:!])))"
)
_KINDS: Final = {"/": "module", "#": "class", ".": "variable", ":": "meta", "!": "macro"}


class Descriptor(NamedTuple):
    """One step of a symbol's path."""

    name: str
    kind: str


def namespace(module: str) -> str:
    """The symbol of a module."""
    return f"{SCHEME} {_escaped(module)}/"


def class_in(parent: str, name: str, ordinal: int = 0) -> str:
    """The symbol of a class inside `parent`; later ones of the same name carry their number."""
    return f"{parent}{_escaped(f'{name}+{ordinal}' if ordinal else name)}#"


def function_in(parent: str, name: str, ordinal: int = 0) -> str:
    """The symbol of a function or method inside `parent`."""
    return f"{parent}{_escaped(name)}({f'+{ordinal}' if ordinal else ''})."


def variable_in(parent: str, name: str) -> str:
    """The symbol of a variable or field inside `parent`."""
    return f"{parent}{_escaped(name)}."


def local(number: str, path: str) -> str:
    """The symbol `local N` of a file, which other files use for other things."""
    return f"local {number}@{path}"


def is_local(symbol: str) -> bool:
    """Whether a symbol means something in one file only."""
    return symbol.startswith("local ")


def without_version(symbol: str) -> str:
    """A global symbol as its indexer spells it, with `.` for the version of its package."""
    scheme, manager, package, _, descriptors = _fields(symbol)
    return " ".join((scheme, manager, package, ".", descriptors))


def descriptors_of(symbol: str) -> list[Descriptor]:
    """The path of a symbol, from the module down; empty for a local one."""
    if is_local(symbol):
        return []
    found = []
    for match in _DESCRIPTOR.finditer(_fields(symbol)[4]):
        if match["parameter"]:
            found.append(Descriptor(_plain(match["parameter"]), "parameter"))
        elif match["type_parameter"]:
            found.append(Descriptor(_plain(match["type_parameter"]), "type_parameter"))
        elif match["method"]:
            found.append(Descriptor(_plain(match["name"]), "method"))
        else:
            found.append(Descriptor(_plain(match["name"]), _KINDS[match["suffix"]]))
    return found


def module_of(symbol: str) -> str | None:
    """The dotted name of the module that a symbol is in."""
    parts = [name for name, kind in descriptors_of(symbol) if kind == "module"]
    return ".".join(parts) or None


def kind_of(symbol: str) -> str:
    """What a symbol's last descriptor makes it: module, class, function, method, variable or another kind."""
    path = descriptors_of(symbol)
    if not path:
        return "local"
    kind = path[-1].kind
    inside_class = len(path) > 1 and path[-2].kind == "class"
    return "function" if kind == "method" and not inside_class else kind


def dotted(symbol: str) -> str | None:
    """The dotted name of a symbol; what `builtins` has is `<builtin>.name`. None for a local one.

    scip-python ends the symbol of a module in `__init__:`.
    """
    path = descriptors_of(symbol)
    names = [name for name, kind in path if kind != "meta"]
    if not names:
        return None
    if names[0] == "builtins" and len(names) > 1:
        names[0] = "<builtin>"
    return ".".join(names)


def _fields(symbol: str) -> list[str]:
    """Scheme, manager, package, version and descriptors; two spaces stand for one inside a field."""
    fields = symbol.replace("  ", "\0").split(" ", 4)
    if len(fields) < 5:
        raise ValueError(f"not a symbol: {symbol!r}")
    return [each.replace("\0", "  ") for each in fields]


def _escaped(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
