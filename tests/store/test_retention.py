"""Garbage collection forgets old builds and never harms a kept one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import StateError
from codeanatomy.store import (
    BuildRecord,
    State,
    StateLocation,
    collect_garbage,
    data_files,
    hold_lease,
    list_builds,
    open_arrow,
    open_state,
    publish,
    read_table,
    replace_rows,
    rollback_build,
)
from codeanatomy.store.bundles import read_bundle_text, write_bundle
from codeanatomy.store.cursors import move_cursor

from .samples import THINGS, build_of, frame_of, state_at, things


@pytest.fixture
def state(tmp_path: Path) -> State:
    return state_at(tmp_path)


def four_builds(spark: SparkSession, state: State) -> list[BuildRecord]:
    """Builds of 10, 20, 30 and 40 rows."""
    builds: list[BuildRecord] = []
    for number in range(1, 5):
        pin = replace_rows(frame_of(spark, THINGS, things(range(number * 10))), THINGS, state).pin
        builds.append(build_of(number, builds[-1] if builds else None, {"things": pin}))
        publish(state, builds[-1])
    return builds


def data_on_disk(state: State) -> set[Path]:
    return {path for path in Path(state.location.table_uri("things")).rglob("*.parquet") if path.is_file()}


def gc(state: State, **options):
    with hold_lease(state.location) as lease:
        return collect_garbage(state, lease, **options)


def test_kept_builds_open_and_dropped_ones_are_gone(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    before = sum(path.stat().st_size for path in data_on_disk(state))

    planned = gc(state, keep=2, dry_run=True)
    assert list_builds(state) == builds
    report = gc(state, keep=2)

    assert report == replace(planned, dry_run=False)
    assert report.builds == tuple(build.build_id for build in builds[:2])
    assert report.bytes == before - sum(path.stat().st_size for path in data_on_disk(state)) > 0
    assert list_builds(open_state(state.location)) == builds[2:]
    for build in builds[2:]:
        pin = build.tables["things"]
        assert read_table(spark, state, THINGS, pin.version).count() == pin.rows
        assert open_arrow(state, THINGS, pin.version).count_rows() == pin.rows


def test_orphans_go(spark: SparkSession, state: State) -> None:
    four_builds(spark, state)
    table = Path(state.location.table_uri("things"))
    orphans = [
        table / "bucket=0" / "part-dead.parquet",
        table / "_temporary" / "0" / "part-half.parquet",  # of Spark
        table / "bucket=0" / "part-half.zstd.parquet#1",  # of delta-rs
        table / "_delta_log" / "00000000000000000009.json#2",
    ]
    strange = table / "bucket=0" / "part-half.zstd.parquet#x"
    for path in (*orphans, strange):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")

    report = gc(state)

    assert (report.builds, report.files, report.bytes) == ((), len(orphans), 5 * len(orphans))
    assert not any(path.exists() for path in orphans)
    assert strange.exists()


def test_nothing_is_deleted_from_a_damaged_state(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    newest = builds[-1].tables["things"].version
    Path(data_files(state, "things", newest)[0]).unlink()
    before = data_on_disk(state)
    with pytest.raises(StateError, match="nothing was deleted"):
        gc(state, keep=1)
    assert data_on_disk(state) == before
    assert list_builds(state) == builds


def test_the_latest_stays_whatever_is_asked(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    gc(state, keep=0)
    assert list_builds(state) == builds[-1:]


def test_what_a_rollback_went_back_to_stays(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    back = rollback_build(builds[0], builds[-1], datetime.now(UTC))
    publish(state, back)

    gc(state, keep=1)

    assert list_builds(state) == [builds[0], back]
    assert read_table(spark, state, THINGS, back.tables["things"].version).count() == 10


def test_what_a_rollback_to_a_rollback_went_back_to_stays(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    once = rollback_build(builds[0], builds[-1], datetime.now(UTC))
    publish(state, once)
    twice = rollback_build(once, once, datetime.now(UTC) + timedelta(seconds=1))
    publish(state, twice)

    gc(state, keep=1)

    assert list_builds(state) == [builds[0], once, twice]


def test_bundles_go_with_their_builds(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    back = rollback_build(builds[0], builds[-1], datetime.now(UTC))
    publish(state, back)
    unpublished = "20260101T000009-dead00"
    for build_id in (*(build.build_id for build in builds), unpublished):
        write_bundle(state, build_id, {"manifest.json": "{}"}, {})
    on_disk = len(data_on_disk(state))

    planned = gc(state, keep=1, dry_run=True)
    assert all(read_bundle_text(state, build.build_id, "manifest.json") == "{}" for build in builds)
    report = gc(state, keep=1)

    assert report == replace(planned, dry_run=False)
    assert report.files == on_disk - len(data_on_disk(state)) + 4
    assert [path.name for path in (state.location.local_path / "runs").iterdir()] == [builds[0].build_id]


def test_young_builds_stay(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    age_of_second = datetime.now(UTC) - builds[1].created_at
    gc(state, keep=1, older_than=age_of_second + timedelta(minutes=1))
    assert list_builds(state) == builds[1:]


def test_what_a_cursor_names_stays_until_it_moves_on(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    move_cursor(state, "consumer", builds[1].build_id)
    gc(state, keep=1)
    assert list_builds(state) == [builds[1], builds[3]]
    pin = builds[1].tables["things"]
    assert read_table(spark, state, THINGS, pin.version).count() == pin.rows

    move_cursor(state, "consumer", builds[3].build_id)
    gc(state, keep=1)
    assert list_builds(state) == builds[3:]


def test_builds_go_on_after_a_collection(spark: SparkSession, state: State) -> None:
    builds = four_builds(spark, state)
    gc(state, keep=1)
    publish(state, build_of(5, builds[-1]))
    assert [build.build_id for build in list_builds(state)] == [builds[-1].build_id, build_of(5, None).build_id]


def test_a_lease_for_another_state_is_refused(state: State, tmp_path: Path) -> None:
    with hold_lease(StateLocation.at(tmp_path / "other")) as lease, pytest.raises(ValueError, match="lease"):
        collect_garbage(state, lease)
