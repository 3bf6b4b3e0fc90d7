"""Builds over Spark Connect: a session that takes nothing for granted that a session of our own does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repositories import write_repository

SOURCES = {
    "shop.py": "class Cart:\n    def pay(self):\n        return total()\n\n\ndef total():\n    return 1\n",
    "use.py": "from shop import Cart\n\nCart().pay()\n",
    "latin.py": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
    "rest.py": "import os\n",
}

PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import codeanatomy as ca

def append(name, text):
    with (root / name).open("ab") as file:
        file.write(text)

root, empty = map(Path, sys.argv[1:])
# A server in this process, by way of pyspark; what is under test speaks to it as to any other.
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
request = ca.BuildRequest(root, index="pyrefly")
modes = [ca.build(request, spark=spark).mode]
append("use.py", b"Cart().pay()\\n")
modes.append(ca.build(request, spark=spark).mode)
append("latin.py", b"other = '\\xe8'\\n")
modes.append(ca.build(request, spark=spark).mode)
(root / "rest.py").unlink()
modes.append(ca.build(request, spark=spark).mode)
equal = ca.verify(request, spark=spark).equal
nothing = ca.build(ca.BuildRequest(empty, index="none"), spark=spark).files["total"]
print(json.dumps([modes, equal, nothing]), flush=True)
spark.stop()
"""


@pytest.mark.slow
def test_builds_and_updates_work_over_spark_connect(tmp_path: Path) -> None:
    """In a process of its own, because a process has one kind of session."""
    root = write_repository(tmp_path / "repository", SOURCES)
    (tmp_path / "empty").mkdir()
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, root, tmp_path / "empty"],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            stderr=stderr,
            timeout=600,
            check=False,
        )
    assert done.stdout, log.read_text()[-2000:]
    modes = ["full", "incremental", "incremental", "incremental"]
    assert json.loads(done.stdout.splitlines()[-1]) == [modes, True, 0]
