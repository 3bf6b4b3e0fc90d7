"""Rules on Spark: what SQLGlot says of a rule's columns is what Spark makes of them."""

import pytest

from codeanatomy.catalogue.tables import INPUTS, STORED_TABLES, VIEWS
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import RuleError, load_rules
from codeanatomy.rules.evaluator import evaluate, offer, spark_schema


@pytest.fixture(scope="module")
def empty_inputs(spark):
    for dataset in (*INPUTS, *STORED_TABLES, *VIEWS):
        offer(dataset.name, spark.createDataFrame([], spark_schema(dataset)))


def test_every_output_has_exactly_the_columns_of_its_dataset(spark, empty_inputs):
    for rule in compile_rules(load_rules()):
        frame = evaluate(spark, [rule])
        expected = {f.name: f.dataType for f in spark_schema(rule.rule.output)}
        assert {f.name: f.dataType for f in frame.schema} == expected


def test_a_type_that_spark_sees_differently_is_refused(spark, empty_inputs):
    (rule,) = [r for r in compile_rules(load_rules()) if r.rule.name == "tables.py_module_index"]
    offer(
        "scan_files",
        spark.sql("SELECT 1 AS file_id, 'p' AS path, 'm' AS module_fqn, true AS is_init, true AS is_stub, '' AS root"),
    )
    with pytest.raises(RuleError, match="column file_id is int, the contract says string"):
        evaluate(spark, [rule])
