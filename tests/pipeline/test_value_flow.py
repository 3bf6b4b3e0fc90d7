"""Builds that follow values: who passes what decides which files an update rebuilds."""

import pytest

import codeanatomy as ca
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import verify
from tests.repositories import write_repository

PROGRAM = {
    "shop/__init__.py": "",
    "shop/run.py": "def apply(f):\n    return f()\n",
    "shop/prices.py": "def gross(): pass\ndef net(): pass\n",
    "shop/cart.py": "from shop.prices import gross\nfrom shop.run import apply\napply(gross)\n",
    "shop/quiet.py": "def alone(): pass\n",
}
CALLED = "SELECT callee, method FROM calls WHERE caller = 'shop.run.apply' ORDER BY ALL"
REBUILT = "SELECT path, reason_kind, caused_by_path FROM inc_impacted_files ORDER BY path"


@pytest.fixture(params=["spark", "warm"])
def build(request, tmp_path):
    """Builds, updates and verifies one repository, on a bare session or with what a process keeps."""
    root = write_repository(tmp_path / "repo", PROGRAM)
    engine = request.getfixturevalue(request.param)

    def run(**changed):
        for name, text in changed.items():
            (root / f"shop/{name}.py").write_text(text)
        asked = BuildRequest(root, value_flow=True)
        result = engine.build(asked) if request.param == "warm" else ca.build(asked, spark=engine)
        assert verify(BuildRequest(root), spark=getattr(engine, "spark", engine)).equal
        return result, ca.open(root)

    return run


def called(graph):
    return [tuple(row.values()) for row in graph.sql(CALLED).to_pylist()]


def rebuilt(graph):
    return [tuple(row.values()) for row in graph.sql(REBUILT).to_pylist()]


def test_a_function_that_is_passed_is_called_where_it_arrives(build):
    assert called(build()[1]) == [("shop.prices.gross", "flow")]


def test_another_argument_rebuilds_the_file_that_calls_it(build):
    build()
    _, graph = build(cart="from shop.prices import net\nfrom shop.run import apply\napply(net)\n")
    assert called(graph) == [("shop.prices.net", "flow")]
    assert rebuilt(graph) == [
        ("shop/cart.py", "content_changed", None),
        ("shop/run.py", "caller_qname", "shop/cart.py"),
    ]


def test_a_caller_that_goes_takes_with_it_what_only_it_passed(build):
    build(more="from shop.prices import net\nfrom shop.run import apply\napply(net)\n")
    _, graph = build(cart="")
    assert called(graph) == [("shop.prices.net", "flow")]
    _, graph = build(more="")
    assert called(graph) == []
    assert [path for path, *_ in rebuilt(graph)] == ["shop/more.py", "shop/run.py"]


def test_what_is_passed_around_a_circle_goes_with_its_only_source(build):
    circle = "from shop import run\ndef apply(f):\n    f()\n    run.apply(f)\n"
    around = "from shop import circle\ndef apply(f):\n    f()\n    circle.apply(f)\n"
    _, graph = build(circle=circle, run=around)
    assert called(graph) == [("shop.circle.apply", "import"), ("shop.prices.gross", "flow")]
    _, graph = build(cart="")
    assert called(graph) == [("shop.circle.apply", "import")]


def test_an_edit_that_passes_nothing_else_rebuilds_one_file(build):
    build()
    _, graph = build(cart=PROGRAM["shop/cart.py"] + "total = 1\n")
    assert [path for path, *_ in rebuilt(graph)] == ["shop/cart.py"]


def test_what_is_passed_can_be_asked(build):
    _, graph = build()
    query = "SELECT path, slots, values FROM flow_evaluations JOIN repo_files USING (file_id) WHERE len(slots) > 0"
    [row] = graph.sql(query).to_pylist()
    assert row["path"] == "shop/cart.py"
    assert [slot.rpartition(":")[2] for slot in row["slots"]] == ["f"]


def test_an_update_of_another_process_reads_what_is_stored(build, tmp_path, spark):
    build()
    (tmp_path / "repo/shop/cart.py").write_text("from shop.prices import net\nfrom shop.run import apply\napply(net)\n")
    result = ca.build(BuildRequest(tmp_path / "repo", value_flow=True), spark=spark)
    assert result.mode == "incremental"
    assert called(ca.open(tmp_path / "repo")) == [("shop.prices.net", "flow")]
    assert verify(BuildRequest(tmp_path / "repo"), spark=spark).equal


def test_without_value_flow_nothing_is_followed_and_the_build_is_another(tmp_path, spark):
    root = write_repository(tmp_path / "repo", PROGRAM)
    ca.build(BuildRequest(root, value_flow=True), spark=spark)
    result = ca.build(BuildRequest(root), spark=spark)
    assert result.mode == "full"
    assert result.reasons == ("value flow changed",)
    assert called(ca.open(root)) == []
    assert "flow_evaluations" not in result.tables


def test_a_build_with_value_flow_can_be_replayed(tmp_path, spark):
    root = write_repository(tmp_path / "repo", PROGRAM)
    result = ca.build(BuildRequest(root, value_flow=True), spark=spark)
    assert ca.replay(BuildRequest(root), result.build_id).equal
