"""SCIP indexes: every occurrence on the very bytes of its name, whatever the file is written in; no bad input trusted.

`fixtures/tricky.scip` is what scip-python 0.6.6 made of `fixtures/tricky`, through a mirror of links in /tmp/tricky:

    run_scip_python(find_scip_python(repo), Path("/tmp/tricky"), Path("tricky.scip"), Limits(120, MEMORY_BYTES))
"""

import pickle
from pathlib import Path

import pytest

from codeanatomy.errors import InputError
from codeanatomy.extract.source import Source, read_source
from codeanatomy.index import scip_format as scip
from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, READ, Diagnostic, Occurrence
from codeanatomy.index.positions import Positions
from codeanatomy.index.scip import open_index, read_document, read_external_symbols

FIXTURES = Path(__file__).parent / "fixtures"
TREE = FIXTURES / "tricky"
INDEX = open_index(FIXTURES / "tricky.scip")
PATHS = sorted(INDEX.documents)
UNITS = {scip.UTF8: "utf-8", scip.UTF16: "utf-16-le", scip.UTF32: "utf-32-le"}


def text_of(path):
    source = read_source((TREE / path).read_bytes())
    assert isinstance(source, Source)
    return source


def fixture_document(path):
    return read_document(INDEX.read(INDEX.documents[path]), (TREE / path).read_bytes(), None, INDEX.tool, path)


def at(path, occurrence):
    return text_of(path).text[occurrence.bstart : occurrence.bend].decode()


def document(*occurrences, unit=scip.UTF16, path="a.py", **fields):
    return scip.encode(
        scip.new(scip.Document, relative_path=path, occurrences=list(occurrences), position_encoding=unit, **fields)
    )


def occurrence(place, symbol="s m p 1 m/x.", roles=0, **fields):
    return scip.new(scip.Occurrence, range=place, symbol=symbol, symbol_roles=roles, **fields)


def information(symbol, **fields):
    return scip.new(scip.SymbolInformation, symbol=symbol, **fields)


def read(data, source=b"x = 1\n", tool="any"):
    return read_document(data, source, None, tool, "a.py")


def spans(data, source, tool="any"):
    return [(each.bstart, each.bend) for each in read(data, source, tool).occurrences]


@pytest.mark.parametrize("path", PATHS)
def test_an_occurrence_stands_on_its_name(path):
    found = fixture_document(path)
    assert found.occurrences
    assert (found.dropped_places, found.dropped_symbols) == (0, 0)
    names = {symbol.symbol: symbol.display_name for symbol in found.symbols}
    for each in found.occurrences:
        text, name = at(path, each), names.get(each.symbol) or (symbols.dotted(each.symbol) or "").rpartition(".")[2]
        if symbols.is_local(each.symbol):
            assert text.isidentifier() or text == "."  # `from . import base`
        elif each.symbol.endswith("/__init__:"):
            module = symbols.dotted(each.symbol)
            written = {"", module, module.rpartition(".")[2]}  # "": the start of its own file
            assert text.lstrip(".") in written or path == "star.py"  # there, names have the symbol of their module
        elif text == "𝒳":
            assert name == "X"  # as Python has it, too
        else:
            assert text in (name, f"{name} as Bag")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("wide.py", [(42, "after_emoji"), (73, "after_cjk"), (111, "after_combining"), (168, "family")]),
        ("wide.py", [(230, "family"), (243, "naïve"), (258, "größe"), (276, "変数"), (285, "größe"), (295, "naïve")]),
        ("wide.py", [(324, "größe"), (334, "after_emoji"), (350, "変数"), (372, "naïve")]),
        ("wide.py", [(386, "función"), (395, "señal"), (403, "𝒳"), (408, "naïve"), (449, "résultat"), (487, "𝒳")]),
        ("tabs.py", [(72, "added"), (80, "basket"), (108, "added"), (123, "fill")]),
        ("crlf.py", [(90, "open"), (157, "text"), (163, "how"), (180, "opened"), (204, "how")]),
        ("lone_cr.py", [(32, "old"), (55, "doubled"), (85, "doubled"), (100, "old")]),
        ("mixed.py", [(11, "second"), (34, "third"), (42, "second"), (77, "second"), (94, "fifth")]),
        ("bom.py", [(3, "first"), (22, "second"), (31, "first"), (37, "third")]),
        ("latin1.py", [(60, "after_accent"), (88, "after_pair"), (129, "other"), (191, "suite"), (247, "valeur")]),
        ("no_newline.py", [(34, "stub")]),
        ("broken.py", [(32, "whole"), (71, "half"), (76, "rate")]),
    ],
)
def test_exact_places(path, expected):
    found = {(each.bstart, at(path, each)) for each in fixture_document(path).occurrences}
    assert found >= set(expected)


def test_known_line_starts_change_nothing():
    for path in PATHS:
        content = (TREE / path).read_bytes()
        slices = INDEX.read(INDEX.documents[path])
        known = read_document(slices, content, text_of(path).line_starts, INDEX.tool, path)
        assert known == fixture_document(path)


def test_what_is_said_of_symbols():
    found = {
        symbol.symbol.partition("`/")[2] or symbol.symbol: symbol for symbol in fixture_document("shop/base.py").symbols
    }
    item = found["Item#"]
    assert (item.kind, item.display_name, item.qname) == ("class", "Item", "shop.base.Item")
    assert item.signature == "class Item(ABC):"
    assert item.documentation == "Something to sell."
    assert found["__init__:"].kind == "module"
    assert found["__init__:"].display_name == "shop.base"
    assert found["Item#free()."].kind == "method"
    assert found["logged()."].kind == "function"
    assert found["Item#__init__().(price)"].kind == "parameter"
    codec = [symbol for symbol in found.values() if symbol.display_name == "codec"]
    assert [(symbol.kind, symbol.qname) for symbol in codec if symbols.is_local(symbol.symbol)] == [("local", None)]


def test_how_symbols_relate():
    related = {
        (symbols.dotted(each.symbol), symbols.dotted(each.related_symbol), each.is_implementation, each.is_reference)
        for each in fixture_document("shop/items.py").relationships
    }
    assert related >= {
        ("shop.items.Fruit", "shop.base.Item", True, False),
        ("shop.items.Apple", "shop.items.Fruit", True, False),
        ("shop.items.Apple.label", "shop.items.Fruit.label", True, False),
    }


def test_mentions_are_the_modules_of_all_symbols():
    assert fixture_document("tabs.py").mentions == {"tabs", "shop.items"}
    assert "os.path" in fixture_document("shop/items.py").mentions


def test_roles_are_kept():
    found = {(at("bom.py", each), each.bstart): each.roles for each in fixture_document("bom.py").occurrences}
    assert (found["first", 3], found["first", 31]) == (DEFINITION, READ)


def test_external_symbols_are_spelled_the_same_way():
    found = {symbol.qname: symbol for symbol in read_external_symbols(INDEX.read(INDEX.external))}
    assert found["<builtin>.print"].kind == "function"
    assert found["<builtin>.print"].symbol == "scip-python python python-stdlib . builtins/print()."
    assert "def print" in found["<builtin>.print"].signature


def test_an_opened_index_can_be_sent_to_workers():
    assert pickle.loads(pickle.dumps(INDEX)) == INDEX
    assert (INDEX.tool, INDEX.tool_version) == ("scip-python", "0.6.6")
    assert sorted(str(path.relative_to(TREE)) for path in TREE.rglob("*.py*")) == PATHS


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("before", ["", "ascii", "é", "漢字", "🍎", "\t", "e\u0301", "👨‍👩‍👧‍👦", "\ufeff"])
def test_columns_in_every_unit(unit, before):
    line = f"'{before}'; name = 1"
    source = f"'🍎' * 2\n{line}\n".encode()
    size = len("x".encode(UNITS[unit]))
    column = len(line[: line.index("name")].encode(UNITS[unit])) // size
    start = source.index(b"name")
    assert spans(document(occurrence([1, column, column + 4]), unit=unit), source) == [(start, start + 4)]


def test_columns_of_a_document_that_does_not_say_are_utf_16():
    source = "'🍎'; name".encode()
    assert spans(document(occurrence([0, 6, 10]), unit=0), source) == [(8, 12)]


def test_a_range_may_span_lines():
    source = "first = (1,\n  '🍎', 2)".encode()
    assert spans(document(occurrence([0, 8, 1, 10])), source) == [(8, len(source))]


@pytest.mark.parametrize(
    "place",
    [
        [],
        [0],
        [0, 1],
        [0, 0, 0, 0, 0],
        [-1, 0, 1],
        [0, -1, 1],
        [0, 3, 1],
        [1, 0, 0, 1],
        [0, 0, 99],
        [7, 0, 1],
        [0, 2, 3],  # inside of the apple
        [2**31 - 1, 0, 0],
        [0, 0, 2**31 - 1],
    ],
)
@pytest.mark.parametrize("source", ["'🍎' = 1\n".encode(), b"'aa' = 1\n"])
def test_a_place_outside_of_the_text_is_dropped_and_counted(place, source):
    if place == [0, 2, 3] and source.isascii():
        return
    found = read(document(occurrence(place), occurrence([0, 0, 1])), source)
    assert found.occurrences == [Occurrence(0, 1, "s m p . m/x.")]
    assert found.dropped_places == 1


def test_the_line_after_the_last_newline_is_a_place():
    assert spans(document(occurrence([1, 0, 0])), b"x = 1\n") == [(6, 6)]
    assert spans(document(occurrence([1, 0, 0])), b"x = 1") == []
    assert spans(document(occurrence([0, 0, 0])), b"") == [(0, 0)]


def test_a_source_that_cannot_be_decoded_has_no_places():
    found = read(document(occurrence([0, 0, 1])), b"\xff\xfe")
    assert (found.occurrences, found.dropped_places) == ([], 1)


def test_other_tools_are_trusted_to_read_an_encoding():
    source = '# coding: latin-1\n"Ã©"; name = 1'.encode("latin-1")
    start = read_source(source).text.index(b"name")
    assert spans(document(occurrence([1, 6, 10])), source) == [(start, start + 4)]
    assert spans(document(occurrence([1, 5, 9])), source, tool="scip-python") == [(start, start + 4)]


def test_an_encoding_of_several_bytes_is_followed():
    line = '"日本"; name = 1'
    source = f"# coding: shift_jis\n{line}\n".encode("shift_jis")
    misread = source.split(b"\n")[1].decode(errors="replace")
    column = misread.index("name")
    start = read_source(source).text.index(b"name")
    positions = Positions(source, scip.UTF16, read_as_utf8=True)
    assert positions.span([1, column, column + 4]) == (start, start + 4)


@pytest.mark.parametrize("symbol", ["nonsense", "a b c", "scheme manager package version", "local ", "s m p v x"])
def test_what_is_no_symbol_is_dropped_and_counted(symbol):
    found = read(document(occurrence([0, 0, 1], symbol), occurrence([0, 0, 1])))
    assert [each.symbol for each in found.occurrences] == ["s m p . m/x."]
    assert found.dropped_symbols == 1


def test_a_place_without_a_symbol_still_has_its_diagnostics():
    complaint = scip.new(scip.Diagnostic, severity=1, code="E1", message="no")
    found = read(document(occurrence([0, 0, 1], "", diagnostics=[complaint])))
    assert found.occurrences == []
    assert found.dropped_symbols == 0
    assert found.diagnostics == [Diagnostic(0, 1, "error", "E1", "no")]


def test_one_symbol_at_one_place_has_all_its_roles():
    data = document(occurrence([0, 0, 1], roles=DEFINITION), occurrence([0, 0, 1], roles=READ))
    assert [each.roles for each in read(data).occurrences] == [DEFINITION | READ]


def test_local_symbols_belong_to_their_file_and_are_named_after_their_place():
    data = document(occurrence([0, 0, 1], "local 7", DEFINITION), symbols=[information("local 7")])
    found = read(data)
    assert found.occurrences[0].symbol == "local 7@a.py"
    assert [(each.symbol, each.display_name) for each in found.symbols] == [("local 7@a.py", "x")]


def test_the_words_of_an_indexer_come_before_our_guesses():
    said = information(
        "s m p 1 m/Color#",
        kind=scip.KIND_NUMBERS["enum"],
        display_name="Colour",
        signature_documentation=scip.new(scip.Signature, text="class Color(Enum)"),
        documentation=["One.", "Two."],
        enclosing_symbol="s m p 1 m/",
    )
    assert read(document(symbols=[said])).symbols == [
        ("s m p . m/Color#", "enum", "Colour", "m.Color", "class Color(Enum)", "One.\n\nTwo.", "s m p . m/")
    ]


def test_what_is_said_twice_is_put_together():
    one = information("s m p 1 m/f().", documentation=["```python\ndef f()\n```"])
    two = information("s m p 2 m/f().", documentation=["Does it."])
    (found,) = read(document(symbols=[one, two])).symbols
    assert (found.signature, found.documentation) == ("def f()", "Does it.")


def test_indexes_one_after_the_other_are_one(tmp_path):
    parts = [
        scip.new(scip.Index, metadata=scip.new(scip.Metadata, tool_info=scip.new(scip.ToolInfo, name="t"))),
        *(
            scip.new(scip.Index, documents=[scip.new(scip.Document, relative_path=path, occurrences=[each])])
            for path, each in [
                ("a.py", occurrence([0, 0, 1])),
                ("b.py", occurrence([0, 0, 1])),
                ("a.py", occurrence([0, 4, 5])),
            ]
        ),
    ]
    (tmp_path / "index.scip").write_bytes(b"".join(map(scip.encode, parts)))
    index = open_index(tmp_path / "index.scip")
    assert list(index.documents) == ["a.py", "b.py"]
    assert len(index.documents["a.py"]) == 2
    assert spans(index.read(index.documents["a.py"]), b"x = 1\n") == [(0, 1), (4, 5)]


@pytest.mark.parametrize("length", [1, 2, 10, 55, 200, 20_000])
def test_a_truncated_index_is_refused(tmp_path, length):
    (tmp_path / "cut.scip").write_bytes((FIXTURES / "tricky.scip").read_bytes()[:length])
    with pytest.raises(InputError, match="is not a SCIP index: it is cut off"):
        open_index(tmp_path / "cut.scip")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello world, this is not an index\n",
        b"\n\n\n\n",
        b"\x89PNG\r\n\x1a\n" + b"\x00" * 100,
        b"PK\x03\x04" + b"\x00" * 50,
        b'{"metadata": {}}',
        b"\xff" * 40,
        b"\x0a\x05abcde",
        b"\x12\x02\x08\x01",
        scip.encode(scip.new(scip.Index, documents=[scip.new(scip.Document, relative_path="a.py")])),
        scip.encode(
            scip.new(
                scip.Index, metadata=scip.new(scip.Metadata, project_root="/"), documents=[scip.new(scip.Document)]
            )
        ),
    ],
)
def test_what_is_no_index_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "index.scip").write_bytes(content)
    with pytest.raises(InputError, match="is not a SCIP index") as caught:
        open_index(tmp_path / "index.scip")
    assert "\n" not in str(caught.value)


def test_what_is_not_there_or_no_file_is_refused(tmp_path):
    for place in (tmp_path / "missing", tmp_path):
        with pytest.raises(InputError, match="is not a SCIP index"):
            open_index(place)


def test_a_damaged_document_is_refused():
    with pytest.raises(InputError, match=r"document of a\.py is damaged"):
        read(b"\x12\xff")
