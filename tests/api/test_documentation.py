"""The page on the Python API runs as it is written, and shows every verb; the README has every command."""

import re
from pathlib import Path

import codeanatomy as ca
from codeanatomy.cli.main import parser
from codeanatomy.cli.options import _commands
from tests.repositories import SHOP

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python-api.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_verb_is_shown():
    used = set(re.findall(r"\bca\.([a-z_]+)\(", "\n".join(BLOCKS)))
    assert used == {name for name in ca.__all__ if name.islower()}


def test_the_readme_has_every_command():
    table = (ROOT / "README.md").read_text().partition("| command | does |")[2].partition("\n\n")[0]
    named = [re.findall(r"`([a-z-]+)", row.split("|")[1]) for row in table.splitlines()[2:]]
    assert {name for names in named for name in names} - {"start", "stop"} == set(_commands(parser()))


def test_the_page_runs(built, spark):
    (built / "shop/prices.py").write_text(SHOP["shop/prices.py"].replace("def counter", "def renamed"))
    code = "\n".join(BLOCKS).replace("path/to/repository", str(built))
    names = {}
    exec(compile(code, "python-api.md", "exec"), names)
    assert (names["result"].mode, names["freshness"].fresh) == ("incremental", True)
    assert names["verification"].equal
    assert names["replayed"].equal
    assert names["explanation"].reason
    assert names["publication"].tables.keys() == {"cpg_nodes", "cpg_edges"}
    assert len(names["lookup"].lines) <= names["table"].num_rows
    assert names["nodes"].count() == names["newest"].tables["cpg_nodes"].rows
    assert {symbol.name for symbol in names["difference"].symbols} >= {"shop.prices.renamed", "shop.prices.counter"}
    assert names["record"].rolled_back_to == names["older"][0].build_id
    assert names["report"].dry_run
