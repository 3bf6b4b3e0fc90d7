"""Runs of pyrefly: one file cannot spoil the others, nothing is left behind, and the tree is only read."""

import os
import threading
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from codeanatomy.errors import MachineError
from codeanatomy.index import pyrefly
from codeanatomy.index.choice import choose_provider
from codeanatomy.index.process import run_limited
from codeanatomy.index.provider import Failed, IndexTask
from codeanatomy.index.pyrefly import Pyrefly, find_pyrefly
from codeanatomy.index.pyrefly_provider import PyreflyProvider
from tests.index.indexing import index, needs_pyrefly, pyrefly_provider, tree
from tests.repositories import write_repository

REPORT = """\
for argument; do
    case $argument in --report-pysa=*) mkdir -p "${argument#*=}"; exec > "${argument#*=}/pyrefly.pysa.json";; esac
done
"""
"""Lets a script write what it says where the report is expected."""

NOTHING = f"""{REPORT}echo '{{"format_version": 1, "modules": {{}}}}'"""

THREE = {"a.py": "def f(): ...\n", "guilty.py": "from a import f\nf()\n", "z.py": "from guilty import f\nf()\n"}


def wrapper(place, then, otherwise="exit 3"):
    """An indexer that runs the commands `then` if it is asked about `guilty.py`, and `otherwise` if it is not."""
    script = place / "pyrefly"
    script.write_text(
        "#!/bin/sh\n"
        "for last; do :; done\n"
        "guilty=\n"
        'while read -r line; do case $line in */guilty.py) guilty=yes;; esac; done < "${last#@}"\n'
        f'if [ "$guilty" ]; then\n{then}\nelse\n{otherwise}\nfi\n'
    )
    script.chmod(0o755)
    return PyreflyProvider(Pyrefly(script, "0"))


def real():
    return f'exec "{pyrefly_provider().pyrefly.executable}" "$@"'


def state_of(root):
    """Everything below a directory with whatever would show that it was touched."""
    found = {}
    for place in [root, *root.rglob("*")]:
        status = place.lstat()
        found[str(place.relative_to(root))] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def reports_in(scratch):
    return sorted(each.name for each in (scratch / "run").iterdir() if each.name.startswith("report"))


def started(root, provider, scratch, cancelled=None):
    """The results of a provider, still to be asked for."""
    seen = tree(root)
    scratch.mkdir(parents=True)
    return seen, provider.run(IndexTask(seen.root, seen.files, seen.modules, scratch, cancelled or threading.Event()))


@pytest.fixture
def three(tmp_path):
    return write_repository(tmp_path / "three", THREE)


@needs_pyrefly
def test_a_file_that_crashes_it_is_the_only_one_without_a_document(tmp_path, scratch):
    root = write_repository(tmp_path / "repository", {**THREE, "b.py": "", "c.py": "", "y.py": "import z\nz.f()\n"})
    found = index(tree(root), wrapper(tmp_path, "kill -ABRT $$", real()), scratch / "run")
    assert found.failed == {"guilty.py": "pyrefly failed with signal 6"}
    assert found.documents.keys() == {"a.py", "b.py", "c.py", "y.py", "z.py"}
    (call,) = (row for row in found.occurrences("y.py") if row["role"] == "call")
    assert call["symbol"].endswith("a/f().")  # what the guilty file says is known to the others


@needs_pyrefly
@pytest.mark.parametrize(
    ("crash", "reason"),
    [
        ("echo 'thread main panicked: error: no' >&2; exit 101", "exit code 101: thread main panicked: error: no"),
        ("exit 0", "left no report: exit code 0"),
    ],
)
def test_a_failure_is_told_with_its_reason(tmp_path, scratch, crash, reason):
    root = write_repository(tmp_path / "repository", {"a.py": "x = 1\n", "guilty.py": ""})
    found = index(tree(root), wrapper(tmp_path, crash, real()), scratch / "run")
    assert reason in found.failed["guilty.py"]
    assert (found.documents.keys(), found.failed.keys()) == ({"a.py"}, {"guilty.py"})


@needs_pyrefly
def test_a_file_that_hangs_it_is_the_only_one_without_a_document(tmp_path, scratch, monkeypatch):
    root = write_repository(tmp_path / "repository", {"guilty.py": "", "z.py": "x = 1\n"})

    def impatient(command, limits, **surroundings):
        is_guilty = "guilty.py" in Path(command[-1][1:]).read_text()
        return run_limited(command, replace(limits, seconds=0.5) if is_guilty else limits, **surroundings)

    monkeypatch.setattr(pyrefly, "run_limited", impatient)
    found = index(tree(root), wrapper(tmp_path, "exec sleep 600", real()), scratch / "run")
    assert found.failed == {"guilty.py": "pyrefly was stopped after 0.5 s"}
    assert found.documents.keys() == {"z.py"}


def test_larger_shards_may_take_longer(tmp_path, three, scratch, monkeypatch):
    asked = []

    def written_down(command, limits, **surroundings):
        asked.append(limits.seconds)
        return run_limited(command, limits, **surroundings)

    monkeypatch.setattr(pyrefly, "run_limited", written_down)
    for size in (0, 1 << 20):
        (three / "guilty.py").write_text("#" * size)
        index(tree(three), wrapper(tmp_path, "exit 9"), scratch / str(size))
    assert asked[len(asked) // 2] - asked[0] == pytest.approx(30, abs=1)


def test_a_report_of_another_format_is_not_read(tmp_path, three, scratch):
    provider = wrapper(tmp_path, NOTHING.replace("1", "2"), "exit 0")
    found = index(tree(three), provider, scratch / "run")
    assert found.documents == {}
    assert found.failed["guilty.py"] == "pyrefly's report has format 2, not 1"


def test_a_file_that_is_not_listed_has_failed(tmp_path, three, scratch):
    _, results = started(three, wrapper(tmp_path, NOTHING), scratch / "run")
    *failed, shard = results
    assert failed == [Failed(path, "pyrefly left it out") for path in THREE]
    assert (shard.paths, shard.is_last) == ([], True)


def test_what_cannot_be_started_fails_every_file(tmp_path, three, scratch):
    provider = PyreflyProvider(Pyrefly(tmp_path / "missing", "0"))
    found = index(tree(three), provider, scratch / "run")
    assert found.failed.keys() == THREE.keys()
    assert all("cannot start missing" in reason for reason in found.failed.values())


NOT_UTF_8 = {
    "latin1.py": "# coding: latin-1\nname = 'é'\n".encode("latin-1"),
    "utf16.py": "x = 1\n".encode("utf-16"),
    "wrong.py": b"x = '\xff'\n",
}
UTF_8 = {
    "user.py": "import latin1\nfrom wrong import x\n\ndef f(): return latin1.name\n\nf()\n",
    ".hidden/h.py": "def hidden(): ...\nhidden()\n",
    ".hidden/.very.py": "hidden = 1\n",
    ".top.py": "hidden = 1\n",
    "build/b.py": "built = 1\n",
    "node_modules/n/n.py": "noded = 1\n",
    "with space/-x.py": "spaced = 1\n",
    "größe/変数.py": "wide = 1\n",
    "v1.2/mod.ule.py": "dotted = 1\n",
    "run": "#!/usr/bin/env python3\ndef ran(): ...\n",
    "window.pyw": "opened = 1\n",
}
OTHERS = {"pyrefly.toml": 'project-includes = ["nothing"]\nproject-excludes = ["**/*"]\n', ".gitignore": ""}


@pytest.fixture(scope="module")
def odd(tmp_path_factory, shared_scratch):
    """Names and contents out of the ordinary: the documents, and the tree before and after."""
    root = write_repository(tmp_path_factory.mktemp("odd"), {**NOT_UTF_8, **UTF_8, **OTHERS})
    (root / "run").chmod(0o755)
    before = state_of(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        found = index(tree(root), pyrefly_provider(), shared_scratch / "odd")
    return found, before, state_of(root)


@needs_pyrefly
def test_what_is_not_utf_8_has_no_document_but_a_reason(odd):
    assert odd[0].failed == dict.fromkeys(NOT_UTF_8, "pyrefly reads UTF-8 only")


@needs_pyrefly
@pytest.mark.parametrize("path", UTF_8)
def test_a_file_of_any_name_has_a_document(odd, path):
    assert len(odd[0].documents[path]["scip_symbol_information"]) == 1


@needs_pyrefly
def test_the_tree_is_not_written_to(odd):
    _, before, after = odd
    assert after == before
    assert before.keys() >= {*NOT_UTF_8, *UTF_8, *OTHERS}


@needs_pyrefly
def test_shards_of_fewer_bytes_give_the_same_documents(tricky, pyrefly_tricky, scratch, monkeypatch):
    monkeypatch.setattr(pyrefly, "SHARD_BYTES", 1500)
    found = index(tricky, pyrefly_provider(), scratch / "run")
    assert (found.documents, found.failed) == (pyrefly_tricky.documents, pyrefly_tricky.failed)
    assert (pyrefly_tricky.shards, found.shards) == (1, 2)


def test_a_report_is_gone_when_the_next_is_asked_for(tmp_path, three, scratch, monkeypatch):
    monkeypatch.setattr(pyrefly, "SHARD_BYTES", 1)
    _, results = started(three, wrapper(tmp_path, NOTHING, NOTHING), scratch / "run")
    seen = [(reports_in(scratch), each.is_last) for each in results if not isinstance(each, Failed)]
    assert seen == [(["report0"], False), (["report1"], False), (["report2"], True)]
    assert sorted(each.name for each in (scratch / "run").iterdir()) == ["mirror", "modules.json"]


def test_no_report_is_left_when_no_more_is_asked_for(tmp_path, three, scratch):
    _, results = started(three, wrapper(tmp_path, NOTHING), scratch / "run")
    next(each for each in results if not isinstance(each, Failed))
    assert reports_in(scratch) == ["report0"]
    results.close()
    assert reports_in(scratch) == []


def test_no_report_is_left_of_runs_that_failed(tmp_path, three, scratch):
    index(tree(three), wrapper(tmp_path, "exit 9"), scratch / "run")
    assert reports_in(scratch) == []


def test_a_cancelled_run_ends_soon_and_says_nothing(tmp_path, three, scratch):
    cancelled = threading.Event()
    _, results = started(three, wrapper(tmp_path, "exec sleep 600"), scratch / "run", cancelled)
    threading.Timer(0.3, cancelled.set).start()
    began = time.monotonic()
    assert list(results) == []
    assert time.monotonic() - began < 5
    assert reports_in(scratch) == []


def test_nothing_is_started_once_it_is_cancelled(tmp_path, three, scratch):
    cancelled = threading.Event()
    cancelled.set()
    told = tmp_path / "started"
    _, results = started(three, wrapper(tmp_path, f'echo > "{told}"'), scratch / "run", cancelled)
    assert list(results) == []
    assert not told.exists()


def test_nothing_is_started_for_no_files(tmp_path, scratch):
    root = tmp_path / "empty"
    root.mkdir()
    assert index(tree(root), PyreflyProvider(Pyrefly(tmp_path / "missing", "0")), scratch / "run").failed == {}


@pytest.mark.parametrize("name", ["a\n--output=x.py", "a\nb/c.py", "a\rb.py"])
def test_a_name_with_a_line_break_is_not_told_to_it(tmp_path, scratch, name):
    """A line of its list of files may be an option."""
    told = tmp_path / "told"
    root = write_repository(tmp_path / "repository", {name: "", "guilty.py": ""})
    copy = f'while read -r line; do echo "$line"; done < "${{last#@}}" > "{told}"; exit 9'
    found = index(tree(root), wrapper(tmp_path, copy), scratch / "run")
    assert found.failed[name] == "its name has a line break"
    assert told.read_text() == f"{scratch}/run/mirror/0/guilty.py\n"


@needs_pyrefly
def test_it_is_that_of_our_own_environment(tmp_path, monkeypatch):
    other = tmp_path / "pyrefly"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    found = find_pyrefly()
    assert found is not None
    assert found.executable.is_absolute()
    assert found.executable != other
    assert found.version == metadata.version("pyrefly")
    assert found.version in found.fingerprint


class NotInstalled:
    """Metadata of an environment without pyrefly, or with one that lacks its program."""

    PackageNotFoundError = metadata.PackageNotFoundError

    def __init__(self, files):
        self.files = files
        self.version = "1"

    def distribution(self, name):
        if self.files is None:
            raise metadata.PackageNotFoundError(name)
        return self

    def locate_file(self, file):
        return Path("/nowhere") / file


@pytest.mark.parametrize("files", [None, [], [metadata.PackagePath("bin/pyrefly")]])
def test_without_it_there_is_no_provider(tmp_path, monkeypatch, files):
    monkeypatch.setattr(pyrefly, "metadata", NotInstalled(files))
    assert find_pyrefly() is None
    assert choose_provider("auto", None, tmp_path) is None
    with pytest.raises(MachineError, match="pyrefly is not installed"):
        choose_provider("pyrefly", None, tmp_path)
