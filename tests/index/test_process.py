"""ProcessLimits of an indexer: time, memory, surroundings, and nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from codeanatomy.index.process import TAIL_BYTES, IndexerCancelledError, IndexerError, ProcessLimits, run_limited

PLENTY = 1 << 30


def run(script, tmp_path, *arguments, seconds=20.0, memory_bytes=PLENTY, **options):
    command = [sys.executable, "-I", "-S", "-c", script, *map(str, arguments)]
    return run_limited(command, ProcessLimits(seconds, memory_bytes, **options), cwd=tmp_path, env={})


def is_alive(pid):
    """Whether a process runs; one that is dead and not yet collected does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until(condition, seconds=10.0):
    ends = time.monotonic() + seconds
    while not condition() and time.monotonic() < ends:
        time.sleep(0.02)
    assert condition()


SLEEPING_FAMILY = """
import os, sys, time, pathlib
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    children.append(pid)
pathlib.Path("pids").write_text(" ".join(map(str, [os.getpid(), *children])))
"""


def pids_in(tmp_path):
    return [int(pid) for pid in (tmp_path / "pids").read_text().split()]


def test_it_says_how_a_command_ended(tmp_path):
    finished = run("import sys; print('lost'); print('why', file=sys.stderr); sys.exit(3)", tmp_path)
    assert (finished.returncode, finished.stderr) == (3, "why\n")
    assert finished.reason() == "exit code 3: why"
    assert finished.seconds > 0


def test_it_says_which_signal_ended_a_command(tmp_path):
    finished = run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", tmp_path)
    assert finished.returncode == -signal.SIGTERM
    assert finished.reason() == f"signal {signal.SIGTERM.value}"


def test_the_reason_is_the_line_that_tells_most(tmp_path):
    finished = run("import sys; sys.stderr.write('start\\nTypeError: x is no y\\nNode.js v1'); sys.exit(1)", tmp_path)
    assert finished.reason() == "exit code 1: TypeError: x is no y"


def test_only_the_end_of_a_long_story_is_kept(tmp_path):
    finished = run("import sys; sys.stderr.write('x' * 5_000_000 + 'end')", tmp_path)
    assert len(finished.stderr) == TAIL_BYTES
    assert finished.stderr.endswith("xend")


def test_nothing_of_our_environment_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SECRET", "x")
    script = (
        "import os, sys; sys.stderr.write(' '.join(sorted(os.environ)) + '|' + os.getcwd() + '|' + sys.stdin.read())"
    )
    finished = run_limited(
        [sys.executable, "-I", "-S", "-c", script], ProcessLimits(20, PLENTY), cwd=tmp_path, env={"ONE": "1"}
    )
    names, directory, read = finished.stderr.split("|")
    assert set(names.split()) <= {"ONE", "LC_CTYPE"}  # Python sets the second by itself
    assert tmp_path.samefile(directory)
    assert read == ""


def test_open_files_of_ours_are_not_passed_on(tmp_path):
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        finished = run(f"import os; os.fstat({ours.fileno()})", tmp_path)
    assert "Bad file descriptor" in finished.stderr


def test_who_takes_too_long_is_stopped_with_all_descendants(tmp_path):
    with pytest.raises(IndexerError, match=r"was stopped after 1\.5 s"):
        run(SLEEPING_FAMILY + "time.sleep(600)", tmp_path, seconds=1.5)
    wait_until(lambda: not any(map(is_alive, pids_in(tmp_path))))


def test_who_ends_takes_its_descendants_along(tmp_path):
    started = time.monotonic()
    assert run(SLEEPING_FAMILY, tmp_path).returncode == 0
    assert time.monotonic() - started < 10
    wait_until(lambda: not any(map(is_alive, pids_in(tmp_path))))


def test_an_interruption_stops_it(tmp_path):
    class Interrupted(threading.Event):
        def is_set(self):
            if (tmp_path / "pids").exists():
                raise KeyboardInterrupt
            return False

    with pytest.raises(KeyboardInterrupt):
        run(SLEEPING_FAMILY + "time.sleep(600)", tmp_path, cancelled=Interrupted())
    wait_until(lambda: not any(map(is_alive, pids_in(tmp_path))))


def test_it_can_be_cancelled_from_another_thread(tmp_path):
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    with pytest.raises(IndexerCancelledError):
        run("import time; time.sleep(600)", tmp_path, cancelled=cancelled)


def test_what_is_cancelled_already_is_not_started(tmp_path):
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(IndexerCancelledError):
        run("open('started', 'w')", tmp_path, cancelled=cancelled)
    assert not (tmp_path / "started").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit memory this way")
def test_memory_is_limited(tmp_path):
    script = "bytearray(200 << 20)"
    assert run(script, tmp_path, memory_bytes=None).returncode == 0
    finished = run(script, tmp_path, memory_bytes=100 << 20)
    assert finished.returncode == 1
    assert "MemoryError" in finished.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell a child that its parent died")
def test_it_dies_with_us(tmp_path):
    ours = f"""
import sys
from pathlib import Path
from codeanatomy.index.process import ProcessLimits, run_limited
script = "import os, time, pathlib; pathlib.Path('pids').write_text(str(os.getpid())); time.sleep(600)"
run_limited([sys.executable, "-I", "-S", "-c", script], ProcessLimits(600), cwd=Path({str(tmp_path)!r}), env={{}})
"""
    parent = subprocess.Popen([sys.executable, "-c", ours])
    try:
        wait_until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text())
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(map(is_alive, pids_in(tmp_path))))


def test_what_is_not_there_cannot_be_started(tmp_path):
    for missing in (tmp_path / "missing", tmp_path):
        with pytest.raises(IndexerError, match="cannot start"):
            run_limited([str(missing)], ProcessLimits(5), cwd=tmp_path, env={})
    with pytest.raises(IndexerError, match="cannot start a process"):
        run_limited([sys.executable], ProcessLimits(5), cwd=tmp_path / "missing", env={})


def test_a_command_is_never_looked_up(tmp_path):
    with pytest.raises(ValueError, match="not an absolute path"):
        run_limited(["python3"], ProcessLimits(5), cwd=tmp_path, env={})
