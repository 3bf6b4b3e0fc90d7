"""A build that was made before a column existed stays readable: the column is null there."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import CPG_NODES, FACTS
from codeanatomy.cli.main import main
from codeanatomy.query.graph import Graph
from codeanatomy.store import StateLocation, data_files, open_state
from codeanatomy.store.builds import current_build
from tests.store.samples import overwrite


def earlier(dataset: Dataset, column: str, field: str | None = None) -> pa.Schema:
    """The schema of a dataset before a column of it existed, or a field of the rows that the column lists."""
    schema = dataset.schema()
    place = schema.get_field_index(column)
    if field is None:
        return schema.remove(place)
    fields = [each for each in schema.field(place).type.value_type if each.name != field]
    return schema.set(place, pa.field(column, pa.list_(pa.struct(fields))))


def store_as(schema: pa.Schema, repo: Path, table: str) -> None:
    """Rewrite the data files of a table as if they had been written with this schema."""
    graph = ca.open(repo)
    for name in data_files(graph.state, table, graph.build.tables[table].version):
        file = Path(name)
        plain = file.rename(file.with_name(f"{file.name.partition('.')[0]}.c000.zstd.parquet"))
        for log in (repo / f".codeanatomy/tables/{table}/_delta_log").glob("*.json"):
            log.write_text(log.read_text().replace(file.name, plain.name))
        rows = pq.read_table(plain, partitioning=None).to_pylist()
        overwrite(graph.state, table, str(plain), pa.Table.from_pylist(rows, schema=schema))


@pytest.fixture
def older(built):
    """A build without `is_async` of nodes, and without that of the definitions in its facts."""
    store_as(earlier(CPG_NODES, "is_async"), built, "cpg_nodes")
    store_as(earlier(FACTS, "cst_defs", "is_async"), built, "facts")
    return built


@pytest.mark.parametrize("table", ["cpg_nodes", "cst_defs"])
def test_a_missing_column_is_null(older, built_once, table):
    query = f"SELECT * EXCLUDE (is_async) FROM {table} ORDER BY ALL"
    assert ca.open(older).sql(query) == ca.open(built_once).sql(query)
    assert ca.open(older).sql(f"SELECT DISTINCT is_async FROM {table}").to_pylist() == [{"is_async": None}]


def test_so_it_is_on_an_object_store(older):
    remote = open_state(StateLocation(f"file://{older}/.codeanatomy", {}))
    found = Graph(remote, current_build(remote)).sql("SELECT DISTINCT is_async FROM cpg_nodes")
    assert found.to_pylist() == [{"is_async": None}]


@pytest.mark.parametrize(
    "command",
    [
        ("callers", "shop.prices.price_of"),
        ("sql", "SELECT * FROM cpg_props"),
        ("sql", "SELECT * FROM definitions"),
        ("publish", "--out", "OUT"),
    ],
    ids=" ".join,
)
def test_every_reader_of_the_table_works(older, command, tmp_path):
    words = [str(tmp_path / "out") if word == "OUT" else word for word in command]
    assert main([*words, str(older), "--quiet"]) == 0
