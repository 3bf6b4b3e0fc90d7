"""A layer of facts that changes is extracted again alone, and the build is what a build from scratch is."""

from dataclasses import replace

import pyarrow as pa
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.revisions import LAYER_VERSIONS
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract import extract_batch, renewal
from codeanatomy.pipeline import context, plan
from codeanatomy.pipeline.verify import verify
from codeanatomy.store.builds import latest_build
from codeanatomy.store.tables import append_rows, read_arrow
from tests.repositories import write_repository

FILES = {"a.py": '"""Source."""\nclass A:\n    def f(self): pass\n', "b.py": "from a import A\nA().f()\n"}


@pytest.fixture
def repo(tmp_path, spark):
    """A repository that was built before the layer `values` changed."""
    root = write_repository(tmp_path, FILES)
    ca.build(ca.BuildRequest(root), spark=spark)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "LAYER_VERSIONS", {**LAYER_VERSIONS, "values": "another"})
        yield root


def stored_facts(root):
    state = ca.open(root).state
    return read_arrow(state, FACTS, latest_build(state).tables[FACTS.name].version)


def test_a_changed_layer_is_extracted_alone(repo, spark, monkeypatch):
    extracted = []

    def record(contents, sources, layers):
        extracted.append((len(contents), set(layers)))
        return extract_batch(contents, sources, layers)

    monkeypatch.setattr(renewal, "extract_batch", record)
    write_repository(repo, {"c.py": "from b import A\n"})  # and a content is new
    result = ca.build(ca.BuildRequest(repo), spark=spark)
    assert sorted(extracted, key=str) == [(1, set(LAYER_VERSIONS)), (2, {"values"})]
    assert result.reasons == ("layer values changed",)
    assert ca.open(repo).sql("SELECT DISTINCT kind, name FROM inc_invalidations").to_pylist() == [
        {"kind": "layer", "name": "values"}
    ]
    facts = stored_facts(repo)
    assert facts.num_rows == len(set(facts["content_id"].to_pylist())) == 3
    assert facts["values_version"].to_pylist() == ["another"] * 3
    assert verify(ca.BuildRequest(repo), spark=spark).equal


def test_workers_keep_other_layers_though_the_columns_of_one_changed(repo, spark, monkeypatch):
    """The stored table has a column more, of `values` in a dataset of `syntax`, and a docstring the source has not."""
    fields = [*FACTS.column("cst_callsites").type.value_type, pa.field("weight", pa.int32())]
    other = {"cst_callsites": pa.list_(pa.struct(fields))}
    older = replace(FACTS, columns=tuple(replace(c, type=other.get(c.name, c.type)) for c in FACTS.columns))
    rows = [row | {"values_version": "older"} for row in stored_facts(repo).to_pylist()]
    for docstring in (each for row in rows for each in row["docstrings"]):
        docstring["text"] = "Stored."
    append_rows(pa.Table.from_pylist(rows, older.schema()), older, ca.open(repo).state)
    monkeypatch.setattr(context, "TASK_BYTES", 10)
    ca.build(ca.BuildRequest(repo), spark=spark)
    facts = stored_facts(repo)
    assert facts["values_version"].to_pylist() == ["another"] * len(FILES)
    assert [each["text"] for row in facts["docstrings"].to_pylist() for each in row] == ["Stored."]
