"""A real engine process for the tests of this directory, and commands that use it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeanatomy.service.client import Question, UnavailableError, ask
from codeanatomy.service.place import engine_place

SECONDS = 180


class Home:
    """A place for an engine, apart from that of the user, and commands that look for it there."""

    def __init__(self, runtime: Path) -> None:
        runtime.mkdir(mode=0o700, exist_ok=True)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "CODEANATOMY_ENGINE": "auto"}
        self.environment["CODEANATOMY_REHEARSALS"] = "0"

    def start(self, *arguments, **variables) -> subprocess.Popen[str]:
        """A command that is under way."""
        return subprocess.Popen(
            [sys.executable, "-m", "codeanatomy.cli.main", *map(str, arguments)],
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments, **variables) -> tuple[int, str, str]:
        """The exit code of a command and what it printed."""
        command = self.start(*arguments, **variables)
        out, err = command.communicate(timeout=SECONDS)
        return command.returncode, out, err

    @property
    def place(self):
        """Where the engine is."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", self.environment["XDG_RUNTIME_DIR"])
            return engine_place()

    def ask(self, verb, **arguments):
        """What the engine answers, or None if there is none."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", self.environment["XDG_RUNTIME_DIR"])
            try:
                return ask(Question(verb, arguments, wait=True))
            except UnavailableError:
                return None


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """An engine that runs; a test that ends it asks for `own_engine`."""
    home = Home(tmp_path_factory.mktemp("engine") / "run")
    code, _, err = home.run("engine", "start")
    assert code == 0, err
    yield home
    home.run("engine", "stop")


@pytest.fixture
def own_home(tmp_path):
    """A place without an engine."""
    home = Home(tmp_path / "run")
    yield home
    home.run("engine", "stop")
