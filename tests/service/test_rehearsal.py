"""What an engine does before it is asked for anything: updates of a sample, of which nothing is left."""

import tempfile

import pytest

from codeanatomy.pipeline.progress import PUBLISH, Silent
from codeanatomy.service.rehearsal import rehearse


class Heard(Silent):
    """Counts the builds that are published, and ends a rehearsal before one too many."""

    def __init__(self, most):
        self.published = 0
        self._most = most

    def stage(self, name):
        if name == PUBLISH:
            if self.published == self._most:
                raise InterruptedError
            self.published += 1


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_sample_is_built_and_updated_and_nothing_is_left(warm, temporary):
    known, heard = warm.states(), Heard(10)
    rehearse(warm, 1, heard)
    assert heard.published == 2
    assert warm.states() == known
    assert not list(temporary.iterdir())


def test_whoever_listens_can_end_it(warm, temporary):
    known = warm.states()
    with pytest.raises(InterruptedError):
        rehearse(warm, 5, Heard(1))
    assert warm.states() == known
    assert not list(temporary.iterdir())
