"""A build as a SCIP index: every name where it stands, every symbol known, the same bytes each time."""

import pytest

import codeanatomy as ca
from codeanatomy.extract.source import Source, read_source
from codeanatomy.index import scip_format as scip
from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, IMPORT, READ, WRITE
from codeanatomy.index.scip import open_index, read_document
from codeanatomy.query.scip import _symbol_of_name, write_scip


@pytest.fixture(scope="module")
def written(built_once, tmp_path_factory):
    path = tmp_path_factory.mktemp("scip") / "index.scip"
    return path, write_scip(ca.open(built_once), path)


@pytest.fixture(scope="module")
def index(written):
    return scip.parse(scip.Index, written[0].read_bytes())


@pytest.fixture(scope="module")
def occurrences(built_once, written):
    """Path, text, dotted name or local symbol, and roles of every occurrence, read back from the file."""
    opened = open_index(written[0])
    found = []
    for path, slices in opened.documents.items():
        source = read_source((built_once / path).read_bytes())
        assert isinstance(source, Source)
        document = read_document(opened.read(slices), (built_once / path).read_bytes(), None, opened.tool, path)
        assert (document.dropped_places, document.dropped_symbols) == (0, 0)
        for each in document.occurrences:
            text = source.text[each.bstart : each.bend].decode()
            found.append((path, text, symbols.dotted(each.symbol) or each.symbol, each.roles))
    return found


def names_of(index):
    """Display names of all symbols, local ones with their path."""
    found = {(info.symbol, None): info.display_name for info in index.external_symbols}
    for document in index.documents:
        for info in document.symbols:
            found[info.symbol, document.relative_path if symbols.is_local(info.symbol) else None] = info.display_name
    return found


def test_every_file_has_a_document(index, written, built_once):
    paths = [document.relative_path for document in index.documents]
    assert paths == sorted(paths)
    assert "shop/cart.py" in paths
    assert len(paths) == written[1]
    assert {document.position_encoding for document in index.documents} == {scip.UTF8}
    assert {document.language for document in index.documents} == {"python"}


def test_every_symbol_is_known_and_symbol_of_name_as_it_should(index):
    names = names_of(index)
    for document in index.documents:
        for each in document.occurrences:
            assert (each.symbol, document.relative_path if symbols.is_local(each.symbol) else None) in names
        for info in document.symbols:
            assert all((related.symbol, None) in names for related in info.relationships)
    defined = {info.symbol for document in index.documents for info in document.symbols}
    assert defined.isdisjoint(info.symbol for info in index.external_symbols)


def test_no_place_and_no_symbol_is_written_twice(index):
    for document in index.documents:
        places = [(tuple(each.range), each.symbol) for each in document.occurrences]
        assert len(places) == len(set(places))
        known = [info.symbol for info in document.symbols]
        assert len(known) == len(set(known))


def test_a_definition_stands_on_its_name(index, occurrences):
    names = {name for (_, _), name in names_of(index).items()}
    for _, text, symbol, roles in occurrences:
        if roles & DEFINITION:
            assert text in ("", "lambda") or text in names
            assert text in ("", "lambda") or symbol.startswith("local ") or symbol.endswith(f".{text}")


def test_definitions_and_uses(occurrences):
    assert {
        ("shop/cart.py", "", "shop.cart", DEFINITION),
        ("shop/cart.py", "Cart", "shop.cart.Cart", DEFINITION),
        ("shop/cart.py", "total", "shop.cart.Cart.total", DEFINITION),
        ("shop/cart.py", "LIMIT", "shop.cart.LIMIT", DEFINITION | WRITE),
        ("shop/cart.py", "LIMIT", "shop.cart.LIMIT", READ),
        ("shop/cart.py", "price_of", "shop.prices.price_of", IMPORT),
        ("shop/cart.py", "price_of", "shop.prices.price_of", READ),
        ("shop/cart.py", "typing", "typing", IMPORT),
        ("shop/cart.py", "t", "typing", IMPORT),
        ("shop/cart.py", "sorted", "<builtin>.sorted", READ),
        ("shop/prices.py", "up", "shop.prices.counter.up", DEFINITION),
    } <= set(occurrences)


def test_local_variables_have_local_symbols(occurrences):
    cheap = {(symbol, roles) for path, text, symbol, roles in occurrences if (path, text) == ("shop/cart.py", "cheap")}
    assert len({symbol for symbol, _ in cheap}) == 1
    assert all(symbols.is_local(symbol) for symbol, _ in cheap)
    assert {roles for _, roles in cheap} == {DEFINITION | WRITE, READ}


def test_classes_implement_their_bases(index):
    related = {
        (symbols.dotted(info.symbol), symbols.dotted(each.symbol), each.is_implementation, each.is_reference)
        for document in index.documents
        for info in document.symbols
        for each in info.relationships
    }
    assert ("shop.prices.Odd", "<builtin>.ValueError", True, False) in related


def test_nothing_of_the_machine_is_told(index, written, built_once):
    assert index.metadata.project_root == "file:///"
    assert index.metadata.tool_info.name == "codeanatomy"
    assert str(built_once).encode() not in written[0].read_bytes()


def test_the_same_graph_gives_the_same_bytes(built_once, written, tmp_path):
    write_scip(ca.open(built_once), tmp_path / "again.scip")
    assert (tmp_path / "again.scip").read_bytes() == written[0].read_bytes()


@pytest.mark.parametrize(
    ("name", "is_module", "expected"),
    [
        ("os.path", True, "`os.path`/"),
        ("os.path.join", False, "`os.path`/join."),
        ("collections.OrderedDict.fromkeys", False, "collections/OrderedDict.fromkeys."),
        ("PIL.Image.open", False, "PIL/Image.open."),
        ("numpy", False, "numpy/"),
        ("<builtin>.len", False, "builtins/len."),
        ("<builtin>.dict.pop", False, "builtins/dict.pop."),
        ("shop.Cart.gone.deep", False, "shop/Cart#gone.deep."),
        ("shop.absent", False, "shop/absent."),
    ],
)
def test_names_from_elsewhere(name, is_module, expected):
    shop = symbols.namespace("shop")
    defined = {"shop": shop, "shop.Cart": symbols.class_in(shop, "Cart")}
    assert _symbol_of_name(name, defined, is_module=is_module) == f"{symbols.SCHEME} {expected}"
