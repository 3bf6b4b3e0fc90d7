"""Builds: what is redone, what is reused, and that the same input gives the same rows however it is run."""

import dataclasses
import random
import shutil
from datetime import UTC, datetime

import pytest
from bench.chains import SHAPES

import codeanatomy as ca
from codeanatomy.catalogue.tables import CPG_EDGES
from codeanatomy.pipeline import analysis
from codeanatomy.pipeline import inputs as build_inputs
from codeanatomy.pipeline import run as build_run
from codeanatomy.pipeline.preview import preview
from codeanatomy.store.builds import latest_build, list_builds, new_build_id, publish
from codeanatomy.store.tables import read_table, replace_rows
from tests.repositories import SHOP, write_repository


def digests(result):
    return {name: table["digest"] for name, table in result.tables.items()}


def files_below(root):
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(root.rglob("*"))}


@pytest.fixture
def repo(built):
    return built


def test_a_second_build_of_the_same_tree_writes_nothing(repo, spark):
    first = ca.open(repo).build
    before = files_below(repo)
    second = ca.build(ca.BuildRequest(repo))  # no session is given, and none can be made beside the running one
    assert second.mode == "noop"
    assert second.build_id == first.build_id
    assert digests(second) == {name: pin.digest.hash for name, pin in first.tables.items()}
    assert not any(table["written"] for table in second.tables.values())
    assert files_below(repo) == before


def test_a_touched_file_is_no_change(repo, spark):
    (repo / "shop/cart.py").touch()
    assert ca.build(ca.BuildRequest(repo)).mode == "noop"


def test_a_changed_tree_gives_the_rows_of_a_fresh_build(repo, tmp_path, spark):
    (repo / "shop/prices.py").write_text("def price_of(item, currency='EUR'):\n    return 1\n")
    (repo / "shop/new.py").write_text("from shop import prices\n")
    (repo / "empty.py").unlink()
    (repo / "src/tools/run.py").rename(repo / "src/tools/go.py")
    later = ca.build(ca.BuildRequest(repo), spark=spark)
    fresh = ca.build(ca.BuildRequest(repo, state=str(tmp_path / "fresh")), spark=spark)
    graph = ("repo_files", "py_module_index", "cpg_nodes", "cpg_edges")
    assert {t: digests(later)[t] for t in graph} == {t: digests(fresh)[t] for t in graph}
    assert {k: later.files[k] for k in ("added", "modified", "deleted", "renamed")} == {
        "added": 1,
        "modified": 1,
        "deleted": 1,
        "renamed": 1,
    }


def test_an_edit_of_the_user_keeps_what_lies_at_the_end_of_a_chain(tmp_path, spark):
    chains = {f"{shape}/{path}": text for shape in ("values", "bases") for path, text in SHAPES[shape](60).items()}
    chains = {path: text.replace("from ", f"from {path.partition('/')[0]}.") for path, text in chains.items()}
    repo = write_repository(tmp_path / "repo", chains | SHAPES["imports"](100))
    ca.build(ca.BuildRequest(repo), spark=spark)
    for path in ("main.py", "values/main.py", "bases/main.py"):
        (repo / path).write_text(f"# edited\n{(repo / path).read_text()}")
    later = ca.build(ca.BuildRequest(repo), spark=spark)
    fresh = ca.build(ca.BuildRequest(repo, state=str(tmp_path / "fresh")), spark=spark)
    assert (later.mode, later.files["rebuilt"]) == ("incremental", 3)
    graph = ("answers", "cpg_nodes", "cpg_edges")
    assert {t: digests(later)[t] for t in graph} == {t: digests(fresh)[t] for t in graph}
    assert ca.open(repo).callers("p.m100.x").lines


def test_questions_that_hit_a_limit_are_counted_in_every_build(repo, spark):
    makers = "".join(f"def f{n}(): pass\n" for n in range(20))
    choice = "def pick(n): return " + " or ".join(f"f{n}" for n in range(20)) + "\n"
    (repo / "many.py").write_text(f"{makers}{choice}pick(1)()\n")
    limited = ca.build(ca.BuildRequest(repo), spark=spark)
    assert limited.limits == {"many.py": 1}
    assert limited.as_json()["limits"] == {"questions": 1, "files": 1}
    (repo / "empty.py").write_text("x = 1\n")
    assert ca.build(ca.BuildRequest(repo), spark=spark).limits == {"many.py": 1}
    assert ca.build(ca.BuildRequest(repo, full=True), spark=spark).limits == {"many.py": 1}
    (repo / "many.py").write_text("def pick(n): return len\npick(1)()\n")
    assert ca.build(ca.BuildRequest(repo), spark=spark).limits == {}


def test_a_content_is_parsed_once_whatever_its_path(repo, spark):
    shutil.copy(repo / "shop/cart.py", repo / "copy_of_cart.py")
    (repo / "broken.py").rename(repo / "still_broken.py")
    result = ca.build(ca.BuildRequest(repo), spark=spark)
    assert {s.name: s.rows for s in result.stages}["extract"] == 0
    classes = "SELECT qname FROM cpg_nodes WHERE node_kind = 'DEF' AND subkind = 'class' AND path = 'copy_of_cart.py'"
    copied = ca.open(repo).sql(classes)
    assert copied["qname"].to_pylist() == ["copy_of_cart.Cart"]


def test_full_asks_for_a_build_and_equal_tables_are_not_written_again(repo, spark):
    first = ca.build(ca.BuildRequest(repo))
    again = ca.build(ca.BuildRequest(repo, full=True), spark=spark)
    assert (again.mode, again.parent_build_id) == ("full", first.build_id)
    assert {name: table["version"] for name, table in again.tables.items()} == {
        name: table["version"] for name, table in first.tables.items()
    }
    assert not any(table["written"] for table in again.tables.values())


@pytest.mark.parametrize("partitions", [1, 8])
def test_the_same_rows_on_any_number_of_partitions_and_in_any_file_order(
    repo, tmp_path, spark, monkeypatch, partitions
):
    expected = ca.build(ca.BuildRequest(repo))

    def shuffled_scan(*args, **kwargs):
        snapshot = build_inputs.scan.__wrapped__(*args, **kwargs)
        files = list(snapshot.files)
        random.Random(partitions).shuffle(files)
        return dataclasses.replace(snapshot, files=tuple(files))

    shuffled_scan.__wrapped__ = build_inputs.scan
    monkeypatch.setattr(build_inputs, "scan", shuffled_scan)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        result = ca.build(ca.BuildRequest(repo, state=str(tmp_path / "b")), spark=spark)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert digests(result) == digests(expected)


def test_a_file_that_changes_while_it_is_read_is_scanned_again(tmp_path, spark, monkeypatch):
    repo = write_repository(tmp_path)
    original = build_run.gather
    calls = []

    def gather_then_edit(*args):
        found = original(*args)
        if not calls:
            (repo / "empty.py").write_text("late = 1\n")
        calls.append(1)
        return found

    monkeypatch.setattr(build_run, "gather", gather_then_edit)
    result = ca.build(ca.BuildRequest(repo), spark=spark)
    assert len(calls) == 2
    assert (
        result.snapshot_id == original(ca.BuildRequest(repo), ca.open(repo).state.location, None).snapshot.snapshot_id
    )


def test_a_tree_that_never_rests_is_refused_and_nothing_is_published(tmp_path, spark, monkeypatch):
    repo = write_repository(tmp_path)
    original = build_run.gather
    calls = []

    def gather_then_edit(*args):
        found = original(*args)
        calls.append(1)
        (repo / "empty.py").write_text(f"late = {len(calls)}\n")
        return found

    monkeypatch.setattr(build_run, "gather", gather_then_edit)
    with pytest.raises(ca.InputError, match=r"empty\.py changed while it was read"):
        ca.build(ca.BuildRequest(repo), spark=spark)
    with pytest.raises(ca.InputError, match="no build at"):
        ca.open(repo)


def test_verify_finds_a_sound_build_equal(repo, spark):
    (repo / "empty.py").write_text("x = 1\n")
    ca.build(ca.BuildRequest(repo), spark=spark)
    found = ca.verify(ca.BuildRequest(repo), spark=spark)
    assert found.equal
    assert found.tables["facts"].rows == found.tables["facts"].rows_full == len(SHOP)


def test_verify_shows_the_rows_that_differ_and_the_rule_that_made_them(repo, spark):
    state = ca.open(repo).state
    last = latest_build(state)
    edges = read_table(spark, state, CPG_EDGES, last.tables["cpg_edges"].version)
    tampered = replace_rows(edges.where("edge_kind != 'HAS_PARAM'"), CPG_EDGES, state)
    now = datetime.now(UTC)
    publish(
        state,
        dataclasses.replace(
            last,
            build_id=new_build_id(now),
            parent_build_id=last.build_id,
            tables={**last.tables, "cpg_edges": tampered.pin},
        ),
    )
    found = ca.verify(ca.BuildRequest(repo), spark=spark)
    assert not found.equal
    compared = found.tables["cpg_edges"]
    assert (compared.only_incremental, compared.only_full) == (0, compared.rows_full - compared.rows)
    assert compared.only_full > 0
    assert {(row["only_in"], row["rule_name"]) for row in compared.examples} == {("scratch", "edges.has_param")}


def test_verify_wants_a_fresh_build(repo, spark):
    (repo / "empty.py").write_text("x = 1\n")
    with pytest.raises(ca.InputError, match="out of date"):
        ca.verify(ca.BuildRequest(repo), spark=spark)


def test_earlier_builds_stay_open_while_later_ones_are_made(repo, spark):
    held = ca.open(repo)
    before = held.sql("SELECT * FROM cpg_nodes ORDER BY node_id")
    for number in range(3):
        (repo / "empty.py").write_text(f"x = {number}\n")
        ca.build(ca.BuildRequest(repo), spark=spark)
    assert held.sql("SELECT * FROM cpg_nodes ORDER BY node_id") == before
    first = list_builds(held.state)[0]
    assert ca.open(repo, build=first.build_id).sql("SELECT * FROM cpg_nodes ORDER BY node_id") == before


def test_a_setting_or_rule_change_asks_for_a_build(repo, spark):
    assert ca.build(ca.BuildRequest(repo, roots=("shop",)), spark=spark).mode == "full"


def test_a_missing_fingerprint_is_a_full_build(repo, spark):
    state = ca.open(repo).state
    last = latest_build(state)
    forgetful = {k: v for k, v in last.fingerprints.items() if k != "resolver"}
    later = "20990101T000000-abcdef"
    publish(state, dataclasses.replace(last, build_id=later, parent_build_id=last.build_id, fingerprints=forgetful))
    assert ca.build(ca.BuildRequest(repo), spark=spark).mode == "full"


def test_spark_reads_the_tables_of_a_build(repo, spark):
    result = ca.build(ca.BuildRequest(repo), spark=spark)
    frames = ca.open(repo).spark(spark)
    assert frames["cpg_nodes"].count() == result.tables["cpg_nodes"]["rows"]


def test_only_the_questions_that_looked_at_a_change_are_asked_again(repo, monkeypatch):
    graph = ca.open(repo)
    seen = []
    real = analysis.answer
    monkeypatch.setattr(analysis, "answer", lambda *given: seen.append(given[-1]) or real(*given))
    (repo / "shop/prices.py").write_text(SHOP["shop/prices.py"] + "\n\ndef price_with_tax(item): pass\n")
    assert [each.path for each in preview(ca.BuildRequest(repo)).files] == ["shop/prices.py"]
    (asked,) = seen
    path_of = dict(graph.sql("SELECT file_id, path FROM repo_files").to_pandas().itertuples(index=False))
    assert {path_of[each]: numbers is None for each, numbers in asked.items()} == {
        "shop/prices.py": True,
        "shop/cart.py": False,
    }
    questions = graph.sql(
        "SELECT DISTINCT ask_no, list_contains(trail, 'shop.prices') AS looked FROM answers WHERE path = 'shop/cart.py'"
    ).to_pylist()
    (numbers,) = filter(None, asked.values())
    assert numbers == {row["ask_no"] for row in questions if row["looked"]} < {row["ask_no"] for row in questions}
