"""Symbols: spelled as SCIP spells them, taken apart again, the same at every commit."""

import pytest

from codeanatomy.index import symbols


def test_a_symbol_is_built_from_the_module_down():
    module = symbols.namespace("shop.items")
    basket = symbols.class_in(module, "Basket")
    assert module == "codeanatomy python . . `shop.items`/"
    assert symbols.function_in(basket, "add") == "codeanatomy python . . `shop.items`/Basket#add()."
    assert symbols.variable_in(basket, "items") == "codeanatomy python . . `shop.items`/Basket#items."


def test_a_redefinition_has_a_symbol_of_its_own():
    module = symbols.namespace("m")
    assert len({symbols.class_in(module, "A", n) for n in range(3)}) == 3
    assert len({symbols.function_in(module, "f", n) for n in range(3)}) == 3
    assert symbols.kind_of(symbols.function_in(module, "f", 2)) == "function"


@pytest.mark.parametrize("name", ["plain", "a.b", "größe", "`", "a`b``c", "<lambda1>", "with space", "two  spaces"])
def test_any_name_survives(name):
    symbol = symbols.function_in(symbols.class_in(symbols.namespace(name), name), name)
    assert symbols.descriptors_of(symbol) == [(name, "module"), (name, "class"), (name, "method")]
    assert symbols.without_version(symbol) == symbol
    assert symbols.module_of(symbol) == name


@pytest.mark.parametrize(
    ("symbol", "kind", "dotted"),
    [
        ("scip-python python shop 1.0 `shop.items`/__init__:", "meta", "shop.items"),
        ("scip-python python shop 1.0 `shop.items`/Basket#", "class", "shop.items.Basket"),
        ("scip-python python shop 1.0 `shop.items`/Basket#add().", "method", "shop.items.Basket.add"),
        ("scip-python python shop 1.0 `shop.items`/Basket#add().(item)", "parameter", "shop.items.Basket.add.item"),
        ("scip-python python shop 1.0 `shop.items`/key.", "variable", "shop.items.key"),
        ("scip-python python shop 1.0 `shop.items`/main().", "function", "shop.items.main"),
        ("scip-python python python-stdlib 3.11 builtins/print().", "function", "<builtin>.print"),
        ("local 12@shop/items.py", "local", None),
    ],
)
def test_what_an_indexer_spells_can_be_read(symbol, kind, dotted):
    assert symbols.kind_of(symbol) == kind
    assert symbols.dotted(symbol) == dotted


def test_the_version_of_a_package_is_left_out():
    one, two = (f"scip-python python shop {version} `shop.items`/Basket#" for version in ("0a1b2c", "d3e4f5"))
    assert symbols.without_version(one) == symbols.without_version(two)
    assert symbols.without_version(one) == "scip-python python shop . `shop.items`/Basket#"


@pytest.mark.parametrize("text", ["", "x", "local", "scip-python python shop 1.0"])
def test_what_is_no_symbol_is_refused(text):
    with pytest.raises(ValueError, match="not a symbol"):
        symbols.without_version(text)


def test_local_symbols_of_two_files_differ():
    assert symbols.local("1", "a.py") != symbols.local("1", "b.py")
    assert symbols.is_local(symbols.local("1", "a.py"))
    assert symbols.module_of(symbols.local("1", "a.py")) is None
