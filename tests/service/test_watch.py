"""`watch`: one update for each burst of changes, none is missed, and what a scan ignores wakes nobody."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from codeanatomy.errors import InputError
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from codeanatomy.repo.git import lock_files
from codeanatomy.repo.scan import ScanOptions, walked_directories
from codeanatomy.service.changes import TreeWatcher
from codeanatomy.service.watch import WatchRequest, watch
from tests.repositories import write_repository

QUIET = 0.05
SOON = 1.0


@pytest.fixture
def repo(tmp_path):
    root = write_repository(
        tmp_path / "repo",
        {
            "pkg/a.py": "",
            "pkg/deep/b.py": "",
            ".gitignore": "out/\n",
            "out/c.py": "",
            ".venv/pyvenv.cfg": "",
            "x.txt": "",
        },
    )
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    return root


@pytest.fixture
def watcher(repo):
    state = repo / "state"
    state.mkdir()
    options = ScanOptions(state_dir=state)
    return TreeWatcher(lambda: walked_directories(repo, options), lock_files(repo), QUIET)


def write(path: Path, text: str = "x = 1\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda repo: write(repo / "pkg/a.py"),
        lambda repo: (repo / "pkg/a.py").unlink(),
        lambda repo: (repo / "pkg/a.py").rename(repo / "pkg/b.py"),
        lambda repo: write(repo / "pkg/deep/new.pyi"),
        lambda repo: write(repo / "new/deep/m.py"),
        lambda repo: (repo / "pkg").rename(repo / "pkg.old"),
        lambda repo: write(repo / "script"),
        lambda repo: write(repo / ".gitignore", "\n"),
        lambda repo: write(repo / "pyproject.toml", ""),
    ],
)
def test_what_a_scan_would_see_is_noticed(change, repo, watcher):
    change(repo)
    assert watcher.wait(30)


def test_what_a_scan_ignores_wakes_nobody(repo, watcher, tmp_path):
    for path in ("out/c.py", "out/new/d.py", ".venv/lib/e.py", "state/tables/f.py", "pkg/notes.txt", "link/g.py"):
        write(repo / path)
    write(tmp_path / "outside/h.py")
    assert not watcher.wait(SOON)


def test_directories_that_come_later_are_watched(repo, watcher):
    write(repo / "new/m.py")
    assert watcher.wait(30)
    while watcher.wait(SOON):
        pass
    write(repo / "new/m.py", "x = 2\n")
    assert watcher.wait(30)
    (repo / "new").rename(repo / "old")
    assert watcher.wait(30)
    while watcher.wait(SOON):
        pass
    write(repo / "new/m.py", "x = 3\n")
    assert watcher.wait(30)


def test_a_git_operation_is_one_change(tmp_path):
    repo = write_repository(tmp_path / "repo", {"a.py": "", ".git/HEAD": "ref: refs/heads/main\n"})
    watcher = TreeWatcher(lambda: walked_directories(repo, ScanOptions()), lock_files(repo), QUIET)
    lock = repo / ".git/index.lock"
    lock.touch()
    finished = threading.Event()

    def checkout():
        for number in range(5):
            write(repo / "a.py", f"x = {number}\n")
            time.sleep(4 * QUIET)
        finished.set()
        lock.unlink()

    thread = threading.Thread(target=checkout)
    thread.start()
    assert watcher.wait(30)
    assert finished.is_set()
    thread.join()
    write(repo / ".git/HEAD", "ref: refs/heads/other\n")  # a commit: nothing that a scan would see
    while watcher.wait(SOON):
        pass
    old = time.time() - 3600
    lock.touch()
    os.utime(lock, (old, old))  # left by a git that was killed
    write(repo / "a.py", "x = 9\n")
    assert watcher.wait(30)


def next_update(process) -> dict:
    return json.loads(process.stdout.readline())


def edit_while_it_builds(home, process, repo, source) -> None:
    """Edits that come while a build reads and after it has read; the last one must get into the graph."""
    for number in range(12):
        (repo / "shop/prices.py").write_text(f"{source}\nN = {number}\n")
        time.sleep(0.15)
    while json.loads(home.run("status", repo, "--json")[1])["fresh"] is not True:
        next_update(process)


def test_updates_follow_edits(engine, built, spark):
    command = f"echo $CODEANATOMY_BUILD >> {built.parent}/builds; false"
    arguments = ("watch", built, "--json", "--exec", command)
    process = engine.start(*arguments, CODEANATOMY_ENGINE="require", SHELL="/bin/sh")
    source = (built / "shop/prices.py").read_text()
    try:
        time.sleep(SOON)
        (built / "shop/prices.py").write_text(source.replace("def price_of", "def cost_of"))
        first = next_update(process)
        assert (first["mode"], first["changed"], first["error"]) == ("incremental", 1, None)
        assert first["affected"] == ["shop/cart.py"]
        assert first["rebuilt"] == 2
        assert first["edges_added"] > 0 < first["edges_removed"]
        edit_while_it_builds(engine, process, built, source)
        assert verify(BuildRequest(built), spark=spark).equal
    finally:
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("watched for ")
    assert f"{command}: exit code 1" in err
    assert first["build_id"] in (built.parent / "builds").read_text()


def jvms_of(process) -> set[str]:
    """The JVMs that a process has started."""
    children = (each.read_text().split() for each in Path(f"/proc/{process.pid}/task").glob("*/children"))
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pids in children for pid in pids}
    return {pid for pid, command in commands.items() if b"java" in command.split(b"\0")[0]}


def test_updates_follow_edits_without_an_engine(own_home, built, spark):
    process = own_home.start("watch", built, "--json", CODEANATOMY_ENGINE="off")
    source = (built / "shop/prices.py").read_text()
    try:
        (built / "shop/prices.py").write_text(source.replace("def price_of", "def cost_of"))
        first = next_update(process)
        assert (first["mode"], first["affected"], first["error"]) == ("incremental", ["shop/cart.py"], None)
        jvms = jvms_of(process)
        edit_while_it_builds(own_home, process, built, source)
        assert jvms_of(process) == jvms != set()  # its session stays
        assert verify(BuildRequest(built), spark=spark).equal
    finally:
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1][:12]) == (130, "watched for ")
    assert not own_home.place.directory.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in jvms)


def test_an_error_is_told_and_does_not_end_it(engine, built, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", engine.environment["XDG_RUNTIME_DIR"])
    (built / "codeanatomy.toml").write_text("include = 5")
    updates = watch(WatchRequest(BuildRequest(built, index="none")))
    failed = next(updates)
    assert (failed.exit_code, "codeanatomy.toml" in failed.error) == (2, True)
    (built / "codeanatomy.toml").unlink()
    (built / "empty.py").write_text("x = 1\n")
    assert (next(updates).error, next(watch(WatchRequest(BuildRequest(built, index="none", full=True)))).mode) == (
        None,
        "full",
    )
    updates.close()


def test_a_repository_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        next(watch(WatchRequest(BuildRequest(tmp_path / "nowhere"))))
