"""Updates with a SCIP index: it is made new each time, and exactly the files whose documents changed are rebuilt."""

import pytest

import codeanatomy as ca
from codeanatomy.index import scip_format as scip
from codeanatomy.pipeline import context
from codeanatomy.query.scip import write_scip
from tests.repositories import write_repository

FILES = {
    "a.py": "class C:\n    def m(self): pass\n\ndef make():\n    return C()\n",
    "b.py": "from a import make\n\nmade = make()\n",
    "c.py": "from b import made\n\nmade.m()\n",
    "alone.py": "def alone(): pass\nalone()\n",
}
REASONS = "SELECT path, reason_kind FROM inc_impacted_files ORDER BY path"


@pytest.fixture(params=["in the driver", pytest.param("by workers", marks=pytest.mark.slow)])
def built(request, tmp_path, spark, monkeypatch):
    """A repository built with an index, and a function that makes the index new and builds again."""
    if request.param == "by workers":
        monkeypatch.setattr(context, "TASK_BYTES", -1)
        monkeypatch.setattr("codeanatomy.pipeline.analysis.cheaper_in_full", lambda *_: None)
    root, index = write_repository(tmp_path / "repo", FILES), tmp_path / "index.scip"

    def make_index():
        elsewhere = str(tmp_path / "elsewhere")
        ca.build(ca.BuildRequest(root, state=elsewhere), spark=spark)
        write_scip(ca.open(root, state=elsewhere), index)

    def build(*, new_index=True):
        if new_index:
            make_index()
        return ca.build(ca.BuildRequest(root, index="scip", scip=str(index)), spark=spark)

    assert build().mode == "full"
    return root, index, build


def reasons(root):
    return {row["path"]: row["reason_kind"] for row in ca.open(root).sql(REASONS).to_pylist()}


def test_an_index_made_new_rebuilds_what_it_describes_differently(built, spark):
    root, _, build = built
    assert build().mode == "noop"
    (root / "a.py").write_text("class C:\n    pass\n\nclass D:\n    def m(self): pass\n\ndef make():\n    return D()\n")
    assert build().mode == "incremental"
    found = reasons(root)
    assert found["a.py"] == "content_changed"
    assert "c.py" in found
    assert "alone.py" not in found
    assert ca.verify(ca.BuildRequest(root), spark=spark).equal


def test_another_index_of_the_same_files_rebuilds_files_for_that_reason(built, spark):
    root, index, build = built
    parsed = scip.parse(scip.Index, index.read_bytes())
    del parsed.documents[[each.relative_path for each in parsed.documents].index("c.py")]
    index.write_bytes(parsed.SerializeToString())
    result = build(new_index=False)
    assert (result.mode, result.reasons) == ("incremental", ("index changed",))
    assert reasons(root) == {"c.py": "semantic_document"}
    assert [problem.path for problem in result.problems] == ["c.py"]
    assert ca.verify(ca.BuildRequest(root), spark=spark).equal
    assert build().mode == "incremental"
    assert reasons(root) == {"c.py": "semantic_document"}
    assert ca.verify(ca.BuildRequest(root), spark=spark).equal


def test_a_build_without_an_index_keeps_nothing_of_it(built, spark):
    root, *_ = built
    result = ca.build(ca.BuildRequest(root, index="none"), spark=spark)
    assert (result.mode, result.reasons) == ("full", ("index changed",))
    assert "documents" not in result.tables
    assert ca.verify(ca.BuildRequest(root), spark=spark).equal
