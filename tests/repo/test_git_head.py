"""The checked-out commit is read off the disk, and nothing else can be read that way."""

import shutil
import subprocess

import pytest

from codeanatomy.repo.git import head_commit, info_exclude

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(root, *arguments):
    settings = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *settings, *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "-b", "topic/main")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def fake(root, head, **files):
    for name, text in {"HEAD": head, **files}.items():
        path = root / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return head_commit(root)


def test_branch_detached_and_packed(repository):
    commit = git(repository, "rev-parse", "HEAD")
    assert head_commit(repository) == commit
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git/refs/heads/topic/main").exists()
    assert head_commit(repository) == commit
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert head_commit(repository) == git(repository, "rev-parse", "HEAD") != commit
    git(repository, "checkout", "-q", "--detach", commit)
    assert head_commit(repository) == commit


def test_another_work_tree_of_the_repository(repository, tmp_path):
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "there")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("*.tmp\n")
    assert head_commit(tmp_path / "other") == git(tmp_path / "other", "rev-parse", "HEAD")
    assert head_commit(repository) != head_commit(tmp_path / "other")
    assert info_exclude(tmp_path / "other") == info_exclude(repository) == b"*.tmp\n"
    git(repository, "pack-refs", "--all")
    assert head_commit(tmp_path / "other") == git(tmp_path / "other", "rev-parse", "HEAD")


def test_no_commit_to_tell(tmp_path):
    assert head_commit(tmp_path) is None
    assert fake(tmp_path, "ref: refs/heads/unborn\n") is None


@pytest.mark.parametrize("length", [40, 64])
def test_a_commit_id_of_either_hash(tmp_path, length):
    assert fake(tmp_path, "f" * length + "\n") == "f" * length


@pytest.mark.parametrize(
    "head", ["", "secret", "f" * 41, COMMIT + " x", "ref: ../secret", "ref: refs/../../secret", "ref: /secret", "\0"]
)
def test_nothing_but_a_commit_id_gets_out(tmp_path, head):
    (tmp_path / "secret").write_text(COMMIT)
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    assert fake(tmp_path, head) is None


def test_a_symbolic_ref_is_followed_and_a_circle_ends(tmp_path):
    assert fake(tmp_path, "ref: refs/a", **{"refs/a": "ref: refs/b", "refs/b": COMMIT}) == COMMIT
    assert fake(tmp_path, "ref: refs/a", **{"refs/a": "ref: refs/a"}) is None


def test_a_packed_ref_is_found_by_its_whole_name(tmp_path):
    packed = f"# pack-refs with: peeled\n{'e' * 40} refs/heads/main2\n{'d' * 40} refs/heads/xmain\n"
    assert fake(tmp_path, "ref: refs/heads/main", **{"packed-refs": packed}) is None
    packed += f"{COMMIT} refs/heads/main\n^{'c' * 40}\n"
    assert fake(tmp_path, "ref: refs/heads/main", **{"packed-refs": packed}) == COMMIT


@pytest.mark.parametrize("pointer", ["gitdir: /nowhere\n", "gitdir: \0\n", "nonsense", "gitdir: " + "x" * 5000])
def test_a_pointer_that_leads_nowhere(tmp_path, pointer):
    (tmp_path / ".git").write_text(pointer)
    assert head_commit(tmp_path) is None
    assert info_exclude(tmp_path) == b""
