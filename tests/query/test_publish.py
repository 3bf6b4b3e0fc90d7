"""Published graphs: the same rows, the same bytes when asked, never half a directory."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.query.publish import DEFAULT_TABLES, publish
from codeanatomy.query.request import PublishRequest


@pytest.fixture(scope="module")
def repo(built_once):
    return built_once


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_canonical_files_are_the_same_bytes_twice_even_from_another_state(repo, tmp_path, spark):
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    ca.build(ca.BuildRequest(repo, state=str(tmp_path / "state")), spark=spark)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    publish(ca.open(repo), PublishRequest(tmp_path / "one", "parquet", determinism="canonical"))
    publish(ca.open(repo), PublishRequest(tmp_path / "two", "parquet", determinism="canonical"))
    publish(
        ca.open(repo, state=str(tmp_path / "state")),
        PublishRequest(tmp_path / "three", "parquet", determinism="canonical"),
    )
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "one").keys() == contents(tmp_path / "three").keys()
    for name, content in contents(tmp_path / "one").items():
        if name != "codeanatomy.json":  # names the build
            assert content == contents(tmp_path / "three")[name], name


def test_duckdb_files_are_never_canonical(repo, tmp_path):
    with pytest.raises(ca.InputError, match="use --format parquet"):
        publish(ca.open(repo), PublishRequest(tmp_path / "out", "duckdb", determinism="canonical"))


def test_parquet_and_duckdb_hold_the_rows_of_the_build(repo, tmp_path):
    graph = ca.open(repo)
    found = publish(graph, PublishRequest(tmp_path / "parquet", "parquet"))
    publish(graph, PublishRequest(tmp_path / "duckdb", "duckdb"))
    database = duckdb.connect(str(tmp_path / "duckdb" / "graph.duckdb"), read_only=True)
    for name in DEFAULT_TABLES:
        rows = graph.sql(f"SELECT count(*) AS n FROM {name}")["n"].to_pylist()[0]
        assert rows > 0
        assert found.tables[name] == rows
        assert pq.read_metadata(tmp_path / "parquet" / f"{name}.parquet").num_rows == rows
        assert database.execute(f"SELECT count(*) FROM {name}").fetchone() == (rows,)


def test_an_earlier_publication_is_replaced_and_anything_else_is_left_alone(repo, tmp_path):
    graph = ca.open(repo)
    publish(graph, PublishRequest(tmp_path / "out", "parquet"))
    publish(graph, PublishRequest(tmp_path / "out", "parquet", tables=["cpg_edges"]))
    assert contents(tmp_path / "out").keys() == {"cpg_edges.parquet", "codeanatomy.json"}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ca.InputError, match="not an earlier publication"):
        publish(graph, PublishRequest(tmp_path / "mine", "parquet"))
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_an_unknown_dataset_is_refused(repo, tmp_path):
    with pytest.raises(ca.InputError, match="no dataset is called 'ghosts'"):
        publish(ca.open(repo), PublishRequest(tmp_path / "out", "parquet", tables=["ghosts"]))


def test_an_unknown_format_is_refused(repo, tmp_path):
    with pytest.raises(ca.InputError, match="unknown format 'csv'"):
        publish(ca.open(repo), PublishRequest(tmp_path / "out", "csv"))


def test_json_properties_and_diagnostics_are_written_on_demand(repo, tmp_path):
    graph = ca.open(repo)
    publish(graph, PublishRequest(tmp_path / "out", props_json=True, diagnostics=True, determinism="canonical"))
    written = {name.removesuffix(".parquet") for name in contents(tmp_path / "out")}
    assert {*DEFAULT_TABLES, "cpg_props_json", "run_stages", "run_features", "run_rule_lineage"} <= written
    properties = pq.read_table(tmp_path / "out" / "cpg_props_json.parquet").to_pylist()
    nodes = set(graph.sql("SELECT node_id FROM cpg_nodes")["node_id"].to_pylist())
    assert {row["prop_key"] for row in properties} >= {"bases", "parameters"}
    for row in properties:
        assert row["entity_id"] in nodes
        assert isinstance(json.loads(row["value_json"]), list)


def test_an_index_has_no_tables_to_choose(repo, tmp_path):
    with pytest.raises(ca.InputError, match="writes an index, not tables"):
        publish(ca.open(repo), PublishRequest(tmp_path / "out", "scip", diagnostics=True))
