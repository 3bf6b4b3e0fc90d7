"""A process killed at any boundary leaves a state that opens at the last published build and can be built on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.store import (
    State,
    collect_garbage,
    hold_lease,
    list_builds,
    open_state,
    publish,
    read_table,
    replace_rows,
)
from codeanatomy.store.faults import BOUNDARIES, boundary

from .samples import OWNED, build_of, frame_of, owned, python, state_at

RUN = """
import sys
from pyspark.sql import SparkSession
from codeanatomy.store import *
from codeanatomy.store.bundles import write_bundle
from store.samples import OWNED, build_of, owned, frame_of

state = open_state(StateLocation.at(sys.argv[1]))
with hold_lease(state.location) as lease:
    parent = latest_build(state)
    tables = parent.tables
    if sys.argv[2].startswith("table."):
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        frame = frame_of(spark, OWNED, owned("x", "y", "z"))
        tables = {"owned": replace_rows(frame, OWNED, state).pin}
    build = build_of(2, parent, tables)
    write_bundle(state, build.build_id, {"manifest.json": "{}"}, {})
    publish(state, build)
    collect_garbage(state, lease, keep=1)
"""


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=pytest.mark.slow) if each == "table.files_written" else each for each in BOUNDARIES],
)
def test_killed_at(spark: SparkSession, tmp_path: Path, name: str) -> None:
    state: State = state_at(tmp_path)
    pin = replace_rows(frame_of(spark, OWNED, owned("a", "b")), OWNED, state).pin
    first = build_of(1, None, {"owned": pin})
    publish(state, first)

    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])
    crash = {"CODEANATOMY_CRASH_AT": name, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    environment = os.environ | crash
    died = subprocess.run([*python(RUN), state.location.uri, name], env=environment, check=False, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()

    state = open_state(state.location)
    published = [build.build_id for build in list_builds(state)]
    second = build_of(2, first).build_id
    assert published == {
        "build.published": [first.build_id, second],
        "gc.builds_dropped": [second],
    }.get(name, [first.build_id])
    assert read_table(spark, state, OWNED, pin.version).count() == 2

    with hold_lease(state.location) as lease:
        latest = list_builds(state)[-1]
        rows = frame_of(spark, OWNED, owned("a", "b", "c"))
        again = replace_rows(rows, OWNED, state, base=latest.tables["owned"]).pin
        publish(state, build_of(3, latest, {"owned": again}))
        collect_garbage(state, lease, keep=1)
    assert read_table(spark, state, OWNED, again.version).count() == 3
    on_disk = [path for path in Path(state.location.table_uri("owned")).rglob("*.parquet") if path.is_file()]
    assert len(on_disk) == len(again.buckets)


def test_a_boundary_is_one_of_the_list() -> None:
    with pytest.raises(ValueError, match="unknown boundary"):
        boundary("table.half_written")
