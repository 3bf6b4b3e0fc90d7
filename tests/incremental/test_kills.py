"""Commands that are killed at random moments: a sample of them, and what would be wrong is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from bench import kills
from bench.kills import COMMANDS, Scene, attacked, left_behind, lost, prepared, processes

from codeanatomy.store.builds import current_build, drop_builds
from codeanatomy.store.tables import data_files
from tests.store.samples import overwrite


@pytest.fixture(scope="module")
def template(tmp_path_factory, spark):
    return prepared(tmp_path_factory.mktemp("kills") / "template", spark)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_lost_or_left_behind(name, template, tmp_path, spark):
    tally = attacked(name, 2, Random(name), template, tmp_path / "scene", spark)
    assert (len(tally.moments), tally.wrong) == (2, [])


@pytest.fixture
def scene(built, tmp_path):
    """The sample repository with its graph, and a temporary directory."""
    (tmp_path / "tmp").mkdir()
    return Scene(tmp_path)


def test_nothing_is_wrong_with_a_sound_state(scene):
    assert not list(left_behind(scene))
    assert not list(lost(scene.contents(), scene.contents(), drops=False))


@pytest.mark.parametrize(
    "left",
    [
        "tables/cpg_nodes/bucket=0/part-0.parquet.crc",
        "tables/cpg_nodes/_delta_log/00000000000000000009.json#1",
        "tables/unheard/of.parquet",
        "shared/rows/part.parquet",
        "runs/20200101T000000-abcdef/manifest.json",
        "more",
    ],
)
def test_a_file_that_nothing_accounts_for_is_noticed(left, scene, monkeypatch):
    monkeypatch.setattr(kills, "collect_garbage", lambda *_, **__: None)
    place = scene.state.location.local_path / left
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    assert list(left_behind(scene)) == [f"{left} is left in the state"]


def test_what_is_left_elsewhere_is_noticed(scene):
    (scene.temporary / "codeanatomy-abc").mkdir()
    (scene.out.parent / ".graph-abc").mkdir(parents=True)
    scene.out.mkdir()
    assert list(left_behind(scene)) == [
        "codeanatomy-abc is left in the temporary directory",
        ".graph-abc is left beside what was published",
    ]


def test_a_process_that_outlives_its_command_is_noticed(tmp_path):
    mark = Scene(tmp_path).mark
    name, _, value = mark.partition("=")
    other = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(other, env={**os.environ, name: value}, stdin=-1, stdout=-1) as process:
        assert process.stdout
        process.stdout.readline()
        found = processes(mark, 0)
        process.kill()
    assert found == [f"{process.pid} {Path(sys.executable).name}"]
    assert processes(mark, 0) == []


def test_a_build_that_is_lost_or_has_other_rows_is_noticed(scene):
    state = scene.state
    build = current_build(state)
    before = scene.contents()
    assert list(lost({**before, "another": ""}, before, drops=False)) == ["build another is lost"]
    assert list(lost({"another": "", **before}, before, drops=True)) == []
    file, *_ = data_files(state, "cpg_edges", build.tables["cpg_edges"].version)
    overwrite(state, "cpg_edges", file, pq.read_table(file, partitioning=None).slice(1))
    assert list(lost(before, scene.contents(), drops=False)) == [f"build {build.build_id} has other rows"]
    drop_builds(state, [build.build_id])
    assert list(lost(before, scene.contents(), drops=False)) == [f"build {build.build_id} is lost"]
