"""Results written to files: whole, or not at all."""

import pyarrow as pa
import pytest

from codeanatomy.errors import InputError
from codeanatomy.query.result import QueryResult

SCHEMA = pa.schema([("n", pa.int64())])


def batches(numbers):
    for number in numbers:
        if number is None:
            raise pa.ArrowInvalid("the query failed")
        yield pa.record_batch([[number]], schema=SCHEMA)


def result(*numbers):
    return QueryResult(pa.RecordBatchReader.from_batches(SCHEMA, batches(numbers)))


def test_a_query_that_fails_half_way_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "a.arrow"
    assert result(1, 2).write_arrow(str(path)) == 2
    with pytest.raises(pa.ArrowInvalid):
        result(3, None).write_arrow(str(path))
    assert pa.ipc.open_file(path).read_all()["n"].to_pylist() == [1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["a.arrow"]


def test_a_path_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        result(1).write_arrow(str(tmp_path / "nowhere" / "a.arrow"))


def test_a_result_is_json_or_a_table():
    assert result(1, 2).as_json() == {"columns": ["n"], "rows": [[1], [2]]}
    assert result(1, 2).table()["n"].to_pylist() == [1, 2]
