"""A digest says which rows there are, and how often; nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from codeanatomy.catalogue.columns import Column, Dataset
from codeanatomy.store import NO_ROWS, SetDigest, total
from codeanatomy.store.digests import digest_from, digest_sums, hash_columns

from .samples import THINGS, frame_of, thing, things


def digest_of(frame: DataFrame) -> SetDigest:
    return digest_from(frame.select(*hash_columns(THINGS)).agg(*digest_sums()).collect()[0])


def digest(spark: SparkSession, rows: list[dict[str, Any]]) -> SetDigest:
    return digest_of(frame_of(spark, THINGS, rows))


@pytest.mark.parametrize("partitions", [1, 2, 8])
def test_order_and_partitions_do_not_matter(spark: SparkSession, partitions: int) -> None:
    straight = digest(spark, things())
    assert straight.rows == 40
    assert digest_of(frame_of(spark, THINGS, things()[::-1]).repartition(partitions)) == straight


def test_order_of_columns_and_map_entries_does_not_matter(spark: SparkSession) -> None:
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    frame = frame_of(spark, THINGS, [thing(1, props=one)])
    assert digest_of(frame.select(*reversed(frame.columns))) == digest(spark, [thing(1, props=other)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": None, "naming": "x"}, {"name": "x", "naming": None}),
        ({"name": None}, {"name": ""}),
        ({"name": "ab", "naming": "c"}, {"name": "a", "naming": "bc"}),
        ({"size": 1}, {"size": 2}),
        ({"size": None}, {"size": 0}),
        ({"is_big": None}, {"is_big": False}),
        ({"weight": 1.0}, {"weight": 1.0000000000000002}),
        ({"tags": None}, {"tags": []}),
        ({"tags": []}, {"tags": [None]}),
        ({"tags": [None, "x"]}, {"tags": ["x", None]}),
        ({"tags": ["a,b"]}, {"tags": ["a", "b"]}),
        ({"tags": ["null"]}, {"tags": [None]}),
        ({"props": None}, {"props": {}}),
        ({"props": {"a": None}}, {"props": {}}),
        ({"props": {"a": "b"}}, {"props": {"b": "a"}}),
        ({"parts": [{"at": 1, "of": None}]}, {"parts": [{"at": 1, "of": ""}]}),
        (
            {"parts": [{"at": 1, "of": "x"}, {"at": 2, "of": None}]},
            {"parts": [{"at": 1, "of": None}, {"at": 2, "of": "x"}]},
        ),
    ],
)
def test_one_cell_matters(spark: SparkSession, one: dict[str, Any], other: dict[str, Any]) -> None:
    assert digest(spark, [thing(1, **one)]) != digest(spark, [thing(1, **other)])


def test_names_of_columns_matter(spark: SparkSession) -> None:
    frame = frame_of(spark, THINGS, [thing(1)])
    renamed = Dataset(
        "things", "", tuple(replace(c, name={"name": "named"}.get(c.name, c.name)) for c in THINGS.columns)
    )
    sums = frame.withColumnRenamed("name", "named").select(*hash_columns(renamed)).agg(*digest_sums())
    assert digest_from(sums.collect()[0]) != digest_of(frame)


def test_how_often_matters(spark: SparkSession) -> None:
    once, twice = digest(spark, things(range(3))), digest(spark, [*things(range(3)), thing(2)])
    assert once != twice
    assert digest(spark, [thing(1), thing(1)]) != digest(spark, [thing(2), thing(2)])


def test_the_lanes_are_independent(spark: SparkSession) -> None:
    value = digest(spark, things()).hash
    assert len(value) == 32
    assert value[:16] != value[16:]


def test_digests_add_up(spark: SparkSession) -> None:
    halves = digest(spark, things(range(17))), digest(spark, things(range(17, 40)))
    assert total(halves) == digest(spark, things())
    assert total([]) == NO_ROWS
    assert NO_ROWS + halves[0] == halves[0]


def test_sums_wrap_around() -> None:
    last = SetDigest(1, "f" * 32)
    assert last + SetDigest(1, "0" * 15 + "1" + "0" * 15 + "2") == SetDigest(2, "0" * 31 + "1")


def test_a_map_inside_a_list_is_refused() -> None:
    nested = Dataset("nested", "", (Column("a", pa.list_(pa.map_(pa.string(), pa.string())), ""),))
    with pytest.raises(TypeError, match="canonical"):
        hash_columns(nested)
