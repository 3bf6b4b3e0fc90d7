"""Builds are published whole, one on top of the other."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from codeanatomy.errors import InputError, StateError
from codeanatomy.store import (
    ROLLBACK,
    SetDigest,
    State,
    TablePin,
    find_build,
    latest_build,
    list_builds,
    new_build_id,
    publish,
    rollback_build,
)

from .samples import build_of, python, state_at


@pytest.fixture
def state(tmp_path: Path) -> State:
    return state_at(tmp_path)


def test_a_build_comes_back_as_published(state: State) -> None:
    pin = TablePin(3, {0: SetDigest(2, "0f" * 16), 12: SetDigest(1, "a0" * 16)})
    first = build_of(1, None, {"things": pin}, git_commit="abc")
    second = build_of(2, first)
    publish(state, first)
    publish(state, second)

    assert list_builds(state) == [first, second]
    assert latest_build(state) == second


def test_the_latest_is_the_last_published_whatever_the_clock_says(state: State) -> None:
    first = build_of(9, None)
    second = build_of(1, first)
    publish(state, first)
    publish(state, second)
    assert latest_build(state) == second


def test_a_build_on_an_old_parent_is_refused(state: State) -> None:
    first = build_of(1, None)
    publish(state, first)
    publish(state, build_of(2, first))
    for late in (build_of(3, first), build_of(4, None)):
        with pytest.raises(StateError, match="latest build is"):
            publish(state, late)
    assert len(list_builds(state)) == 2


def test_find_by_prefix(state: State) -> None:
    first = build_of(1, None)
    second = build_of(2, first)
    publish(state, first)
    publish(state, second)

    assert find_build(state, second.build_id[:-1]) == second
    with pytest.raises(InputError, match="could be any of"):
        find_build(state, "2026")
    with pytest.raises(InputError, match="no build zzz"):
        find_build(state, "zzz")


def test_find_by_commit(state: State) -> None:
    first = build_of(1, None, git_commit="c0ffee1" + "0" * 33)
    second = build_of(2, first, git_commit="beef" + "0" * 36)
    third = build_of(3, second, git_commit=first.git_commit)
    for build in (first, second, third):
        publish(state, build)

    assert find_build(state, "beef000") == second
    assert find_build(state, "C0FFEE1") == third
    with pytest.raises(InputError, match="no build beef:"):
        find_build(state, "beef")


def test_rollback_repeats_the_pins(state: State) -> None:
    first = build_of(1, None, {"things": TablePin(0, {})})
    second = build_of(2, first, {"things": TablePin(1, {})})
    back = rollback_build(first, second, datetime(2026, 2, 1, tzinfo=UTC))
    for build in (first, second, back):
        publish(state, build)

    latest = latest_build(state)
    assert latest is not None
    assert (latest.mode, latest.rolled_back_to, latest.tables) == (ROLLBACK, first.build_id, first.tables)


def test_ids_sort_by_time_and_do_not_repeat() -> None:
    moment = datetime(2026, 11, 15, 10, 15, 2, tzinfo=UTC)
    ids = {new_build_id(moment) for _ in range(50)}
    assert len(ids) == 50
    assert all(build_id.startswith("20261115T101502-") for build_id in ids)
    assert max(ids) < new_build_id(moment.replace(second=3))


def test_two_processes_that_publish_at_once(state: State) -> None:
    """Both read that there is no build yet, and only then commit."""
    one, two = "20260101T000001-000001", "20260101T000002-000002"
    racer = python(
        "import sys",
        "from datetime import UTC, datetime",
        "from codeanatomy.errors import StateError",
        "from codeanatomy.store import *",
        "from codeanatomy.store import builds",
        f"state = open_state(StateLocation.at({state.location.uri!r}))",
        "build = BuildRecord(sys.argv[1], None, datetime.now(UTC), 'full', 's', {})",
        "builds.boundary = lambda name, _: name == 'build.before_publish' and (print('ready', flush=True), input())",
        "try: publish(state, build)",
        "except StateError as error: sys.exit(f'{error.exit_code} {error}')",
    )
    racers = [
        subprocess.Popen(
            [*racer, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in (one, two)
    ]
    for process in racers:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    told = [process.communicate("go\n")[1] for process in racers]

    assert sorted(process.returncode for process in racers) == [0, 1]
    assert [build.build_id for build in list_builds(state)] == [one if racers[0].returncode == 0 else two]
    assert "at the same time: run again" in "".join(told)
