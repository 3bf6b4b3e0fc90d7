"""Bad input: every kind has a clear outcome. One broken file never stops a build."""

import os
import stat

import pytest

import codeanatomy as ca
from codeanatomy.store.state import State
from tests.repositories import write_repository


def problems(result):
    return {p.path: p.reason for p in result.problems}


def build(root, spark, **options):
    return ca.build(ca.BuildRequest(root, **options), spark=spark)


@pytest.fixture(scope="module")
def oddities(tmp_path_factory, spark):
    """One repository with every odd file at once, built once."""
    root = write_repository(
        tmp_path_factory.mktemp("odd"),
        {
            "fine.py": "def f():\n    return 1\n",
            "nul.py": b"x = 1\n\0\ny = 2\n",
            "not_utf8.py": b"name = 'caf\xe9'\n",
            "latin.py": b"# -*- coding: latin-1 -*-\nname = 'caf\xe9'\ndef after(): pass\n",
            "bad_cookie.py": b"# -*- coding: no-such-codec -*-\nx = 1\n",
            "lying_cookie.py": b"# -*- coding: ascii -*-\nx = '\xc3\xa9'\n",
            "crlf.py": b"def a():\r\n    return 1\r\n\r\ndef b():\r\n    return a()\r\n",
            "cr.py": b"def a():\r    return 1\r\rdef b():\r    return a()\r",
            "bom.py": b"\xef\xbb\xbfdef bom():\n    return 1\n",
            "formfeed.py": b"def a():\n    return 1\n\x0c\ndef b():\n    return a()\n",
            "deep.py": "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n",
            "syntax.py": "def ok():\n    return 1\n\ndef bad(:\n    pass\n",
            "empty.py": "",
            "huge.py": b"data = [\n" + b"    'filler',\n" * 3_900_000 + b"]\n",
        },
    )
    (root / "loop").symlink_to(root)
    (root / "outside.py").symlink_to("/etc/passwd")
    (root / "dangling.py").symlink_to(root / "nowhere.py")
    os.mkfifo(root / "pipe.py")
    assert (root / "huge.py").stat().st_size > 50_000_000
    return root, build(root, spark)


def defs(root, path):
    found = ca.open(root).sql(f"SELECT name, line_start FROM cpg_nodes WHERE node_kind = 'DEF' AND path = '{path}'")
    return sorted(zip(*found.to_pydict().values(), strict=True))


def test_every_troubled_file_is_reported_and_no_other(oddities):
    assert problems(oddities[1]) == {
        "nul.py": "syntax_error",
        "not_utf8.py": "undecodable",
        "bad_cookie.py": "undecodable",
        "lying_cookie.py": "undecodable",
        "syntax.py": "syntax_error",
        "huge.py": "too_large",
    }


def test_every_file_has_a_node_even_if_nothing_else(oddities):
    root, _ = oddities
    files = ca.open(root).sql("SELECT path, subkind FROM cpg_nodes WHERE node_kind = 'FILE'").to_pydict()
    status = dict(zip(files["path"], files["subkind"], strict=True))
    assert status["huge.py"] == "too_large"
    assert status["not_utf8.py"] == status["bad_cookie.py"] == "undecodable"
    assert status["fine.py"] == status["empty.py"] == "ok"
    assert not {"outside.py", "dangling.py", "pipe.py"} & status.keys()
    assert not any(path.startswith("loop/") for path in status)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("crlf.py", [("a", 1), ("b", 4)]),
        ("cr.py", [("a", 1), ("b", 4)]),
        ("bom.py", [("bom", 1)]),
        ("formfeed.py", [("a", 1), ("b", 4)]),
        ("latin.py", [("after", 3)]),
        ("syntax.py", [("ok", 1)]),
    ],
)
def test_odd_text_is_read_as_python_reads_it(oddities, path, expected):
    found = defs(oddities[0], path)
    assert [each for each in found if each in expected] == expected


def test_a_larger_limit_reads_the_file(tmp_path, spark):
    write_repository(tmp_path, {"big.py": b"x = 1\n" * 20_000 + b"def last(): pass\n"})
    assert problems(build(tmp_path, spark, max_file_bytes=100_000)) == {"big.py": "too_large"}
    assert problems(build(tmp_path, spark, max_file_bytes=200_000)) == {}
    assert defs(tmp_path, "big.py") == [("last", 20_001)]


def test_no_such_directory(tmp_path):
    with pytest.raises(ca.InputError, match="no such directory"):
        ca.build(ca.BuildRequest(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()


def test_a_file_instead_of_a_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ca.InputError, match="not a directory"):
        ca.build(ca.BuildRequest(tmp_path / "file"))


@pytest.mark.parametrize("files", [{}, {"README.md": "# no Python here\n"}])
def test_a_repository_without_python_is_a_graph_of_one_node(tmp_path, spark, files):
    result = build(write_repository(tmp_path, files), spark)
    assert result.files["total"] == 0
    assert ca.open(tmp_path).sql("SELECT node_kind FROM cpg_nodes")["node_kind"].to_pylist() == ["REPO"]
    assert ca.build(ca.BuildRequest(tmp_path)).mode == "noop"


def test_an_unreadable_file_is_reported(tmp_path, spark, monkeypatch):
    write_repository(tmp_path, {"secret.py": "x = 1\n", "fine.py": "y = 1\n"})
    real_open = os.open

    def refusing_open(path, *args, **kwargs):  # the superuser may read everything, so chmod would not do
        if os.fsdecode(path).endswith("secret.py"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing_open)
    assert problems(build(tmp_path, spark)) == {"secret.py": "unreadable"}


def test_a_full_disk_is_told_as_such_and_the_last_build_survives(built, spark, monkeypatch):
    repo = built
    first = ca.open(repo).build
    (repo / "empty.py").write_text("y = 2\n")

    def no_space(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("codeanatomy.store.tables.write_buckets_from_driver", no_space)
    with pytest.raises(ca.MachineError, match="no space left"):
        build(repo, spark)
    monkeypatch.undo()
    assert ca.open(repo).build.build_id == first.build_id
    assert build(repo, spark).mode == "incremental"


@pytest.mark.parametrize("damage", ["garbage", "empty", "gone"])
def test_a_corrupt_state_is_refused_with_what_to_do(built, damage):
    repo = built
    log = repo / ".codeanatomy" / "tables" / "builds" / "_delta_log"
    for entry in log.glob("*.json"):
        entry.chmod(stat.S_IRUSR | stat.S_IWUSR)
        if damage == "gone":
            entry.unlink()
        else:
            entry.write_text("{ not json" if damage == "garbage" else "")
    if damage == "gone":
        log.rmdir()
        with pytest.raises(ca.InputError, match="no build at"):
            ca.open(repo)
        return
    with pytest.raises(ca.StateError, match=r"damaged.*(delete|build)"):
        ca.build(ca.BuildRequest(repo))


def test_a_state_of_a_newer_version_is_not_touched(tmp_path, spark, monkeypatch):
    repo = write_repository(tmp_path, {"a.py": "x = 1\n"})
    monkeypatch.setattr("codeanatomy.store.state.FORMAT_VERSION", 99)
    build(repo, spark)
    monkeypatch.undo()
    with pytest.raises(ca.StateError, match="newer version"):
        ca.build(ca.BuildRequest(repo))


def test_another_repo_id_than_the_states_is_refused(tmp_path, spark):
    repo = write_repository(tmp_path, {"a.py": "x = 1\n"})
    build(repo, spark, repo_id="one")
    assert isinstance(ca.open(repo).state, State)
    with pytest.raises(ca.InputError, match="repo id 'one'"):
        ca.build(ca.BuildRequest(repo, repo_id="two"))


def test_a_lost_data_file_is_made_anew_by_a_full_build(built, spark):
    lost = next((built / ".codeanatomy/tables/cpg_nodes").rglob("*.parquet"))
    lost.unlink()
    with pytest.raises(ca.CodeAnatomyError):
        ca.open(built).sql("SELECT * FROM cpg_nodes")
    again = build(built, spark, full=True)
    assert ca.open(built).sql("SELECT * FROM cpg_nodes").num_rows == again.tables["cpg_nodes"]["rows"]


@pytest.mark.parametrize("part", ["lease", ".gitignore", "tables", "tables/cpg_nodes", "runs"])
def test_a_state_is_never_written_through_a_link(built, tmp_path, part):
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    target = built / ".codeanatomy" / part
    if target.is_dir():
        target.rename(tmp_path / "elsewhere")
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.unlink(missing_ok=True)
        target.symlink_to(precious)
    (built / "empty.py").write_text("x = 1\n")
    with pytest.raises(ca.StateError, match="is a link"):
        ca.build(ca.BuildRequest(built))
    assert precious.read_text() == "keep me"


def test_a_linked_state_directory_is_refused_unless_named(built, tmp_path):
    (built / ".codeanatomy").rename(tmp_path / "state")
    (built / ".codeanatomy").symlink_to(tmp_path / "state")
    with pytest.raises(ca.InputError, match="is a link"):
        ca.build(ca.BuildRequest(built))
    assert ca.build(ca.BuildRequest(built, state=str(tmp_path / "state"), moved=True)).mode == "noop"


def test_a_directory_that_is_not_a_state_is_left_alone(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".gitignore").write_text("*.pyc\n")
    (tmp_path / "project" / "a.py").write_text("x = 1\n")
    with pytest.raises(ca.InputError, match="not empty and not a state"):
        ca.build(ca.BuildRequest(tmp_path / "project", state=str(tmp_path / "project")))
    assert (tmp_path / "project" / ".gitignore").read_text() == "*.pyc\n"


def test_a_file_that_is_too_large_and_changes_its_size_is_a_change(tmp_path, spark):
    write_repository(tmp_path, {"big.py": b"x = 1\n" * 200_000})
    first = build(tmp_path, spark, max_file_bytes=1_000)
    (tmp_path / "big.py").write_bytes(b"x = 1\n" * 300_000)
    again = build(tmp_path, spark, max_file_bytes=1_000)
    assert (again.mode, again.snapshot_id != first.snapshot_id) == ("incremental", True)


def test_a_file_whose_name_nobody_can_write_down_is_reported(built):
    (built / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    result = ca.build(ca.BuildRequest(built))
    assert result.mode == "noop"
    assert problems(result)["caf\\xe9.py"] == "name_not_utf8"
