"""Evaluate compiled rules on Spark: each output as a frame whose schema is checked against the contract.

Nothing is computed here: frames are plans until the store writes them. The rules of one output become one statement,
because analysing a statement takes Spark far longer than parsing it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from codeanatomy.engine.frames import spark_schema
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.rules.definition import RuleError


class RuleInputs:
    """The frames that rules read, by dataset name. Other evaluations on the same session do not see them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._prefix = f"codeanatomy_{secrets.token_hex(8)}_"
        self._views: dict[str, str] = {}

    def offer(self, name: str, frame: DataFrame) -> None:
        """Let rules read `frame` as this dataset."""
        frame.createOrReplaceTempView(f"{self._prefix}{name}")
        self._views[name] = f"{self._prefix}{name}"

    def evaluate(self, rules: Sequence[CompiledRule]) -> DataFrame:
        """The union of `rules`, which share one output, with every column of it."""
        frame = self._spark.sql(self._statement(rules))
        expected = {f.name: f.dataType for f in spark_schema(rules[0].rule.output)}
        for field in frame.schema:
            if expected[field.name] != field.dataType:
                want, got = expected[field.name].simpleString(), field.dataType.simpleString()
                names = ", ".join(each.rule.name for each in rules)
                raise RuleError(f"rule {names}: column {field.name} is {got}, the contract says {want}")
        return frame

    def physical_plan(self, rules: Sequence[CompiledRule]) -> str:
        """How Spark would run `rules`, as text."""
        explained = self._spark.sql(f"EXPLAIN FORMATTED {self._statement(rules)}").collect()
        return str(explained[0]["plan"])

    def _statement(self, rules: Sequence[CompiledRule]) -> str:
        return "\nUNION ALL\n".join(each.sql_over(self._views) for each in rules)

    def __enter__(self) -> RuleInputs:
        """Enter; no input is registered yet."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Drop the views of the inputs."""
        for view in self._views.values():
            self._spark.catalog.dropTempView(view)
