"""Scratch directories: one for each session, gone with it, or with the next session if it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeanatomy.engine.directories import scratch_directory

HOLD = """
import sys
from codeanatomy.engine.directories import scratch_directory
with scratch_directory() as scratch:
    (scratch.path / "spill").write_text("x")
    print(scratch.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An own temporary directory, for this process and those it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process that has a scratch directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def killed(temp: Path) -> Path:
    """What a process that was killed leaves."""
    process, left = holder()
    process.kill()
    process.wait()
    assert left.parent == temp
    assert (left / "spill").is_file()
    return left


def test_it_is_private_and_gone_afterwards(temp: Path) -> None:
    with scratch_directory() as scratch:
        assert scratch.path.stat().st_mode & 0o777 == 0o700
        assert list(temp.iterdir()) == [scratch.path]
    assert list(temp.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(temp: Path) -> None:
    left = killed(temp)
    living, held = holder()
    assert not left.exists()
    with scratch_directory() as scratch:
        assert sorted(temp.iterdir()) == sorted([held, scratch.path])
    assert (held / "spill").is_file()
    living.communicate()
    assert list(temp.iterdir()) == []


def test_a_process_that_was_given_the_lock_keeps_it(temp: Path) -> None:
    """Spark's JVM outlives a killed parent for a moment, and still needs what is in there."""
    with scratch_directory() as scratch:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[scratch.lock])
        kept = scratch.path.rename(temp / "codeanatomy-run-kept")  # or it would be gone by now
    with scratch_directory():
        assert kept.exists()
    assert kept.exists()
    with scratch_directory():
        assert kept.exists()
        child.communicate()
    assert not kept.exists()


def test_links_and_what_belongs_to_others_are_left_alone(temp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = killed(temp)
    precious = temp / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (temp / "codeanatomy-run-link").symlink_to(precious)
    (temp / "codeanatomy-run-file").touch()
    (left / "link").symlink_to(precious)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
        with scratch_directory():
            assert left.exists()
    with scratch_directory():
        assert not left.exists()
    assert (precious / "file").exists()
    assert (temp / "codeanatomy-run-link").is_symlink()
    assert (temp / "codeanatomy-run-file").exists()
