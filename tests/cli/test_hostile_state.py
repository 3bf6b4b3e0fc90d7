"""Commands on a repository that ships a state of its own making: what is outside stays as it is."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.store import builds as builds_module
from codeanatomy.store.builds import latest_build
from codeanatomy.store.delta import NOTHING, open_table
from tests.repositories import write_repository
from tests.store.hostile import everything_in, plant


@pytest.fixture
def outside(tmp_path):
    place = tmp_path / "documents"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    return place


COMMANDS = [
    ("build",),
    ("build", "--full"),
    ("gc", "--keep", "1"),
    ("rollback", "2"),
    ("sql", "SELECT count(*) FROM cpg_nodes"),
    ("callers", "shop.prices.price_of"),
    ("changes", "--cursor", "c", "--ack"),
    ("status",),
    ("builds",),
]


@pytest.mark.parametrize(
    "part",
    [
        "shared",
        "indexing",
        "cursors",
        "tables/cpg_nodes/evil",
        "tables/cpg_nodes/bucket=0",
        "tables/cpg_nodes/_delta_log",
        "tables/builds/_delta_log",
        "tables/facts/_temporary",
        "runs/20260101T000000-abcdef",
    ],
)
def test_links_are_refused_by_every_command(part, built, outside, capsys):
    plant(built / ".codeanatomy" / part, outside)
    write_repository(built, {"empty.py": "x = 1\n"})  # so that a build has something to do
    before = everything_in(outside)
    for command in COMMANDS:
        if command == ("changes", "--cursor", "c", "--ack") and part != "cursors":
            continue  # reads, and writes what is not a link
        code = main([*command, str(built), "--quiet"])
        told = capsys.readouterr().err
        assert code in (0, 4), (command, told)
        if command[0] in ("build", "gc", "rollback"):
            assert code == 4, command
            assert "is a link" in told
            assert len(told.splitlines()) == 1
    assert everything_in(outside) == before


def craft(repo: Path, **changes: object) -> None:
    """Publish a build as nobody of ours would."""
    state = ca.open(repo).state
    table = open_table(state.location, "builds")
    row = builds_module._rows(state, table)[-1]
    number = {"sequence": row["sequence"] + 1, "parent_build_id": row["build_id"], "build_id": "20991231T000000-abcdef"}
    builds_module._write(state, table, [{**row, **number, **changes}], NOTHING)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tables", '{"../../../documents": {"version": 0, "buckets": {}}}'),
        ("tables", "{}"),
        ("figures", "{}"),
        ("figures", '{"files": {}, "problems": [], "seconds": 1}'),
        ("figures", '{"files": {"total": 1}, "problems": [], "seconds": 1, "index": {"choice": "evil", "scip": null}}'),
        ("fingerprints", "{}"),
        ("build_id", "../../../documents"),
    ],
)
@pytest.mark.parametrize("command", [*COMMANDS[2:], ("diff",), ("plan",), ("why", "empty.py")], ids=" ".join)
def test_a_crafted_build_is_damage_or_an_answer(command, column, value, built, outside, capsys):
    craft(built, **{column: value})
    before = everything_in(outside)
    code = main([*command, str(built), "--quiet"])
    told = capsys.readouterr().err
    assert code in (0, 2, 4), told
    assert len(told.splitlines()) <= 1
    assert everything_in(outside) == before


@pytest.mark.parametrize("place", ["/dev/zero", "PIPE"])
def test_an_index_that_only_a_state_names_is_a_regular_file(place, built, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    path = str(tmp_path / "pipe") if place == "PIPE" else place
    figures = {**latest_build(ca.open(built).state).figures, "index": {"choice": "scip", "scip": path}}
    craft(built, figures=json.dumps(figures))
    assert main(["status", str(built), "--index", "none"]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CODEANATOMY_INDEX")
        assert main(["status", str(built)]) == 2
    assert "name it with --scip" in capsys.readouterr().err


def test_a_copy_of_a_state_is_a_state(built, tmp_path):
    """Hard links are no links: backups and caches make them."""
    state = shutil.copytree(built / ".codeanatomy", tmp_path / "copy", copy_function=os.link)
    assert ca.open(built, state=str(state)).sql("SELECT * FROM cpg_nodes").num_rows
