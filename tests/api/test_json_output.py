"""JSON is valid whatever is in it, and whatever happens while it is written."""

import io
import json
from decimal import Decimal

import pytest

from codeanatomy.api.json_output import json_text, write_json
from codeanatomy.errors import MachineError


def no_constant(text):
    raise AssertionError(f"{text} is not JSON")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_null(number):
    value = {"a": number, "b": [1.5, (number, {"c": number})], "d": Decimal("2.50")}
    assert json.loads(json_text(value), parse_constant=no_constant) == {
        "a": None,
        "b": [1.5, [None, {"c": None}]],
        "d": 2.5,
    }


def test_text_comes_back_as_it_was_and_is_ascii_on_the_way():
    text = "\x1b[31m \x7f \x9b \u202e \u2028 \udce9 \ud83d 👍 \0"
    assert json_text(text).isascii()
    assert json_text(text).isprintable()
    assert json.loads(json_text(text)) == text


def test_rows_are_written_as_they_come():
    stream = io.StringIO()

    def rows():
        yield [1]
        assert "[1]" in stream.getvalue()
        yield [float("nan")]

    assert write_json({"columns": ["n"], "rows": rows()}, stream) is None
    assert json.loads(stream.getvalue(), parse_constant=no_constant) == {"columns": ["n"], "rows": [[1], [None]]}


def test_an_error_on_the_way_ends_the_object_and_is_in_it():
    def rows():
        yield [1]
        raise MachineError("no more", hint="do something")

    stream = io.StringIO()
    error = write_json({"tables": {"t": {"added": rows(), "removed": iter(())}}}, stream)
    assert isinstance(error, MachineError)
    assert json.loads(stream.getvalue()) == {
        "tables": {"t": {"added": [[1]]}},
        "error": "no more",
        "hint": "do something",
        "exit_code": 3,
    }
