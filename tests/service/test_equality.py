"""Programs that are edited again and again, built by commands through an engine or by `watch`: as from scratch."""

import json
import os
import shutil
import signal
import time
from contextlib import contextmanager
from itertools import islice
from random import Random

import pytest

from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from tests.incremental.cases import apply_step, lay_out, load_cases
from tests.incremental.cases import together as of_cases
from tests.incremental.generated import untangled
from tests.incremental.test_random_edits import several, together
from tests.incremental.updates import put

CASES_AT_ONCE = 12
"""Few enough that a step of these cases is an update; one of all cases would be a full build."""


@contextmanager
def commands(home, root, index):
    """Builds by a command through the engine."""

    def build():
        code, out, err = home.run("build", root, "--json", CODEANATOMY_INDEX=index)
        assert code == 0, err
        return json.loads(out)["mode"]

    yield build


@contextmanager
def watching(home, root, index):
    """Builds by `watch`, which runs while files are written."""
    process = home.start("watch", root, "--json", CODEANATOMY_INDEX=index)
    builds = []

    def build():
        while not json.loads(home.run("status", root, "--json", CODEANATOMY_INDEX=index)[1])["fresh"]:
            update = json.loads(process.stdout.readline())
            assert update["error"] is None, update
            builds.append(update["mode"])
        return builds[-1] if builds else None

    try:
        yield build
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


def step_cases(root, index):
    """The next steps of a few cases at a time."""
    cases = [case for case in load_cases() if not case.is_alone and (case.is_indexed or index == "none")]
    lay_out(of_cases(cases, 0), root)
    yield
    for number in range(max(len(case.steps) for case in cases)):
        moving = [case for case in cases if number < len(case.steps)]
        for start in range(0, len(moving), CASES_AT_ONCE):
            for case in moving[start : start + CASES_AT_ONCE]:
                apply_step(case.steps[number], root)
            yield


def random_edits(root, index):
    """The next versions of generated programs."""
    for programs in islice(several(11, "hjklmn", dict if index == "none" else untangled), 17):
        put(root, together(programs))
        yield


@pytest.mark.slow
@pytest.mark.parametrize("index", ["none", "pyrefly"])
@pytest.mark.parametrize("edits", [step_cases, random_edits])
@pytest.mark.parametrize("face", [commands, watching])
def test_updates_are_as_from_scratch(face, edits, index, engine, tmp_path, spark):
    root = tmp_path / "repo"
    root.mkdir()
    moments = Random(5)
    steps = edits(root, index)
    next(steps)
    assert engine.run("build", root, CODEANATOMY_INDEX=index)[0] == 0
    modes = []
    with face(engine, root, index) as build:
        for number, _ in enumerate(steps, 1):
            if moments.random() < 0.3:
                time.sleep(moments.uniform(0, 1.0))
                continue  # more is written before, or while, this is built
            modes.append(build())
            if number % 4 == 0:
                assert verify(BuildRequest(root, index=index), spark=spark).equal
        modes.append(build())
    assert verify(BuildRequest(root, index=index), spark=spark).equal
    assert modes.count("incremental") > len(modes) / 2, modes


@pytest.mark.slow
def test_a_full_disk(engine, small_disk, built, spark):
    state = small_disk / "state"
    assert engine.run("build", built, "--state", state, "--json")[0] == 0
    before = json.loads(engine.run("status", built, "--state", state, "--json")[1])["build_id"]
    source = (built / "shop/prices.py").read_text()
    for number, room in enumerate((4, 16, 32, 64)):  # kilobytes
        (built / "shop/prices.py").write_text(f"{source}\n\ndef f{number}():\n    return price_of('tea')\n")
        (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - (room << 10)))
        code, _, err = engine.run("build", built, "--state", state)
        assert (code, len(err.splitlines())) == (3, 1), err
        assert "no space left on" in err
        (small_disk / "filler").unlink()
        assert json.loads(engine.run("status", built, "--state", state, "--json")[1])["build_id"] == before
    assert json.loads(engine.run("build", built, "--state", state, "--json")[1])["mode"] == "incremental"
    assert verify(BuildRequest(built, state=str(state)), spark=spark).equal
