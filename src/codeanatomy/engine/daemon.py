"""Entry point of the Python workers' parent: what it imports, every forked worker finds already imported.

Runs instead of `pyspark.daemon`; must do nothing but import and hand over.
"""

from __future__ import annotations

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


if __name__ == "__main__":
    _preload()
    importlib.import_module("pyspark.daemon").manager()
