"""Output directories: complete or absent, and what a killed process left beside them is removed."""

import pytest

from codeanatomy.query import directory
from codeanatomy.query.directory import replace_directory


def fill(out, text):
    with replace_directory(str(out), "manifest") as place:
        (place / "manifest").write_text(text)


@pytest.mark.parametrize("at_once", [True, False], ids=["exchanged", "one after the other"])
def test_an_earlier_directory_is_replaced(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(directory, "_exchange", lambda one, other: False)
    fill(tmp_path / "out", "first")
    fill(tmp_path / "out", "second")
    assert (tmp_path / "out/manifest").read_text() == "second"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_two_directories_change_places_in_one_step(tmp_path):
    fill(tmp_path / "one", "first")
    fill(tmp_path / "other", "second")
    assert directory._exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one/manifest").read_text() == "second"
    assert (tmp_path / "other/manifest").read_text() == "first"
    assert not directory._exchange(tmp_path / "one", tmp_path / "nowhere")


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / "codeanatomy-run-killed/whole").mkdir(parents=True)
    fill(tmp_path / "out", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_earlier_directory(tmp_path):
    fill(tmp_path / "out", "first")
    with pytest.raises(RuntimeError), replace_directory(str(tmp_path / "out"), "manifest") as place:
        (place / "manifest").write_text("half")
        raise RuntimeError
    assert (tmp_path / "out/manifest").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
