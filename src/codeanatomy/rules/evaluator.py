"""Evaluate compiled rules on Spark: each output as a frame, its schema as Spark analyses it held against the contract.

Nothing is computed here: frames are plans until the store writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows
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
    return reduce(DataFrame.unionByName, (_conformed(_checked(spark, each), each) for each in rules))


def spark_schema(dataset: Dataset) -> StructType:
    """The dataset's schema in Spark's types."""
    return from_arrow_schema(dataset.schema())


def _checked(spark: SparkSession, compiled: CompiledRule) -> DataFrame:
    frame = spark.sql(compiled.rule.sql)
    expected = {f.name: f.dataType for f in spark_schema(compiled.rule.output)}
    for field in frame.schema:
        if expected[field.name] != field.dataType:
            want, got = expected[field.name].simpleString(), field.dataType.simpleString()
            raise RuleError(f"rule {compiled.rule.name}: column {field.name} is {got}, the contract says {want}")
    return frame


def _conformed(frame: DataFrame, compiled: CompiledRule) -> DataFrame:
    """Every column of the output, in its order: the rule's own, the contract's constants, typed nulls."""
    constants = {column: F.lit(value) for column, value in compiled.rule.constants().items()}
    given = {column: F.col(column) for column in frame.columns}
    values = {**constants, **given}
    return frame.select(
        *(values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in spark_schema(compiled.rule.output))
    )
