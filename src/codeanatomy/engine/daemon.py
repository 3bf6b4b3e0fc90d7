"""Entry point of the parent process of Python workers: a forked worker has its imports.

It replaces `pyspark.daemon`. It must only import modules, configure garbage collection, and start pyspark's daemon.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

PRELOAD = "CODEANATOMY_PRELOAD"


def _preload() -> None:
    # The installed pyspark is the same code with compiled bytecode; the zip would be compiled in every process.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]
    for module in ("pyarrow", "pyspark.worker", *os.environ.get(PRELOAD, "").split(",")):
        if module:
            importlib.import_module(module)
    # Workers hold many small objects and few cycles: collect seldom, and never what was imported before the fork.
    gc.freeze()
    gc.set_threshold(200_000, 20, 50)


if __name__ == "__main__":
    _preload()
    importlib.import_module("pyspark.daemon").manager()
