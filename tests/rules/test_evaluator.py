"""Rules on Spark: what SQLGlot says of a rule's columns is what Spark makes of them."""

import pytest

from codeanatomy.catalogue.tables import INPUTS, SCAN_REPO, STORED_TABLES, VIEWS
from codeanatomy.engine.frames import frame_of, spark_schema
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import RuleError, load_rules
from codeanatomy.rules.evaluator import RuleInputs


@pytest.fixture(scope="module")
def rules():
    return {each.rule.name: each for each in compile_rules(load_rules())}


@pytest.fixture
def empty_inputs(spark):
    with RuleInputs(spark) as inputs:
        for dataset in (*INPUTS, *STORED_TABLES, *VIEWS):
            inputs.offer(dataset.name, spark.createDataFrame([], spark_schema(dataset)))
        yield inputs


def test_every_output_has_exactly_the_columns_of_its_dataset(rules, empty_inputs):
    for rule in rules.values():
        frame = empty_inputs.evaluate([rule])
        expected = {f.name: f.dataType for f in spark_schema(rule.rule.output)}
        assert {f.name: f.dataType for f in frame.schema} == expected


def test_a_type_that_spark_sees_differently_is_refused(spark, rules, empty_inputs):
    empty_inputs.offer(
        "scan_files",
        spark.sql("SELECT 1 AS file_id, 'p' AS path, 'm' AS module_fqn, true AS is_init, true AS is_stub, '' AS root"),
    )
    with pytest.raises(RuleError, match="column file_id is int, the contract says string"):
        empty_inputs.evaluate([rules["tables.py_module_index"]])


def test_inputs_on_one_session_do_not_see_each_other(spark, rules):
    with RuleInputs(spark) as one, RuleInputs(spark) as other:
        for inputs, name in ((one, "one"), (other, "other")):
            inputs.offer(SCAN_REPO.name, frame_of(spark, SCAN_REPO.table([(name,)])))
        found = [inputs.evaluate([rules["nodes.repo"]]).collect()[0]["node_id"] for inputs in (one, other)]
    assert found == ["r:one", "r:other"]
    assert not [table for table in spark.catalog.listTables() if table.name.startswith("codeanatomy_")]
