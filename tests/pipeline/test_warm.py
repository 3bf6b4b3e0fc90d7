"""Builds of a process that stays: what they keep is right, is used, and is dropped when it may be wrong.

That their rows are those of a build from scratch is tested by the step cases and the random edits, which run on them.
"""

import shutil
from dataclasses import replace

import pytest

import codeanatomy as ca
from codeanatomy.engine import slots
from codeanatomy.engine.slots import Slots
from codeanatomy.errors import StateError
from codeanatomy.pipeline import inputs
from codeanatomy.pipeline import warm as warm_module
from codeanatomy.pipeline.warm import Warm
from codeanatomy.rules import prepared as prepared_module
from codeanatomy.rules.prepared import PreparedRules
from codeanatomy.store.opened import Opened
from tests.incremental.updates import unequal
from tests.pipeline.test_invalidations import edited, less_sure


@pytest.fixture
def own(spark):
    """A process that has built nothing yet."""
    with Warm(spark) as process:
        yield process


def edit(root, number):
    with (root / "shop/prices.py").open("a") as file:
        file.write(f"\n\ndef more_{number}():\n    return price_of('x')\n")


def updated(engine, root, number):
    """Edit the repository and bring it up to date."""
    edit(root, number)
    result = ca.build(ca.BuildRequest(root), warm=engine)
    assert result.mode == "incremental"
    return result


def differences(root, spark):
    return unequal(ca.verify(ca.BuildRequest(root), spark=spark))


def test_rules_are_planned_once(own, built, spark, monkeypatch):
    updated(own, built, 1)
    evaluate = PreparedRules.evaluate
    planned = []
    monkeypatch.setattr(
        PreparedRules,
        "evaluate",
        lambda self, rules: planned.append([each.rule.name for each in rules]) or evaluate(self, rules),
    )
    updated(own, built, 2)
    assert planned == []
    assert not differences(built, spark)


def test_generated_code_is_compiled_once(own, built, spark, monkeypatch):
    compiled = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"}
    monkeypatch.setattr(slots, "ONE_PARTITION", {**slots.ONE_PARTITION, **compiled})
    updated(own, built, 1)
    updated(own, built, 2)
    compilations = spark.sparkContext._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    before = compilations.getCount()
    updated(own, built, 3)
    assert compilations.getCount() == before


@pytest.mark.parametrize("index", ["none", pytest.param("pyrefly", marks=pytest.mark.slow)])
def test_every_statement_of_an_update_can_be_run_again(index, own, built_once, indexed_once, tmp_path, monkeypatch):
    root = shutil.copytree(indexed_once if index == "pyrefly" else built_once, tmp_path / "repo")
    kept = []
    repeatable = prepared_module.is_repeatable
    monkeypatch.setattr(prepared_module, "is_repeatable", lambda frame: kept.append(repeatable(frame)) or kept[-1])
    edit(root, 1)
    own.build(ca.BuildRequest(root, index=index))
    assert len(kept) > 5
    assert all(kept)


def test_what_was_read_is_not_read_again(own, built, monkeypatch):
    read = []
    keep = Opened.keep
    monkeypatch.setattr(
        Opened, "keep", lambda self, table, key, get: keep(self, table, key, lambda: read.append((table, key)) or get())
    )
    updated(own, built, 1)
    first = set(read)
    read.clear()
    updated(own, built, 2)
    assert {table for table, _ in first} > {"facts", "module_lookups", "repo_files"}
    assert read
    assert not first & set(read)


def test_a_build_of_another_process_is_noticed(own, built, spark):
    updated(own, built, 1)
    edit(built, 2)
    ca.build(ca.BuildRequest(built), spark=spark)
    updated(own, built, 3)
    assert not differences(built, spark)


def another_state_in_its_place(root, spark):
    """A state whose tables have the same versions, and other rows."""
    shutil.rmtree(root / ".codeanatomy")
    (root / "shop/prices.py").write_text("def price_of(name):\n    return 3\n")
    ca.build(ca.BuildRequest(root), spark=spark)
    edit(root, 7)
    ca.build(ca.BuildRequest(root), spark=spark)


def test_another_state_in_its_place_is_noticed(own, built, spark):
    updated(own, built, 1)
    another_state_in_its_place(built, spark)
    updated(own, built, 2)
    assert not differences(built, spark)


def test_a_table_that_is_made_again_is_read_again(own, built, spark):
    own.build(ca.BuildRequest(built, full=True))
    shutil.rmtree(built / ".codeanatomy/tables/cpg_edges")
    own.build(ca.BuildRequest(built, full=True))
    updated(own, built, 1)
    assert not differences(built, spark)


def test_an_update_that_fails_leaves_nothing_behind(own, built, spark, monkeypatch):
    updated(own, built, 1)
    edit(built, 2)
    with monkeypatch.context() as patch:
        patch.setattr("codeanatomy.pipeline.publishing.publish", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            own.build(ca.BuildRequest(built))
    updated(own, built, 3)
    assert not differences(built, spark)


def test_a_rule_that_changed_is_planned_again(own, built, spark, monkeypatch):
    updated(own, built, 1)
    monkeypatch.setattr(inputs, "own_rules", lambda: edited("edges.calls", less_sure))
    updated(own, built, 2)
    assert not differences(built, spark)


def test_states_that_are_evicted_are_read_again(own, built, spark):
    updated(own, built, 1)
    assert own.states() == [str(built / ".codeanatomy")]
    own.evict(own.states()[0])
    assert own.states() == []
    updated(own, built, 2)
    assert not differences(built, spark)


# Without any of these, rows are wrong, or the build fails: a test that passed would protect nothing.


def test_rows_would_be_wrong_with_the_plan_of_another_rule(own, built, spark, monkeypatch):
    def by_names(statement):
        key = statement.key if isinstance(statement.key, str) else tuple(name for name, _ in statement.key)
        return replace(statement, key=key)

    collect = PreparedRules.collect
    monkeypatch.setattr(PreparedRules, "collect", lambda self, one, form: collect(self, by_names(one), form))
    monkeypatch.setattr(prepared_module, "identity_of", lambda *_: "always the same")
    updated(own, built, 1)
    monkeypatch.setattr(inputs, "own_rules", lambda: edited("edges.calls", less_sure))
    updated(own, built, 2)
    assert differences(built, spark)


def test_rows_would_be_wrong_if_a_slot_was_not_rewritten(own, built, spark, monkeypatch):
    updated(own, built, 1)
    put = Slots.put
    monkeypatch.setattr(Slots, "put", lambda self, name, rows: name == "cst_defs" or put(self, name, rows))
    updated(own, built, 2)
    assert differences(built, spark)


def test_a_statement_that_reads_what_this_build_did_not_offer_is_refused(own, built, monkeypatch):
    updated(own, built, 1)
    offer_rows = PreparedRules.offer_rows
    monkeypatch.setattr(
        PreparedRules,
        "offer_rows",
        lambda self, name, *rest: name == "cst_defs" or offer_rows(self, name, *rest),
    )
    edit(built, 2)
    with pytest.raises(AssertionError, match="cst_defs has the rows of an earlier build"):
        own.build(ca.BuildRequest(built))


def test_a_state_that_moved_on_would_be_misread(own, built, spark, monkeypatch):
    updated(own, built, 1)
    another_state_in_its_place(built, spark)
    kept = own._workspaces[str(built / ".codeanatomy")].opened
    monkeypatch.setattr(warm_module.Warm, "opened_before", lambda *_: kept.for_next_build())
    with pytest.raises(StateError):
        updated(own, built, 2)


def test_only_what_is_used_is_kept():
    opened = Opened()
    assert [opened.keep("t", key, lambda key=key: [key]) for key in (1, 2)] == [[1], [2]]
    following = opened.for_next_build()
    assert following.keep("t", 1, lambda: ["read again"]) == [1]
    last = following.for_next_build()
    assert last.keep("t", 1, lambda: ["read again"]) == [1]
    assert last.keep("t", 2, lambda: ["read again"]) == ["read again"]
    last.forget("t")
    assert last.keep("t", 1, lambda: ["read again"]) == ["read again"]


def test_compiled_code_has_room_for_many_builds(spark):
    pools = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    room = sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName())
    assert room >= 200 << 20, "the first compiler alone has 48 MB, and a JVM that fills it ends"
