"""Cursors: written whole, read back, and never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import InputError, StateError
from codeanatomy.store import State, StateLocation, create_state, open_state
from codeanatomy.store.cursors import Cursor, list_cursors, move_cursor, read_cursor

from .samples import state_at

ONE, TWO = "20260101T000001-000001", "20260101T000002-000002"


@pytest.fixture(params=["local", "remote"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> State:
    if request.param == "local":
        return state_at(tmp_path)
    return create_state(StateLocation(f"file://{tmp_path}/state", {}), 4)


def test_a_cursor_is_where_it_was_moved_to(state: State) -> None:
    assert read_cursor(state, "c") is None
    assert list_cursors(state) == []
    move_cursor(state, "c", ONE)
    move_cursor(state, "b", ONE)
    move_cursor(state, "c", TWO)
    again = open_state(state.location)
    assert read_cursor(again, "c") == Cursor("c", TWO)
    assert list_cursors(again) == [Cursor("b", ONE), Cursor("c", TWO)]


@pytest.mark.parametrize("name", ["", "../c", "a/b", "a b", "c\n"])
def test_bad_names_are_refused(state: State, name: str) -> None:
    with pytest.raises(InputError, match="cannot name a cursor"):
        move_cursor(state, name, ONE)
    with pytest.raises(InputError, match="cannot name a cursor"):
        read_cursor(state, name)


def test_a_damaged_cursor_says_so(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    move_cursor(state, "c", ONE)
    (tmp_path / "state" / "cursors" / "c.json").write_text("[]")
    with pytest.raises(StateError, match="--reset"):
        read_cursor(state, "c")
    with pytest.raises(StateError, match="--reset"):
        list_cursors(state)


def test_a_move_that_fails_leaves_the_cursor_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_at(tmp_path)
    move_cursor(state, "c", ONE)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="out of luck"):
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("out of luck")))
        move_cursor(state, "c", TWO)
    assert read_cursor(state, "c") == Cursor("c", ONE)
    assert [path.name for path in (tmp_path / "state" / "cursors").iterdir()] == ["c.json"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    state = state_at(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "c.json"
    secret.write_text('{"build_id": "secret"}')
    folder = tmp_path / "state" / "cursors"
    folder.mkdir()
    (folder / "c.json").symlink_to(secret)
    with pytest.raises(StateError):
        read_cursor(state, "c")
    with pytest.raises(StateError, match="is a link"):
        move_cursor(state, "c", ONE)
    (folder / "c.json").unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    with pytest.raises(StateError, match="is a link"):
        move_cursor(state, "c", ONE)
    with pytest.raises(StateError, match="is a link"):
        open_state(state.location)
    assert secret.read_text() == '{"build_id": "secret"}'
