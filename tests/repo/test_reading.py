"""Files that somebody else made are opened without waiting for anybody, and read up to a limit."""

import os

import pytest

from codeanatomy.errors import InputError
from codeanatomy.impact.propagation import SourceWords
from codeanatomy.index.choice import choose_provider
from codeanatomy.index.scip import open_index
from codeanatomy.repo.reading import read_named, read_optional


@pytest.fixture(params=["fifo", "device", "directory", "missing"])
def no_file(request, tmp_path):
    place = tmp_path / "place.py"
    if request.param == "fifo":
        os.mkfifo(place)
    elif request.param == "device":
        place.symlink_to("/dev/zero")
    elif request.param == "directory":
        place.mkdir()
    return place


def test_what_is_no_regular_file_is_not_read(no_file):
    with pytest.raises(OSError, match="Errno") as caught:
        read_named(no_file, 10)
    assert caught.value.strerror
    assert read_optional(no_file, 10) is None


def test_a_file_that_the_user_names_may_be_a_link_and_has_a_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_named(tmp_path / "link", 10) == b"0123456789"
    assert read_optional(tmp_path / "link", 10) is None
    with pytest.raises(OSError, match="Larger than 9 bytes"):
        read_named(tmp_path / "link", 9)


def test_an_index_that_is_no_regular_file_is_refused(no_file):
    with pytest.raises(InputError, match="cannot read --scip"):
        choose_provider("scip", str(no_file), no_file.parent)
    with pytest.raises(InputError, match="is not a SCIP index"):
        open_index(no_file)


def test_a_file_that_was_swapped_for_something_else_counts_as_unread(no_file):
    assert SourceWords(no_file.parent).has_one_of(no_file.name, frozenset({"anything"}))
