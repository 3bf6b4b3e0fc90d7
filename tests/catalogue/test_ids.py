"""The grammar of ids: complete, unambiguous, and stable for what other files point to."""

import pytest

from codeanatomy.catalogue.documents import DOCUMENT_DATASETS
from codeanatomy.catalogue.ids import (
    ANSWER_IDS,
    EDGE_IDS,
    NODE_IDS,
    PART_OF_COLUMN,
    PARTS,
    binding_id,
    code_id,
    definition_id,
    edge_forms,
    example_of,
    module_id,
    name_id,
    parse_node_id,
    parts_of,
    short_hash,
    symbol_id,
)
from codeanatomy.catalogue.kinds import EdgeKind, NodeKind
from codeanatomy.catalogue.layers import FACT_DATASETS
from codeanatomy.repo.snapshot import file_id

FILE, KEY = short_hash(b"file"), short_hash(b"key")


def test_every_kind_has_a_grammar():
    assert set(NODE_IDS) == set(NodeKind)
    assert set(EDGE_IDS) == set(EdgeKind)


@pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind, spelled in NODE_IDS.items() for form in spelled.forms]
)
def test_an_id_tells_its_kind_and_its_parts(kind, form):
    parsed = parse_node_id(example_of(form))
    assert parsed.kind == kind
    assert parsed.parts == {part: PARTS[part].example for part in parts_of(form)}


def test_edge_ids_consist_of_known_parts_and_ends():
    used = {part for kind in EdgeKind for form in edge_forms(kind) for part in parts_of(form)}
    assert used <= {*PARTS, "src_id", "dst_id"}


@pytest.mark.parametrize("kind", [kind for kind, spelled in NODE_IDS.items() if spelled.other_files_point_to_it])
def test_an_id_that_other_files_point_to_does_not_depend_on_places_in_the_source(kind):
    for form in NODE_IDS[kind].forms:
        assert not [part for part in parts_of(form) if PARTS[part].counts_source_order]


def test_numbers_of_facts_and_documents_count_source_order():
    """Except for places in a list, which do not depend on what is written before the list."""
    numbers = {
        column.name
        for dataset in (*FACT_DATASETS, *DOCUMENT_DATASETS)
        for column in dataset.columns
        if column.name in PART_OF_COLUMN and column.name.endswith(("_no", "bstart", "bend"))
    }
    assert numbers
    assert all(PARTS[PART_OF_COLUMN[name]].counts_source_order for name in numbers)


def test_answers_name_only_what_other_files_may_point_to():
    assert all(NODE_IDS[kind].other_files_point_to_it for kinds in ANSWER_IDS.values() for kind in kinds)


def test_hashes_have_at_least_96_bits():
    hashed = [part for part in PARTS.values() if part.pattern.startswith("[0-9a-f]")]
    assert len(hashed) == 5
    assert all(len(part.example) * 4 >= 96 for part in hashed)
    assert len(short_hash(b"")) == len(file_id("a.py")) == len(PARTS["file_id"].example)


@pytest.mark.parametrize(
    ("made", "kind", "parts"),
    [
        (module_id(FILE), NodeKind.MODULE, {"file_id": FILE}),
        (definition_id(FILE, KEY), NodeKind.DEF, {"file_id": FILE, "def_key": KEY}),
        (code_id(FILE, KEY), NodeKind.DEF, {"file_id": FILE, "def_key": KEY}),
        (code_id(FILE, None), NodeKind.MODULE, {"file_id": FILE}),
        (binding_id(FILE, KEY), NodeKind.BINDING, {"file_id": FILE, "binding_key": KEY}),
        (name_id("<builtin>.print"), NodeKind.QNAME, {"name": "<builtin>.print"}),
        (symbol_id("a b c d e#"), NodeKind.SYMBOL, {"symbol_hash": short_hash(b"a b c d e#")}),
    ],
)
def test_ids_are_made_as_they_are_parsed(made, kind, parts):
    parsed = parse_node_id(made)
    assert (parsed.kind, parsed.parts) == (kind, parts)
    assert parsed.file_id == parts.get("file_id")


@pytest.mark.parametrize(
    "text", ["", "d", "d:short:key", f"d:{FILE}", f"d:{FILE}:{KEY}:", f"n:{FILE}:x", f"z:{FILE}", "q:"]
)
def test_other_texts_are_no_ids(text):
    assert parse_node_id(text) is None
