"""Digests made anew from the rows of a table are those its builds pinned, unless somebody wrote to its files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from codeanatomy.store import data_files, open_state, replace_rows
from codeanatomy.store.audit import digests_on_disk

from .samples import OWNED, THINGS, frame_of, overwrite, owned, state_at, things


def test_digests_are_those_of_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    state = state_at(tmp_path)
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    other = replace_rows(frame_of(spark, OWNED, owned("a", "b", "c")), OWNED, state).pin
    empty = replace_rows(frame_of(spark, OWNED, []), OWNED, state).pin

    found = digests_on_disk(spark, state, {THINGS: pin.version, OWNED: other.version})
    assert found == {"things": pin.buckets, "owned": other.buckets}
    assert digests_on_disk(spark, state, {OWNED: empty.version}) == {"owned": {}}

    file = data_files(state, "things", pin.version)[0]
    overwrite(state, "things", file, pq.read_table(file, partitioning=None).slice(1))
    opened_again = open_state(state.location.at(state.location.uri))
    assert digests_on_disk(spark, opened_again, {THINGS: pin.version})["things"] != pin.buckets
