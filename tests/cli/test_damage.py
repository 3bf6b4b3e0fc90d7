"""Damage to a state is exit code 4 and one line, from every command; a machine that runs out of something is 3."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.columns import text
from codeanatomy.catalogue.tables import STORED_TABLES
from codeanatomy.cli.main import main
from codeanatomy.store.builds import latest_build, list_builds
from codeanatomy.store.cursors import move_cursor
from codeanatomy.store.tables import data_files
from tests.repositories import write_repository
from tests.store.samples import overwrite


@pytest.fixture(scope="module")
def two_builds(tmp_path_factory, built_once, spark):
    root = Path(shutil.copytree(built_once, tmp_path_factory.mktemp("two") / "repo"))
    write_repository(root, {"shop/prices.py": "def price_of(item, currency):\n    return 3\n"})
    ca.build(ca.BuildRequest(root), spark=spark)
    state = ca.open(root).state
    move_cursor(state, "c", list_builds(state)[0].build_id)
    return root


@pytest.fixture
def repo(two_builds, tmp_path):
    return Path(shutil.copytree(two_builds, tmp_path / "repo"))


def files_of(repo, table):
    state = ca.open(repo).state
    version = latest_build(state).tables[table].version
    return [Path(file) for file in data_files(state, table, version)]


def lose(file):
    file.unlink()


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-9])


READERS = [
    ("build",),
    ("plan",),
    ("why", "shop/cart.py"),
    ("verify",),
    ("verify", "--stored"),
    ("replay", "LAST"),
    ("status",),
    ("rollback", "LAST"),
    ("diff",),
    ("changes", "--cursor", "c"),
    ("gc",),
    ("sql", "SELECT count(*) FROM cpg_nodes"),
    ("callers", "shop.prices.price_of"),
    ("callees", "shop.cart.Cart.total"),
    ("refs", "shop.prices.price_of"),
    ("definition", "shop.prices.price_of"),
    ("publish", "--out", "OUT"),
]


def run(capsys, repo, *words):
    """The exit code and what was said on stderr."""
    code = main([*(str(repo.parent / "out") if word == "OUT" else word for word in words), str(repo)])
    return code, capsys.readouterr().err


def assert_damage(told):
    code, words = told
    assert (code, len(words.splitlines())) == (4, 1), words
    assert "damaged" in words


@pytest.mark.parametrize("harm", [lose, cut_short])
@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_lost_or_cut_file_is_damage_to_every_command(command, harm, repo, capsys):
    last = latest_build(ca.open(repo).state).build_id
    harm(files_of(repo, "cpg_nodes")[0])
    assert_damage(run(capsys, repo, *(last if word == "LAST" else word for word in command)))


@pytest.mark.parametrize("harm", [lose, cut_short])
@pytest.mark.parametrize("command", [*READERS, ("builds",)], ids=" ".join)
def test_so_is_one_of_the_table_of_builds(command, harm, repo, capsys):
    harm(next((repo / ".codeanatomy/tables/builds").glob("*.parquet")))
    assert_damage(run(capsys, repo, *command))


@pytest.mark.parametrize("command", [each for each in READERS if each[0] in ("sql", "callers", "publish", "diff")])
def test_garbage_inside_a_file_is_found_before_it_is_read(command, repo, capsys):
    """DuckDB verifies no checksums: of 60 places that were overwritten, it read other rows at 21 without a word."""
    file = files_of(repo, "cpg_nodes")[0]
    sound = file.read_bytes()
    for place in range(8, len(sound) - 60, len(sound) // 20):
        file.write_bytes(sound[:place] + bytes(byte ^ 0x5A for byte in sound[place : place + 38]) + sound[place + 38 :])
        assert_damage(run(capsys, repo, *command))
    file.write_bytes(sound)
    assert run(capsys, repo, *command)[0] == 0


def test_a_file_of_an_older_version_that_duckdb_cannot_read_is_damage(repo, capsys):
    """Without a checksum in its name it is looked at when reading it failed."""
    file = files_of(repo, "cpg_nodes")[0]
    older = file.with_name(f"{file.name.partition('.')[0]}.c000.zstd.parquet")
    sound = file.read_bytes()
    older.write_bytes(sound[:4] + b"\xff" * 60 + sound[64:])
    for log in (repo / ".codeanatomy/tables/cpg_nodes/_delta_log").glob("*.json"):
        log.write_text(log.read_text().replace(file.name, older.name))
    assert_damage(run(capsys, repo, "sql", "SELECT * FROM cpg_nodes"))
    assert run(capsys, repo, "sql", "SELECT nothing FROM cpg_nodes")[0] == 2
    assert run(capsys, repo, "sql", "SELECT CAST('x' AS INT) FROM repo_files")[0] == 2


def test_doctor_and_verify_read_what_is_on_disk(repo, capsys, spark, monkeypatch):
    monkeypatch.setattr("codeanatomy.pipeline.stored.engine_for", lambda *_: _Given(spark))
    assert main(["verify", "--stored", str(repo)]) == 0
    assert main(["doctor", "--deep", str(repo)]) in (0, 3)
    assert "rows as they were written" in capsys.readouterr().out

    file = files_of(repo, "cpg_edges")[0]
    plain = file.with_name(f"{file.name.partition('.')[0]}.c000.zstd.parquet")
    file.rename(plain)
    for log in (repo / ".codeanatomy/tables/cpg_edges/_delta_log").glob("*.json"):
        log.write_text(log.read_text().replace(file.name, plain.name))
    rows = pq.read_table(plain, partitioning=None)
    overwrite(ca.open(repo).state, "cpg_edges", str(plain), rows.slice(1))

    assert main(["verify", "--stored", str(repo)]) == 1
    assert "cpg_edges: rows differ from those the build wrote" in capsys.readouterr().out
    assert main(["doctor", "--deep", str(repo)]) in (3, 4)
    assert "rows of cpg_edges differ from those that build" in capsys.readouterr().out

    damaged = files_of(repo, "facts")[0]
    damaged.write_bytes(damaged.read_bytes()[:100] + b"\0" * 38 + damaged.read_bytes()[138:])
    assert_damage(run(capsys, repo, "verify", "--stored"))
    assert main(["doctor", "--deep", str(repo)]) in (3, 4)
    assert damaged.name in capsys.readouterr().out


def test_a_build_of_another_schema_is_no_damage(built_once, capsys, spark, monkeypatch):
    monkeypatch.setattr("codeanatomy.pipeline.stored.engine_for", lambda *_: _Given(spark))
    later = tuple(replace(table, columns=(*table.columns, text("novelty", "of tomorrow"))) for table in STORED_TABLES)
    for module in ("plan", "stored"):
        monkeypatch.setattr(f"codeanatomy.pipeline.{module}.STORED_TABLES", later)
    code, words = run(capsys, built_once, "verify", "--stored")
    assert (code, len(words.splitlines())) == (2, 1)
    assert "has another schema" in words
    assert main(["doctor", "--deep", str(built_once)]) in (0, 3)
    assert "rows not checked" in capsys.readouterr().out


class _Given:
    """The session of the tests, where one would be started."""

    def __init__(self, spark):
        self.spark = spark

    def __enter__(self):
        return self.spark

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize("command", [("builds",), ("status",), ("sql", "SELECT count(*) FROM cpg_nodes"), ("doctor",)])
def test_too_few_open_files_is_no_damage(command, repo):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))

    done = subprocess.run(
        [sys.executable, "-m", "codeanatomy.cli.main", *command, str(repo)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=few_files,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    assert done.returncode == 3, done.stderr
    assert "too many open files" in done.stdout + done.stderr
    assert "delete" not in done.stdout + done.stderr
