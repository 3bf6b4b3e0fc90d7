"""A state is of one repository: another one is refused, one that moved is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.pipeline import run
from codeanatomy.store import builds as builds_module
from codeanatomy.store.state import open_state, remember_repository
from tests.repositories import write_repository

ORIGIN = '[remote "origin"]\n\turl = https://user:secret@example.org/{}.git\n'


def clone(root: Path, name: str) -> None:
    (root / ".git").mkdir(exist_ok=True)
    (root / ".git" / "config").write_text(ORIGIN.format(name))


@pytest.fixture
def apart(built, tmp_path):
    """A repository, and a state of it that is somewhere else."""
    state = str(tmp_path / "state")
    (built / ".codeanatomy").rename(state)
    assert ca.build(ca.BuildRequest(built, state=state, moved=True)).mode == "noop"
    return built, state


@pytest.fixture
def other(tmp_path):
    return write_repository(tmp_path / "other", {"a.py": "x = 1\n"})


@pytest.mark.parametrize("command", ["build", "plan", "status", "verify"])
def test_another_repository_is_refused(command, apart, other, capsys):
    repo, state = apart
    before = ca.open(repo, state=state).build
    assert main([command, str(other), "--state", state]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert f"is of another repository ({repo}, not {other})" in told
    assert "--moved" in told
    assert ca.open(repo, state=state).build == before


def test_a_repository_may_move_with_its_state(built, tmp_path):
    moved = built.rename(tmp_path / "renamed")
    assert ca.build(ca.BuildRequest(moved)).mode == "noop"
    copied = Path(shutil.copytree(moved, tmp_path / "copied"))
    assert ca.build(ca.BuildRequest(copied)).mode == "noop"


def test_a_repository_that_moved_without_its_state_says_so_once(apart, tmp_path):
    repo, state = apart
    moved = repo.rename(tmp_path / "renamed")
    with pytest.raises(ca.InputError, match="another repository"):
        ca.build(ca.BuildRequest(moved, state=state))
    assert main(["build", str(moved), "--state", state, "--moved", "--quiet"]) == 0
    assert ca.build(ca.BuildRequest(moved, state=state)).mode == "noop"


def test_a_clone_is_told_by_its_remote(apart, tmp_path):
    repo, state = apart
    clone(repo, "one")
    assert ca.build(ca.BuildRequest(repo, state=state)).mode == "noop"  # a remote may be added
    ca.build(ca.BuildRequest(repo, state=state, moved=True))
    assert "secret" not in open_state(ca.open(repo, state=state).state.location).repository
    elsewhere = Path(shutil.copytree(repo, tmp_path / "elsewhere"))
    assert ca.build(ca.BuildRequest(elsewhere, state=state)).mode == "noop"
    clone(elsewhere, "two")
    with pytest.raises(ca.InputError, match=r"another repository \(example.org/one, not example.org/two\)"):
        ca.build(ca.BuildRequest(elsewhere, state=state))


def test_an_inner_state_of_another_clone_is_refused(built, tmp_path):
    clone(built, "one")
    ca.build(ca.BuildRequest(built, moved=True))
    other = write_repository(tmp_path / "other")
    clone(other, "two")
    shutil.copytree(built / ".codeanatomy", other / ".codeanatomy")
    with pytest.raises(ca.InputError, match="another repository"):
        ca.build(ca.BuildRequest(other))


def test_a_state_of_an_older_version_takes_what_it_is_built_from(apart, spark, other):
    repo, state = apart
    remember_repository(ca.open(repo, state=state).state, "")
    write_repository(repo, {"empty.py": "x = 1\n"})
    ca.build(ca.BuildRequest(repo, state=state), spark=spark)
    assert str(repo) in ca.open(repo, state=state).state.repository
    with pytest.raises(ca.InputError, match="another repository"):
        ca.build(ca.BuildRequest(other, state=state))


def test_a_repository_that_is_no_repository_is_damage(apart):
    repo, state = apart
    remember_repository(ca.open(repo, state=state).state, "[" * 10_000)
    with pytest.raises(ca.StateError, match="damaged"):
        ca.build(ca.BuildRequest(repo, state=state))


def test_a_build_that_is_overtaken_says_by_whom(built, monkeypatch):
    """Each time it has the lease, somebody has published a build since it looked."""
    calls = []

    def overtaken(state, known=None):
        calls.append(state)
        found = builds_module.latest_build(state)
        return None if len(calls) % 2 == 0 else found

    monkeypatch.setattr(run, "latest_build", overtaken)
    write_repository(built, {"empty.py": "x = 1\n"})
    with pytest.raises(ca.StateError, match=r"another process published a build to .* meanwhile.*: try again") as told:
        ca.build(ca.BuildRequest(built))
    assert "changed while it was read" not in str(told.value)
    assert len(calls) == 2 * run.ATTEMPTS
