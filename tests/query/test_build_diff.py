"""A diff counts what comparing all rows counts, and a consumer's copy becomes the build exactly."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import codeanatomy as ca
from codeanatomy.catalogue.columns import text
from codeanatomy.catalogue.tables import CPG_EDGES, CPG_NODES
from codeanatomy.cli.main import main
from codeanatomy.query.build_diff import choose_builds, compare_builds
from codeanatomy.query.changes import changes_since
from codeanatomy.query.comparison import side_by_side
from codeanatomy.store import (
    StateLocation,
    collect_garbage,
    create_state,
    data_files,
    hold_lease,
    list_builds,
    open_state,
)
from tests.repositories import SHOP, write_repository

KEYS = {"cpg_nodes": "node_id", "cpg_edges": "edge_id"}
POSITIONS = {"bstart", "bend", "line_start", "line_end", "col_start", "line"}

CART = (
    SHOP["shop/cart.py"]
    .replace("LIMIT: int = 10", "LIMIT: int = max(10, 11)")
    .replace("    items: list[str]", "    items: list[str]\n    colour = 'red'")
    .replace("async def send(self, to, /, *, fast=False)", "async def send(self, to, note: str = '', /, *, fast=False)")
    .replace("        return sorted(cheap, key=key)", "        counter()\n        return sorted(cheap, key=key)")
    .replace("import price_of", "import counter, price_of")
)
PRICES = SHOP["shop/prices.py"].replace("class Odd(ValueError, metaclass=type)", "class Even(ValueError)")
EXTRA = "from .cart import Cart\n\n\ndef gift(cart: Cart) -> float:\n    return cart.total\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory, spark):
    """Three builds of a repository that changes, over several buckets."""
    root = write_repository(tmp_path_factory.mktemp("history") / "repo")
    create_state(StateLocation.at(root / ".codeanatomy"), 8)
    request = ca.BuildRequest(root)
    ca.build(request, spark=spark)
    write_repository(root, {"shop/cart.py": CART, "shop/extra.py": EXTRA, "broken.py": "\n" + SHOP["broken.py"]})
    (root / "empty.py").unlink()
    ca.build(request, spark=spark)
    write_repository(root, {"shop/prices.py": PRICES})
    ca.build(request, spark=spark)
    return root


@pytest.fixture
def own(root, tmp_path):
    """A copy of it, for cursors."""
    return Path(shutil.copytree(root, tmp_path / "repo"))


@pytest.fixture
def run(capsys):
    def run_command(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


def state_of(root):
    return open_state(StateLocation.at(root / ".codeanatomy"))


def ids(root):
    return [build.build_id for build in list_builds(state_of(root))]


def rows(root, build, table):
    return ca.open(root, build=build).sql(f"SELECT * FROM {table}").to_pylist()


def multiset(rows):
    return Counter(tuple(row.items()) for row in rows)


def row_counts(before, after, key):
    """The same counts, by comparing all rows one by one."""
    old, new = ({row[key]: row for row in side} for side in (before, after))
    differing = [
        {name for name in row if row[name] != new[node][name]} for node, row in old.items() if node in new
    ]  # fmt: skip
    return {
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
        "changed": sum(1 for names in differing if names - POSITIONS),
        "moved": sum(1 for names in differing if names and not names - POSITIONS),
    }


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 2), (0, 2), (2, 0), (1, 1)])
def test_rows_are_counted_as_by_comparing_all_of_them(root, before, after):
    builds = list_builds(state_of(root))
    found = compare_builds(state_of(root), builds[before], builds[after]).as_json()
    for table, key in KEYS.items():
        sides = [rows(root, builds[number].build_id, table) for number in (before, after)]
        assert found["tables"][table] == row_counts(*sides, key)
    assert any(found["tables"]["cpg_nodes"].values()) == (before != after)


def test_only_differing_buckets_are_read(root):
    first, second, third = list_builds(state_of(root))
    with side_by_side(state_of(root), second, third, (CPG_NODES, CPG_EDGES)) as connection:
        read = connection.sql("SELECT count(*) FROM after.cpg_nodes").fetchall()[0][0]
    assert 0 < read < third.tables["cpg_nodes"].rows
    with side_by_side(state_of(root), first, first, (CPG_NODES,)) as connection:
        assert connection.sql("SELECT count(*) FROM after.cpg_nodes").fetchall() == [(0,)]


def test_symbols_tell_what_became_of_them(root):
    first, second, _ = ids(root)
    found = ca.open(root, build=second).diff(first)
    assert found.files == {
        "added": ("shop/extra.py",),
        "removed": ("empty.py",),
        "modified": ("broken.py", "shop/cart.py"),
    }
    told = {symbol.name: symbol for symbol in found.symbols}
    assert list(told) == sorted(told)
    assert {(s.change, s.name, s.kind) for s in found.symbols if s.change != "changed"} == {
        ("added", "shop.extra", "module"),
        ("added", "shop.extra.gift", "function"),
        ("removed", "empty", "module"),
    }
    assert told["shop.cart.Cart"].details == ("+ attribute colour",)
    send = told["shop.cart.Cart.send"].details
    assert "parameters: (self, to, /, *, fast = False) → (self, to, note: str = '', /, *, fast = False)" in send
    assert "+ calls shop.prices.counter" in send
    # It was moved, and calls before its own were inserted: neither is a change of it.
    assert "shop.cart.Cart.total" not in told
    assert not any(name.startswith("broken") for name in told)


def test_a_symbol_changes_with_what_others_define(root):
    _, second, third = ids(root)
    told = {symbol.name: symbol for symbol in ca.open(root, build=third).diff(second).symbols}
    assert told["shop.prices.Even"].change == "added"
    assert told["shop.prices.Odd"].change == "removed"
    assert set(told) == {"shop.prices.Even", "shop.prices.Odd"}


def test_two_ways_are_each_others_reverse(root):
    first, second, _ = list_builds(state_of(root))
    there, back = (compare_builds(state_of(root), *pair) for pair in ((first, second), (second, first)))
    reverse = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(s.name, reverse[s.change]) for s in there.symbols} == {(s.name, s.change) for s in back.symbols}


def test_diff_prints_what_the_interface_promises(root, run):
    first, second, third = ids(root)
    code, out, _ = run("diff", first, second, root, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["from"] == {"build_id": first, "git_commit": None}
    assert told["to"] == {"build_id": second, "git_commit": None}
    assert told["tables"].keys() == {"cpg_nodes", "cpg_edges"}
    assert told["symbols"][0].keys() == {"name", "path", "kind", "change", "details"}
    lines = run("diff", first, second, root)[1].splitlines()
    assert "+ shop.extra.gift  (function, shop/extra.py)" in lines
    assert "- empty  (module, empty.py)" in lines
    assert "    + calls shop.prices.counter" in lines
    for left_out in ((root,), (second, root)):
        assert json.loads(run("diff", *left_out, "--json")[1])["to"]["build_id"] == third
    assert json.loads(run("diff", root, "--json")[1])["from"]["build_id"] == second


def test_a_long_list_is_cut_and_json_has_all(root, run, monkeypatch):
    monkeypatch.setattr("codeanatomy.cli.commands.MAX_SYMBOLS", 2)
    first, second, _ = ids(root)
    symbols = len(json.loads(run("diff", first, second, root, "--json")[1])["symbols"])
    lines = run("diff", first, second, root)[1].splitlines()
    assert sum(line[:2] in ("+ ", "- ", "~ ") for line in lines) == 2
    assert lines[-1] == f"… {symbols - 2} more (--verbose shows all)"


def test_builds_that_are_not_there_are_told(own, run):
    first, *_ = ids(own)
    for arguments, message in (
        (("diff", "1999", own), "no build 1999: `codeanatomy builds` lists them"),
        (("diff", "2", own), "could be any of"),
        (("changes", "--cursor", "c", "--build", "1999", own), "no build 1999"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
    with hold_lease(state_of(own).location) as lease:
        collect_garbage(state_of(own), lease, keep=1)
    code, _, err = run("diff", own)
    assert code == 2
    assert "is no longer kept" in err
    assert run("diff", first, own)[0] == 2


def test_the_first_build_has_nothing_before_it(root):
    with pytest.raises(ca.InputError, match="is the first"):
        choose_builds(state_of(root), after=ids(root)[0])


def test_a_lost_file_is_told_in_one_line(own, run):
    for file in data_files(state_of(own), "cpg_nodes", list_builds(state_of(own))[0].tables["cpg_nodes"].version):
        Path(file).unlink(missing_ok=True)
    code, _, err = run("diff", ids(own)[0], own)
    assert code == 4
    assert err.count("\n") == 1


def test_a_column_that_a_build_does_not_have_yet_is_null(root):
    first, second, _ = list_builds(state_of(root))
    later = replace(CPG_NODES, columns=(text("novelty", "a column of tomorrow"), *CPG_NODES.columns))
    with side_by_side(state_of(root), first, second, (later,)) as connection:
        assert connection.sql("SELECT DISTINCT novelty FROM after.cpg_nodes").fetchall() == [(None,)]


def test_a_state_that_is_not_a_directory_is_compared_alike(own):
    remote = open_state(StateLocation(f"file://{own}/.codeanatomy", {}))
    assert not remote.location.is_local
    first, second, _ = list_builds(remote)
    assert compare_builds(remote, first, second) == compare_builds(state_of(own), first, second)
    changes_since(remote, "c", build=first.build_id).acknowledge()
    assert changes_since(remote, "c").before == first
    assert changes_since(remote, "c").count() == changes_since(state_of(own), "c").count()


def test_a_copy_becomes_the_latest_build_exactly(own, run):
    first, _, third = ids(own)
    copy = {table: Counter() for table in KEYS}
    for build in (first, third):
        code, out, _ = run("changes", "--cursor", "copy", "--build", build, "--json", "--ack", own)
        assert code == 0
        told = json.loads(out)
        assert told["to_build"] == build
        for table, changed in told["tables"].items():
            removed = multiset(changed["removed"])
            assert removed <= copy[table]
            copy[table] = copy[table] - removed + multiset(changed["added"])
            assert copy[table] == multiset(rows(own, build, table))
    assert all(changed["removed"] for changed in told["tables"].values())


def test_only_what_changed_is_reported(own, run):
    _, second, third = ids(own)
    run("changes", "--cursor", "c", "--build", second, "--ack", own)
    told = json.loads(run("changes", "--cursor", "c", "--json", own)[1])
    for table, changed in told["tables"].items():
        before, after = (multiset(rows(own, build, table)) for build in (second, third))
        assert multiset(changed["added"]) == after - before
        assert multiset(changed["removed"]) == before - after


def test_a_cursor_moves_only_when_told_to(own, run):
    first, _, third = ids(own)

    def from_build(*more):
        return json.loads(run("changes", "--cursor", "c", "--json", *more, own)[1])["from_build"]

    assert from_build() is None
    assert from_build("--build", first, "--ack") is None
    assert from_build() == first
    assert from_build("--ack") == first
    assert from_build("--reset") is None
    assert from_build() == third
    assert json.loads(run("changes", "--cursor", "other", "--json", own)[1])["from_build"] is None


def test_nothing_is_acknowledged_that_was_not_delivered(own, monkeypatch):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Gone())
        patch.setattr("sys.stderr", Gone())
        Gone.close = lambda _: None
        assert main(["changes", "--cursor", "c", "--json", "--ack", str(own)]) == 141
    assert changes_since(state_of(own), "c").before is None


def test_changes_as_files(own, run, tmp_path):
    first, second, _ = ids(own)
    out = tmp_path / "delta"
    run("changes", "--cursor", "c", "--build", first, "--ack", own)
    code, printed, err = run("changes", "--cursor", "c", "--build", second, "--out", out, own)
    assert code == 0
    assert "not acknowledged: use --ack" in err
    for table, schema in (("cpg_nodes", CPG_NODES.schema()), ("cpg_edges", CPG_EDGES.schema())):
        added, removed = (pq.read_table(out / f"{table}_{direction}.parquet") for direction in ("added", "removed"))
        assert added.schema == removed.schema == schema
        assert f"{table}  {added.num_rows:5}  {removed.num_rows:7}" in printed
        before, after = (multiset(rows(own, build, table)) for build in (first, second))
        assert before - multiset(removed.to_pylist()) + multiset(added.to_pylist()) == after
    told = json.loads(run("changes", "--cursor", "c", "--out", out, "--json", own)[1])
    assert json.loads((out / "changes.json").read_text()) == told
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert run("changes", "--cursor", "c", "--out", tmp_path / "mine", own)[0] == 2


@pytest.mark.parametrize("name", ["", "../c", "a/b", "a b", "é", "c\n", "x" * 101])
def test_bad_names_are_refused(own, run, name):
    code, out, err = run("changes", "--cursor", name, "--ack", own)
    assert (code, out) == (2, "")
    assert "cannot name a cursor" in err
    assert not (own / ".codeanatomy" / "cursors").exists()


def test_garbage_collection_spares_what_a_cursor_awaits(own, run):
    first, _, third = ids(own)
    run("changes", "--cursor", "c", "--build", first, "--ack", own)
    assert run("gc", "--keep", "1", own)[0] == 0
    assert ids(own) == [first, third]
    told = json.loads(run("changes", "--cursor", "c", "--json", "--ack", own)[1])
    assert (told["from_build"], told["to_build"]) == (first, third)
    run("gc", "--keep", "1", own)
    assert ids(own) == [third]


def test_a_cursor_whose_build_is_gone_is_started_over(own, run):
    cursor = own / ".codeanatomy" / "cursors" / "c.json"
    cursor.parent.mkdir()
    cursor.write_text('{"build_id": "19990101T000000-abcdef"}')
    code, out, err = run("changes", "--cursor", "c", own)
    assert (code, out) == (2, "")
    assert "use --reset and start from an empty copy" in err
    assert run("changes", "--cursor", "c", "--reset", "--ack", own)[0] == 0
    assert changes_since(state_of(own), "c").before.build_id == ids(own)[-1]
