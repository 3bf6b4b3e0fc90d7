"""The examples run, and print what they promise."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments, code=0):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_tables_are_read_with_duckdb_and_polars(built_once):
    printed = run("read_tables.py", built_once)
    assert "shop.cart.Cart.send" in printed
    assert "shop.prices.price_of" in printed.partition("Polars")[2]


def test_a_pull_request_that_removes_what_others_call_fails(built):
    prices = built / "shop/prices.py"
    prices.write_text(prices.read_text().replace("def price_of(", "def cost_of("))
    printed = run("pull_request_check.py", built, "none", code=1)
    assert "removed  shop.prices.price_of" in printed
    assert "was called by shop.cart.Cart.total" in printed
    assert run("pull_request_check.py", built, "none") == "nothing changed\n"


def test_a_copy_is_kept_up_to_date(built, tmp_path):
    copy = tmp_path / "nodes.json"
    run("change_feed.py", built, copy)
    assert "shop.cart.Cart" in json.loads(copy.read_text()).values()
    assert run("change_feed.py", built, copy).startswith("0 added, 0 removed")
