"""Bytes that changed after they were written are noticed by every reader, whichever library reads."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from codeanatomy.errors import StateError
from codeanatomy.store import (
    State,
    WorkerRows,
    append_rows,
    data_files,
    latest_build,
    publish,
    read_arrow,
    read_table,
    replace_rows,
)
from codeanatomy.store.bundles import read_bundle_rows, write_bundle
from codeanatomy.store.checksums import find_altered, find_unreadable
from codeanatomy.store.failures import writing
from codeanatomy.store.tables import verified_files

from .samples import CONTENTS, OWNED, THINGS, build_of, contents, frame_of, owned, state_at, things


@pytest.fixture
def state(tmp_path: Path) -> State:
    return state_at(tmp_path)


def damage(file: Path, place: int | None = None) -> None:
    """Put garbage into the first page of a file, or elsewhere."""
    if place is None:
        column = pq.ParquetFile(file).metadata.row_group(0).column(0)
        place = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 4
    content = file.read_bytes()
    file.write_bytes(content[:place] + bytes(byte ^ 0xFF for byte in content[place : place + 4]) + content[place + 4 :])


def rows_of(dataset, rows) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=dataset.schema())


def test_every_file_has_its_checksum(spark: SparkSession, state: State) -> None:
    """Those of Spark, of its workers, of this process, and of the table of builds."""
    pins = {"things": replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin}
    more = frame_of(spark, CONTENTS, contents("a", "b"))
    base = append_rows(WorkerRows(more), CONTENTS, state).pin
    pins["contents"] = append_rows(rows_of(CONTENTS, contents("c")), CONTENTS, state, base=base).pin
    publish(state, build_of(1, None, pins))
    files = sorted((state.location.local_path / "tables").rglob("*.parquet"))
    assert {file.parts[-2] if "=" not in file.parts[-2] else file.parts[-3] for file in files} == {
        "things", "contents", "builds",
    }  # fmt: skip
    for file in files:
        assert find_altered([str(file)]) is None
        sound = file.read_bytes()
        for place in (4, len(sound) // 2, len(sound) - 12):
            damage(file, place)
            assert find_altered([str(file)]) == str(file)
            file.write_bytes(sound)


def test_every_reader_notices(spark: SparkSession, state: State) -> None:
    pin = replace_rows(frame_of(spark, THINGS, things()), THINGS, state).pin
    damage(Path(data_files(state, "things", pin.version)[0]))
    with pytest.raises(StateError, match="not as it was written"):
        verified_files(state, "things", pin.version)
    with pytest.raises(StateError, match="damaged"):
        read_arrow(state, THINGS, pin.version)
    with pytest.raises(StateError, match="damaged") as told, writing(state.location):
        read_table(spark, state, THINGS, pin.version).collect()
    assert "\n" not in str(told.value)


def test_a_damaged_file_is_not_kept_for_having_the_right_rows(spark: SparkSession, state: State) -> None:
    frame = frame_of(spark, THINGS, things())
    pin = replace_rows(frame, THINGS, state).pin
    assert not replace_rows(frame, THINGS, state, base=pin).written
    damage(Path(data_files(state, "things", pin.version)[0]))
    again = replace_rows(frame, THINGS, state, base=pin)
    assert again.written
    assert read_arrow(state, THINGS, again.pin.version).num_rows == pin.rows


def last_bytes(file: Path) -> list[int]:
    """Where each column ends: bytes of rows, of which some change a value and nothing else."""
    columns = pq.ParquetFile(file).metadata.row_group(0)
    ends = (
        (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
        for column in map(columns.column, range(columns.num_columns))
    )
    return [end - 1 - before for end in ends for before in range(4)]


def test_builds_and_bundles_are_verified(state: State) -> None:
    build_id = build_of(1, None).build_id
    publish(state, build_of(1, None))
    write_bundle(state, build_id, {}, {"owned": rows_of(OWNED, owned("a", "b"))})
    bundle = state.location.local_path / "runs" / build_id / "owned.parquet"
    builds = next((state.location.local_path / "tables/builds").glob("*.parquet"))
    reads = {bundle: lambda: read_bundle_rows(state, build_id, OWNED), builds: lambda: latest_build(state)}
    for file, read in reads.items():
        sound = file.read_bytes()
        for place in last_bytes(file):
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
            with pytest.raises(StateError, match="damaged"):
                read()
        file.write_bytes(sound)
        assert read() is not None


def test_small_files_made_one_have_checksums_and_what_stays_is_not_copied(state: State) -> None:
    many = rows_of(CONTENTS, contents(*(sha256(bytes([n >> 8, n & 255])).hexdigest() for n in range(40_000))))
    pin = append_rows(many, CONTENTS, state, base=None).pin
    large = Path(data_files(state, "contents", pin.version)[0])
    assert large.stat().st_size > 1 << 20
    for number in range(33):
        rows = rows_of(CONTENTS, contents(f"new{number}"))
        pin = append_rows(rows, CONTENTS, state, base=pin).pin
    files = verified_files(state, "contents", pin.version)
    assert len(files) == 2
    assert any(Path(file).samefile(large) for file in files)
    assert all(".crc32-" in file for file in files)
    assert read_arrow(state, CONTENTS, pin.version).num_rows == pin.rows == 40_033


def test_a_file_of_an_older_version_is_read_to_know(tmp_path: Path) -> None:
    older = tmp_path / "part-1.zstd.parquet"
    pq.write_table(rows_of(OWNED, owned("a", "b")), older, write_page_checksum=True)
    assert find_unreadable([str(older)]) is None
    damage(older)
    assert find_altered([str(older)]) is None
    assert find_unreadable([str(older)]) == str(older)
