"""The run bundle of a build: what it did and why, as datasets that SQL reads."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.errors import LowMemoryError
from codeanatomy.index import pyrefly as pyrefly_module
from codeanatomy.index.provider import Split
from codeanatomy.index.pyrefly import Asked, Failed, IndexerError, run_pyrefly
from codeanatomy.pipeline import inputs as build_inputs
from codeanatomy.pipeline import run as build_run
from codeanatomy.pipeline.inputs import TreeChangedError
from codeanatomy.pipeline.journal import StatementPlan
from codeanatomy.store.tables import data_files
from tests.pipeline.test_invalidations import edited, less_sure
from tests.repositories import SHOP, write_repository


def rows(root, query):
    return ca.open(root).sql(query).to_pylist()


def features(root):
    return {row["name"]: row["value"] for row in rows(root, "SELECT * FROM run_features")}


@pytest.fixture
def failing_once(monkeypatch):
    """Lets the first attempt of a build fail."""

    def fail(error):
        run, attempts = build_run._run, []

        def run_or_fail(*arguments):
            attempts.append(arguments)
            if len(attempts) == 1:
                raise error
            return run(*arguments)

        monkeypatch.setattr(build_run, "_run", run_or_fail)

    return fail


def test_of_a_build_that_records_its_plans(tmp_path, spark):
    root = write_repository(tmp_path / "repo")
    ca.build(ca.BuildRequest(root, profile="dev_debug", determinism="canonical"), spark=spark)
    assert {"profile": "dev_debug", "determinism": "canonical", "index": "none"}.items() <= features(root).items()
    assert rows(root, "SELECT * FROM run_fallbacks") == []
    (nodes,) = rows(root, "SELECT * FROM run_stages WHERE stage = 'cpg_nodes'")
    assert nodes["row_count"] == rows(root, "SELECT count(*) AS n FROM cpg_nodes")[0]["n"]
    plans = rows(root, "SELECT * FROM run_plans WHERE stage = 'cpg_nodes'")
    assert nodes["statement_count"] == len(plans)
    assert nodes["scan_count"] > 0 < nodes["join_count"]
    assert {"nodes.def", "nodes.repo"} <= {rule for plan in plans for rule in plan["rules"]}
    assert all("== Physical Plan ==" in plan["physical_plan"] for plan in plans)


def test_of_an_update(built, spark):
    assert rows(built, "SELECT * FROM run_plans") == []
    assert rows(built, "SELECT * FROM run_stages WHERE statement_count IS NOT NULL") == []
    (built / "shop/prices.py").write_text(SHOP["shop/prices.py"] + "\n\ndef more(): return price_of('x')\n")
    ca.build(ca.BuildRequest(built), spark=spark)
    reads = {row["table_name"]: row for row in rows(built, "SELECT * FROM run_table_reads WHERE version = 0")}
    assert reads["cpg_edges"]["files_read"] <= reads["cpg_edges"]["file_count"]
    assert reads["cpg_edges"]["bytes_read"] <= reads["cpg_edges"]["byte_count"]


def test_only_the_buckets_of_the_owners_are_read(tmp_path, spark):
    many = {f"m{number}.py": f"def f{number}(): pass\n" for number in range(300)}
    root = write_repository(tmp_path / "repo", many)
    ca.build(ca.BuildRequest(root), spark=spark)
    (root / "m7.py").write_text("def f7(): return 1\n")
    ca.build(ca.BuildRequest(root), spark=spark)
    (nodes,) = rows(root, "SELECT * FROM run_table_reads WHERE table_name = 'cpg_nodes' AND version = 0")
    assert 0 < nodes["files_read"] < nodes["file_count"]
    assert 0 < nodes["bytes_read"] < nodes["byte_count"]


def test_every_column_of_every_rule_has_a_lineage(built_once):
    found = rows(built_once, "SELECT * FROM run_rule_lineage")
    for rule in build_inputs.own_rules():
        columns = {row["column_name"] for row in found if row["rule_name"] == rule.rule.name}
        assert columns >= set(rule.columns), rule.rule.name
    sources = {
        (row["source"], row["source_column"])
        for row in found
        if row["rule_name"] == "nodes.def" and row["column_name"] == "qname"
    }
    assert sources == {("cst_defs", "qualname"), ("py_module_index", "module_fqn")}
    (kind,) = [r for r in found if r["rule_name"] == "nodes.def" and r["column_name"] == "node_kind"]
    assert kind["source"] is None


def test_a_rule_that_changed_is_compared_with_the_last_builds(built, spark, monkeypatch):
    assert rows(built, "SELECT * FROM run_rule_changes") == []
    rules = edited("edges.inherits", less_sure)
    monkeypatch.setattr(build_inputs, "own_rules", lambda: rules)
    ca.build(ca.BuildRequest(built), spark=spark)
    changes = rows(built, "SELECT * FROM run_rule_changes")
    assert {(row["rule_name"], row["change_kind"]) for row in changes} == {("edges.inherits", "changed")}
    assert "0.5" in {row["after"] for row in changes}


def test_a_full_build_in_place_of_an_update_is_a_fallback(built, spark):
    (built / "shop/prices.py").write_text(SHOP["shop/prices.py"].replace("price_of", "cost_of"))
    result = ca.build(ca.BuildRequest(built, max_impact_depth=0), spark=spark)
    assert result.mode == "full"
    (fallback,) = rows(built, "SELECT * FROM run_fallbacks")
    assert fallback["kind"] == "full_build"
    assert "more than 0" in fallback["detail"]


def test_a_full_build_that_was_asked_for_is_none(built, spark):
    ca.build(ca.BuildRequest(built, full=True), spark=spark)
    assert rows(built, "SELECT * FROM run_fallbacks") == []


def test_a_build_that_starts_over_says_so(tmp_path, spark, failing_once):
    root = write_repository(tmp_path / "repo")
    failing_once(TreeChangedError("shop/prices.py"))
    ca.build(ca.BuildRequest(root), spark=spark)
    (fallback,) = rows(root, "SELECT * FROM run_fallbacks")
    assert (fallback["kind"], fallback["detail"]) == ("restart", "shop/prices.py changed meanwhile")


def test_a_build_without_enough_memory_is_tried_with_less(tmp_path, spark, failing_once):
    root = write_repository(tmp_path / "repo")
    failing_once(LowMemoryError("Spark was killed"))
    ca.build(ca.BuildRequest(root), spark=spark)
    (fallback,) = rows(root, "SELECT * FROM run_fallbacks")
    assert (fallback["kind"], fallback["detail"]) == ("memory", "built with profile memory_tight: Spark was killed")
    assert features(root)["profile"] == "memory_tight"


def test_with_the_least_memory_there_is_no_second_attempt(tmp_path, spark, failing_once):
    failing_once(LowMemoryError("Spark was killed"))
    with pytest.raises(LowMemoryError):
        ca.build(ca.BuildRequest(write_repository(tmp_path / "repo"), profile="memory_tight"), spark=spark)


def test_an_indexer_that_fails_on_a_file_is_asked_about_halves(tmp_path, monkeypatch):
    def run(pyrefly, shard, *others):
        if any(file.path == "c.py" for file in shard):
            raise IndexerError("it crashed")
        return {file.link: {} for file in shard}

    monkeypatch.setattr(pyrefly_module, "_run", run)
    files = [Asked(name, tmp_path / name, 1) for name in ("a.py", "b.py", "c.py", "d.py")]
    results = list(run_pyrefly(None, files, [tmp_path], tmp_path, None))
    assert [each for each in results if isinstance(each, Split)] == [Split(4, "it crashed"), Split(2, "it crashed")]
    assert [each for each in results if isinstance(each, Failed)] == [Failed("c.py", "it crashed")]


def test_operators_are_counted_in_the_tree_alone():
    tree = "== Physical Plan ==\n* Project (4)\n+- * SortMergeJoin Inner (3)\n   :- Scan parquet  (1)\n"
    text = f"{tree}\n(1) Scan parquet\n"
    plan = StatementPlan("cpg_nodes", ["nodes.def"], text)
    assert [plan.count(kind) for kind in ("Scan", "Join", "Exchange")] == [1, 1, 0]


def stored_bytes(root):
    state, build = ca.open(root).state, ca.open(root).build
    files = [
        path
        for name in ("cpg_nodes", "cpg_edges", "answers")
        for path in data_files(state, name, build.tables[name].version)
    ]
    return sorted(Path(path).read_bytes() for path in files)


def test_canonical_builds_of_the_same_tree_store_the_same_bytes(tmp_path, spark):
    one, other = (write_repository(tmp_path / name) for name in ("one", "other"))
    for root in (one, other):
        ca.build(ca.BuildRequest(root, determinism="canonical"), spark=spark)
    assert stored_bytes(one) == stored_bytes(other)
    state, build = ca.open(one).state, ca.open(one).build
    for path in data_files(state, "cpg_edges", build.tables["cpg_edges"].version):
        rows = pq.ParquetFile(path).read().to_pylist()
        order = ["file_id", "edge_kind", "bstart", *(name for name in rows[0] if name not in ("edge_kind", "bstart"))]
        keys = [[(row[name] is not None, row[name]) for name in order] for row in rows]
        assert keys == sorted(keys)


def test_the_rows_are_the_same_in_every_tier(built_once, spark):
    for tier in ("fast", "canonical"):
        state = str(built_once / f"../{tier}")
        found = ca.build(ca.BuildRequest(built_once, state=state, determinism=tier), spark=spark)
        digests = {name: pin.digest for name, pin in ca.open(built_once).build.tables.items() if name != "facts"}
        assert {name: table["digest"] for name, table in found.tables.items() if name != "facts"} == {
            name: digest.hash for name, digest in digests.items()
        }


def test_an_unknown_tier_is_refused(built_once):
    with pytest.raises(ca.InputError, match="choose one of fast, stable, canonical"):
        ca.build(ca.BuildRequest(built_once, determinism="exact"))
