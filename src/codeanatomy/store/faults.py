"""Points at which a test can kill the process, to prove that a build that dies there leaves a valid state.

`CODEANATOMY_CRASH_AT=table.committed` dies at the first such boundary, `…=table.committed:NAME` at the one of that
table. Nothing else depends on the variable.
"""

from __future__ import annotations

import os
import signal

BOUNDARIES = (
    "table.files_written",
    "table.committed",
    "build.bundle_written",
    "build.before_publish",
    "build.published",
    "gc.builds_dropped",
)
"""Every boundary between two writes of the store, in the order in which a build reaches them."""

_VARIABLE = "CODEANATOMY_CRASH_AT"


def boundary(name: str, subject: str = "") -> None:
    """Die here, as by power loss, if the environment asks for it."""
    if name not in BOUNDARIES:
        raise ValueError(f"unknown boundary {name}")
    if os.environ.get(_VARIABLE) in (name, f"{name}:{subject}"):
        os.kill(os.getpid(), signal.SIGKILL)
