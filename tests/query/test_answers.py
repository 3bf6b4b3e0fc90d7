"""Answers written to files: whole, or not at all."""

import pyarrow as pa
import pytest

from codeanatomy.errors import InputError
from codeanatomy.query.answers import write_arrow

SCHEMA = pa.schema([("n", pa.int64())])


def batches(numbers):
    for number in numbers:
        if number is None:
            raise pa.ArrowInvalid("the query failed")
        yield pa.record_batch([[number]], schema=SCHEMA)


def reader(*numbers):
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(numbers))


def test_a_query_that_fails_half_way_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "a.arrow"
    assert write_arrow(reader(1, 2), str(path)) == 2
    with pytest.raises(pa.ArrowInvalid):
        write_arrow(reader(3, None), str(path))
    assert pa.ipc.open_file(path).read_all()["n"].to_pylist() == [1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["a.arrow"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_arrow(reader(1), str(tmp_path / "nowhere" / "a.arrow"))
