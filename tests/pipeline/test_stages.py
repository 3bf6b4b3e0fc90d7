"""The stages that `plan` lists are those that the build runs, whatever it has to do."""

import json
from contextlib import nullcontext

import pytest

import codeanatomy as ca
from codeanatomy.cli.main import main
from codeanatomy.pipeline import inputs as build_inputs
from codeanatomy.pipeline.progress import Silent, StageClock
from tests.pipeline.test_invalidations import edited, less_sure
from tests.repositories import SHOP, write_repository


@pytest.fixture
def planned(capsys):
    def plan(root, *options):
        assert main(["plan", str(root), "--json", *options]) == 0
        found = json.loads(capsys.readouterr().out)
        return {**found, "described": found["stages"], "stages": [stage["name"] for stage in found["stages"]]}

    return plan


def run_stages(result):
    return sorted(["start", *(stage.name for stage in result.stages)])


def check(plan, result):
    assert plan["mode"] == result.mode
    assert sorted(plan["stages"]) == run_stages(result)


def test_of_a_first_build_and_one_that_has_nothing_to_do(tmp_path, spark, planned):
    root = write_repository(tmp_path / "repo")
    plan = planned(root)
    check(plan, ca.build(ca.BuildRequest(root), spark=spark))
    assert plan["stages"][:3] == ["scan", "start", "extract"]
    assert plan["stages"][-1] == "publish"
    order = {name: place for place, name in enumerate(plan["stages"])}
    assert order["answers"] < order["module_lookups"]
    assert order["py_module_index"] < order["cpg_nodes"]
    assert planned(root)["stages"] == ["scan"] == [s.name for s in ca.build(ca.BuildRequest(root)).stages]


def test_of_an_update(built, spark, planned):
    (built / "shop/prices.py").write_text(SHOP["shop/prices.py"] + "\n\ndef more(): return price_of('x')\n")
    check(planned(built), ca.build(ca.BuildRequest(built), spark=spark))


@pytest.mark.parametrize("also_a_file", [False, True])
def test_of_a_rule_that_changed(built, spark, planned, monkeypatch, also_a_file):
    rules = edited("edges.inherits", less_sure)
    monkeypatch.setattr(build_inputs, "own_rules", lambda: rules)
    if also_a_file:
        (built / "empty.py").write_text("x = 1\n")
    plan = planned(built)
    assert plan["mode"] == "incremental"
    assert "cpg_edges" in plan["stages"]
    assert ("cpg_nodes" in plan["stages"]) is also_a_file
    check(plan, ca.build(ca.BuildRequest(built), spark=spark))


def test_of_an_update_that_turns_into_a_full_build(built, spark, planned):
    (built / "shop/prices.py").write_text("def price_of(item, currency): return 1\n")
    plan = planned(built, "--max-impact-depth", "0")
    result = ca.build(ca.BuildRequest(built, max_impact_depth=0), spark=spark)
    assert plan["mode"] == "full"
    assert plan["stages"].count("extract") == 2
    check(plan, result)


def test_of_a_build_with_an_index(tmp_path, spark, planned):
    root = write_repository(tmp_path / "repo", {"a.py": "x = 1\n", "b.py": "from a import x\n"})
    plan = planned(root, "--index", "pyrefly")
    assert "index" in plan["stages"]
    check(plan, ca.build(ca.BuildRequest(root, index="pyrefly"), spark=spark))


def test_of_an_update_whose_analysis_needs_the_spark_that_it_starts(built, spark, planned, monkeypatch):
    monkeypatch.setattr("codeanatomy.engine.session.start_engine", lambda settings: nullcontext(lambda: spark))
    monkeypatch.setattr("codeanatomy.pipeline.context.TASK_BYTES", -1)  # workers extract and answer
    (built / "shop/prices.py").write_text(SHOP["shop/prices.py"] + "\n\ndef more(): return price_of('x')\n")
    plan, result = planned(built), ca.build(ca.BuildRequest(built))
    assert sorted(plan["stages"]) == sorted(stage.name for stage in result.stages)


def test_a_build_runs_no_stage_that_is_not_planned():
    clock = StageClock(Silent())
    clock.plan(["scan"])
    with pytest.raises(RuntimeError, match="extract"), clock.stage("extract"):
        pass
