"""SQL over a build: every dataset is there, and nothing else is within reach."""

import pytest

import codeanatomy as ca
from codeanatomy.catalogue.runs import RUN_DATASETS
from codeanatomy.query.statements import statement
from codeanatomy.query.views import PUBLIC


@pytest.fixture(scope="module")
def graph(indexed_once):
    return ca.open(indexed_once)


MAY_BE_EMPTY = {
    "cst_main_blocks",  # the sample repository has no script
    "disagreements",  # both sides are right about the sample repository
    "rel_import_symbol",  # of imports, only a SCIP index tells
    *(dataset.name for dataset in RUN_DATASETS),  # a first build changes nothing
}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_dataset_can_be_read_with_its_columns(graph, name):
    found = graph.sql(f"SELECT * FROM {name}")
    assert [n for n in found.schema.names if n != "bucket"] == list(PUBLIC[name].names())
    assert found.num_rows > 0 or name in MAY_BE_EMPTY


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('**/*.parquet')",
        "SELECT getenv('HOME')",
        "COPY (SELECT 1) TO '/tmp/codeanatomy-leak.csv'",
        "ATTACH '/tmp/codeanatomy-leak.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW cpg_nodes",
        "DELETE FROM cpg_nodes",
        "PRAGMA database_list",
        "SELECT 1; SELECT 2",
        "",
        "SELECT * FROM graph",
        "SELEC",
        "SELECT nothing FROM cpg_nodes",
    ],
)
def test_a_query_reaches_nothing_but_the_views(graph, query):
    with pytest.raises(ca.InputError) as caught:
        graph.sql(query)
    assert "\n" not in str(caught.value)


def test_a_query_after_a_refused_one_still_works(graph):
    with pytest.raises(ca.InputError):
        graph.sql("SELECT * FROM nowhere")
    assert graph.sql("SELECT count(*) AS n FROM cpg_nodes")["n"].to_pylist()[0] > 100


def test_callees_are_the_rows_of_the_view_calls(indexed_once):
    graph = ca.open(indexed_once)
    kinds = "SELECT DISTINCT node_kind FROM cpg_edges JOIN cpg_nodes ON node_id = dst_id WHERE edge_kind = 'CALLS'"
    assert set(graph.sql(kinds)["node_kind"].to_pylist()) == {"DEF", "QNAME"}
    calls = graph.sql("SELECT DISTINCT caller AS name, callee AS what, path, line, confidence, method FROM calls")
    callees = statement("lookup/callees")
    found = graph.sql(callees, {"names": calls["name"].unique().to_pylist()})
    assert {tuple(row.items()) for row in found.to_pylist()} == {tuple(row.items()) for row in calls.to_pylist()}
