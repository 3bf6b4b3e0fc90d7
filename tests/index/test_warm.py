"""A pyrefly that stays says what a run from scratch says, to the byte, or nothing; and it leaves nothing behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from codeanatomy.index import warm as warm_module
from codeanatomy.index.process import StayingProcess
from codeanatomy.index.provider import IndexTask
from codeanatomy.index.pyrefly import Pyrefly
from codeanatomy.index.warm import WarmPyrefly
from tests.index.indexing import Indexed, index, needs_pyrefly, pyrefly_provider, read, tree
from tests.repositories import write_repository

PACKAGE = "importlinter"

TWO = {
    "a.py": "def first(): ...\n\n\ndef second() -> str: ...\n",
    "b.py": "from a import second\n\nx = second()\n",
    "c.py": "import b\n\ny = b.x.upper()\n",
}


def replaced(path, old, new):
    def edit(root):
        text = (root / path).read_text()
        assert old in text
        (root / path).write_text(text.replace(old, new, 1))

    return edit


def written(path, content):
    return lambda root: (root / path).write_bytes(content)


EDITS = {
    "comment": replaced("importlinter/domain/imports.py", "class Module(", "# a comment\nclass Module("),
    "body": replaced("importlinter/domain/imports.py", "    def __init__", "    z = 1\n\n    def __init__"),
    "signature": replaced(
        "importlinter/application/rendering.py",
        "(milliseconds: int) -> str",
        "(milliseconds: int, extra=None) -> bytes",
    ),
    "renamed function": replaced("importlinter/domain/helpers.py", "def pop_imports(", "def popped_imports("),
    "function before others": replaced(
        "importlinter/domain/helpers.py", "class Missing", "def _f(): ...\n\n\nclass Missing"
    ),
    "class before others": replaced(
        "importlinter/domain/fields.py", "class NotSupplied", "class _New: ...\n\n\nclass NotSupplied"
    ),
    "method added to a base": replaced(
        "importlinter/domain/contract.py",
        "    def _populate_fields",
        "    def brand_new(self) -> int:\n        return 1\n\n    def _populate_fields",
    ),
    "base changed": replaced("importlinter/domain/imports.py", "class DirectImport(ValueObject)", "class DirectImport"),
    "import added": replaced("importlinter/domain/contract.py", "import abc", "import abc\nimport xml.dom.minidom"),
    "re-export removed": replaced(
        "importlinter/__init__.py", "from .domain.contract import Contract, ContractCheck  # noqa\n", ""
    ),
    "syntax error": replaced("importlinter/domain/dotfile.py", "class DotGraph:", "def broken(:\n\n\nclass DotGraph:"),
    "not UTF-8": written("importlinter/application/sentinels.py", b"# coding: latin-1\nx = '\xe9'\n"),
    "UTF-8 again": written("importlinter/application/sentinels.py", b"x = '\xc3\xa9'\n"),
}

COMING_AND_GOING = {
    "new file": written("importlinter/brand_new.py", b"from .domain.contract import Contract\n\nc = Contract\n"),
    "deleted file": lambda root: (root / "importlinter/configuration.py").unlink(),
    "moved file": lambda root: (root / "importlinter/brand_new.py").rename(root / "importlinter/newer.py"),
}


def task_of(root, only=None, warm=None, scratch=None):
    seen = tree(root)
    return IndexTask(seen.root, seen.files, seen.modules, scratch or root, threading.Event(), only, warm)


def asked(warm, root, only=None):
    """What it answers; None if it has no answer."""
    return warm.answer(pyrefly_provider().pyrefly, task_of(root, only))


def documents(warm, root):
    """The documents of all files, which it must have an answer for."""
    assert asked(warm, root) is not None
    seen, found = tree(root), Indexed()
    read(seen, pyrefly_provider().run(task_of(root, warm=warm)), onto=found)
    return found.documents, found.failed


def from_scratch(root, scratch):
    found = index(tree(root), pyrefly_provider(), Path(tempfile.mkdtemp(dir=scratch)) / "run")
    return found.documents, found.failed


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(happens, seconds=60):
    ends = time.monotonic() + seconds
    while not (happened := happens()) and time.monotonic() < ends:
        time.sleep(0.02)
    return happened


@pytest.fixture
def warm(scratch, monkeypatch):
    monkeypatch.setattr(warm_module, "PATIENCE", 300.0)
    kept = WarmPyrefly(scratch / "warm")
    yield kept
    kept.close()


@pytest.fixture
def package(tmp_path):
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    root = tmp_path / "repository"
    shutil.copytree(Path(found.origin).parent, root / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def two(tmp_path):
    return write_repository(tmp_path / "two", TWO)


@needs_pyrefly
def test_it_says_what_a_run_from_scratch_says(package, warm, scratch):
    assert documents(warm, package) == from_scratch(package, scratch)
    for together in (list(EDITS)[:6], list(EDITS)[6:-1], list(EDITS)[-1:]):
        for what in together:
            EDITS[what](package)
        assert documents(warm, package) == from_scratch(package, scratch), together
    assert warm.rounds > 3, "it was not started again"


@pytest.mark.slow
@needs_pyrefly
def test_it_says_what_a_run_from_scratch_says_after_every_edit(package, warm, scratch):
    documents(warm, package)
    for rounds, (what, edit) in enumerate(EDITS.items(), 2):
        edit(package)
        assert documents(warm, package) == from_scratch(package, scratch), what
        assert warm.rounds == rounds, "it was not started again"


@needs_pyrefly
def test_it_starts_again_when_files_come_or_go(package, warm, scratch):
    documents(warm, package)
    for what, edit in COMING_AND_GOING.items():
        before = warm.pid
        edit(package)
        assert asked(warm, package, {"importlinter/api.py"}) is None, f"{what}: an update does not wait for that"
        assert warm.pid != before
        assert not is_running(before)
        assert documents(warm, package) == from_scratch(package, scratch), what


@needs_pyrefly
def test_one_file_is_answered_by_what_was_reported_of_all(two, warm):
    assert asked(warm, two) is not None
    answer = asked(warm, two, {"c.py"})
    assert answer is not None
    assert warm.rounds == 1


@needs_pyrefly
def test_a_report_with_numbers_that_meant_something_else_is_no_answer(two, warm, scratch):
    assert asked(warm, two) is not None
    running = warm._running
    name = running.files[running.mirror.links["b.py"]]["info_filename"]
    reports = [scratch / "warm" / "report" / part / name for part in warm_module._PARTS]
    before = [each.read_bytes() for each in reports]
    (two / "a.py").write_text("def before(): ...\n\n\n" + TWO["a.py"])
    assert asked(warm, two, {"b.py"}) is not None, "pyrefly reports its users again"
    for report, content in zip(reports, before, strict=True):  # as if it had not
        report.write_bytes(content)
    running.written[name] = 1
    assert asked(warm, two, {"b.py"}) is None
    assert asked(warm, two, {"a.py"}) is not None


@needs_pyrefly
def test_a_file_that_is_not_what_the_snapshot_says_is_not_read(two, warm):
    assert asked(warm, two) is not None
    task = task_of(two, {"a.py"})
    (two / "a.py").write_text("def third(): ...\n")
    late = task_of(two, {"a.py"})
    (two / "a.py").write_text("def fourth(): ...\n")
    assert warm.answer(pyrefly_provider().pyrefly, late) is None
    assert warm.answer(pyrefly_provider().pyrefly, task) is not None, (
        "the mirror still has the content of that snapshot"
    )
    assert asked(warm, two, {"a.py"}) is not None


@needs_pyrefly
def test_its_mirror_has_copies_and_no_links(two, warm, scratch):
    (two / "link.py").symlink_to(two / "a.py")
    assert asked(warm, two) is not None
    places = [each for each in (scratch / "warm" / "mirror").rglob("*") if each.is_file()]
    assert {each.name for each in places} >= TWO.keys()
    assert not any(each.is_symlink() for each in places)


@needs_pyrefly
def test_an_update_does_not_wait_long_and_a_later_one_has_the_answer(two, warm, monkeypatch):
    assert asked(warm, two) is not None
    (two / "a.py").write_text(TWO["a.py"] + "\n# a comment\n")
    monkeypatch.setattr(warm_module, "PATIENCE", 0.0)
    assert asked(warm, two, {"a.py"}) is None
    monkeypatch.setattr(warm_module, "PATIENCE", 300.0)
    assert asked(warm, two, {"a.py"}) is not None
    assert warm.rounds == 2


@needs_pyrefly
def test_a_process_that_died_is_noticed_and_started_again(two, warm, scratch):
    assert asked(warm, two) is not None
    os.kill(warm.pid, signal.SIGKILL)
    assert eventually(lambda: asked(warm, two) is None)  # until it is noticed, what it reported still holds
    assert documents(warm, two) == from_scratch(two, scratch)


def test_one_that_cannot_start_is_not_tried_again(two, warm, tmp_path):
    started = tmp_path / "started"
    script = tmp_path / "pyrefly"
    script.write_text(f"#!/bin/sh\necho started >> {started}\nexit 3\n")
    script.chmod(0o755)
    for _ in range(3):
        assert warm.answer(Pyrefly(script, "0"), task_of(two)) is None
    assert started.read_text() == "started\n"


@needs_pyrefly
def test_a_provider_runs_from_scratch_while_it_has_no_answer(two, warm, scratch):
    (scratch / "run").mkdir()
    found = read(tree(two), pyrefly_provider().run(task_of(two, {"b.py"}, warm, scratch / "run")))
    assert found.documents.keys() == {"b.py"}
    assert warm.rounds == 0
    assert asked(warm, two) is not None, "it was let go on"


@needs_pyrefly
def test_closing_ends_the_process_and_removes_its_files(two, warm, scratch):
    assert asked(warm, two) is not None
    pid = warm.pid
    assert warm.memory_bytes > 1 << 20
    warm.close()
    assert not is_running(pid)
    assert not (scratch / "warm").exists()
    assert warm.memory_bytes == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel of Linux kills it")
def test_it_dies_with_its_owner_whatever_that_dies_of(tmp_path):
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, threading, time\n"
            "from pathlib import Path\n"
            "from codeanatomy.index.process import StayingProcess\n"
            "def start():\n"
            "    kept.append(StayingProcess(['/bin/sleep', '600'], 1 << 30, cwd=Path(sys.argv[1]), env={}))\n"
            "    while Path(f'/proc/{kept[0].pid}/comm').read_text() != 'sleep\\n':\n"
            "        time.sleep(0.01)\n"
            "kept = []\n"
            "thread = threading.Thread(target=start)\n"  # which ends, as that of an indexing does
            "thread.start()\n"
            "thread.join()\n"
            "time.sleep(0.5)\n"
            "print(kept[0].pid if kept[0].is_alive else 'dead', flush=True)\n"
            "time.sleep(600)\n",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert is_running(pid)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert eventually(lambda: not is_running(pid))


def test_its_memory_is_limited(tmp_path):
    hungry = "x = bytearray(1 << 28)"
    process = StayingProcess([sys.executable, "-c", hungry], 1 << 27, cwd=tmp_path, env={})
    assert eventually(lambda: not process.is_alive)
    assert "MemoryError" in process.reason()
