"""A real history, replayed: three releases of a package, each built on the last and equal to a build from scratch."""

import shutil
import stat
import subprocess
import zipfile
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bench import history
from bench.history import History, Replay, Step, replay
from bench.versions import Blob, Version, commits, in_small_steps, put, releases, unpack, unpacked

import codeanatomy as ca
from codeanatomy.repo.git import head_commit
from codeanatomy.store.builds import current_build
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import open_state
from codeanatomy.store.tables import data_files
from tests.store.samples import overwrite

WHEELS = Path(__file__).parent / "fixtures" / "itsdangerous"


def version(name, files):
    return Version(name, {path: Blob(repr(text), False, text.encode) for path, text in files.items()})


def commit(root, message):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "add", "--all"], cwd=root, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", message], cwd=root, check=True)


@pytest.fixture
def repository(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def real_releases(below):
    for wheel in sorted(WHEELS.glob("*.whl")):
        name = wheel.name.split("-")[1]
        unpack(wheel, below / name)
        yield unpacked(name, below / name)


def test_releases_of_a_real_package_build_on_each_other_to_the_rows_of_a_build_from_scratch(tmp_path, warm):
    real = History("itsdangerous", partial(real_releases, tmp_path))
    done = replay(real, tmp_path / "home", {"index": "none"}, warm)
    assert done.first == "2.0.1"
    assert [(step.version, step.mode, step.files, step.modified, step.deleted) for step in done.steps] == [
        ("2.1.0", "incremental", 8, 5, 1),
        ("2.1.1", "incremental", 8, 2, 0),
    ]
    assert [(step.differing, step.misstated) for step in done.steps] == [(0, ())] * 2
    assert not (tmp_path / "home").exists()


def test_rows_that_are_stored_otherwise_than_a_build_says_are_found(built, spark):
    request = ca.BuildRequest(built)
    assert list(history._misstated(request, spark)) == []
    state = open_state(StateLocation.at(built / ".codeanatomy"))
    file = data_files(state, "cpg_edges", current_build(state).tables["cpg_edges"].version)[0]
    rows = pq.read_table(file, partitioning=None)
    overwrite(state, "cpg_edges", file, rows.slice(1))
    assert list(history._misstated(request, spark)) == ["cpg_edges"]


@pytest.mark.parametrize(("differing", "misstated", "code"), [(0, (), 0), (3, (), 1), (0, ("cpg_edges",), 1)])
def test_a_difference_is_the_exit_code(tmp_path, monkeypatch, capsys, differing, misstated, code):
    step = Step("2", "full", 2, 0, 1, 0, 0, 2, 2, 1, 1.0, 2.0, differing, misstated)
    monkeypatch.setattr(history, "replay", lambda *_, **__: Replay("git-x", "1", (step,)))
    monkeypatch.setattr(history, "open_engine", lambda _: nullcontext())
    monkeypatch.setattr(history, "SCRATCH", tmp_path)
    monkeypatch.setattr("sys.argv", ["history", "--git", "/somewhere/x"])
    assert history.main() == code
    report = capsys.readouterr().out
    assert f"| git-x | 2: 1 to 2 | 1 | 2 | 1 | 100.0% | 0.50 | 1 | 2 | {differing} |" in report
    assert "/somewhere" not in report


def test_a_killed_run_is_continued_only_by_one_that_asks_for_the_same(tmp_path, monkeypatch, capsys):
    step = Step("2", "full", 2, 0, 1, 0, 0, 2, 2, 1, 1.0, 2.0, 0, ("cpg_edges",))
    asked = []

    def run(*arguments):
        asked.clear()
        monkeypatch.setattr("sys.argv", ["history", "--git", str(tmp_path), *arguments])
        history.main()
        return len(asked), capsys.readouterr().out.partition("|")[2]

    def fake(each, *_, **__):
        asked.append(each)
        return Replay(each.name, "1", (step,))

    monkeypatch.setattr(history, "replay", fake)
    monkeypatch.setattr(history, "open_engine", lambda _: nullcontext())
    monkeypatch.setattr(history, "SCRATCH", tmp_path / "scratch")
    replays, report = run()
    assert (replays, run("--resume")) == (1, (0, report))
    assert run("--resume", "--index", "pyrefly") == (1, report)
    assert run("--resume", "--index", "none") == (1, report)
    assert run("--resume", "--index", "none") == (0, report)


def test_the_list_is_large_enough_to_prove_something():
    listed = releases()
    assert len(listed) >= 4
    assert sum(map(len, listed.values())) >= 60
    assert all(len({each.version for each in package}) == len(package) for package in listed.values())


def test_files_that_stay_the_same_are_not_touched(tmp_path):
    old = version("1", {"a.py": "1", "b.py": "1", "gone/deep/c.py": "1", "d": "1", "e/f.py": "1"})
    new = version("2", {"a.py": "1", "b.py": "2", "d/g.py": "2", "e": "2"})
    put(tmp_path, None, old)
    before = (tmp_path / "a.py").stat()
    put(tmp_path, old, new)
    found = {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"a.py": "1", "b.py": "2", "d/g.py": "2", "e": "2"}
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "a.py").stat() == before


def test_a_version_is_reached_in_small_steps_that_change_modules_line_by_line():
    lines = [f"line {number}\n" for number in range(40)]
    old = version("1", {"a.py": "".join(lines), "gone.py": "1", "same.py": "1", "notes.md": "1"})
    new = version("2", {"a.py": "".join(lines[::2]), "new.py": "2", "same.py": "1", "notes.md": "2"})
    taken = list(in_small_steps([old, new], 5))
    assert [each.name for each in taken] == ["1", "2 step 1", "2 step 2", "2 step 3", "2 step 4", "2"]
    assert (taken[0], taken[-1]) == (old, new)
    steps = [{path: blob.read().decode() for path, blob in each.files.items()} for each in taken]
    for step in steps[1:-1]:
        assert (step["same.py"], step["notes.md"]) == ("1", "1")
        assert set(lines[::2]) <= set(step["a.py"].splitlines(keepends=True)) <= set(lines)
    left = [len(step["a.py"].splitlines()) + ("gone.py" in step) - ("new.py" in step) for step in steps]
    assert all(1 <= before - after <= 4 for before, after in pairwise(left[:-1]))
    again = list(in_small_steps([old, new], 5))
    assert [sorted((path, blob.content) for path, blob in each.files.items()) for each in again] == [
        sorted((path, blob.content) for path, blob in each.files.items()) for each in taken
    ]


def test_commits_are_laid_out_as_a_checkout_would_and_their_repository_is_only_read(repository, tmp_path):
    for texts in ({"old.py": "1"}, {"a.py": "1", "b/c.py": "1"}, {"notes.md": "1"}, {"a.py": "2", "tool": "#!python"}):
        for path, text in texts.items():
            (repository / path).parent.mkdir(exist_ok=True)
            (repository / path).write_text(text)
            if text.startswith("#!"):
                (repository / path).chmod(0o755)
        commit(repository, "next")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*")}
    tree, last, laid_out = tmp_path / "tree", None, []
    for each in commits(repository, 2):
        put(tree, last, each)
        last = each
        texts = {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*") if path.is_file()}
        assert head_commit(tree) == each.commit == texts.pop(".git/HEAD").strip()
        laid_out.append(texts)
    start = {"old.py": "1", "a.py": "1", "b/c.py": "1"}
    noted = {**start, "notes.md": "1"}
    assert laid_out == [start, noted, {**noted, "a.py": "2", "tool": "#!python"}]
    assert (tree / "tool").stat().st_mode & stat.S_IXUSR
    assert head_commit(tree) == head_commit(repository)
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*")} == before


def test_a_commit_is_read_without_what_attributes_and_links_make_of_it(repository):
    (repository / "left_out.py").write_text("$Format:%H$\n")
    (repository / "link.py").symlink_to("/etc/passwd")
    (repository / ".gitattributes").write_text("left_out.py export-ignore export-subst\n")
    commit(repository, "one")
    (only,) = ({path: blob.read() for path, blob in each.files.items()} for each in commits(repository, 9))
    assert only.keys() == {"left_out.py", ".gitattributes"}
    assert only["left_out.py"] == b"$Format:%H$\n"


@pytest.mark.parametrize("name", ["../out.py", "/out.py", "a/../../out.py", ".git/hooks/x"])
def test_a_wheel_cannot_write_elsewhere(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as archive:
        archive.writestr(name, "x")
    with pytest.raises(ValueError, match="does not belong into a tree"):
        unpack(tmp_path / "bad.whl", tmp_path / "inside" / "tree")
    assert [path.name for path in tmp_path.rglob("*")] == ["bad.whl"]


def test_a_wheel_cannot_bring_links(tmp_path):
    member = zipfile.ZipInfo("link.py")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(ValueError, match="not a regular file"):
        unpack(tmp_path / "bad.whl", tmp_path / "tree")
