"""Rehearse updates on a copy of some modules of the standard library.

The first update of a Spark session plans every rule, and the JVM interprets what it has not run often. A rehearsal does
that while nobody waits, so that the first update of a user takes as long as the hundredth.
"""

from __future__ import annotations

import shutil
import sysconfig
import tempfile
from pathlib import Path

from codeanatomy.api.requests import BuildRequest
from codeanatomy.pipeline.progress import Listener
from codeanatomy.pipeline.warm import Warm

_REHEARSED = "email"
"""A package of the standard library with some twenty modules that use each other."""


def rehearse(warm: Warm, updates: int, listener: Listener) -> None:
    """Build the sample and update it so often; `listener` may raise to end it."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-rehearsal-") as place:
        root = Path(place) / "sample"
        shutil.copytree(Path(sysconfig.get_path("stdlib"), _REHEARSED), root / _REHEARSED)
        request = BuildRequest(str(root))
        try:
            for number in range(updates + 1):
                warm.build(request, listener)
                with (root / _REHEARSED / "utils.py").open("a", encoding="utf-8") as file:
                    file.write(f"\n\ndef rehearsed_{number}(value):\n    return quote(value)\n")
        finally:
            warm.evict(str(root / ".codeanatomy"))
