"""The graph of a small repository: every kind is there, everything hangs together, ids survive edits."""

import re

import polars
import pytest
from deltalake import DeltaTable

import codeanatomy as ca
from codeanatomy.catalogue.ids import EDGE_IDS, NODE_IDS, PARTS, edge_forms, parse_node_id
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from tests.repositories import SHOP, write_repository


@pytest.fixture(scope="module")
def shop(indexed_once):
    return ca.open(indexed_once)


def rows(graph, query):
    return [tuple(row.values()) for row in graph.sql(query).to_pylist()]


def test_every_declared_kind_is_produced(shop):
    assert {kind for (kind,) in rows(shop, "SELECT DISTINCT node_kind FROM cpg_nodes")} == set(NodeKind)
    assert {kind for (kind,) in rows(shop, "SELECT DISTINCT edge_kind FROM cpg_edges")} == set(EdgeKind)


def test_ids_are_unique(shop):
    assert rows(shop, "SELECT node_id FROM cpg_nodes GROUP BY 1 HAVING count(*) > 1") == []
    assert rows(shop, "SELECT edge_id FROM cpg_edges GROUP BY 1 HAVING count(*) > 1") == []


def test_every_id_is_spelled_as_the_grammar_says(shop):
    for node_id, kind, parent_id in rows(shop, "SELECT node_id, node_kind, parent_id FROM cpg_nodes"):
        assert parse_node_id(node_id).kind == kind
        if parent_id is not None:
            assert parse_node_id(parent_id).kind in NODE_IDS[NodeKind(kind)].parents
    patterns = {name: part.pattern for name, part in PARTS.items()}
    for edge_id, kind, src_id, dst_id in rows(shop, "SELECT edge_id, edge_kind, src_id, dst_id FROM cpg_edges"):
        spelled = EDGE_IDS[EdgeKind(kind)]
        assert parse_node_id(src_id).kind in spelled.src
        assert parse_node_id(dst_id).kind in spelled.dst
        known = patterns | {"src_id": re.escape(src_id), "dst_id": re.escape(dst_id)}
        assert any(re.fullmatch(form.format_map(known), edge_id) for form in edge_forms(EdgeKind(kind))), edge_id


def test_edges_between_files_end_at_what_other_files_may_point_to(shop):
    query = "SELECT DISTINCT n.node_kind FROM cpg_edges AS e JOIN cpg_nodes AS n ON n.node_id = e.dst_id"
    found = {kind for (kind,) in rows(shop, f"{query} WHERE n.file_id <> e.file_id")}
    assert found >= {"DEF", "MODULE", "SYMBOL", "QNAME"}
    assert all(NODE_IDS[NodeKind(kind)].other_files_point_to_it for kind in found)


@pytest.mark.parametrize("end", ["src_id", "dst_id"])
def test_every_edge_ends_at_a_node(shop, end):
    assert rows(shop, f"SELECT edge_id FROM cpg_edges WHERE {end} NOT IN (SELECT node_id FROM cpg_nodes)") == []


def test_every_node_but_the_repository_has_a_parent_that_is_there(shop):
    orphans = "parent_id IS NULL OR parent_id NOT IN (SELECT node_id FROM cpg_nodes)"
    assert rows(shop, f"SELECT node_kind FROM cpg_nodes WHERE {orphans}") == [("REPO",)]


def test_every_row_has_an_owner_of_the_snapshot(shop):
    for table in ("cpg_nodes", "cpg_edges"):
        strangers = rows(
            shop, f"SELECT DISTINCT file_id FROM {table} WHERE file_id NOT IN (SELECT file_id FROM repo_files)"
        )
        assert strangers in ([], [("__global__",)])


def test_definitions_are_named_from_the_module_down(shop):
    found = rows(shop, "SELECT qname, subkind FROM cpg_nodes WHERE node_kind = 'DEF' AND path LIKE 'shop/%' ORDER BY 1")
    assert found == [
        ("shop.cart.Cart", "class"),
        ("shop.cart.Cart.__init__", "method"),
        ("shop.cart.Cart.send", "method"),
        ("shop.cart.Cart.send.<lambda1>", "lambda"),
        ("shop.cart.Cart.total", "method"),
        ("shop.prices.Odd", "class"),
        ("shop.prices.counter", "function"),
        ("shop.prices.counter.up", "function"),
        ("shop.prices.price_of", "function"),
    ]


def test_only_functions_and_methods_are_async_or_not(shop):
    query = "SELECT DISTINCT subkind, is_async FROM cpg_nodes WHERE node_kind = 'DEF' ORDER BY ALL"
    found = rows(shop, query)
    assert {kind for kind, is_async in found if is_async is not None} == {"function", "method"}
    assert {("class", None), ("lambda", None), ("method", False), ("method", True)} <= set(found)


def test_a_name_resolves_to_the_binding_python_means(shop):
    query = """
        SELECT r.line_start, b.qname || ':' || t.name
        FROM cpg_edges AS e
        JOIN cpg_nodes AS r ON r.node_id = e.src_id
        JOIN cpg_nodes AS t ON t.node_id = e.dst_id
        JOIN cpg_nodes AS b ON b.node_id = t.parent_id
        WHERE e.edge_kind = 'RESOLVES_TO' AND r.path = 'shop/prices.py' AND r.name IN ('n', 'PRICES')
        ORDER BY r.bstart
    """
    assert rows(shop, query) == [
        (3, "shop.prices:PRICES"),
        (10, "shop.prices:PRICES"),
        (21, "shop.prices.counter:n"),
        (25, "shop.prices.counter:n"),
        (26, "shop.prices.counter:n"),
    ]


def test_spans_are_the_source_they_claim(shop, tmp_path):
    params = rows(
        shop, "SELECT path, bstart, bend, name FROM cpg_nodes WHERE node_kind = 'PARAM' AND path LIKE 'shop/%'"
    )
    assert len(params) == 9
    for path, bstart, bend, name in params:
        assert SHOP[path].encode()[bstart:bend].decode() == name


def test_a_broken_file_keeps_the_facts_of_its_healthy_parts(shop):
    assert ("broken.ok",) in rows(shop, "SELECT qname FROM cpg_nodes WHERE node_kind = 'DEF' AND path = 'broken.py'")
    assert rows(shop, "SELECT DISTINCT path, source FROM parse_errors") == [("broken.py", "tree-sitter")]


def test_properties_are_the_typed_columns_of_nodes_and_edges(shop):
    found = rows(
        shop,
        """
        SELECT prop_key, value_str, value_int, value_bool FROM cpg_props
        WHERE entity_id = (SELECT node_id FROM cpg_nodes WHERE qname = 'shop.cart.Cart.send' AND node_kind = 'DEF')
        """,
    )
    assert ("is_async", None, None, True) in found
    assert ("name", "send", None, None) in found
    assert ("line_start", None, 22, None) in found


def test_the_relation_computed_by_duckdb_is_the_one_spark_made_edges_of(shop):
    relation = "SELECT site_id, target_id, bstart, bend FROM rel_name_binding"
    edges = "SELECT src_id, dst_id, bstart, bend FROM cpg_edges WHERE edge_kind = 'RESOLVES_TO'"
    assert rows(shop, f"({relation} EXCEPT ALL {edges}) UNION ALL ({edges} EXCEPT ALL {relation})") == []
    assert rows(shop, "SELECT count(*) > 20 FROM rel_name_binding") == [(True,)]


def test_a_line_at_the_top_changes_no_id_that_another_file_can_point_to(shop, tmp_path, spark):
    pointed_to = "SELECT node_id FROM cpg_nodes WHERE node_kind IN ('MODULE', 'DEF', 'PARAM', 'SCOPE', 'BINDING')"
    moved = {path: "# a new first line\n" + source for path, source in SHOP.items()}
    root = write_repository(tmp_path, moved)
    ca.build(ca.BuildRequest(root), spark=spark)
    assert sorted(rows(ca.open(root), pointed_to)) == sorted(rows(shop, pointed_to))


def test_polars_and_pandas_read_the_tables_as_they_are(shop):
    location = shop.state.location
    nodes = shop.sql("SELECT count(*) AS n FROM cpg_nodes WHERE node_kind = 'DEF'")["n"].to_pylist()[0]
    by_polars = polars.read_delta(location.table_uri("cpg_nodes"))
    assert by_polars.filter(polars.col("node_kind") == "DEF").height == nodes
    by_pandas = DeltaTable(location.table_uri("cpg_nodes")).to_pandas()
    assert (by_pandas["node_kind"] == "DEF").sum() == nodes
    assert polars.read_delta(location.table_uri("facts")).height == len(SHOP)
