"""What a terminal gets to see: foreign text cannot command it, and it gets no character that it does not have."""

import io
import json
import sys
import unicodedata

import pytest

from codeanatomy.cli.terminal import (
    ProgressLine,
    encoding_of,
    print_json,
    print_lines,
    print_message,
    print_table,
    printable,
)

HOSTILE = {
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "bell\x07 back\x08 cr\r nul\0": r"bell\x07 back\x08 cr\r nul\x00",
    "two\nlines\tand a tab": r"two\nlines\tand a tab",
    "del\x7f": r"del\x7f",
    "c1\x9b31m\x85": r"c1\x9b31m\x85",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200f": r"\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "zero\u200bwidth\ufeff": r"zero\u200bwidth\ufeff",
    "line\u2028paragraph\u2029": r"line\u2028paragraph\u2029",
    "byte\udce9": r"byte\xe9",
    "half\ud83d": r"half\ud83d",
    "tag\U000e0041": r"tag\U000e0041",
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items())
def test_text_that_commands_a_terminal_is_escaped(text, shown):
    assert printable(text) == shown
    assert printable(printable(text)) == shown


def test_every_control_character_is_escaped_and_no_letter_is():
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        is_obeyed = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        assert (printable(character) == character) is not is_obeyed, hex(number)


@pytest.mark.parametrize("text", ["plain", "naïve café", "日本語", "👍", "\\x1b is a text", "a  b"])
def test_other_text_stays_as_it_is(text):
    assert printable(text) == text


def test_an_ascii_terminal_gets_ascii():
    assert printable("── … a → b · ✓ ✗", "ascii") == "-- ... a -> b - + x"
    assert printable("café 日 👍", "ascii") == r"caf\xe9 \u65e5 \U0001f44d"
    assert printable("café → 日", "latin-1") == r"café -> \u65e5"


@pytest.mark.parametrize(
    ("environ", "encoding"),
    [
        ({"LANG": "en_US.UTF-8"}, "utf-8"),
        ({"LANG": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8"),
        ({"LC_CTYPE": "de_DE.UTF-8", "LANG": "C"}, "utf-8"),
        ({"LANG": "C", "PYTHONIOENCODING": "utf-8"}, "utf-8"),
        ({"LANG": "C", "PYTHONUTF8": "1"}, "utf-8"),
        ({"LANG": "C"}, "ascii"),
        ({"LANG": "POSIX"}, "ascii"),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "ascii"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),  # as Python leaves it where LANG is C
        ({}, "ascii"),
    ],
)
def test_the_locale_says_what_a_terminal_has(environ, encoding):
    assert encoding_of(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), environ) == encoding


def test_a_stream_that_is_ascii_stays_so():
    assert encoding_of(io.TextIOWrapper(io.BytesIO(), encoding="ascii"), {"LANG": "C.UTF-8"}) == "ascii"


def test_lines_tables_and_json_are_safe(capsys):
    text = "".join(HOSTILE)
    print_lines(text)
    print_message(text)
    print_table((text,), [(text,), (1.5,), (None,)])
    print_json({text: text})
    captured = capsys.readouterr()
    for stream in (captured.out, captured.err):
        assert all(line.isprintable() for line in stream.removesuffix("\n").split("\n"))
    assert captured.err.count("\n") == 1
    assert json.loads(captured.out.splitlines()[-1]) == {text: text}


def test_a_progress_line_is_safe():
    stream = io.StringIO()
    with ProgressLine(stream, refresh=0.001) as line:
        line.stage("stage\x1b[31m\n")
        line.advance(1, 2, "files\x07")
        while "stage" not in stream.getvalue():
            pass
    shown = stream.getvalue().replace("\r\x1b[K", "")
    assert shown.isprintable()


def test_a_table_is_printed_as_its_rows_come(capsys):
    def rows():
        for number in range(3000):
            if number == 2999:
                assert len(capsys.readouterr().out.splitlines()) > 2000
            yield number, "x" * (number % 3)

    print_table(("n", "text"), rows())
    assert capsys.readouterr().out.splitlines()[-1].split() == ["2999", "xx"]
