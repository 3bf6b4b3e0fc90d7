"""Commands as a user runs them: with an engine process, apart from that of the user, or without one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

PROGRAM = (sys.executable, "-m", "codeanatomy.cli.main")
NO_ENGINE: Mapping[str, str] = {**os.environ, "CODEANATOMY_ENGINE": "off"}


def run(*words: object, environment: Mapping[str, str] = NO_ENGINE) -> Any:
    """What a command prints with `--json`."""
    command = [*PROGRAM, *map(str, words), "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)


@contextmanager
def engine() -> Iterator[Mapping[str, str]]:
    """An engine process that is ready, and the environment in which commands use it and nothing else."""
    with tempfile.TemporaryDirectory(prefix="engine-") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "CODEANATOMY_ENGINE": "require"}
        run("engine", "start", environment=environment)
        try:
            while run("engine", "status", environment=environment)["rehearsing"]:
                time.sleep(1)
            yield environment
        finally:
            run("engine", "stop", environment=environment)


@contextmanager
def watching(*words: object, index: object, environment: Mapping[str, str]) -> Iterator[Callable[[], None]]:
    """A `watch` of a repository, and a function that waits until the graph is that of the tree."""
    process = subprocess.Popen(
        [*PROGRAM, "watch", *map(str, (*words, "--index", index)), "--json"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )

    def is_fresh() -> bool:
        status = [*PROGRAM, "status", *map(str, words), "--check", "--quiet"]  # fails before the first build, too
        return subprocess.run(status, check=False, capture_output=True, env=environment).returncode == 0

    def wait() -> None:
        while not is_fresh():
            line = process.stdout.readline() if process.stdout else ""
            if not line or json.loads(line)["error"]:
                raise RuntimeError(f"watch failed: {line}")

    try:
        yield wait
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
