"""A layer of facts that changes is extracted again alone, and the build is what a build from scratch is."""

from dataclasses import replace

import pyarrow as pa
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.layers import LAYERS
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract import LAYER_VERSIONS, extract_batch, renewal
from codeanatomy.pipeline import context, plan
from codeanatomy.pipeline.verify import verify
from codeanatomy.store.builds import latest_build
from codeanatomy.store.tables import append_rows, read_arrow
from tests.repositories import write_repository

FILES = {"a.py": "class A:\n    def f(self): pass\n", "b.py": "from a import A\nA().f()\n"}


@pytest.fixture
def extracted(monkeypatch):
    """What the driver extracted: the number of contents, and in which layers."""
    calls = []

    def record(contents, sources, layers):
        calls.append((len(contents), set(layers)))
        return extract_batch(contents, sources, layers)

    monkeypatch.setattr(renewal, "extract_batch", record)
    return calls


@pytest.fixture
def repo(tmp_path, spark):
    root = write_repository(tmp_path, FILES)
    ca.build(ca.BuildRequest(root), spark=spark)
    return root


def raise_version(monkeypatch, layer):
    monkeypatch.setattr(plan, "LAYER_VERSIONS", {**LAYER_VERSIONS, layer: "another"})


def stored_facts(root):
    state = ca.open(root).state
    return read_arrow(state, FACTS, latest_build(state).tables[FACTS.name].version)


@pytest.mark.parametrize("layer", [layer.name for layer in LAYERS])
def test_a_changed_layer_is_extracted_alone(repo, spark, monkeypatch, extracted, layer):
    raise_version(monkeypatch, layer)
    result = ca.build(ca.BuildRequest(repo), spark=spark)
    assert extracted == [(len(FILES), {layer})]
    assert result.reasons == (f"layer {layer} changed",)
    assert ca.open(repo).sql("SELECT DISTINCT kind, name FROM inc_invalidations").to_pylist() == [
        {"kind": "layer", "name": layer}
    ]
    facts = stored_facts(repo)
    assert facts[f"{layer}_version"].to_pylist() == ["another"] * len(FILES)
    assert verify(ca.BuildRequest(repo), spark=spark).equal
    assert ca.build(ca.BuildRequest(repo), spark=spark).mode == "noop"


def test_new_contents_are_extracted_in_all_layers_beside_it(repo, spark, monkeypatch, extracted):
    raise_version(monkeypatch, "values")
    write_repository(repo, {"c.py": "from b import A\n"})
    ca.build(ca.BuildRequest(repo), spark=spark)
    assert sorted(extracted, key=str) == [(1, set(LAYER_VERSIONS)), (2, {"values"})]
    extracted.clear()
    write_repository(repo, {"c.py": "from b import A as B\n"})
    assert ca.build(ca.BuildRequest(repo), spark=spark).mode == "incremental"
    assert extracted == [(1, set(LAYER_VERSIONS))]
    assert verify(ca.BuildRequest(repo), spark=spark).equal


def test_workers_keep_what_is_stored_as_well(repo, spark, monkeypatch, extracted):
    monkeypatch.setattr(context, "TASK_BYTES", 10)
    raise_version(monkeypatch, "values")
    ca.build(ca.BuildRequest(repo), spark=spark)
    assert extracted == []  # not in the driver
    assert stored_facts(repo)["values_version"].to_pylist() == ["another"] * len(FILES)
    monkeypatch.undo()
    raise_version(monkeypatch, "values")
    assert verify(ca.BuildRequest(repo), spark=spark).equal


def test_a_layer_that_gains_a_column_leaves_the_others_alone(repo, spark, monkeypatch, extracted):
    """The stored table is that of a program whose layer `values` had one column more, inside a dataset of `syntax`."""
    state = ca.open(repo).state
    fields = [*FACTS.column("cst_callsites").type.value_type, pa.field("weight", pa.int32())]
    other = pa.list_(pa.struct(fields))
    columns = [replace(c, type=other) if c.name == "cst_callsites" else c for c in FACTS.columns]
    older = replace(FACTS, columns=tuple(columns))
    rows = [row | {"values_version": "older"} for row in stored_facts(repo).to_pylist()]
    append_rows(pa.Table.from_pylist(rows, older.schema()), older, state)
    raise_version(monkeypatch, "values")
    ca.build(ca.BuildRequest(repo), spark=spark)
    assert extracted == [(len(FILES), {"values"})]
    assert verify(ca.BuildRequest(repo), spark=spark).equal


def test_a_content_has_one_row(repo, spark, monkeypatch):
    raise_version(monkeypatch, "scopes")
    ca.build(ca.BuildRequest(repo), spark=spark)
    contents = stored_facts(repo)["content_id"].to_pylist()
    assert len(contents) == len(set(contents)) == len(FILES)
