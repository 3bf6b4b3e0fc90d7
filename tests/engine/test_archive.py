"""The class-data archive is made once, used when it fits, and never breaks a session."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import codeanatomy
from codeanatomy.engine import archive as archive_module
from codeanatomy.engine.archive import (
    ARCHIVES_KEPT,
    archive_options,
    archive_path,
    failure_mark,
    publish_archive,
    train_in_background,
)
from codeanatomy.engine.java import JavaRuntime

JAVA = JavaRuntime(Path("/jdk/bin/java"), "17.0.1")

PROGRAM = """
import pathlib, sys
from codeanatomy.engine.memory import descendants
from codeanatomy.engine.session import open_engine
from codeanatomy.engine.settings import EngineSettings
import os
with open_engine(EngineSettings(short_run=True)) as spark:
    rows = spark.range(10).count()
    jvm = descendants(os.getpid())[0]
    print(rows, ".jsa" in "".join(l for l in open(f"/proc/{jvm}/maps") if "codeanatomy/archives" in l))
"""


def test_the_name_follows_java_and_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "jars/spark.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"one")
    monkeypatch.setattr(archive_module, "SPARK_HOME", tmp_path)
    first = archive_path(JAVA, tmp_path)
    assert archive_path(JAVA, tmp_path) == first
    assert archive_path(JavaRuntime(JAVA.path, "17.0.2"), tmp_path) != first
    jar.write_bytes(b"another")
    assert archive_path(JAVA, tmp_path) != first


def publish(directory: Path, name: str) -> Path:
    made, archive = directory / "made.new", directory / f"{name}.jsa"
    made.write_bytes(b"archive")
    publish_archive(made, archive)
    return archive


def test_only_a_whole_archive_is_used(tmp_path: Path) -> None:
    assert archive_options(tmp_path / "x.jsa") == []
    archive = publish(tmp_path, "x")
    assert f"-XX:SharedArchiveFile={archive}" in archive_options(archive)
    archive.write_bytes(b"arch")
    assert archive_options(archive) == []


def test_the_archives_used_last_are_kept(tmp_path: Path) -> None:
    for age in range(ARCHIVES_KEPT):
        os.utime(publish(tmp_path, str(age)), (1000 - age, 1000 - age))
    publish(tmp_path, "new")
    kept = ["new", *map(str, range(ARCHIVES_KEPT - 1))]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{n}.{e}" for n in kept for e in ("jsa", "size"))


def test_training_starts_only_when_it_can_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(archive_module.subprocess, "run", lambda command, **_: started.append(command))
    archive = tmp_path / "archives/x.jsa"
    archive.parent.mkdir()
    train_in_background(archive)
    assert len(started) == 1
    failure_mark(archive).touch()
    train_in_background(archive)
    failure_mark(archive).unlink()
    publish(archive.parent, "x")
    train_in_background(archive)
    assert len(started) == 1


def test_an_installation_can_have_it_made_at_once(tmp_path: Path) -> None:
    told = tmp_path / "told"
    instead = tmp_path / "bin" / "nice"  # which would run the training for a minute
    instead.parent.mkdir()
    instead.write_text(f'#!/bin/sh\necho "$@" > {told}.new && mv {told}.new {told}\n')
    instead.chmod(0o755)
    source = str(Path(codeanatomy.__file__).parents[1])
    path = f"{instead.parent}:{os.environ['PATH']}"
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": source, "PATH": path}
    subprocess.run([sys.executable, "-m", "codeanatomy.engine.archive"], env=environ, check=True)
    deadline = time.monotonic() + 60
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert told.read_text().split()[-2:] == ["-m", "codeanatomy.engine.training"]


@pytest.mark.slow
def test_made_after_the_first_session_used_by_the_second_and_harmless_when_broken(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(Path(codeanatomy.__file__).parents[1])}

    def session() -> str:
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout

    assert session() == "10 False\n"
    deadline = time.monotonic() + 600
    while not (archives := list(tmp_path.glob("codeanatomy/archives/*.jsa"))) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert session() == "10 True\n"
    assert list(tmp_path.glob("codeanatomy/archives/*.new")) == []
    whole = archives[0].read_bytes()
    archives[0].chmod(0o644)
    failure_mark(archives[0]).touch()  # or each session below would start to make it again
    for broken in (whole[: len(whole) // 2], b"", b"not an archive" * 1000):
        archives[0].write_bytes(broken)
        assert session().startswith("10 ")
