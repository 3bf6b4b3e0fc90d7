"""Slots: inputs of a fixed schema and place whose rows change, so that a statement is planned once and run many times.

Spark takes far longer to plan the statements of a small update than to run them. A slot is an Arrow file that a task
opens when it runs: a frame over slots that was planned once returns, each time it is collected, what it would return if
it was planned for the rows that the slots have then. That holds only for plans that keep nothing of an earlier run: no
exchange, broadcast, cache or subquery (`is_repeatable`).

Slots are read in the JVM, by a data source (`SlotSource.java`) that Spark's own compiler, Janino, compiles in the
running session. So they need a JVM that is a child of this process; elsewhere there are none.
"""

from __future__ import annotations

import re
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.engine.session import log_of
from codeanatomy.engine.settings import ONE_PARTITION

_SOURCE = "codeanatomy.SlotSource"

_REPEATABLE = frozenset(
    {
        "BatchScan",
        "CartesianProduct",
        "Coalesce",
        "ColumnarToRow",
        "Expand",
        "Filter",
        "Generate",
        "HashAggregate",
        "InputAdapter",
        "LocalTableScan",
        "ObjectHashAggregate",
        "Project",
        "Scan OneRowRelation",
        "ShuffledHashJoin",
        "Sort",
        "SortAggregate",
        "SortMergeJoin",
        "Union",
        "WholeStageCodegen",
        "Window",
        "WindowGroupLimit",
    }
)
"""Operators that compute all they return each time they run."""

_OPERATOR = re.compile(r"^[\s:+-]*(?:\*\(\d+\) )?(Scan OneRowRelation|[A-Z]\w+)", re.MULTILINE)


class Slots:
    """The slots of one session, by name, and a session of their own to plan statements over them."""

    def __init__(self, spark: SparkSession) -> None:
        """`spark` must be a session that `supports_slots`."""
        scratch = spark.conf.get("spark.local.dir")
        self._folder = Path(tempfile.mkdtemp(prefix="slots-", dir=scratch))
        _load_source(spark, self._folder / "classes")
        self.session = spark.newSession()
        for key, value in ONE_PARTITION.items():
            self.session.conf.set(key, value)

    def frame(self, name: str, schema: pa.Schema) -> DataFrame:
        """The rows that the slot will have when the frame is collected."""
        reader = self.session.read.format(_SOURCE).schema(from_arrow_schema(schema))
        return reader.option("path", str(self._file(name))).load().coalesce(1)

    def put(self, name: str, rows: pa.Table) -> None:
        """Replace the rows of a slot."""
        with pa.ipc.new_stream(self._file(name), rows.schema) as stream:
            stream.write_table(rows.combine_chunks())

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.arrow"


def supports_slots(spark: SparkSession) -> bool:
    """Whether all of Spark runs in a JVM that is a child of this process."""
    return (
        isinstance(spark, SparkSession)
        and log_of(spark) is not None
        and str(spark.conf.get("spark.master")).split("[")[0] == "local"
    )


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame, collected again, is computed from what its slots have then; plans it."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return set(_OPERATOR.findall(plan)) <= _REPEATABLE and "ubquery" not in plan


def _load_source(spark: SparkSession, folder: Path) -> None:
    """Compile the data source, and let Spark find its classes."""
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook((resources.files(__package__) / "SlotSource.java").read_text(encoding="utf-8"))
    for name, code in compiler.getBytecodes().items():
        file = folder / (name.replace(".", "/") + ".class")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(code))
    loader.addURL(jvm.java.io.File(str(folder)).toURI().toURL())
