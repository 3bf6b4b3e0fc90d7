"""A build can be run again from what it pins, whatever became of the tree, and a state that was tampered with shows."""

import dataclasses
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.tables import CPG_EDGES, STORED_TABLES
from codeanatomy.cli.main import main
from codeanatomy.pipeline import plan
from codeanatomy.pipeline import replay as replaying
from codeanatomy.pipeline.verify import TableComparison
from codeanatomy.rules import recorded
from codeanatomy.rules.definition import load_rules
from codeanatomy.store.builds import latest_build, list_builds, publish, rollback_build
from codeanatomy.store.tables import data_files, read_table, replace_rows
from tests.store.samples import overwrite


def files_below(root):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(root.rglob("*"))}


def replay(repo, build_id, spark=None):
    return replaying.replay(ca.BuildRequest(repo), build_id, spark=spark)


@pytest.fixture(scope="module")
def history(tmp_path_factory, built_once, spark):
    """A full build, an update and a rollback to the first, of a tree that is gone."""
    root = Path(shutil.copytree(built_once, tmp_path_factory.mktemp("replayed") / "repo"))
    (root / "shop/prices.py").write_text("def price_of(item, currency='EUR'):\n    return 1\n")
    (root / "latin.py").write_bytes(b"# caf\xe9\nx = 1\n")
    (root / "huge.py").write_bytes(b"x = 1\n" * 200_000)
    (root / "empty.py").unlink()
    request = ca.BuildRequest(root, max_file_bytes=1 << 20)
    assert ca.build(request, spark=spark).mode == "incremental"
    state = ca.open(root).state
    first, last = list_builds(state)
    publish(state, rollback_build(first, last, datetime.now(UTC)))
    for entry in root.iterdir():
        if entry.name != ".codeanatomy":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return root


@pytest.fixture
def copied(history, tmp_path):
    return Path(shutil.copytree(history, tmp_path / "repo"))


def test_an_update_replays_without_its_tree_and_leaves_no_trace(history, spark):
    build = list_builds(ca.open(history).state)[1]
    before = files_below(history)
    found = replay(history, build.build_id, spark)
    assert found.equal, found.as_json()
    assert found.tables.keys() == {table.name for table in STORED_TABLES}
    assert {name: table.rows_full for name, table in found.tables.items()} == {
        name: build.tables[name].rows for name in found.tables
    }
    assert files_below(history) == before


def test_a_build_with_an_index_replays_without_an_indexer(indexed_once, spark, monkeypatch):
    monkeypatch.setenv("PATH", "")
    build = latest_build(ca.open(indexed_once).state)
    assert "documents" in build.tables
    found = replay(indexed_once, build.build_id, spark)
    assert found.equal, found.as_json()


def test_rows_that_do_not_follow_from_the_inputs_are_shown(copied, spark, monkeypatch):
    """Whether a build pins wrong rows, or right ones were overwritten on disk; the rest of a rollback is equal."""

    def reworded():
        return tuple(dataclasses.replace(rule, sql=f"{rule.sql}\n-- reworded since") for rule in load_rules())

    monkeypatch.setattr(recorded, "load_rules", reworded)  # the rules of the bundle are not our own any more
    state = ca.open(copied).state
    first, _, last = list_builds(state)
    edges = read_table(spark, state, CPG_EDGES, last.tables["cpg_edges"].version)
    wrong = replace_rows(edges.where("edge_kind != 'HAS_PARAM'"), CPG_EDGES, state).pin
    tampered = rollback_build(first, last, datetime.now(UTC))
    tampered = dataclasses.replace(tampered, tables={**tampered.tables, "cpg_edges": wrong})
    publish(state, tampered)
    file = data_files(state, "cpg_nodes", tampered.tables["cpg_nodes"].version)[0]
    nodes = pq.read_table(file, partitioning=None)
    overwrite(state, "cpg_nodes", file, nodes.slice(1))

    found = replay(copied, tampered.build_id, spark)

    told = found.as_json()["tables"]
    assert {name for name, table in told.items() if not table["equal"]} == {"cpg_edges", "cpg_nodes"}
    assert told["cpg_edges"]["as_pinned"]
    assert told["cpg_edges"]["only_replayed"] == told["cpg_edges"]["rows_replayed"] - wrong.rows > 0
    assert {(row["only_in"], row["rule_name"]) for row in told["cpg_edges"]["examples"]} == {
        ("scratch", "edges.has_param")
    }
    assert not told["cpg_nodes"]["as_pinned"]
    assert [row["node_id"] for row in told["cpg_nodes"]["examples"]] == nodes["node_id"].to_pylist()[:1]


def test_a_build_of_another_version_is_refused(history, monkeypatch):
    build = latest_build(ca.open(history).state)
    monkeypatch.setattr(plan, "LAYER_VERSIONS", {**plan.LAYER_VERSIONS, "values": "another"})
    monkeypatch.setattr(plan, "RESOLVER_REVISION", -1)
    with pytest.raises(ca.InputError, match=r"another version of codeanatomy.*: layer values, resolver changed"):
        replay(history, build.build_id)


def test_other_settings_are_refused(history):
    build = latest_build(ca.open(history).state)
    request = ca.BuildRequest(history, spark_conf={"spark.sql.ansi.enabled": "false"})
    with pytest.raises(ca.InputError, match=r"settings changed .*--conf"):
        replaying.replay(request, build.build_id)


def test_rules_that_are_not_those_of_the_build_are_refused(copied):
    build = list_builds(ca.open(copied).state)[1]
    file = copied / ".codeanatomy/runs" / build.build_id / "rules.json"
    rules = json.loads(file.read_text())
    rule = next(each for each in rules if each["name"] == "edges.has_param")
    rule["sql"] = "-- confidence: 0.5\n" + rule["sql"]
    file.write_text(json.dumps(rules))
    with pytest.raises(ca.InputError, match=r"rule edges\.has_param changed"):
        replay(copied, build.build_id)


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (shutil.rmtree, ca.InputError, "has no run bundle"),
        (lambda bundle: (bundle / "manifest.json").write_text("{"), ca.StateError, "run bundle .* is damaged"),
        (lambda bundle: (bundle / "rules.json").write_text("[1]"), ca.StateError, "run bundle .* is damaged"),
    ],
)
def test_without_a_sound_bundle_there_is_nothing_to_replay(copied, damage, error, words):
    build = list_builds(ca.open(copied).state)[1]
    damage(copied / ".codeanatomy/runs" / build.build_id)
    with pytest.raises(error, match=words):
        replay(copied, build.build_id)


@pytest.mark.parametrize(
    ("compared", "code", "verdict"),
    [
        (TableComparison(3, 3), 0, "equal: 3 rows"),
        (TableComparison(3, 2, 1, 0, ({"only_in": "build", "rule_name": "r"},)), 1, "differs in cpg_nodes"),
        (TableComparison(3, 3, as_pinned=False), 1, "differs in cpg_nodes"),
    ],
)
def test_the_command_tells_the_verdict_and_the_rows(history, monkeypatch, capsys, compared, code, verdict):
    answer = replaying.Replay("20260101T000000-abcdef", {"cpg_nodes": compared}, 1.25)
    monkeypatch.setattr(replaying, "replay", lambda request, build, **_: answer)
    assert main(["replay", "2026", str(history)]) == code
    out, err = capsys.readouterr()
    assert err == f"replay 20260101T000000-abcdef: {verdict} (1.2 s)\n"
    assert bool(out) == bool(code)
    assert main(["replay", "2026", str(history), "--json", "--quiet"]) == code
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["equal"], told["tables"]["cpg_nodes"]["rows_replayed"], err) == (not code, compared.rows_full, "")
