"""What a runner asks, the engine can answer; what the engine does not know, a command does without it. No Spark."""

import inspect
import re
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from codeanatomy.api.requests import Repository
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.service import client, runner
from codeanatomy.service.client import Question
from codeanatomy.service.engine import EngineOptions
from codeanatomy.service.place import engine_place
from codeanatomy.service.runner import Runner, SqlQuery
from codeanatomy.service.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text()
LOOKUPS = [{"lookup": name} for name in ("callers", "callees", "refs", "definition")]

ARGUMENTS = {
    "BuildRequest": BuildRequest("."),
    "Repository": Repository("."),
    "SqlQuery": SqlQuery("SELECT 1", "json"),
    "Listener | None": None,
    "str": "a_name",
    "str | None": None,
}
"""A value for each type of an argument of a runner."""


@pytest.fixture
def server(monkeypatch, tmp_path):
    """An engine that was not started."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Server(engine_place(), EngineOptions())


def test_the_engine_has_every_verb_that_a_runner_asks_for(server, monkeypatch):
    asked = []
    monkeypatch.setattr(runner, "ask", lambda question: asked.append(question.verb) or {})
    monkeypatch.setattr(runner, "stream", lambda question: asked.append(question.verb) or iter(()))
    for name, method in vars(Runner).items():
        if inspect.isfunction(method) and name[0] != "_" and name not in Runner.__dataclass_fields__:
            _, *parameters = inspect.signature(method).parameters.values()
            arguments = {each.name: ARGUMENTS[each.annotation] for each in parameters}
            for lookup in LOOKUPS if "lookup" in arguments else ({},):
                getattr(Runner(), name)(**arguments | lookup)
    assert set(asked) <= server._verbs.keys()
    documented = re.findall(r"\w+", re.findall(r"# asks it; so do (.*)", PAGE)[0])
    assert {"build", *documented} - {"watch"} == set(asked) - {"keep"}  # `watch` builds; `keep` is no command


def test_a_command_goes_on_without_an_engine_that_lacks_its_verb(server, monkeypatch, tmp_path):
    def connect(seconds):
        mine, theirs = socket.socketpair()
        mine.settimeout(seconds)
        threading.Thread(target=server._serve, args=(theirs,), daemon=True).start()
        return mine

    monkeypatch.setattr(client, "engine_place", lambda: SimpleNamespace(connect=connect))
    notes = []
    asking = Runner(notify=notes.append)
    assert asking._run(Question("explode", {"repo": str(tmp_path)}), lambda: "done here") == "done here"
    assert notes == ["note: the engine has no verb 'explode': going on without the engine"]
