"""A state opens, or says in one line why not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from codeanatomy.errors import InputError, MachineError, StateError
from codeanatomy.store import (
    State,
    StateLocation,
    bucket_count_for,
    create_state,
    latest_build,
    open_state,
    publish,
    state_exists,
)

from .samples import build_of, state_at


def test_what_was_fixed_at_creation_comes_back(tmp_path: Path) -> None:
    location = StateLocation.at(tmp_path / "state")
    assert not state_exists(location)
    made = create_state(location, 16, "my/repo")

    assert open_state(location) == made == State(location, 16, "my/repo")
    assert (tmp_path / "state" / ".gitignore").read_text() == "*\n"
    assert latest_build(made) is None


def test_a_second_creation_is_refused(tmp_path: Path) -> None:
    state_at(tmp_path)
    with pytest.raises(StateError, match="already"):
        create_state(StateLocation.at(tmp_path / "state"), 8)


@pytest.mark.parametrize("prepare", [lambda path: None, Path.mkdir], ids=["absent", "empty"])
def test_no_state_yet(tmp_path: Path, prepare) -> None:
    prepare(tmp_path / "state")
    with pytest.raises(InputError, match="run `codeanatomy build`"):
        open_state(StateLocation.at(tmp_path / "state"))


def test_a_damaged_log(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    log = Path(state.location.table_uri("builds")) / "_delta_log" / f"{0:020}.json"
    log.write_text("garbage{")
    with pytest.raises(StateError, match="damaged") as told:
        open_state(state.location)
    assert "\n" not in str(told.value)


def test_a_lost_data_file(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    publish(state, build_of(1, None))
    for file in Path(state.location.table_uri("builds")).glob("*.parquet"):
        file.unlink()
    with pytest.raises(StateError, match="damaged") as told:
        latest_build(state)
    assert "\n" not in str(told.value)


def test_a_delta_table_that_is_not_a_state(tmp_path: Path) -> None:
    location = StateLocation.at(tmp_path)
    DeltaTable.create(location.table_uri("builds"), pa.schema([("id", pa.string())]))
    with pytest.raises(StateError, match="damaged"):
        open_state(location)


def test_a_newer_format(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    table = DeltaTable(state.location.table_uri("builds"))
    table.alter.set_table_properties({"codeanatomy.formatVersion": "2"}, raise_if_not_exists=False)
    with pytest.raises(StateError, match="newer version of codeanatomy"):
        open_state(state.location)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="not a directory"):
        create_state(StateLocation.at(tmp_path / "file" / "state"), 1)


@pytest.mark.parametrize(
    ("files", "buckets"),
    [(0, 1), (1, 1), (127, 1), (128, 2), (200, 4), (3_000, 64), (18_000, 256), (1_000_000, 256)],
)
def test_bucket_count_follows_the_repository(files: int, buckets: int) -> None:
    assert bucket_count_for(files) == buckets


def test_places_have_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert StateLocation.at("a b").uri == str(tmp_path / "a b")
    assert StateLocation.at("file:///x/a%20b").uri == "/x/a b"
    remote = StateLocation.at("s3://bucket/prefix/", {"AWS_SECRET_ACCESS_KEY": "hush"})
    assert not remote.is_local
    assert remote.table_uri("t") == "s3://bucket/prefix/tables/t"
    assert "hush" not in repr(remote)
