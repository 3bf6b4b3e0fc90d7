"""The module name of each file, from the set of paths alone.

- A **source root** is where names start: the longest configured root that contains the file; else the
  innermost directory above it called `src`, if neither that nor any directory above it is a package;
  else the top of the repository.
- A **package** is a directory, other than the top, with an `__init__.py` or `__init__.pyi`.
- The name is the path below the root with dots for slashes and without its suffix. `__init__` names its
  package, except directly in a root, where there is no package to name and it stays `__init__`.
- A top-level directory `foo-stubs` holds the stubs of `foo` and goes by that name (PEP 561).
- Parts that are not identifiers stay as they are: such a file cannot be imported, but needs a name.

Two files may share a name (a module and its stub, a file in two roots); this module does not choose
between them. No file is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

NAMING_REVISION = 1
"""Raise it whenever some path gets another name."""

_SUFFIXES = (".py", ".pyi", ".pyw")
_INIT_FILES = ("__init__.py", "__init__.pyi")
_STUBS = "-stubs"


@dataclass(frozen=True, slots=True)
class ModuleName:
    """A file's name as a module; `root` is its source root, `''` for the top."""

    path: str
    module_fqn: str
    is_init: bool
    is_stub: bool
    root: str


def module_names(paths: Sequence[str], roots: Sequence[str] = ()) -> tuple[ModuleName, ...]:
    """One name per path, in the order given; `roots` are relative to the top, without a final slash."""
    return _module_names(tuple(paths), tuple(roots))


@lru_cache(2)  # a build asks for those of its snapshot, and of the last one, in several places
def _module_names(paths: tuple[str, ...], roots: tuple[str, ...]) -> tuple[ModuleName, ...]:
    packages = {directory for directory, _, name in (path.rpartition("/") for path in paths) if name in _INIT_FILES}
    source_roots: dict[str, str] = {}
    names = []
    for path in paths:
        directory = path.rpartition("/")[0]
        if directory not in source_roots:
            source_roots[directory] = _source_root(directory, roots, packages)
        names.append(_module_name(path, source_roots[directory]))
    return tuple(names)


def _source_root(directory: str, roots: Sequence[str], packages: set[str]) -> str:
    configured = [root for root in roots if not root or directory == root or directory.startswith(f"{root}/")]
    if configured:
        return max(configured, key=len)
    source_root = above = ""
    for part in directory.split("/"):
        above = f"{above}/{part}" if above else part
        if above in packages:
            break
        if part == "src":
            source_root = above
    return source_root


def _module_name(path: str, root: str) -> ModuleName:
    relative = path.removeprefix(f"{root}/") if root else path
    *parents, name = relative.split("/")
    if parents and parents[0] != _STUBS:
        parents[0] = parents[0].removesuffix(_STUBS)
    is_init = name in _INIT_FILES
    if not (is_init and parents):
        parents.append(next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name))
    return ModuleName(path, ".".join(parents), is_init, path.endswith(".pyi"), root)
