"""Occurrences stand on the bytes of their names, and know the call, use, import or definition that stands there too.

Everything is checked on the tree of sources that are hard to count in, for both ways to get documents.
"""

import re
import unicodedata
from collections import Counter

import pytest

from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, READ, Document, Occurrence, Site, Sites, finished
from tests.index.indexing import Indexed, index, needs_pyrefly, pyrefly_provider, tree
from tests.index.make_report_fixture import kept_version, read_kept
from tests.repositories import write_repository

PROVIDERS = ["kept_report", pytest.param("pyrefly_tricky", marks=needs_pyrefly), "scip_tricky"]
ALIASES = {"Bag": "Basket", "Basket as Bag": "Basket"}
SITES = {
    "call": ("cst_callsites", "call_no", "callee_name_"),
    "implicit": ("cst_implicit_calls", "implicit_no", ""),
    "use": ("cst_name_refs", "ref_no", "name_"),
    "import": ("cst_imports", "import_no", ""),
}


@pytest.fixture(scope="module")
def kept_report(tricky, shared_scratch) -> Indexed:
    return read_kept(tricky, shared_scratch)


@pytest.fixture(params=PROVIDERS)
def indexed(request) -> Indexed:
    return request.getfixturevalue(request.param)


def written(tricky, path, row):
    return tricky.text(path)[row["bstart"] : row["bend"]].decode()


def name_of(symbol):
    path = symbols.descriptors_of(symbol)
    return path[-1].name if path else None


def is_module(symbol):
    return symbol.endswith(("/", "/__init__:"))


def every_occurrence(indexed):
    return [(path, row) for path in sorted(indexed.documents) for row in indexed.occurrences(path)]


def site_at(tricky, path, kind, bstart, bend):
    """The number of the one site of a kind whose name has a span, from the facts; for a definition, its key."""
    if kind == "definition":
        places = {(d["name_bstart"], d["name_bend"]): d["def_key"] for d in tricky.facts[path]["cst_defs"]}
    else:
        dataset, number, prefix = SITES[kind]
        sites = tricky.facts[path][dataset]
        places = {(each[f"{prefix}bstart"], each[f"{prefix}bend"]): each[number] for each in sites}
    return places[bstart, bend]


def test_every_file_has_a_document_or_a_reason(tricky, indexed):
    assert indexed.documents.keys().isdisjoint(indexed.failed)
    assert indexed.documents.keys() | indexed.failed.keys() == {file.path for file in tricky.files}


def test_pyrefly_lacks_the_one_file_that_is_not_utf_8(kept_report, scip_tricky):
    assert kept_report.failed == {"latin1.py": "pyrefly reads UTF-8 only"}
    assert scip_tricky.failed == {}


def test_an_occurrence_stands_on_the_name_of_its_symbol(tricky, indexed):
    """But for modules, whose names are written in parts, for other names of a thing, and for what is run unnamed."""
    for path, row in every_occurrence(indexed):
        text, name = written(tricky, path, row), name_of(row["symbol"])
        if is_module(row["symbol"]) or (name == "__init__" and row["roles"] == 0):
            continue
        if name is None:
            assert text.isidentifier() or text == ".", (path, row)
        else:
            assert ALIASES.get(text, unicodedata.normalize("NFKC", text)) == name, (path, row)


def test_a_constructor_stands_on_the_name_of_a_class(tricky, kept_report):
    found = {
        written(tricky, path, row)
        for path, row in every_occurrence(kept_report)
        if name_of(row["symbol"]) == "__init__" and row["role"] == "call"
    }
    assert found == {"Basket", "Apple", "Fruit"}


def test_a_module_stands_on_its_own_name_or_at_the_start_of_its_file(tricky, scip_tricky):
    for path, row in every_occurrence(scip_tricky):
        if is_module(row["symbol"]) and path != "star.py":  # there, scip-python has names as symbols of their module
            text, module = written(tricky, path, row), symbols.module_of(row["symbol"])
            if row["role"] == "definition":
                assert (text, row["bstart"]) == ("", 0)
            else:
                assert text.lstrip(".") in (module, module.rpartition(".")[2])


@pytest.mark.parametrize("kind", SITES)
def test_a_number_is_that_of_the_site_with_this_very_span(tricky, indexed, kind):
    dataset, number, prefix = SITES[kind]
    aligned = [(path, row) for path, row in every_occurrence(indexed) if row[number] is not None]
    for path, row in aligned:
        site = tricky.facts[path][dataset][row[number]]
        assert site[number] == row[number]
        span = (site[f"{prefix}bstart"], site[f"{prefix}bend"])
        if row["alignment"] == "exact_span":
            assert span == (row["bstart"], row["bend"]), (path, row)
        else:
            assert kind == "import"
            assert span[0] <= row["bstart"] <= row["bend"] <= span[1]
            assert span != (row["bstart"], row["bend"])


def test_a_key_is_that_of_the_definition_with_this_very_name(tricky, indexed):
    aligned = [(path, row) for path, row in every_occurrence(indexed) if row["def_key"] is not None]
    assert len(aligned) > 20
    for path, row in aligned:
        assert row["role"] == "definition"
        assert site_at(tricky, path, "definition", row["bstart"], row["bend"]) == row["def_key"]


def test_what_is_on_a_site_has_the_caller_of_the_site(tricky, indexed):
    inside = 0
    for path, row in every_occurrence(indexed):
        for kind in ("call", "use", "implicit"):
            dataset, number, _ = SITES[kind]
            if row[number] is not None:
                assert row["caller_key"] == tricky.facts[path][dataset][row[number]]["caller_key"]
                inside += row["caller_key"] is not None
    assert inside > 5


def test_no_alignment_without_a_site_and_no_site_without_an_alignment(indexed):
    columns = [number for _, number, _ in SITES.values()] + ["def_key"]
    for path, row in every_occurrence(indexed):
        assert (row["alignment"] is None) == all(row[column] is None for column in columns), (path, row)


def test_alternatives_of_a_call_are_the_symbols_on_it(indexed):
    for path in indexed.documents:
        on_call = Counter(row["call_no"] for row in indexed.occurrences(path))
        for row in indexed.occurrences(path):
            assert row["call_no"] is None or row["alternatives"] == on_call[row["call_no"]]


HARD = [
    ("wide.py", 42, "after_emoji", "use", "wide.after_emoji"),
    ("wide.py", 56, "pick", "call", "shop.base.pick"),
    ("wide.py", 85, "after_emoji", "use", "wide.after_emoji"),
    ("wide.py", 99, "RATE", "use", "shop.base.RATE"),
    ("wide.py", 111, "after_combining", "use", "wide.after_combining"),
    ("wide.py", 129, "after_cjk", "use", "wide.after_cjk"),
    ("wide.py", 186, "after_combining", "use", "wide.after_combining"),
    ("wide.py", 230, "family", "use", "wide.family"),
    ("wide.py", 258, "größe", "use", "wide.größe"),
    ("wide.py", 276, "変数", "use", "wide.変数"),
    ("wide.py", 295, "naïve", "use", "wide.naïve"),
    ("wide.py", 310, "print", "call", "<builtin>.print"),
    ("wide.py", 324, "größe", "use", "wide.größe"),
    ("wide.py", 350, "変数", "use", "wide.変数"),
    ("wide.py", 386, "función", "definition", "wide.función"),
    ("wide.py", 502, "función", "call", "wide.función"),
    ("wide.py", 524, "after_cjk", "use", "wide.after_cjk"),
    ("tabs.py", 36, "fill", "definition", "tabs.fill"),
    ("tabs.py", 116, "full", "use", "tabs.full"),
    ("tabs.py", 123, "fill", "call", "tabs.fill"),
    ("crlf.py", 38, "Windows", "definition", "crlf.Windows"),
    ("crlf.py", 90, "open", "definition", "crlf.Windows.open"),
    ("crlf.py", 108, "RATE", "use", "shop.base.RATE"),
    ("crlf.py", 180, "opened", "use", "crlf.opened"),
    ("crlf.py", 189, "Windows", "call", "crlf.Windows"),
    ("crlf.py", 199, "open", "call", "crlf.Windows.open"),
    ("lone_cr.py", 32, "old", "definition", "lone_cr.old"),
    ("lone_cr.py", 94, "mac", "use", "lone_cr.mac"),
    ("lone_cr.py", 100, "old", "call", "lone_cr.old"),
    ("lone_cr.py", 104, "RATE", "use", "shop.base.RATE"),
    ("mixed.py", 34, "third", "use", "mixed.third"),
    ("mixed.py", 77, "second", "use", "mixed.second"),
    ("mixed.py", 102, "fourth", "use", "mixed.fourth"),
    ("bom.py", 3, "first", "use", "bom.first"),
    ("bom.py", 22, "second", "use", "bom.second"),
    ("bom.py", 31, "first", "use", "bom.first"),
    ("bom.py", 45, "second", "use", "bom.second"),
    ("no_newline.py", 34, "stub", "use", "stubbed.stub"),
    ("shop/base.py", 645, "wraps", "call", "functools.wraps"),
    ("broken.py", 32, "whole", "definition", "broken.whole"),
]
IN_SCIP_ONLY = [
    ("wide.py", 22, "RATE", "import", "shop.base.RATE"),
    ("wide.py", 487, "𝒳", "use", "wide.función.X"),
    ("latin1.py", 60, "after_accent", "use", "latin1.after_accent"),
    ("latin1.py", 88, "after_pair", "use", "latin1.after_pair"),
    ("latin1.py", 157, "other", "use", "latin1.other"),
    ("latin1.py", 169, "accented", "definition", "latin1.accented"),
    ("latin1.py", 247, "valeur", "use", "latin1.accented.valeur"),
    ("tabs.py", 80, "basket", "use", "tabs.fill.basket"),
    ("shop/__init__.py", 54, "Basket as Bag", "import", "shop.items.Basket"),
    ("no_newline.py", 20, "stub", "import", "stubbed.stub"),
]
IN_PYREFLY_ONLY = [
    ("star.py", 58, "Bag", "use", "shop.items.Basket"),
    ("star.py", 70, "Fruit", "call", "shop.base.Item.__init__"),
    ("star.py", 87, "total", "use", "shop.base.Item.total"),
    ("tabs.py", 128, "Basket", "call", "shop.items.Basket.__init__"),
    ("broken.py", 134, "whole", "call", "broken.whole"),
    ("shop/items.py", 425, "logged", "implicit", "shop.base.logged"),
    ("shop/base.py", 273, "property", "implicit", "<builtin>.property"),
    ("shop/items.py", 639, "checked", "call", "shop.items.Basket.add.checked"),
]


@pytest.mark.parametrize(
    ("provider", "path", "bstart", "text", "kind", "qname"),
    [
        *(("kept_report", *case) for case in HARD + IN_PYREFLY_ONLY),
        *(("scip_tricky", *case) for case in HARD + IN_SCIP_ONLY),
    ],
)
def test_hard_places_are_aligned(request, tricky, provider, path, bstart, text, kind, qname):
    bend = bstart + len(text.encode())
    assert tricky.text(path)[bstart:bend].decode() == text
    column = "def_key" if kind == "definition" else SITES[kind][1]
    expected = site_at(tricky, path, kind, bstart, bend)
    (row,) = (
        row
        for row in request.getfixturevalue(provider).occurrences(path)
        if (row["bstart"], row["bend"], symbols.dotted(row["symbol"])) == (bstart, bend, qname)
    )
    assert (row[column], row["alignment"]) == (expected, "exact_span")
    assert row["line_start"] == len(re.split(rb"\r\n|\r|\n", tricky.text(path)[:bstart]))


@needs_pyrefly
def test_the_kept_report_reads_as_a_live_one(kept_report, pyrefly_tricky):
    assert kept_version() == pyrefly_provider().pyrefly.version, "run tests.index.make_report_fixture"
    assert kept_report == pyrefly_tricky


ENDS = {
    "astral.py": [
        '"🍎"; 𝒳 = 1\n',
        "def 𝒻(a): return a\n",
        '"👨\u200d👩\u200d👧"; 𝒻(𝒳)\n',
        "class 𝒞:\n\tdef 𝓂(self): return self.𝓂()\n",
        '"é"; 𝒞().𝓂()\n',
    ],
    "ends.py": ["def f(): ...\r", '"🍎"; f()\r\n', '"漢"; f()\n', '\f"e\u0301"; f()\r\r\n', "f()"],
    "bom.py": ['\ufefffrom astral import 𝒻; "🍎"; 𝒻(1)\n'],
}


@needs_pyrefly
def test_astral_identifiers_and_every_end_of_line(tmp_path, scratch):
    seen = tree(write_repository(tmp_path, {path: "".join(lines).encode() for path, lines in ENDS.items()}))
    found = index(seen, pyrefly_provider(), scratch / "run")
    calls = {
        path: [
            (written(seen, path, row), symbols.dotted(row["symbol"]), row["call_no"])
            for row in found.occurrences(path)
            if row["role"] == "call"
        ]
        for path in ENDS
    }
    assert calls == {
        "astral.py": [("𝒻", "astral.f", 0), ("𝓂", "astral.C.m", 1), ("𝒞", "astral.C", 3), ("𝓂", "astral.C.m", 2)],
        "ends.py": [("f", "ends.f", number) for number in range(4)],
        "bom.py": [("𝒻", "astral.f", 0)],
    }


def test_imports_of_the_index_are_aligned(tricky, scip_tricky):
    """An alias of which no occurrence has the span has the best one inside of it."""
    found = {
        (path, tricky.text(path)[site["bstart"] : site["bend"]].decode()): (symbols.dotted(row["symbol"]), how)
        for path, row in every_occurrence(scip_tricky)
        if (how := row["alignment"]) and row["import_no"] is not None
        for site in [tricky.facts[path]["cst_imports"][row["import_no"]]]
    }
    assert found["shop/__init__.py", "Basket as Bag"] == ("shop.items.Basket", "exact_span")
    assert found["shop/items.py", "os.path as osp"] == ("os.path", "contained_span")
    assert found["shop/base.py", "json as codec"] == ("json", "contained_span")
    assert found["shop/base.py", "functools"] == ("functools", "exact_span")


# Hand-made occurrences inside of imports.

MODULE, INNER, DEEP = (symbols.namespace(name) for name in ("a", "a.b", "a.b.c"))
LOCAL = symbols.local("0", "m.py")


def aligned(text, alias, *occurrences, others=()):
    """Symbols and how they are aligned with the import of `alias`, in a file that has nothing else."""
    start = text.index(alias)
    sites = Sites(
        size=len(text),
        line_starts=[0],
        calls=[],
        call_spans=[],
        implicit_calls=[],
        refs=[],
        imports=[Site(start, start + len(alias), 0), *others],
        defs=[],
        def_bodies=[],
    )
    document = Document([Occurrence(*each) for each in occurrences])
    rows = finished(document, sites, "f", "m.py", "scip").arrays[0]
    return {(row[0], row[1], row[3]): (row[10], row[-1]) for row in rows}


def test_of_a_dotted_import_the_longest_part_is_taken():
    found = aligned("import a.b.c as d", "a.b.c as d", (7, 8, MODULE, READ), (9, 10, INNER, READ), (7, 12, DEEP, READ))
    assert found == {(7, 8, MODULE): (None, None), (9, 10, INNER): (None, None), (7, 12, DEEP): (0, "contained_span")}


def test_of_parts_of_the_same_length_the_first_is_taken():
    found = aligned("import a.b.c", "a.b.c", (11, 12, DEEP, READ), (9, 10, INNER, READ), (7, 8, MODULE, READ))
    assert found == {(7, 8, MODULE): (0, "contained_span"), (9, 10, INNER): (None, None), (11, 12, DEEP): (None, None)}


def test_of_symbols_at_one_place_the_first_by_name_is_taken_whatever_their_order():
    both = [(7, 8, MODULE, READ), (7, 8, INNER, READ)]
    expected = {(7, 8, max(MODULE, INNER)): (None, None), (7, 8, min(MODULE, INNER)): (0, "contained_span")}
    assert aligned("import a as b", "a as b", *both) == expected
    assert aligned("import a as b", "a as b", *both[::-1]) == expected


def test_what_is_imported_comes_before_the_longer_name_it_is_given():
    found = aligned("from m import A as Better", "A as Better", (14, 15, MODULE, READ), (19, 25, LOCAL, READ))
    assert found == {(14, 15, MODULE): (0, "contained_span"), (19, 25, LOCAL): (None, None)}


def test_the_name_it_is_given_will_do_if_there_is_nothing_else():
    assert aligned("from m import A as B", "A as B", (19, 20, LOCAL, READ)) == {(19, 20, LOCAL): (0, "contained_span")}


def test_nothing_inside_is_taken_if_something_has_the_very_span():
    found = aligned("from m import A as B", "A as B", (14, 20, DEEP, READ), (14, 15, MODULE, READ))
    assert found == {(14, 20, DEEP): (0, "exact_span"), (14, 15, MODULE): (None, None)}


def test_a_definition_is_no_import():
    found = aligned("from m import A as B", "A as B", (19, 20, MODULE, DEFINITION))
    assert found == {(19, 20, MODULE): (None, None)}


@pytest.mark.parametrize("place", [(0, 4), (5, 6), (12, 15), (14, 21), (7, 20)])
def test_what_is_not_inside_is_not_taken(place):
    assert aligned("from m import A as B#", "A as B", (*place, MODULE, READ)) == {(*place, MODULE): (None, None)}


def test_each_alias_of_a_statement_has_its_own():
    text = "from m import A as B, C as D"
    other = Site(22, 28, 1)
    found = aligned(text, "A as B", (14, 15, MODULE, READ), (22, 23, INNER, READ), others=[other])
    assert found == {(14, 15, MODULE): (0, "contained_span"), (22, 23, INNER): (1, "contained_span")}
