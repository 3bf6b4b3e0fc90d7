"""Entry point of the Python workers' parent: what it imports, every forked worker finds already imported.

Runs instead of `pyspark.daemon`; must do nothing but import, settle how workers collect garbage, and hand over.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

PRELOAD = "CODEANATOMY_PRELOAD"


def _preload() -> None:
    # The installed pyspark is the same code with its bytecode compiled; the zip is compiled again in every process.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]
    for module in ("pyarrow", "pyspark.worker", *os.environ.get(PRELOAD, "").split(",")):
        if module:
            importlib.import_module(module)
    # Workers hold large tables of small objects and hardly a cycle: look for garbage seldom, never in what is shared.
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


if __name__ == "__main__":
    _preload()
    importlib.import_module("pyspark.daemon").manager()
