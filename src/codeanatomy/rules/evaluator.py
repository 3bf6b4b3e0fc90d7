"""Evaluate compiled rules on Spark: each output as a frame, its schema as Spark analyses it held against the contract.

Nothing is computed here: frames are plans until the store writes them. The rules of one output become one statement,
because Spark's analysis of a statement costs more than its parsing by far.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.rules.compiler import CompiledRule
from codeanatomy.rules.definition import RuleError


def offer(name: str, frame: DataFrame) -> None:
    """Let rules read `frame` under this dataset name."""
    frame.createOrReplaceTempView(name)


def evaluate(spark: SparkSession, rules: Sequence[CompiledRule]) -> DataFrame:
    """The union of `rules`, which share one output, with every column of it."""
    frame = spark.sql("\nUNION ALL\n".join(_statement(each) for each in rules))
    output = rules[0].rule.output
    expected = {f.name: f.dataType for f in spark_schema(output)}
    for field in frame.schema:
        if expected[field.name] != field.dataType:
            want, got = expected[field.name].simpleString(), field.dataType.simpleString()
            names = ", ".join(each.rule.name for each in rules)
            raise RuleError(f"rule {names}: column {field.name} is {got}, the contract says {want}")
    return frame


@cache
def spark_schema(dataset: Dataset) -> StructType:
    """The dataset's schema in Spark's types."""
    return from_arrow_schema(dataset.schema())


def _statement(compiled: CompiledRule) -> str:
    """Every column of the output, in its order: the rule's own, the contract's constants, typed nulls."""
    constants = compiled.rule.constants()
    columns = [
        f"`{field.name}`"
        if field.name in compiled.columns
        else f"CAST({_literal(constants.get(field.name))} AS {field.dataType.simpleString()}) AS `{field.name}`"
        for field in spark_schema(compiled.rule.output)
    ]
    return f"SELECT {', '.join(columns)} FROM (\n{compiled.rule.sql}\n)"  # noqa: S608 - ours, or held against ours


def _literal(value: str | float | None) -> str:
    """A constant of a contract as SQL."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return "NULL" if value is None else repr(value)
