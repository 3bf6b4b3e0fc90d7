"""A table keeps every version, says exactly what is in it, and is a plain Delta table to others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalogue.columns import Dataset, text
from codeanatomy.errors import MachineError, StateError
from codeanatomy.store import (
    NO_ROWS,
    Emptied,
    Replaced,
    State,
    StateLocation,
    WorkerRows,
    WrittenTable,
    append_rows,
    bucket_of,
    collect_garbage,
    collected,
    create_state,
    data_files,
    hold_lease,
    open_arrow,
    pin_latest,
    read_table,
    replace_rows,
    tables,
    with_row_hashes,
)
from codeanatomy.store.layout import bucket_column

from .samples import (
    CONTENTS,
    OWNED,
    THINGS,
    contents,
    frame_of,
    python,
    rows_of,
    state_at,
    thing,
    things,
)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return state_at(tmp_path)


def files_on_disk(state: State, name: str) -> list[Path]:
    return sorted(path for path in Path(state.location.table_uri(name)).rglob("*") if path.is_file())


def test_rows_come_back_as_they_went_in(spark: SparkSession, state: State) -> None:
    written = replace_rows(frame_of(spark, THINGS, things()), replace(THINGS, sort_by=("name",)), state)

    assert written.written
    assert (written.pin.version, written.pin.rows, written.files) == (0, 40, len(written.pin.buckets))
    frame = read_table(spark, state, THINGS, 0)
    assert frame.columns == list(THINGS.names())
    assert rows_of(frame) == sorted(things(), key=repr)


def test_a_build_reads_its_own_version_after_later_writes(spark: SparkSession, state: State) -> None:
    first = replace_rows(frame_of(spark, THINGS, things(range(10))), THINGS, state)
    second = replace_rows(frame_of(spark, THINGS, things(range(20))), THINGS, state)

    assert rows_of(read_table(spark, state, THINGS, first.pin.version)) == sorted(things(range(10)), key=repr)
    assert rows_of(read_table(spark, state, THINGS, second.pin.version)) == sorted(things(range(20)), key=repr)


def test_same_rows_are_not_written_again(spark: SparkSession, state: State) -> None:
    first = replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    before = files_on_disk(state, "things")
    shuffled = frame_of(spark, THINGS, things()[::-1]).repartition(5)

    again = replace_rows(shuffled, THINGS, state, base=first.pin)

    assert (again.written, again.pin) == (False, first.pin)
    assert files_on_disk(state, "things") == before


def test_one_changed_cell_is_written(spark: SparkSession, state: State) -> None:
    first = replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    changed = [*things()[:-1], thing(39, name="other")]

    second = replace_rows(frame_of(spark, THINGS, changed), THINGS, state, base=first.pin)

    assert second.written
    touched = bucket_of("file9", state.buckets)
    assert {b for b in second.pin.buckets if second.pin.buckets[b] != first.pin.buckets[b]} == {touched}


def test_a_table_without_rows_exists_and_has_its_columns(spark: SparkSession, state: State) -> None:
    written = replace_rows(frame_of(spark, THINGS, []), THINGS, state)

    assert (written.pin.rows, written.pin.digest, written.files) == (0, NO_ROWS, 0)
    assert read_table(spark, state, THINGS, written.pin.version).columns == list(THINGS.names())
    assert open_arrow(state, THINGS, written.pin.version).to_table().num_rows == 0


def test_rows_can_all_go(spark: SparkSession, state: State) -> None:
    replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    emptied = replace_rows(frame_of(spark, THINGS, []), THINGS, state)

    assert read_table(spark, state, THINGS, emptied.pin.version).count() == 0


def test_reading_by_key_gives_those_rows_from_their_buckets_only(spark: SparkSession, state: State) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin

    found = read_table(spark, state, THINGS, pin.version, owners=["file3", "absent"])

    assert rows_of(found) == sorted((row for row in things() if row["file_id"] == "file3"), key=repr)
    buckets = {bucket_of(key, state.buckets) for key in ("file3",)}
    files = data_files(state, "things", pin.version, owners=["file3"])
    assert {int(Path(file).parent.name.removeprefix("bucket=")) for file in files} == buckets
    assert data_files(state, "things", pin.version, owners=[]) == []


def test_spark_and_python_agree_on_the_bucket(spark: SparkSession) -> None:
    keys = ["", "a", "é😀", "0123456789abcdef", "x" * 500]
    frame = spark.createDataFrame([(key,) for key in keys], "key string")
    assert [row[0] for row in frame.select(bucket_column("key", 64)).collect()] == [bucket_of(key, 64) for key in keys]


def test_columns_that_are_not_the_datasets_are_refused(spark: SparkSession, state: State) -> None:
    with pytest.raises(ValueError, match="columns"):
        replace_rows(frame_of(spark, THINGS, things()).drop("name"), THINGS, state)


def test_null_in_a_required_column_is_refused(spark: SparkSession, state: State) -> None:
    rows = spark.createDataFrame([(None, 1), ("c", 2)], "file_id string, size bigint")
    with pytest.raises(ValueError, match="required"):
        replace_rows(rows, OWNED, state)


def test_appends_add_up(spark: SparkSession, state: State) -> None:
    first = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a", "b"))), CONTENTS, state, base=None)
    second = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("c"))), CONTENTS, state, base=first.pin)
    nothing = append_rows(WorkerRows(frame_of(spark, CONTENTS, [])), CONTENTS, state, base=second.pin)

    assert read_table(spark, state, CONTENTS, first.pin.version).count() == 2
    assert read_table(spark, state, CONTENTS, second.pin.version).count() == 3
    assert (nothing.written, nothing.pin) == (False, second.pin)


def test_an_append_on_an_old_version_is_refused(spark: SparkSession, state: State) -> None:
    first = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a"))), CONTENTS, state, base=None)
    append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("b"))), CONTENTS, state, base=first.pin)

    with pytest.raises(StateError, match="run again"):
        append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("c"))), CONTENTS, state, base=first.pin)
    with pytest.raises(StateError, match="run again"):
        append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("c"))), CONTENTS, state, base=None)
    with pytest.raises(StateError, match="run again"):
        append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("c"))), CONTENTS, state, Emptied(first.pin.version))


def test_a_table_can_be_emptied_by_an_append(spark: SparkSession, state: State) -> None:
    first = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a", "b"))), CONTENTS, state)
    rows = WorkerRows(frame_of(spark, CONTENTS, contents("b")))
    second = append_rows(rows, CONTENTS, state, Emptied(first.pin.version))
    assert read_table(spark, state, CONTENTS, first.pin.version).count() == 2
    assert read_table(spark, state, CONTENTS, second.pin.version).count() == second.pin.rows == 1


def test_rows_of_an_unpublished_append_are_found_again(spark: SparkSession, state: State) -> None:
    assert pin_latest(state, CONTENTS, None) is None
    published = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a"))), CONTENTS, state, base=None).pin
    assert pin_latest(state, CONTENTS, published) == published
    unpublished = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("b"))), CONTENTS, state, base=published).pin

    assert pin_latest(state, CONTENTS, published) == unpublished
    assert pin_latest(state, CONTENTS, None) == unpublished


def test_columns_may_change_between_builds(spark: SparkSession, state: State) -> None:
    pin = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a", "bb"))), CONTENTS, state, base=None).pin
    changed = Dataset("contents", "Other columns.", (CONTENTS.column("content_id"), text("name", "a text")))
    rows = [{"content_id": "a", "name": "n"}]

    assert pin_latest(state, changed, known=pin) is None
    later = append_rows(WorkerRows(frame_of(spark, changed, rows)), changed, state, base=None).pin

    assert rows_of(read_table(spark, state, changed, later.version)) == rows
    assert rows_of(read_table(spark, state, CONTENTS, pin.version)) == contents("a", "bb")
    assert DeltaTable(state.location.table_uri("contents")).to_pyarrow_table().column("name").to_pylist() == ["n"]


def test_any_path_will_do(spark: SparkSession, tmp_path: Path) -> None:
    state = create_state(StateLocation.at(tmp_path / "a b [c] {d,e} 100% *é?"), 4)
    pin = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a", "b"))), CONTENTS, state, base=None).pin

    assert read_table(spark, state, CONTENTS, pin.version).count() == 2
    assert open_arrow(state, CONTENTS, pin.version).count_rows() == 2
    assert pin_latest(state, CONTENTS, None) == pin
    with hold_lease(state.location) as lease:
        assert collect_garbage(state, lease).files == 0


def test_small_files_are_made_one(spark: SparkSession, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MANY_SMALL_FILES", 3)
    pin, pins = None, []
    for name in "abcdef":
        rows = pa.Table.from_pylist(contents(name), schema=CONTENTS.schema())
        pin = append_rows(rows, CONTENTS, state, base=pin).pin
        pins.append(pin)

    assert len(data_files(state, "contents", pins[-1].version)) < 4
    assert pin_latest(state, CONTENTS, None) == pins[-1]
    for count, each in enumerate(pins, start=1):  # every version stays readable
        assert rows_of(read_table(spark, state, CONTENTS, each.version)) == contents(*"abcdef"[:count])


Way = Callable[[DataFrame, WrittenTable, list[str]], WrittenTable]


@pytest.fixture(params=["collected", "by Spark"])
def way(request: pytest.FixtureRequest, state: State) -> Way:
    """Replaces the rows of some owners of `THINGS`."""

    def replaced(frame: DataFrame, base: WrittenTable, owners: list[str]) -> WrittenTable:
        rows = (
            collected(with_row_hashes(frame, THINGS).toArrow(), THINGS, owners)
            if request.param == "collected"
            else frame
        )
        return replace_rows(rows, THINGS, state, base.pin, Replaced(owners, base.owners))

    return replaced


def test_rows_are_replaced_by_the_list_of_their_owners(spark: SparkSession, state: State, way: Way) -> None:
    base = replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    new = [thing(103), thing(104)]  # of file3 and file4; file5 is rebuilt too, and has no rows any more
    rebuilt = ["file3", "file4", "file5"]
    outcome = way(frame_of(spark, THINGS, new), base, rebuilt)

    expected = [row for row in things() if row["file_id"] not in rebuilt] + new
    assert rows_of(read_table(spark, state, THINGS, outcome.pin.version)) == sorted(expected, key=repr)
    assert rows_of(read_table(spark, state, THINGS, base.pin.version)) == sorted(things(), key=repr)
    whole = replace_rows(frame_of(spark, THINGS, expected), THINGS, state, base=outcome.pin)
    assert not whole.written
    assert {owner: whole.owners.get(owner, NO_ROWS) for owner in rebuilt} == outcome.owners
    assert whole.owners.keys() == base.owners.keys() - {"file5"}


def test_a_replacement_that_changes_nothing_is_not_written(spark: SparkSession, state: State, way: Way) -> None:
    base = replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    same = [row for row in things() if row["file_id"] == "file3"]
    before = files_on_disk(state, "things")
    outcome = way(frame_of(spark, THINGS, same), base, ["file3"])

    assert (outcome.written, outcome.pin) == (False, base.pin)
    assert files_on_disk(state, "things") == before


def test_a_replacement_starts_from_the_pinned_version(spark: SparkSession, state: State, way: Way) -> None:
    base = replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    replace_rows(frame_of(spark, THINGS, things(range(3))), THINGS, state)  # by a run that died before publishing
    outcome = way(frame_of(spark, THINGS, []), base, ["file0"])

    expected = [row for row in things() if row["file_id"] != "file0"]
    assert rows_of(read_table(spark, state, THINGS, outcome.pin.version)) == sorted(expected, key=repr)


def test_rows_that_are_here_are_appended_like_others(spark: SparkSession, state: State) -> None:
    first = append_rows(WorkerRows(frame_of(spark, CONTENTS, contents("a", "b"))), CONTENTS, state, base=None)
    rows = pa.Table.from_pylist(contents("c"), schema=CONTENTS.schema())
    second = append_rows(rows, CONTENTS, state, base=first.pin)

    assert rows_of(read_table(spark, state, CONTENTS, second.pin.version)) == contents("a", "b", "c")
    assert pin_latest(state, CONTENTS, None) == second.pin


def test_a_filter_on_any_column_finds_its_rows(spark: SparkSession, state: State) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    rows = open_arrow(state, THINGS, pin.version)

    assert rows.to_table(filter=pc.field("name") == "name7")["size"].to_pylist() == [7]
    assert rows.to_table(filter=~pc.field("is_big")).num_rows == 40
    assert DeltaTable(state.location.table_uri("things")).to_pyarrow_table(filters=[("size", "=", 7)]).num_rows == 1


def test_other_readers_see_a_delta_table(spark: SparkSession, state: State) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    table = DeltaTable(state.location.table_uri("things"))

    plain = table.to_pyarrow_table()
    assert plain.num_rows == 40
    assert {(r["file_id"], r["bucket"]) for r in plain.to_pylist()} == {
        (f"file{n}", bucket_of(f"file{n}", state.buckets)) for n in range(10)
    }
    assert sum(table.get_add_actions(flatten=True)["num_records"].to_pylist()) == 40
    connection = duckdb.connect()
    connection.register("dataset", open_arrow(state, THINGS, pin.version))
    query = "SELECT count(*), sum(size), max(props['a']) FROM dataset WHERE file_id = 'file3'"
    assert connection.execute(query).fetchall() == [(4, 3 + 13 + 23 + 33, "33")]
    files = data_files(state, "things", pin.version)
    assert duckdb.read_parquet(files).aggregate("count(*)").fetchall() == [(40,)]


def test_arrow_rows_are_sparks_rows(spark: SparkSession, state: State) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    table = open_arrow(state, THINGS, pin.version).to_table()
    assert table.schema == THINGS.schema()
    rows = [{**row, "props": dict(row["props"]) if row["props"] is not None else None} for row in table.to_pylist()]
    assert sorted(rows, key=repr) == sorted(things(), key=repr)


def test_only_data_files_are_left_behind(spark: SparkSession, state: State) -> None:
    replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    names = {path.suffix for path in files_on_disk(state, "things") if "_delta_log" not in path.parts}
    assert names == {".parquet"}


def test_a_missing_version_is_damage(state: State, spark: SparkSession) -> None:
    replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    with pytest.raises(StateError, match="damaged"):
        data_files(state, "things", 7)


def test_a_lost_file_is_damage(state: State, spark: SparkSession) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    Path(data_files(state, "things", pin.version)[0]).unlink()
    with pytest.raises(StateError, match="table things lost bucket="):
        read_table(spark, state, THINGS, pin.version)


def test_a_damaged_log_is_told_to_a_writer(state: State, spark: SparkSession) -> None:
    replace_rows(frame_of(spark, THINGS, things()), THINGS, state)
    (Path(state.location.table_uri("things")) / "_delta_log" / f"{0:020}.json").write_text("garbage{")
    with pytest.raises(StateError, match="damaged"):
        replace_rows(frame_of(spark, THINGS, things()), THINGS, state)


def test_reading_needs_no_spark() -> None:
    code = python("import sys, codeanatomy.store", "sys.exit(bool({'pyspark', 'pandas'} & set(sys.modules)))")
    assert subprocess.run(code, check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_told_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        state = create_state(StateLocation.at(disk / "state"), 4)
        big = spark.range(200_000).selectExpr("sha2(cast(id as string), 256) AS file_id", "id AS size")
        with pytest.raises(MachineError, match="no space left on") as told:
            replace_rows(big, OWNED, state)
        assert "\n" not in str(told.value)
    finally:
        subprocess.run(["umount", disk], check=True)
