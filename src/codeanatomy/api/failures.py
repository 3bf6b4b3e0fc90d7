"""Unexpected failures as errors of the exception family."""

from __future__ import annotations

from codeanatomy.engine.causes import cause_of
from codeanatomy.errors import MachineError


def unexpected(error: Exception) -> MachineError:
    """An error that no room raised on purpose, by its innermost cause; no traceback."""
    return MachineError(f"failed: {cause_of(error)}", hint="--verbose shows where; the last build is unchanged")
