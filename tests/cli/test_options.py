"""Arguments and options: where they come from, which wins, and how the wrong ones are refused."""

import json
import os

import pytest

from codeanatomy.cli.main import main, parser
from codeanatomy.cli.options import with_defaults


def parsed(*arguments):
    return with_defaults(parser(), arguments)


@pytest.fixture
def fails(capsys):
    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        return code, captured.out, captured.err

    return run


@pytest.fixture
def config(tmp_path):
    def write(text):
        (tmp_path / "mine.toml").write_text(text)
        return str(tmp_path / "mine.toml")

    return write


@pytest.mark.parametrize(
    ("option", "by_default", "other"),
    [
        ("profile", "prod_fast", "memory_tight"),
        ("strategy", "hybrid", "import_closure"),
        ("max_file_mb", 10, 20),
        ("repo_id", "", "mine"),
        ("conf", [], ["a=b"]),
    ],
)
def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    monkeypatch, config, option, by_default, other
):
    flag = f"--{option.replace('_', '-')}"
    words = by_default if isinstance(by_default, list) else [str(by_default)]
    assert getattr(parsed("build"), option) == by_default
    file = config(f"{option} = {json.dumps(other)}")
    assert getattr(parsed("build", "--config", file), option) == other
    if words:
        monkeypatch.setenv(f"CODEANATOMY_{option.upper()}", words[0])
        assert getattr(parsed("build", "--config", file), option) == by_default
    monkeypatch.setenv(f"CODEANATOMY_{option.upper()}", other[0] if isinstance(other, list) else str(other))
    assert getattr(parsed("build"), option) == other
    if words:
        assert getattr(parsed("build", flag, *words), option) == by_default
        assert getattr(parsed("build", f"{flag}={words[0]}", "--config", file), option) == by_default


def test_a_default_of_one_command_is_not_that_of_another(monkeypatch):
    monkeypatch.setenv("CODEANATOMY_TIMEOUT", "7")
    assert parsed("sql", "SELECT 1").timeout == 7
    assert parsed("sql", "SELECT 1", "--timeout", "300").timeout == 300
    assert not hasattr(parsed("build"), "timeout")


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "SELECT 1", "there", "--state", "place", "--json"],
        ["sql", "SELECT 1", "--state", "place", "there", "--json"],
        ["sql", "--state", "place", "SELECT 1", "--json", "there"],
        ["sql", "--json", "--state", "place", "SELECT 1", "there"],
        ["sql", "SELECT 1", "--state=place", "--js", "there"],
        ["sql", "--json", "--state", "place", "--", "SELECT 1", "there"],
        ["sql", "SELECT 1", "--json", "--state", "place", "--", "there"],
    ],
)
def test_options_may_come_anywhere(arguments):
    found = parsed(*arguments)
    assert (found.query, found.repo, found.state, found.json) == ("SELECT 1", "there", "place", True)


def test_a_query_may_look_like_an_option():
    assert parsed("sql", "-- a comment\nSELECT 1", "--json").query == "-- a comment\nSELECT 1"
    assert parsed("sql", "--", "--SELECT").query == "--SELECT"
    assert parsed("callers", "--", "-x", "there").name == "-x"


def test_builds_and_repository_of_diff_may_be_left_out():
    assert (parsed("diff").a, parsed("diff").b, parsed("diff").repo) == (None, None, ".")
    found = parsed("diff", "20260301", "--json", "20260302", "--state", "s", "there")
    assert (found.a, found.b, found.repo) == ("20260301", "20260302", "there")


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "--max-file-mb", "-1"],
        ["build", "--max-file-mb", "0"],
        ["build", "--max-file-mb=1.5"],
        ["status", "--max-file-mb", "many"],
        ["plan", "--max-impact-depth", "-1"],
        ["verify", "--max-file-mb", "nan"],
        ["gc", "--keep", "0"],
        ["gc", "--keep", "-5"],
        ["gc", "--days", "nan"],
        ["gc", "--days", "inf"],
        ["gc", "--days", "-1"],
        ["gc", "--days", "1e300"],
        ["sql", "SELECT 1", "--timeout", "-1"],
        ["sql", "SELECT 1", "--timeout", "nan"],
        ["sql", "SELECT 1", "--max-memory-mb", "0"],
    ],
)
def test_a_number_that_makes_no_sense_is_refused(fails, arguments):
    code, out, err = fails(*arguments)
    assert (code, out) == (2, "")
    assert arguments[-1].partition("=")[2] or arguments[-1] in err


@pytest.mark.parametrize(("name", "value"), [("MAX_FILE_MB", "-1"), ("PROFILE", "none"), ("MAX_IMPACT_DEPTH", "x")])
def test_a_variable_that_makes_no_sense_is_refused(fails, monkeypatch, name, value):
    monkeypatch.setenv(f"CODEANATOMY_{name}", value)
    code, _, err = fails("build")
    assert code == 2
    assert f"CODEANATOMY_{name}" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["sql"],
        ["sql", "SELECT 1", "here", "there"],
        ["build", "--bogus"],
        ["build", "--profile", "bogus"],
        ["build", "--state"],
        ["changes"],
        ["gc", "--days", "nan"],
        ["build", "/no/such/place"],
        ["status", "--config", "/no/such.toml"],
        ["doctor", "/no/such/place"],
    ],
)
def test_every_error_is_one_line_and_an_object_if_json_is_asked_for(fails, arguments):
    code, out, err = fails(*arguments)
    assert (code, out) == (2, "")
    code, out, told = fails(*arguments, "--json")
    error = json.loads(out)
    assert error.keys() == {"error", "hint", "exit_code"}
    assert (code, error["exit_code"]) == (2, 2)
    assert told == f"codeanatomy: {error['error']}" + (f": {error['hint']}\n" if error["hint"] else "\n")
    if arguments != ["build", "--state"]:  # there, the option takes what follows
        assert told == err


@pytest.mark.parametrize("arguments", [("callees", "f", "--max", "1", "."), ("callees", "f", "--max=1", ".")])
def test_an_option_that_there_is_not_is_named_without_what_follows(fails, arguments):
    assert fails(*arguments)[2] == "codeanatomy: callees: unrecognized option --max: see codeanatomy callees --help\n"


def test_json_can_be_asked_for_in_the_environment(fails, monkeypatch):
    monkeypatch.setenv("CODEANATOMY_JSON", "1")
    assert json.loads(fails("sql")[1])["exit_code"] == 2


def test_what_follows_two_dashes_does_not_ask_for_json(fails):
    assert fails("sql", "--", "--json", "a", "b")[1] == ""


def test_an_unexpected_error_is_one_line_too(fails, monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("first line \x1b[31m\nsecond line")

    monkeypatch.setattr("codeanatomy.store.location.locate_state", broken)
    code, out, err = fails("builds", "--json")
    assert (code, json.loads(out)["exit_code"]) == (3, 3)
    assert "failed: first line \\x1b[31m: " in err


@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "huge", "nested"])
def test_a_file_of_options_that_is_no_small_file_is_refused(fails, tmp_path, kind):
    place = tmp_path / "mine.toml"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "directory":
        place.mkdir()
    elif kind == "huge":
        with place.open("wb") as file:
            file.truncate(1 << 40)
    else:
        place.write_text("a = " + "[" * 100_000)
    code, _, err = fails("status", "--config", str(place))
    assert code == 2
    assert "--config" in err


def test_a_file_of_options_may_be_a_link(tmp_path, config):
    (tmp_path / "link.toml").symlink_to(config("profile = 'dev_debug'"))
    assert parsed("build", "--config", str(tmp_path / "link.toml")).profile == "dev_debug"


def test_help_is_for_every_command(capsys):
    for command in ("build", "sql", "doctor"):
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        assert caught.value.code == 0
        assert "example: codeanatomy" in capsys.readouterr().out
