"""Options from a TOML file of the user's own choosing; never the analysed repository's."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from codeanatomy.errors import InputError
from codeanatomy.repo.reading import read_named

_MAX_BYTES = 1 << 20


def read_configuration(path: str) -> dict[str, Any]:
    """The options of a `codeanatomy.toml`, or of `[tool.codeanatomy]`, by name with underscores."""
    try:
        content = tomllib.loads(read_named(Path(path), _MAX_BYTES).decode())
    except OSError as error:
        raise InputError(f"cannot read --config {path}: {error.strerror}") from error
    except RecursionError as error:
        raise InputError(f"--config {path} is nested too deeply") from error
    except ValueError as error:
        raise InputError(f"--config {path} is not valid TOML: {error}") from error
    tool = content.get("tool")
    table = tool.get("codeanatomy", {}) if isinstance(tool, dict) else content
    return {key.replace("-", "_"): value for key, value in table.items()}
