"""A state that is not a local directory works by its uri alone, without lease or local file access."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import InputError, MachineError
from codeanatomy.store import (
    State,
    StateLocation,
    WorkerRows,
    append_rows,
    collect_garbage,
    create_state,
    hold_lease,
    latest_build,
    open_arrow,
    open_state,
    pin_latest,
    publish,
    read_table,
    replace_rows,
    state_exists,
)
from codeanatomy.store.bundles import read_bundle_text, write_bundle
from codeanatomy.store.linked import link_table

from .samples import CONTENTS, THINGS, build_of, contents, frame_of, rows_of, things


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state whose uri has a scheme, hence remote to the store; delta-rs and Spark know no difference."""
    location = StateLocation(f"file://{tmp_path}/state", {})
    assert not location.is_local
    create_state(location, 4)
    return open_state(location)


def test_build_and_read(spark: SparkSession, state: State) -> None:
    things_pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    first = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a"))), CONTENTS, state, base=None).pin
    contents_pin = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("b"))), CONTENTS, state, base=first).pin
    publish(state, build_of(1, None, {"things": things_pin, "contents": contents_pin}))

    build = latest_build(state)
    assert build is not None
    assert rows_of(read_table(spark, state, THINGS, build.tables["things"].version)) == sorted(things(), key=repr)
    assert pin_latest(state, CONTENTS, None) == build.tables["contents"]
    assert open_arrow(state, THINGS, build.tables["things"].version, owners=["file3"]).count_rows() >= 4


def test_a_local_state_reads_a_linked_table(spark: SparkSession, state: State, tmp_path: Path) -> None:
    first = replace_rows(frame_of(spark, THINGS, things(range(5))), THINGS, state).pin
    replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    beside = create_state(StateLocation.at(tmp_path / "beside"), 4)
    link_table(state, "things", first.version, beside)
    assert rows_of(read_table(spark, beside, THINGS, first.version)) == sorted(things(range(5)), key=repr)


def test_bundles_of_builds_under_way_are_not_garbage(state: State, tmp_path: Path) -> None:
    publish(state, build_of(1, None))
    kept = build_of(1, None).build_id
    for build_id in (kept, "20260101T000009-dead00"):
        write_bundle(state, build_id, {"manifest.json": "{}" * 100_000}, {})
    assert read_bundle_text(state, kept, "manifest.json") == "{}" * 100_000
    with hold_lease(state.location) as lease:
        assert collect_garbage(state, lease).files == 0
        two_days_ago = time.time() - 2 * 86_400
        for path in (tmp_path / "state" / "runs").rglob("*.json"):
            os.utime(path, (two_days_ago, two_days_ago))
        assert collect_garbage(state, lease).files == 1
    assert read_bundle_text(state, kept, "manifest.json") is not None
    assert read_bundle_text(state, "20260101T000009-dead00", "manifest.json") is None


def test_files_of_a_build_under_way_are_not_garbage(spark: SparkSession, state: State, tmp_path: Path) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    publish(state, build_of(1, None, {"things": pin}))
    assert not replace_rows(frame_of(spark, THINGS, things()), THINGS, state, base=pin).written

    with hold_lease(state.location) as lease:
        assert collect_garbage(state, lease).files == 0
        two_days_ago = time.time() - 2 * 86_400
        for path in (tmp_path / "state" / "tables" / "things").rglob("*.parquet"):
            os.utime(path, (two_days_ago, two_days_ago))
        assert collect_garbage(state, lease).files == len(pin.buckets)
    assert read_table(spark, state, THINGS, pin.version).count() == 40


@pytest.mark.parametrize("use", [state_exists, open_state, lambda location: create_state(location, 4)])
def test_a_store_that_cannot_be_reached_is_not_damaged(use: Callable[[StateLocation], object]) -> None:
    """The port is closed: nothing is asked of anybody."""
    options = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "here",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "max_retries": "0",
    }
    with pytest.raises(MachineError, match=r"^cannot reach s3://bucket/x \(.*refused.*\): check its address") as told:
        use(StateLocation.at("s3://bucket/x", options))
    assert "\n" not in str(told.value)


def test_a_store_of_no_kind_is_wrong_usage() -> None:
    with pytest.raises(InputError, match="no kind of store"):
        create_state(StateLocation.at("nowhere://bucket/x"), 4)
