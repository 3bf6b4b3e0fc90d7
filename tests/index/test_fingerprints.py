"""A document's fingerprint says what it says, its interface what others can see: neither tells of the run or the place.

The package is a real one of the environment, large enough that a run does its work in another order each time.
"""

import json
import shutil
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from codeanatomy.index import scip_format as scip
from codeanatomy.index.documents import sites_in
from codeanatomy.index.report import Report, _Mentioned, _portable
from tests.index.indexing import (
    TRICKY,
    TRICKY_SCIP,
    index,
    needs_pyrefly,
    pyrefly_index,
    pyrefly_provider,
    read,
    run_asked,
    scip_index,
    tree,
)
from tests.repositories import write_repository

PACKAGE = "importlinter"
ASKED = pa.table({"path": ["base.py"]})


def copied(place):
    """A repository with the package."""
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    shutil.copytree(Path(found.origin).parent, place / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return tree(copied(tmp_path_factory.mktemp("repository")))


@pytest.fixture(scope="module")
def whole(repository, shared_scratch):
    return index(repository, pyrefly_provider(), shared_scratch / "whole")


@needs_pyrefly
def test_the_package_is_a_real_one(repository, whole):
    assert whole.documents.keys() == {file.path for file in repository.files}
    assert len(whole.documents) > 20
    assert sum(len(row["scip_occurrences"]) for row in whole.documents.values()) > 1000
    assert all(row["fingerprint"] for row in whole.documents.values())
    assert sum(bool(row["interface"]) for row in whole.documents.values()) > 20
    assert len({row["fingerprint"] for row in whole.documents.values()}) > 20


@needs_pyrefly
def test_another_run_at_another_place_says_the_same(tmp_path, whole, scratch):
    place = copied(tmp_path / "some" / "place with a much longer name")
    again = pyrefly_index(place, scratch / "scratch" / "somewhere" / "else")
    assert again.documents == whole.documents


@needs_pyrefly
def test_another_run_at_the_same_place_says_the_same(repository, whole, shared_scratch):
    """And is read anew, though its report is where the first one was."""
    shutil.rmtree(shared_scratch / "whole")
    assert index(repository, pyrefly_provider(), shared_scratch / "whole").documents == whole.documents


@needs_pyrefly
def test_two_runs_about_half_of_the_files_say_what_one_does(repository, whole, scratch):
    pyrefly = pyrefly_provider().pyrefly
    halves = repository.files[::2], repository.files[1::2]
    found = None
    for number, half in enumerate(halves):
        found = read(repository, run_asked(repository, pyrefly, half, scratch / str(number)), onto=found)
    assert found.fingerprints() == whole.fingerprints()


@needs_pyrefly
def test_of_several_classes_all_are_told_whichever_was_loaded_first(tmp_path, scratch):
    files = {
        "a.py": "class A:\n    def __init__(self): ...\n    def __new__(cls): return super().__new__(cls)\n",
        "b.py": "class B:\n    def __init__(self): ...\n",
        "c.py": "class C: ...\n",
        "uses.py": (
            "from b import B\nfrom c import C\nfrom a import A\n\n"
            "def made(which):\n    kind = A if which == 1 else B if which == 2 else C\n    return kind()\n"
        ),
    }
    seen = tree(write_repository(tmp_path, files))
    whole = index(seen, pyrefly_provider(), scratch / "whole")
    called = {row["symbol"] for row in whole.occurrences("uses.py") if row["role"] == "call"}
    assert called == {f"codeanatomy python . . {each}" for each in ("a/A#__init__().", "b/B#__init__().", "c/C#")}
    (asked,) = (file for file in seen.files if file.path == "uses.py")
    alone = read(seen, run_asked(seen, pyrefly_provider().pyrefly, [asked], scratch / "alone"))
    assert alone.documents["uses.py"] == whole.documents["uses.py"]


@needs_pyrefly
def test_no_document_tells_where_it_was_made(whole, repository, shared_scratch):
    told = repr(whole.documents)
    assert "Cannot find module" in told  # a complaint that tells where it looked
    for place in (repository.root, shared_scratch, Path.home()):
        assert f"{place}/" not in told


@needs_pyrefly
def test_a_file_that_is_loaded_under_two_names_is_read_under_ours(tmp_path, scratch):
    """A relative import at the top of the repository makes pyrefly load a file as `.base` as well."""
    files = {
        "__init__.py": "from .base import Base\n",
        "base.py": "class Base:\n    def me(self): return self\n",
        "user.py": "from .base import Base\ndef made(): return Base().me()\n",
        "other.py": "from base import Base\nmine = Base()\n",
    }
    found = pyrefly_index(write_repository(tmp_path, files), scratch / "run")
    (me,) = (each for each in found.documents["base.py"]["scip_symbol_information"] if each["display_name"] == "me")
    assert (me["qname"], me["signature"]) == ("base.Base.me", "(self: base.Base) -> base.Base")
    called = {row["symbol"] for row in found.occurrences("user.py") if row["role"] == "call"}
    assert called == {"codeanatomy python . . base/Base#", "codeanatomy python . . base/Base#me()."}


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_reports_of_one_file_that_under_our_name_is_read(tmp_path, order):
    """Whatever the order in which they are listed."""
    names = ["base", ".base"][::order]
    for number, name in enumerate(names):
        entry = {"format_version": 1, "module_id": number, "module_name": name, "info_filename": f"{number}.json"}
        variables = {"global_variables": {"found": {"location": "1:1-1:6", "type": {"string": name}}}}
        parts = {
            "definitions": {**entry, "function_definitions": {}, "class_definitions": {}, **variables},
            "call_graphs": {**entry, "call_graphs": {}},
        }
        for part, body in parts.items():
            write_repository(tmp_path / "report" / part, {f"{number}.json": json.dumps(body)})
    listed = {
        str(number): {
            "module_id": number,
            "module_name": name,
            "source_path": {"FileSystem": "/mirror/0/base.py"},
            "info_filename": f"{number}.json",
        }
        for number, name in enumerate(names)
    }
    report = {"pyrefly.pysa.json": json.dumps({"modules": listed}), "errors.json": json.dumps({"errors": []})}
    write_repository(tmp_path / "report", report)
    (empty,) = sites_in(tree(write_repository(tmp_path / "tree", {"base.py": "found = 1\n"})).batch(ASKED))
    document = Report(tmp_path, {"/mirror/0/base.py": "base"}).document("/mirror/0/base.py", empty)
    assert [(each.qname, each.signature) for each in document.symbols] == [("base.found", "base")]


@needs_pyrefly
def test_a_report_in_the_place_of_another_is_read_anew(tmp_path, scratch):
    for name in ("one", "other"):
        root = write_repository(tmp_path, {"m.py": f"def {name}(): ...\n{name}()\n"})
        found = pyrefly_index(root, scratch / "run")
        shutil.rmtree(scratch / "run")
        assert {row["symbol"] for row in found.occurrences("m.py")} == {f"codeanatomy python . . m/{name}()."}


BASE = """\
from typing import TypeVar

T = TypeVar("T")
LIMIT = 3


class Base: ...


class Shop(Base):
    rate: float = 0.5
    location: int = 1

    def total(self, count: int):
        return count * 2

    @property
    def name(self) -> str: return "shop"


def first(values: list[T]) -> T:
    return values[0]


def outer(x: int):
    def inner():
        return x

    return inner()


def made():
    class Inside:
        size = 1

    return Inside()
"""
HIDDEN = {
    "a body": ("return count * 2", "twice = count + count\n        return twice"),
    "a comment above": ("T = TypeVar", "# several\n# lines\n\n\nT = TypeVar"),
    "a comment of several bytes": ("LIMIT = 3", '"🍎"; LIMIT = 3  # 漢字'),
    "a docstring": ("return values[0]", '"""The first."""\n    return values[0]'),
    "a function inside another": ("        return x\n", "        return x + 1\n"),
    "a local name": ("    return inner()", "    found = inner()\n    return found"),
    "another value of the same type": ("LIMIT = 3", "LIMIT = 4"),
    "space": ("count: int", "count :  int"),
}
VISIBLE = {
    "an inferred return type": ("return count * 2", "return str(count)"),
    "an inferred return type, through a function inside": ("        return x\n", "        return str(x)\n"),
    "the type of a parameter": ("count: int", "count: float"),
    "the name of a parameter": ("(self, count: int):\n        return count", "(self, n: int):\n        return n"),
    "a default": ("count: int", "count: int = 1"),
    "a new parameter": ("count: int", "count: int, *rest: int"),
    "the name of a function": ("def first(", "def head("),
    "the name of a class": ("class Shop", "class Store"),
    "a base": ("class Shop(Base)", "class Shop(Base, Exception)"),
    "no base": ("class Shop(Base)", "class Shop"),
    "the type of a field": ("rate: float", "rate: int"),
    "the type of a field called as a report calls places": ("location: int = 1", 'location: str = ""'),
    "the type of a field of a class inside a function": ("size = 1", 'size = ""'),
    "the name of a field of a class inside a function": ("size = 1", "width = 1"),
    "a new field": ("rate: float = 0.5", "rate: float = 0.5\n    tax: float = 0.5"),
    "the type of a variable": ("LIMIT = 3", 'LIMIT = "3"'),
    "a new variable": ("LIMIT = 3", "LIMIT = 3; MORE = 4"),
    "a variable less": ("LIMIT = 3\n", ""),
    "a decorator less": ("    @property\n", ""),
    "a static method": ("    def total(self, count", "    @staticmethod\n    def total(self, count"),
    "async": ("def outer", "async def outer"),
    "a generator": ("return inner()", "yield inner()"),
    "a class that is gone": ("class Base: ...", "Base = object"),
}


@pytest.fixture(scope="module")
def edits(tmp_path_factory, shared_scratch):
    """Documents of one module after each edit, from one run: each edit is in a source root of its own."""
    texts = {"nothing": BASE}
    for what, (old, new) in (HIDDEN | VISIBLE).items():
        assert BASE.count(old) == 1, what
        texts[what] = BASE.replace(old, new)
    files = {f"{number}/m.py": text for number, text in enumerate(texts.values())}
    root = write_repository(tmp_path_factory.mktemp("edits"), files)
    roots = [path.partition("/")[0] for path in files]
    found = index(tree(root, roots), pyrefly_provider(), shared_scratch / "edits")
    return {what: found.documents[path] for what, path in zip(texts, files, strict=True)}


@needs_pyrefly
@pytest.mark.parametrize("what", HIDDEN)
def test_others_do_not_see(edits, what):
    assert edits[what]["interface"] == edits["nothing"]["interface"]


@needs_pyrefly
@pytest.mark.parametrize("what", VISIBLE)
def test_others_see(edits, what):
    assert edits[what]["interface"] != edits["nothing"]["interface"]
    assert edits[what]["fingerprint"] != edits["nothing"]["fingerprint"]


@needs_pyrefly
def test_an_interface_passes_on_what_it_gets_from_another_module(tmp_path, scratch):
    files = {"far.py": "def far(): return 1\n", "near.py": "from far import far\ndef near(): return far()\n"}
    before = pyrefly_index(write_repository(tmp_path, files), scratch / "before")
    write_repository(tmp_path, {"far.py": "def far(): return ''\n"})
    after = pyrefly_index(tmp_path, scratch / "after")
    for path in files:
        assert before.documents[path]["interface"] != after.documents[path]["interface"]


def respelled(index, version):
    """Give every package another version."""

    def other(symbol):
        fields = symbol.split(" ", 4)
        return " ".join((*fields[:3], version, fields[4])) if len(fields) == 5 else symbol

    for information in [*index.external_symbols, *(each for document in index.documents for each in document.symbols)]:
        information.symbol = other(information.symbol)
        information.enclosing_symbol = other(information.enclosing_symbol)
        for relationship in information.relationships:
            relationship.symbol = other(relationship.symbol)
    for document in index.documents:
        for occurrence in document.occurrences:
            occurrence.symbol = other(occurrence.symbol)
    return index


def read_scip(index, place):
    place.mkdir()
    (place / "index.scip").write_bytes(scip.encode(index))
    return scip_index(TRICKY, place / "index.scip", place / "run")


def test_reading_an_index_again_says_the_same(tmp_path, scip_tricky):
    assert scip_index(TRICKY, TRICKY_SCIP, tmp_path / "again") == scip_tricky
    assert len({fingerprint for fingerprint, _ in scip_tricky.fingerprints().values()}) == len(scip_tricky.documents)


@pytest.mark.parametrize("version", ["1.2.3", "c0ffee0123456789c0ffee0123456789c0ffee01"])
def test_the_version_of_a_package_is_not_told(tmp_path, scip_tricky, version):
    index = respelled(scip.parse(scip.Index, TRICKY_SCIP.read_bytes()), version)
    assert version.encode() in scip.encode(index)
    assert read_scip(index, tmp_path / "respelled").documents == scip_tricky.documents


def test_the_order_of_an_index_is_not_told(tmp_path, scip_tricky):
    index = scip.parse(scip.Index, TRICKY_SCIP.read_bytes())
    for document in index.documents:
        document.occurrences.sort(key=lambda each: each.symbol)
        document.symbols.sort(key=lambda each: each.symbol, reverse=True)  # of what is said twice, the first counts
    index.documents.reverse()
    assert read_scip(index, tmp_path / "reordered").fingerprints() == scip_tricky.fingerprints()


def test_decorators_are_told_by_place_in_whatever_order_they_come():
    places = {"9:2-9:5": ["first"], "10:2-10:5": ["second"], "11:6-11:9": ["third"]}
    for order in permutations(places):
        said = _portable({"decorator_callees": {place: places[place] for place in order}}, _Mentioned())
        assert said == {"decorator_callees": [["first"], ["second"], ["third"]]}
