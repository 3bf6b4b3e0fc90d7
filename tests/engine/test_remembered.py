"""Remembered values: made once per key, and made again whenever what is kept cannot be trusted."""

import importlib
import stat

import pytest

from codeanatomy.engine import remembered as memory
from codeanatomy.engine.remembered import key_of, remembered


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "codeanatomy"


@pytest.fixture
def ask(cache):
    """Asks for a value, and says how often it was made."""
    made = []

    def value(key="key"):
        return remembered("values", key, lambda: made.append(key) or {"made": key}, lambda found: found["made"])

    value.made = made
    return value


def test_a_value_is_made_once_for_each_key(ask):
    assert [ask(), ask(), ask("other"), ask()] == ["key", "key", "other", "key"]
    assert ask.made == ["key", "other"]


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 40, bytes(32) + b'{"made": "another"}'])
def test_a_damaged_file_is_not_believed(ask, cache, damage):
    ask()
    (cache / "values" / "key").write_bytes(damage)
    assert ask() == "key"
    assert ask.made == ["key", "key"]
    assert ask() == "key"
    assert len(ask.made) == 2, "it was written again"


def test_a_value_of_another_form_is_made_again(ask, cache):
    remembered("values", "key", lambda: {"of an": "older version"}, lambda found: found)
    assert ask() == "key"


def test_files_are_private_and_old_ones_are_dropped(ask, cache):
    for number in range(memory._KEPT + 3):
        ask(f"key{number}")
    kept = list((cache / "values").iterdir())
    assert len(kept) == memory._KEPT, "no unfinished file either"
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}


def test_a_cache_that_cannot_be_written_costs_time_only(ask, cache):
    cache.mkdir()
    (cache / "values").write_text("a file where the folder would be")
    assert [ask(), ask()] == ["key", "key"]


def test_the_key_is_of_the_files_and_of_the_version(tmp_path, monkeypatch):
    package = tmp_path / "a_package"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    rule = package / "sql" / "rule.sql"
    rule.write_text("SELECT 1")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    before = key_of("a_package", made_by="sqlglot")
    assert key_of("a_package", made_by="sqlglot") == before
    assert key_of("a_package", made_by="pyarrow") != before
    rule.write_text("SELECT 2")
    assert key_of("a_package", made_by="sqlglot") != before
    rule.write_text("SELECT 1")
    monkeypatch.setattr(memory, "__version__", "another")
    assert key_of("a_package", made_by="sqlglot") != before
