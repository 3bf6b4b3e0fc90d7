"""Ctrl-C during a build: one line, exit code 130, and nothing is left, at whatever moment it comes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codeanatomy.engine.memory import descendants
from tests.repositories import write_repository

MOMENTS = 16
SECONDS_BETWEEN = 0.3
"""From the first child on: the JVM starts, the session opens, files are extracted, tables are written."""


@pytest.mark.slow
def test_an_interrupted_build_leaves_nothing(tmp_path):
    root = write_repository(tmp_path / "repository")
    temp = tmp_path / "temp"
    temp.mkdir()
    for moment in range(MOMENTS):
        process = subprocess.Popen(
            [sys.executable, "-m", "codeanatomy.cli.main", "build", root, "--index", "none", "--full", "--quiet"],
            env={**os.environ, "TMPDIR": str(temp), "XDG_CACHE_HOME": str(tmp_path / "cache")},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while process.poll() is None and not descendants(process.pid):
            time.sleep(0.01)
        time.sleep(moment * SECONDS_BETWEEN)
        children = descendants(process.pid)
        if process.poll() is not None:
            break  # it was done before
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) in [
            (130, "codeanatomy: interrupted: the last build is unchanged\n"),
            (0, ""),  # it was done at that very moment
        ]
        deadline = time.monotonic() + 20
        while (left := [pid for pid in children if Path(f"/proc/{pid}").exists()]) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert (moment, left, list(temp.iterdir())) == (moment, [], [])
