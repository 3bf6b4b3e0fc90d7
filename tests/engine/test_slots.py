"""Slots: a frame that was planned once returns what its slots have each time it is collected."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader knows

from codeanatomy.engine.slots import Slots, is_repeatable, supports_slots

THINGS = pa.schema(
    [
        pa.field("owner", pa.string(), nullable=False),
        pa.field("marks", pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("size", pa.int64())]))),
    ]
)


def things(*rows):
    return pa.Table.from_pylist([{"owner": owner, "marks": marks} for owner, marks in rows], THINGS)


@pytest.fixture(scope="module")
def slots(spark):
    return Slots(spark)


@pytest.fixture
def sizes(slots):
    """The sum of the sizes of each owner's marks, over two slots."""
    slots.put("things", things())
    slots.put("owners", pa.table({"owner": ["a", "b"], "label": ["A", "B"]}))
    marks = slots.frame("things", THINGS).select("owner", F.explode("marks").alias("mark"))
    owners = slots.frame("owners", pa.schema([("owner", pa.string()), ("label", pa.string())]))
    sums = marks.join(owners, "owner").groupBy("label").agg(F.sum("mark.size").alias("size")).coalesce(1)
    return lambda: sorted(tuple(row.values()) for row in sums.toArrow().to_pylist())


def test_a_session_whose_jvm_is_ours_supports_them(spark):
    assert supports_slots(spark)


def test_a_frame_returns_the_rows_that_its_slots_have_then(slots, sizes):
    assert sizes() == []
    one, two, none = {"name": "x", "size": 1}, {"name": None, "size": 2}, {"name": "z", "size": None}
    slots.put("things", things(("a", [one, two]), ("b", None), ("c", [one])))
    assert sizes() == [("A", 3)]
    slots.put("things", pa.concat_tables([things(("b", [none, two])), things(("a", []), ("b", [two]))]))
    assert sizes() == [("B", 4)]
    slots.put("owners", pa.table({"owner": ["b"], "label": ["another"]}))
    assert sizes() == [("another", 4)]
    slots.put("things", things())
    assert sizes() == []


def test_a_plan_does_not_depend_on_the_rows_that_were_there(slots):
    """A source that is known to be empty, or to have one row, could be planned away."""
    slots.put("few", pa.table({"n": pa.array([], pa.int64())}))
    frame = slots.frame("few", pa.schema([("n", pa.int64())])).where("n > 1").select("n").coalesce(1)
    assert frame.toArrow().num_rows == 0
    slots.put("few", pa.table({"n": range(100_000)}))
    assert frame.toArrow().num_rows == 99_998


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda frame: frame.groupBy("owner").count(), id="aggregate"),
        pytest.param(lambda frame: frame.alias("a").join(frame.alias("b"), "owner"), id="join"),
        pytest.param(lambda frame: frame.union(frame), id="union"),
        pytest.param(lambda frame: frame.crossJoin(frame.select(F.col("owner").alias("other"))), id="product"),
    ],
)
def test_a_plan_that_keeps_nothing_is_repeatable(slots, form):
    slots.put("things", things())
    assert is_repeatable(form(slots.frame("things", THINGS)).coalesce(1))


def with_subquery(frame):
    frame.createOrReplaceTempView("slot_of_test")
    return frame.sparkSession.sql("SELECT * FROM slot_of_test WHERE owner = (SELECT max(owner) FROM slot_of_test)")


def cached(frame):
    return frame.select("owner").distinct().cache()


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda frame: frame.repartition(2), id="exchange"),
        pytest.param(lambda frame: frame.join(F.broadcast(frame.select("owner")), "owner"), id="broadcast"),
        pytest.param(lambda frame: frame.orderBy("owner").limit(3), id="limit"),
        pytest.param(with_subquery, id="subquery"),
        pytest.param(cached, id="cache"),
    ],
)
def test_a_plan_that_may_keep_something_of_an_earlier_run_is_not(slots, form):
    slots.put("things", things(("a", None)))
    frame = form(slots.frame("things", THINGS))
    assert not is_repeatable(frame)
    frame.unpersist()
