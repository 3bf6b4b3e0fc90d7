"""What tells a repository from another, read from files that nobody vouched for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codeanatomy.repo.identity import Identity, identify, identity_from


def repository(root: Path, config: str | None = None) -> Path:
    (root / ".git").mkdir(parents=True)
    if config is not None:
        (root / ".git" / "config").write_text(config)
    return root


def remote(url: str, name: str = "origin") -> str:
    return f'[core]\n\tbare = false\n[remote "{name}"]\n\turl = {url}\n\tfetch = +refs/*\n[branch "main"]\n\turl = x\n'


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/owner/name.git",
        "https://github.com/owner/name",
        "https://user:secret@GitHub.com/owner/name.git/",
        "ssh://git@github.com:22/owner/name.git",
        "git@github.com:owner/name.git",
        '"https://github.com/owner/name.git"',
    ],
)
def test_one_remote_has_one_name_and_no_secrets(url: str, tmp_path: Path) -> None:
    assert identify(repository(tmp_path, remote(url))).remote == "github.com/owner/name"


def test_origin_counts_and_else_the_first(tmp_path: Path) -> None:
    two = remote("https://h/fork", "fork") + remote("https://h/first")
    assert identify(repository(tmp_path / "two", two)).remote == "h/first"
    others = remote("https://h/a", "a") + remote("https://h/b", "b")
    assert identify(repository(tmp_path / "others", others)).remote == "h/a"


@pytest.mark.parametrize("config", [None, "", "[remote", "\0", remote("../elsewhere"), remote("")])
def test_without_a_remote_it_is_where_it_is(config: str | None, tmp_path: Path) -> None:
    found = identify(repository(tmp_path, config))
    assert found == Identity(None, str(tmp_path))
    assert str(found) == str(tmp_path)


def test_a_configuration_is_a_small_regular_file(tmp_path: Path) -> None:
    root = repository(tmp_path / "repo")
    (tmp_path / "elsewhere").write_text(remote("https://h/name"))
    (root / ".git" / "config").symlink_to(tmp_path / "elsewhere")
    assert identify(root).remote is None
    (root / ".git" / "config").unlink()
    os.mkfifo(root / ".git" / "config")
    assert identify(root).remote is None


def test_work_trees_are_one_repository(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    git("init", "-q", "main")
    git("-C", "main", "commit", "-q", "--allow-empty", "-m", "first")
    git("-C", "main", "worktree", "add", "-q", "../other")
    assert identify(tmp_path / "main") == identify(tmp_path / "other")
    (tmp_path / "plain").mkdir()
    assert identify(tmp_path / "plain") == Identity(None, str(tmp_path / "plain"))


def test_what_may_be_the_same() -> None:
    here, there = Identity(None, "/here"), Identity(None, "/there")
    assert here.may_be(here, same_place=False)
    assert not here.may_be(there, same_place=False)
    assert here.may_be(there, same_place=True)  # moved together with what is known of it
    one, other = Identity("h/one", "/here"), Identity("h/other", "/here")
    assert one.may_be(Identity("h/one", "/there"), same_place=False)
    assert not one.may_be(other, same_place=True)
    assert one.may_be(here, same_place=False)  # a remote was added since
    assert not one.may_be(there, same_place=False)


@pytest.mark.parametrize("text", ["", "[]", "{}", "1", '{"place": 1, "remote": null}', '{"remote": "x"}', "[" * 50_000])
def test_a_text_that_is_no_identity(text: str) -> None:
    with pytest.raises(ValueError):
        identity_from(text)


def test_an_identity_is_read_as_it_was_written() -> None:
    for identity in (Identity(None, "/a b"), Identity("h/ö", "/x")):
        assert identity_from(identity.as_text()) == identity
