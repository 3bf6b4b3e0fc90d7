"""Layers: what each fills in, what is kept when one changes, and that a change of facts is a change of version."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from codeanatomy.catalogue.layers import FACT_DATASETS, LAYERS, facts_of
from codeanatomy.catalogue.revisions import LAYER_VERSIONS
from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract import extract_batch, renewal, renewed_facts
from codeanatomy.extract.cells import FactCells

SAMPLE = (Path(__file__).parent / "sample.txt").read_bytes()
NAMES = [layer.name for layer in LAYERS]

KNOWN_FACTS = {
    "syntax": (2, "698f4c1930199819"),
    "scopes": (1, "acc6a58e90b1b667"),
    "values": (1, "fb518aca695dab0d"),
}
"""The version of each layer, and a digest of what it says of the sample."""


def table(sources, layers=LAYER_VERSIONS):
    rows = extract_batch([*sources], [*sources.values()], layers).to_pylist()
    return {row["content_id"]: row for row in rows}


@pytest.mark.parametrize("layer", LAYERS, ids=NAMES)
def test_facts_that_change_have_a_new_version(layer):
    row = extract_batch(["sample"], [SAMPLE], {layer.name: ""}).to_pylist()[0]
    found = (layer.version, sha256(repr(row).encode()).hexdigest()[:16])
    assert found == KNOWN_FACTS[layer.name], (
        f"what the layer {layer.name} says has changed: raise its version in catalogue/layers.py, "
        f"and write here what is found now"
    )


def test_the_sample_has_rows_of_every_dataset():
    row = extract_batch(["sample"], [SAMPLE]).to_pylist()[0]
    assert [dataset.name for dataset in FACT_DATASETS if not row[dataset.name]] == []


def test_every_column_is_filled_in_by_one_layer():
    filled = Counter()
    for name in NAMES:
        for column in facts_of([name]).columns[1:]:
            fields = (
                [f".{field.name}" for field in column.type.value_type]
                if column.name.startswith(("cst", "sym"))
                else [""]
            )
            filled.update(column.name + field for field in fields)
    assert set(filled.values()) == {1}
    assert facts_of(NAMES).schema() == FACTS.schema()
    assert {c.layer for d in FACT_DATASETS for c in d.columns if c.layer} <= set(NAMES)


@pytest.mark.parametrize("cells", [{}, {"question": 1, "answer": 2}], ids=["missing", "unknown"])
def test_a_row_has_a_cell_for_each_column_of_the_catalogue(cells):
    with pytest.raises(TypeError, match=r"question|answer"):
        FactCells().rows["asks"].add(**cells)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_alone_is_that_part_of_all(name):
    alone = extract_batch(["sample"], [SAMPLE], {name: LAYER_VERSIONS[name]})
    assert alone.schema == facts_of([name]).schema()
    whole = extract_batch(["sample"], [SAMPLE])
    for column in facts_of([name]).columns:
        known = whole[column.name].to_pylist()[0]
        for at, found in enumerate(alone[column.name].to_pylist()[0] or ()):
            expected = {key: known[at][key] for key in found} if isinstance(found, dict) else known[at]
            assert found == expected


@pytest.fixture
def extracted(monkeypatch):
    """What was extracted: of which contents, in which layers."""
    calls = []

    def record(contents, sources, layers):
        calls.append((tuple(contents), set(layers)))
        return extract_batch(contents, sources, layers)

    monkeypatch.setattr(renewal, "extract_batch", record)
    return calls


def renewed(sources, stored, wanted):
    batches = list(renewed_facts(sources, stored, wanted))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == FACTS.schema()
    return {row["content_id"]: row for batch in batches for row in batch.to_pylist()}


def stored_rows(sources):
    return pa.Table.from_batches([extract_batch([*sources], [*sources.values()])])


@pytest.mark.parametrize("name", NAMES)
def test_a_new_version_of_a_layer_extracts_that_layer_alone(extracted, name):
    sources = {"sample": SAMPLE, "empty": b"", "undecodable": b"\xff", "short": b"import a\na.f(1)\n"}
    wanted = {**LAYER_VERSIONS, name: "new"}
    found = renewed(sources, stored_rows(sources), wanted)
    assert extracted == [(tuple(sources), {name})]
    assert found == table(sources, wanted)


def test_what_is_kept_is_what_was_stored(extracted):
    """Not what extracting it again would give: here the stored docstring is another than that of the source."""
    stored = stored_rows({"one": b'"""Stored."""\nf(x)\n'})
    found = renewed({"one": b'"""Source."""\ng(x)\n'}, stored, {**LAYER_VERSIONS, "values": "new"})["one"]
    assert [row["text"] for row in found["docstrings"]] == ["Stored."]
    assert [row["callee_name"] for row in found["cst_callsites"]] == ["f"]
    assert [row["question"] for row in found["asks"]] == ["g:g", "g:x"]


def test_contents_are_grouped_by_what_they_lack(extracted):
    sources = {"new": b"x = 1\n", "current": b"y = 2\n", "old": b"z = 3\n"}
    stored = stored_rows({name: sources[name] for name in ("current", "old")}).to_pylist()
    stored[1]["scopes_version"] = "older"
    found = renewed(sources, pa.Table.from_pylist(stored, FACTS.schema()), LAYER_VERSIONS)
    assert found == table(sources)
    assert dict(extracted) == {("new",): set(NAMES), ("current",): set(), ("old",): {"scopes"}}


def test_stored_rows_that_do_not_fit_are_not_used(extracted):
    stored = stored_rows({"one": b"f(x)\n"})
    wanted = {**LAYER_VERSIONS, "values": "new"}
    assert renewed({"one": b"f(x)\nf(y)\n"}, stored, wanted) == table({"one": b"f(x)\nf(y)\n"}, wanted)
    without = stored.drop_columns(["cst_params"])
    assert renewed({"one": b"f(x)\n"}, without, wanted) == table({"one": b"f(x)\n"}, wanted)
    assert [layers for _, layers in extracted] == [{"values"}, set(NAMES)] * 2
