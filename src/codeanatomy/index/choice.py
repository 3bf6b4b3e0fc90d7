"""Which provider a build uses."""

from __future__ import annotations

from pathlib import Path

from codeanatomy.errors import InputError, MachineError
from codeanatomy.index.provider import Provider


def choose_provider(choice: str, scip: str | None, root: Path) -> Provider | None:
    """The provider that `--index` and `--scip` ask for; None for none, or when `auto` finds nothing."""
    if scip is not None and choice not in ("auto", "scip"):
        raise InputError(f"--scip goes with --index scip, not with --index {choice}")
    if choice == "none":
        return None
    if choice == "scip" or scip is not None:
        return _scip_provider(scip, root)
    from codeanatomy.index.pyrefly import find_pyrefly  # noqa: PLC0415 - not needed without an index
    from codeanatomy.index.pyrefly_provider import PyreflyProvider  # noqa: PLC0415

    pyrefly = find_pyrefly()
    if pyrefly is None and choice == "pyrefly":
        raise MachineError("pyrefly is not installed beside codeanatomy", hint="install it, or use --index none")
    return PyreflyProvider(pyrefly) if pyrefly else None


def _scip_provider(scip: str | None, root: Path) -> Provider:
    from codeanatomy.index.scip_provider import ScipFileProvider, ScipPythonProvider  # noqa: PLC0415 - needs protobuf
    from codeanatomy.index.scip_python import find_scip_python  # noqa: PLC0415

    if scip is not None:
        return ScipFileProvider.of(Path(scip))
    tool = find_scip_python(root)
    if tool is None:
        raise MachineError(
            "scip-python is not on the search path", hint="install it, or name an index with --scip FILE"
        )
    return ScipPythonProvider(tool)
