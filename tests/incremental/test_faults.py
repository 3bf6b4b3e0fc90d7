"""Updates and what can go wrong under them: death at any write, a full disk, readers, rollbacks, lost files.

A reader sees the last build that was published, whole; the next update gives the rows of a build from scratch.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import codeanatomy as ca
from codeanatomy.catalogue.tables import FACTS, STORED_TABLES
from codeanatomy.cli.main import main
from codeanatomy.store.builds import list_builds
from codeanatomy.store.owners import OWNER_DIGESTS
from codeanatomy.store.tables import data_files
from tests.incremental.updates import unequal
from tests.repositories import write_repository

TABLES = [table.name for table in (FACTS, *STORED_TABLES, OWNER_DIGESTS)]

EDITS = {
    "shop/prices.py": "from .extra import x\n\ndef price_of(item):\n    return x\n",
    "shop/extra.py": "import decimal\n\nx = decimal.Decimal(1)\n",
}
"""So that every table changes: one that comes out the same is not written."""

OTHER_EDITS = {
    "shop/prices.py": "def price_of(item, currency):\n    return 3\n",
    "src/tools/run.py": "import shop.cart\n",
}
"""What happens to the tree after an update of it failed."""

GRAPH = ("cpg_nodes", "cpg_edges", "repo_files", "questions", "calls", "inc_impacted_files")


def rows_of(graph):
    """The rows of a build, as a reader gets them."""
    return {name: graph.sql(f"SELECT * FROM {name} ORDER BY ALL").to_pylist() for name in GRAPH}


def update(root, spark, state=None):
    result = ca.build(ca.BuildRequest(root, state=state), spark=spark)
    assert result.mode == "incremental", result.reasons
    return result


def assert_as_from_scratch(root, spark, state=None):
    assert not unequal(ca.verify(ca.BuildRequest(root, state=state), spark=spark))


# Death.

BOUNDARIES = [
    *(f"table.{moment}:{table}" for table in TABLES for moment in ("files_written", "committed")),
    "build.bundle_written",
    "build.before_publish",
    "build.published",
]
SAMPLE = {"table.committed:owner_digests"}


@pytest.mark.parametrize(
    "boundary", [each if each in SAMPLE else pytest.param(each, marks=pytest.mark.slow) for each in BOUNDARIES]
)
def test_an_update_killed_at(boundary, built, spark):
    first = ca.open(built)
    before = rows_of(first)
    write_repository(built, EDITS)
    died = killed_at(boundary, "build", built)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()

    published = list_builds(first.state)
    assert [each.mode for each in published] == ["full", *(["incremental"] if boundary == "build.published" else [])]
    assert rows_of(ca.open(built, build=first.build.build_id)) == before
    write_repository(built, OTHER_EDITS)
    assert update(built, spark).parent_build_id == published[-1].build_id
    assert_as_from_scratch(built, spark)
    assert rows_of(ca.open(built, build=first.build.build_id)) == before


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["files_written", "committed"])
def test_an_update_with_an_index_killed_as_it_writes_documents(moment, tmp_path, indexed_once, spark):
    root = Path(shutil.copytree(indexed_once, tmp_path / "repo"))
    before = rows_of(ca.open(root))
    write_repository(root, EDITS)
    died = killed_at(f"table.{moment}:documents", "build", root, "--index", "pyrefly")
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    assert rows_of(ca.open(root)) == before
    write_repository(root, OTHER_EDITS)
    assert ca.build(ca.BuildRequest(root, index="pyrefly"), spark=spark).mode == "incremental"
    assert_as_from_scratch(root, spark)


def killed_at(boundary, *arguments):
    environment = {**os.environ, "CODEANATOMY_CRASH_AT": boundary}
    command = [sys.executable, "-m", "codeanatomy.cli.main", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


# A full disk.


@pytest.mark.slow
def test_an_update_on_a_full_disk(small_disk, built, spark):
    state = str(shutil.copytree(built / ".codeanatomy", small_disk / "state"))
    assert ca.build(ca.BuildRequest(built, state=state, moved=True)).mode == "noop"
    first = ca.open(built, state=state)
    before = rows_of(first)
    write_repository(built, EDITS)
    for room in (4, 16, 32, 64, 96):  # in kilobytes: each time it comes a little further
        filler = small_disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - (room << 10)))
        with pytest.raises(ca.MachineError, match="no space left on") as told:
            ca.build(ca.BuildRequest(built, state=state), spark=spark)
        assert "\n" not in str(told.value)
        filler.unlink()
        assert [each.build_id for each in list_builds(first.state)] == [first.build.build_id]
        assert rows_of(ca.open(built, state=state)) == before
    update(built, spark, state)
    assert_as_from_scratch(built, spark, state)


# Readers and rollbacks.


def test_a_reader_keeps_its_build_and_a_rollback_is_built_upon(built, spark):
    reader = ca.open(built)
    before = rows_of(reader)
    half_read = reader.read("SELECT * FROM cpg_nodes ORDER BY ALL")
    for edits in (EDITS, OTHER_EDITS, {"shop/cart.py": "", "shop/extra.py": "def price_of(item): pass\n"}):
        write_repository(built, edits)
        (built / "broken.py").unlink(missing_ok=True)
        update(built, spark)
        assert rows_of(reader) == before
    assert half_read.read_all().to_pylist() == before["cpg_nodes"]
    assert rows_of(reader) == before != rows_of(ca.open(built))

    assert main(["rollback", reader.build.build_id, str(built), "--quiet"]) == 0
    back = ca.open(built)
    assert {name: rows for name, rows in rows_of(back).items() if name != "inc_impacted_files"} == {
        name: rows for name, rows in before.items() if name != "inc_impacted_files"
    }
    assert update(built, spark).parent_build_id == back.build.build_id
    assert_as_from_scratch(built, spark)
    assert rows_of(reader) == before


# Lost files.

SAMPLE_OF_HARM = {("module_lookups", "lost"), ("owner_digests", "lost"), ("owner_digests", "cut short")}


@pytest.mark.parametrize(
    ("table", "harm"),
    [
        pytest.param(table, harm, marks=() if (table, harm) in SAMPLE_OF_HARM else pytest.mark.slow)
        for table in TABLES
        for harm in ("lost", "cut short")
    ],
)
def test_an_update_of_a_damaged_state_is_refused(table, harm, built, spark):
    graph = ca.open(built)
    for file in map(Path, data_files(graph.state, table, graph.build.tables[table].version)):
        if harm == "lost":
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:100])
    write_repository(built, EDITS)
    with pytest.raises(ca.StateError, match=r"damaged|lost") as told:
        update(built, spark)
    assert "\n" not in str(told.value)
    assert len(list_builds(graph.state)) == 1
