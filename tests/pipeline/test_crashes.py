"""A full build killed at any write boundary loses nothing: the next one gives the rows of an undisturbed build.

Updates are killed in `tests/incremental/test_faults.py`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import codeanatomy as ca
from codeanatomy.catalogue.tables import FACTS, STORED_TABLES
from codeanatomy.store.builds import list_builds
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import state_exists
from tests.repositories import write_repository

TABLES = [table.name for table in (FACTS, *STORED_TABLES)]
BOUNDARIES = [
    *(f"table.{moment}:{table}" for table in TABLES for moment in ("files_written", "committed")),
    "build.before_publish",
    "build.published",
]
EDITS = {"shop/prices.py": "def price_of(item):\n    return 2\n", "shop/extra.py": "x = 1\n"}
"""So that every table changes: one that comes out the same is not committed."""


def command(*arguments):
    return [sys.executable, "-m", "codeanatomy.cli.main", *map(str, arguments)]


def digests(result):
    return {name: table["digest"] for name, table in result.tables.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, built_once, spark):
    """Digests of the second version of the repository, built without trouble."""
    root = shutil.copytree(built_once, tmp_path_factory.mktemp("undisturbed") / "repo")
    write_repository(root, EDITS)
    return digests(ca.build(ca.BuildRequest(root), spark=spark))


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_killed_at(boundary, built, spark, undisturbed):
    repo = built
    first = ca.open(repo).build
    before = ca.open(repo).sql("SELECT * FROM cpg_nodes ORDER BY node_id")
    write_repository(repo, EDITS)

    environment = {**os.environ, "CODEANATOMY_CRASH_AT": boundary}
    died = subprocess.run(command("build", repo, "--full"), env=environment, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()

    published = [build.build_id for build in list_builds(ca.open(repo).state)]
    assert len(published) == (2 if boundary == "build.published" else 1)
    recovered = ca.build(ca.BuildRequest(repo), spark=spark)
    assert digests(recovered) == undisturbed
    assert ca.open(repo, build=first.build_id).sql("SELECT * FROM cpg_nodes ORDER BY node_id") == before


def test_two_builds_at_once_one_succeeds_and_the_other_exits_4(tmp_path):
    repo = write_repository(tmp_path / "repo")
    first = subprocess.Popen(command("build", repo), stderr=subprocess.PIPE)
    location = locate_state(repo, None, {})
    deadline = time.monotonic() + 60
    while not state_exists(location) and time.monotonic() < deadline:
        time.sleep(0.05)
    second = subprocess.run(command("build", repo), capture_output=True, text=True, check=False)
    assert second.returncode == 4
    assert second.stderr.count("\n") == 1
    assert f"another build is writing this state (pid {first.pid} of" in second.stderr
    assert first.wait(120) == 0
    assert ca.build(ca.BuildRequest(repo)).mode == "noop"
