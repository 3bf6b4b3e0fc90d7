"""The engine gives the answers that a command gives without it, and gets in nobody's way."""

import contextlib
import json
import os
import pty
import shutil
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from codeanatomy.cli.main import main
from codeanatomy.errors import MachineError
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from codeanatomy.service import client, place, runner
from codeanatomy.service.protocol import MAX_REQUEST_BYTES, Channel
from codeanatomy.service.runner import Runner
from codeanatomy.store.builds import current_build
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import open_state
from tests.repositories import write_repository


def edit(repo: Path, text: str = "def more():\n    return price_of('tea')\n") -> None:
    with (repo / "shop/prices.py").open("a") as file:
        file.write(text)


def last_build(repo: Path) -> str:
    return current_build(open_state(locate_state(repo, None, {}))).build_id


def connection(engine) -> Channel:
    """A connection that was greeted."""
    channel = Channel(engine.place.connect(10))
    assert channel.receive()["pid"] == engine.ask("engine_status")["pid"]
    return channel


def build_arguments(repo: Path, **changes) -> dict:
    return runner._of_build(BuildRequest(repo, **changes))


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def is_building(engine):
    return [each for each in engine.ask("engine_status")["under_way"] if each.startswith("build")]


def without_times(text):
    return {
        name: value for name, value in json.loads(text).items() if name not in ("seconds", "stages", "peak_memory_mb")
    }


def test_an_update_through_the_engine_equals_one_from_scratch(engine, built, spark):
    served = engine.ask("engine_status")["requests"]
    edit(built)
    code, out, err = engine.run("build", built, "--json", CODEANATOMY_ENGINE="require")
    assert code == 0, err
    assert json.loads(out)["mode"] == "incremental"
    assert engine.ask("engine_status")["requests"] >= served + 1
    assert str(built / ".codeanatomy") in engine.ask("engine_status")["states"]
    assert verify(BuildRequest(built), spark=spark).equal


ODD_VALUES = (
    "SELECT 1.50::DECIMAL(9,2) AS d, 'nan'::DOUBLE AS f, 1e300 AS g, NULL AS n, true AS b, DATE '2020-01-02' AS t, "
    "[1.5, NULL] AS l, {'a': 'x'} AS s, 'a\nb,\"c\"' AS q, 12345678901234567890 AS h UNION ALL BY NAME SELECT 2.25 AS d"
)


@pytest.mark.parametrize(
    "command",
    [
        ("plan",),
        ("status", "--check"),
        ("builds",),
        ("callers", "price_of"),
        ("definition", "Cart"),
        ("why", "shop/cart.py"),
        ("callers", "no_such_name"),
        ("sql", ODD_VALUES),
        ("sql", ODD_VALUES, "--csv"),
        ("sql", "SELECT * FROM cpg_nodes ORDER BY ALL"),
        ("sql", "SELECT nonsense FROM cpg_nodes"),
        ("sql", "SELECT count(*) FROM range(1000000000) a, range(1000000000) b", "--timeout", "0.1"),
        ("sql", "SELECT CASE WHEN i = 9000 THEN error('late') ELSE 'x' END FROM range(20000) t(i)"),
    ],
    ids=lambda command: " ".join(command)[:40],
)
@pytest.mark.parametrize("form", ["--json", "--verbose"])
def test_a_command_prints_the_same_with_and_without_the_engine(engine, built, command, form, monkeypatch, capfd):
    edit(built)
    monkeypatch.setenv("XDG_RUNTIME_DIR", engine.environment["XDG_RUNTIME_DIR"])
    printed = []
    for mode in ("require", "off"):
        monkeypatch.setenv("CODEANATOMY_ENGINE", mode)
        printed.append((main([*command, str(built), form]), *capfd.readouterr()))
    assert printed[0] == printed[1]


def test_a_build_prints_the_same_with_and_without_the_engine(engine, built):
    printed = [engine.run("build", built, "--json", CODEANATOMY_ENGINE=mode) for mode in ("require", "off")]
    assert [code for code, *_ in printed] == [0, 0]
    assert without_times(printed[0][1]) == without_times(printed[1][1])


def test_a_query_whose_client_is_gone_ends(engine, built):
    query = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    command = engine.start("sql", query, built, CODEANATOMY_ENGINE="require")
    wait_until(lambda: any(each.startswith("sql") for each in engine.ask("engine_status")["under_way"]))
    command.kill()
    command.communicate()
    wait_until(lambda: not engine.ask("engine_status")["under_way"])


def test_relative_paths_and_variables_are_those_of_the_client(engine, built, monkeypatch):
    (built / ".codeanatomy").rename(built / "other")
    monkeypatch.chdir(built)
    variables = {"CODEANATOMY_STATE": "other", "CODEANATOMY_ENGINE": "require"}
    code, out, err = engine.run("status", "--json", **variables)
    assert (code, json.loads(out).get("fresh")) == (0, True), err
    assert engine.run("status", "nowhere") == (2, "", engine.run("status", "nowhere", CODEANATOMY_ENGINE="off")[2])


def test_two_clients_at_once_on_one_state_and_on_another(engine, built, tmp_path, spark):
    other = write_repository(tmp_path / "other")
    shutil.copytree(built / ".codeanatomy", other / ".codeanatomy")
    for repo in (built, other):
        edit(repo)
    clients = [engine.start("build", repo, "--json", CODEANATOMY_ENGINE="require") for repo in (built, built, other)]
    results = [(each.communicate(timeout=180), each.returncode) for each in clients]
    assert [code for _, code in results] == [0, 0, 0], results
    modes = sorted(json.loads(out)["mode"] for (out, _), _ in results)
    assert modes == ["incremental", "incremental", "noop"]
    assert verify(BuildRequest(built), spark=spark).equal


def test_ctrl_c_cancels_the_build_and_leaves_the_state(engine, built):
    before = last_build(built)
    edit(built)
    command = engine.start("build", built, "--full", CODEANATOMY_ENGINE="require")
    wait_until(lambda: is_building(engine))
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err) == (130, "", "codeanatomy: interrupted: the last build is unchanged\n")
    assert not is_building(engine)
    assert last_build(built) == before
    code, out, err = engine.run("build", built, "--json", CODEANATOMY_ENGINE="require")
    assert (code, json.loads(out)["mode"]) == (0, "incremental"), err


def test_a_client_that_vanishes_cancels_its_build_and_no_other(engine, built, tmp_path):
    other = write_repository(tmp_path / "other")
    shutil.copytree(built / ".codeanatomy", other / ".codeanatomy")
    edit(other)
    before = last_build(built)
    gone = engine.start("build", built, "--full", CODEANATOMY_ENGINE="require")
    wait_until(lambda: is_building(engine))
    stays = engine.start("build", other, "--json", CODEANATOMY_ENGINE="require")
    wait_until(lambda: len(is_building(engine)) == 2)
    gone.kill()
    gone.communicate()
    out, err = stays.communicate(timeout=180)
    assert (stays.returncode, json.loads(out)["mode"]) == (0, "incremental"), err
    assert last_build(built) == before


def test_other_settings_are_built_without_the_engine(engine, built):
    code, _, err = engine.run("build", built, "--conf", "spark.ui.enabled=true")
    assert code == 0
    assert err.startswith("note: the engine runs with another profile, master or configuration: going on without")
    code, _, err = engine.run("build", built, "--profile", "memory_tight", CODEANATOMY_ENGINE="require")
    assert (code, "is required" in err) == (3, True)


@pytest.mark.parametrize(
    "request_line",
    [
        b"no json\n",
        b"[1, 2]\n",
        b"[" * 100_000 + b"\n",
        b'{"verb": "build", "arguments": 5}\n',
        b'{"verb": "build", "arguments": {"repo": "."}}\n',
        b'{"verb": "callers", "arguments": {}}\n',
        b"\xff\xfe\n",
        b"x" * (MAX_REQUEST_BYTES + 1),
    ],
    ids=lambda line: repr(line[:30]),
)
def test_a_bad_request_is_answered_with_an_error(engine, request_line):
    channel = connection(engine)
    channel._connection.sendall(request_line)
    answer = channel.receive()
    assert answer["error"]["exit_code"] == 2
    assert answer["error"]["error"].startswith("bad request")
    assert channel.receive() is None
    channel.close()


def test_a_client_of_another_version_goes_on_without_the_engine(engine, built, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", engine.environment["XDG_RUNTIME_DIR"])
    monkeypatch.setattr(client, "code_version", lambda: "9.9 1 1")
    with pytest.raises(client.NotRunningError, match="another version"):
        client.ask(client.Question("engine_status", wait=True))
    assert Runner("auto").status(BuildRequest(built))["fresh"]


def test_a_directory_that_is_open_to_others_is_refused(engine, built):
    directory = engine.place.directory
    directory.chmod(0o755)
    try:
        code, out, err = engine.run("status", built, "--json")
        assert (code, json.loads(out)["fresh"]) == (0, True)
        assert err == (
            f"note: the directory of the engine, {directory}, is open to others: chmod 700 {directory}: "
            "going on without the engine\n"
        )
        assert engine.run("engine", "start")[0] == 3
    finally:
        directory.chmod(0o700)


def test_another_user_is_refused(engine, monkeypatch):
    monkeypatch.setattr(place.os, "getuid", lambda: os.geteuid() + 1)
    pair = socket.socketpair()
    with pytest.raises(MachineError, match="belongs to user"):
        place.check_peer(pair[0])
    for each in pair:
        each.close()


def test_two_starts_make_one_engine(engine):
    before = engine.ask("engine_status")["pid"]
    code, out, _ = engine.run("engine", "start", "--json")
    assert (code, json.loads(out)["pid"]) == (0, before)


def test_status_tells_what_runs(engine, built):
    found = json.loads(engine.run("engine", "status", "--json")[1])
    assert found["running"] and found["ready"] and found["memory_mb"] > 100
    assert Path(found["log"]).is_file()
    check = next(each for each in json.loads(engine.run("doctor", built, "--json")[1]) if each["name"] == "engine")
    assert (check["status"], f"pid {found['pid']}" in check["detail"], found["log"] in check["detail"]) == (
        "ok",
        True,
        True,
    )


def test_credentials_are_not_logged(engine, built):
    secret = "hunter2-is-secret"
    engine.run("status", built, "--storage-option", f"key={secret}", CODEANATOMY_ENGINE="require")
    engine.run("build", built, "--storage-option", f"key={secret}", "--conf", f"spark.x.key={secret}")
    log = engine.place.log.read_text()
    assert str(built) in log
    assert secret not in log


def at_a_terminal(home, *arguments, **variables):
    """Run a command whose stdin, stdout and stderr are a terminal; its exit code."""
    process, terminal = pty.fork()
    if process == 0:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "codeanatomy.cli.main", *map(str, arguments)],
            {**home.environment, **variables},
        )
    with contextlib.suppress(OSError):  # the terminal is gone when the command has ended
        while os.read(terminal, 4096):
            pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def test_a_person_gets_an_engine_for_the_next_command_and_automation_does_not(own_home, built):
    no_ci = dict.fromkeys(runner._CI, "")
    assert own_home.run("build", built, **no_ci)[0] == 0
    assert at_a_terminal(own_home, "build", built, **{**no_ci, "CI": "true"}) == 0
    assert at_a_terminal(own_home, "build", built, **no_ci, CODEANATOMY_ENGINE="off") == 0
    assert at_a_terminal(own_home, "status", built, **no_ci) == 0
    assert not own_home.place.directory.exists()
    assert at_a_terminal(own_home, "build", built, **no_ci) == 0
    wait_until(own_home.place.is_held)
    assert own_home.run("engine", "stop") == (0, "", "no engine runs\n")


def test_a_killed_engine_is_replaced_and_its_command_goes_on(own_home, built, spark):
    code, out, err = own_home.run("engine", "start", "--json")
    assert code == 0, err
    pid = json.loads(out)["pid"]
    edit(built)
    command = own_home.start("build", built, "--json")
    wait_until(lambda: is_building(own_home))
    os.kill(pid, signal.SIGKILL)
    out, err = command.communicate(timeout=180)
    assert (command.returncode, json.loads(out)["mode"]) == (0, "incremental"), err
    first, *others = err.splitlines()
    assert first.startswith(f"note: the engine (pid {pid}) failed: ")
    assert not any("engine" in line for line in others)
    assert verify(BuildRequest(built), spark=spark).equal
    assert (own_home.place.directory / own_home.place.socket_name).exists()  # left by the dead engine
    assert own_home.run("status", built)[0] == 0
    code, out, err = own_home.run("engine", "start", "--json", "--idle-minutes", "0.05")
    assert code == 0, err
    assert json.loads(out)["pid"] != pid
    wait_until(lambda: not own_home.place.is_held())  # it was idle
    assert own_home.run("engine", "status") == (0, "", "no engine runs\n")
    assert not (own_home.place.directory / own_home.place.socket_name).exists()
