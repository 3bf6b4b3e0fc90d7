"""The peak covers the whole process tree and counts shared pages once."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import pytest

from codeanatomy.engine.memory import descendants, machine_memory_mb, peak_memory, tree_memory_mb

HOLD_100_MB = "import sys, time; block = bytearray(b'x') * (100 << 20); print('held', flush=True); sys.stdin.read()"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_grandchild_counts() -> None:
    before = tree_memory_mb()
    command = ["/bin/sh", "-c", f'"{sys.executable}" -c "{HOLD_100_MB}"; true']
    with peak_memory() as peak, subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert len(descendants(os.getpid())) >= 2
        time.sleep(1.5)
        process.stdin.close()
    assert 100 <= peak.mb - before < 200


def test_shared_pages_count_once() -> None:
    before = tree_memory_mb()
    with mmap.mmap(-1, 100 << 20) as shared:
        shared.write(b"x" * (100 << 20))
        ends = [os.pipe() for _ in range(3)]
        children = []
        for read, write in ends:
            child = os.fork()
            if child == 0:
                os.close(write)
                sum(shared[:: mmap.PAGESIZE])  # touch every page, so that it is ours too
                os.read(read, 1)
                os._exit(0)
            children.append(child)
        time.sleep(0.5)
        grown = tree_memory_mb() - before
        for _, write in ends:
            os.write(write, b"x")
        for child in children:
            os.waitpid(child, 0)
        for end in ends:
            os.close(end[0])
            os.close(end[1])
    assert 90 <= grown < 200


def test_the_machine_has_memory() -> None:
    assert machine_memory_mb() > 256
