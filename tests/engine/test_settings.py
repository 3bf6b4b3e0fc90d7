"""The fingerprint promises equal rows: it must see what alters them and be blind to the machine."""

from __future__ import annotations

import dataclasses

import pytest

from codeanatomy.engine.profiles import MEMORY_TIGHT, PROD_FAST, PROFILES, profile_named, shuffle_partitions_for
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError

BASE = EngineSettings()


@pytest.mark.parametrize(
    "other",
    [
        EngineSettings(master="local[1]"),
        EngineSettings(master="spark://cluster:7077"),
        EngineSettings(remote="sc://server"),
        EngineSettings(profile=MEMORY_TIGHT),
        EngineSettings(shuffle_partitions=99),
        EngineSettings(short_run=True),
        EngineSettings(archive=False),
        EngineSettings(preload=("json",)),
        EngineSettings(conf={"spark.driver.memory": "7g", "spark.hadoop.fs.s3a.secret.key": "secret"}),
        EngineSettings(conf={"spark.sql.shuffle.partitions": "3", "spark.sql.adaptive.enabled": "false"}),
    ],
)
def test_what_cannot_alter_rows_is_not_in_the_fingerprint(other: EngineSettings) -> None:
    assert other.fingerprint() == BASE.fingerprint()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Europe/Paris"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.caseSensitive", "false"),
        ("spark.sql.some.option.nobody.classified", "x"),
    ],
)
def test_what_can_alter_rows_is(key: str, value: str) -> None:
    assert EngineSettings(conf={key: value}).fingerprint() != BASE.fingerprint()


def test_another_spark_is_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = BASE.fingerprint()
    monkeypatch.setattr("codeanatomy.engine.settings.version", lambda package: "9.9.9")
    assert BASE.fingerprint() != before


def test_the_users_own_options_win() -> None:
    settings = EngineSettings(conf={"spark.sql.session.timeZone": "Europe/Paris"})
    assert settings.sql_conf()["spark.sql.session.timeZone"] == "Europe/Paris"
    assert BASE.sql_conf()["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize(
    ("master", "remote", "local"),
    [(None, None, True), ("local[4]", None, True), ("local-cluster[1,1,1024]", None, False), (None, "sc://s", False)],
)
def test_local_means_a_single_jvm_of_our_own(master: str | None, remote: str | None, local: bool) -> None:
    assert EngineSettings(master=master, remote=remote).is_local is local


def test_a_heap_follows_the_machine_up_to_the_profile() -> None:
    assert PROD_FAST.heap_for(64_000) == PROD_FAST.heap_mb
    assert PROD_FAST.heap_for(4_000) == 1_600
    assert MEMORY_TIGHT.heap_for(64_000) == 1_024


def test_the_whole_tree_of_the_largest_profile_fits_in_six_gigabytes() -> None:
    worker_mb, jvm_beside_heap_mb, driver_mb = 250, 700, 600
    for profile in PROFILES.values():
        assert profile.heap_mb + jvm_beside_heap_mb + driver_mb + profile.max_threads * worker_mb <= 6_000


def test_an_unknown_profile_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="memory_tight"):
        profile_named("turbo")
    assert profile_named("prod_fast") is PROD_FAST


def test_partitions_follow_the_data() -> None:
    assert shuffle_partitions_for(0) == 1
    assert shuffle_partitions_for(1) == 1
    assert shuffle_partitions_for(100 * 1024 * 1024) == 4
    assert shuffle_partitions_for(10**15) == 256


def test_settings_are_values() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        BASE.master = "local"  # type: ignore[misc]
