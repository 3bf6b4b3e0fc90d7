"""A repository can ship a state: nothing in it leads outside, whatever it says and at whatever depth it says so."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from codeanatomy.errors import CodeAnatomyError, StateError
from codeanatomy.store import StateLocation, list_builds, open_arrow, open_state
from codeanatomy.store import builds as builds_module
from codeanatomy.store.cursors import read_cursor
from codeanatomy.store.delta import NOTHING, open_table

from .hostile import BUILDS, everything_in, outcomes, plant, rich_state, uses
from .samples import CONTENTS, OWNED, build_of

LAST = build_of(BUILDS, None).build_id
LOG = "tables/{}/_delta_log"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made")
    rich_state(place)
    return place / "state"


@pytest.fixture
def place(made_once: Path, tmp_path: Path) -> Path:
    """A copy of the state, to do with as a test likes."""
    return Path(shutil.copytree(made_once, tmp_path / "state"))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "documents").write_text("precious")
    return place


def one_of(place: Path, pattern: str) -> Path:
    return sorted(place.glob(pattern))[-1]


def test_a_sound_state_serves_every_use(place: Path) -> None:
    assert set(outcomes(StateLocation.at(place)).values()) == {""}


THERE = [
    "tables",
    "tables/owned",
    "tables/contents",
    "tables/builds",
    *(LOG.format(table) for table in ("owned", "contents", "builds")),
    *(f"{LOG.format(table)}/*{name}" for table in ("owned", "contents") for name in ("11.json", ".checkpoint.parquet")),
    f"{LOG.format('builds')}/*12.json",
    f"{LOG.format('owned')}/_last_checkpoint",
    "tables/owned/bucket=0",
    "tables/owned/bucket=*/*.parquet",
    "tables/contents/*.parquet",
    "tables/builds/*.parquet",
    "runs",
    f"runs/{LAST}",
    f"runs/{LAST}/manifest.json",
    f"runs/{LAST}/owned.parquet",
    "cursors",
    "cursors/c.json",
    "lease",
    ".gitignore",
]
NOT_THERE = [
    "evil",
    "shared",
    "shared/evil",
    "indexing",
    "cursors/evil.json",
    "runs/20260101T000009-dead00",
    f"runs/{LAST}/evil.parquet",
    f"runs/{LAST}/deep/evil",
    "tables/evil",
    "tables/evil/_delta_log",
    "tables/owned/evil",
    "tables/owned/bucket=9",
    "tables/owned/bucket=0/evil",
    "tables/owned/bucket=0/deeper/evil",
    "tables/owned/_temporary",
    "tables/owned/_temporary/0/evil",
    f"{LOG.format('owned')}/evil",
    f"{LOG.format('owned')}/_sidecars",
    f"{LOG.format('owned')}/{99:020}.json",
]


@pytest.mark.parametrize("part", [*THERE, *NOT_THERE])
def test_no_link_is_followed_at_any_depth(part: str, place: Path, outside: Path) -> None:
    plant(one_of(place, part) if part in THERE else place / part, outside)
    before = everything_in(outside)

    found = outcomes(StateLocation.at(place))

    assert everything_in(outside) == before
    assert {outcome[:1] for outcome in found.values()} <= {"", "4"}, found
    for writer in ("update", "rollback", "gc"):
        assert "is a link" in found[writer], found


FILES = [part for part in THERE if part.endswith((".json", "parquet", "lease", ".gitignore", "_last_checkpoint"))]


@pytest.mark.parametrize("part", FILES)
def test_a_pipe_is_not_waited_for(part: str, place: Path) -> None:
    target = one_of(place, part)
    target.unlink()
    os.mkfifo(target)
    found = outcomes(StateLocation.at(place))
    assert {outcome[:1] for outcome in found.values()} <= {"", "4"}, found
    assert "is not a regular file" in found["gc"]


def test_a_lease_with_another_name_is_not_written(place: Path, outside: Path) -> None:
    (place / "lease").unlink()
    os.link(outside / "documents", place / "lease")
    before = everything_in(outside)
    assert "is a hard link" in outcomes(StateLocation.at(place))["gc"]
    assert everything_in(outside) == before


def test_garbage_is_what_has_a_name_of_ours(place: Path) -> None:
    mine = [
        "tables/owned/notes.txt",
        "tables/owned/bucket=0/mine.parquet",
        "tables/owned/bucket=0/deeper/part-1.parquet",
        "tables/notes/part-1.parquet",
        "runs/notes/manifest.json",
        f"runs/{build_of(1, None).build_id}/notes.txt",
        f"runs/{build_of(1, None).build_id}/deeper/manifest.json",
    ]
    for name in mine:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("mine")
    before = len(list((place / "tables/owned").rglob("part-*.parquet")))

    uses(StateLocation.at(place))["gc"]()

    assert all((place / name).read_text() == "mine" for name in mine)
    assert len(list((place / "tables/owned").rglob("part-*.parquet"))) < before
    assert not (place / "runs" / build_of(1, None).build_id / "manifest.json").exists()
    assert not (place / "runs" / build_of(2, None).build_id).exists()


# What a log says.


def edit_log(place: Path, table: str, edit) -> None:
    """Change the last file that the log of a table adds."""
    log = one_of(place, f"{LOG.format(table)}/*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    edit([action["add"] for action in actions if "add" in action][-1])
    log.write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize("table", ["owned", "contents", "builds"])
@pytest.mark.parametrize(
    "path",
    [
        "../../../outside/part-1.parquet",
        "bucket=0/../../../../outside/part-1.parquet",
        "%2e%2e%2f%2e%2e%2f%2e%2e%2foutside%2fpart-1.parquet",
        "{outside}/part-1.parquet",
        "file://{outside}/part-1.parquet",
        "s3://bucket/part-1.parquet",
        "http://127.0.0.1:1/part-1.parquet",
        "bucket=0\\..\\part-1.parquet",
        "bucket=0/part-\x1b[31m.parquet",
        "bucket=0/part-1.parquet\0",
        "",
    ],
)
def test_a_log_names_nothing_outside(path: str, table: str, place: Path, outside: Path) -> None:
    rows = pq.read_table(one_of(place, f"tables/{table}/**/*.parquet"), partitioning=None)
    pq.write_table(rows, outside / "part-1.parquet")
    before = everything_in(outside)
    edit_log(place, table, lambda add: add.update(path=path.format(outside=outside)))

    found = outcomes(StateLocation.at(place))

    assert everything_in(outside) == before
    assert {outcome[:1] for outcome in found.values()} <= {"", "4"}, found
    assert all(found[use].startswith("4 ") for use in ("whole", "arrow", "update", "rollback", "gc")), found


@pytest.mark.parametrize(
    "path", ["file://{}/s.parquet", "../../../../../outside/s.parquet", "{}/s.parquet", "http://h/s"]
)
def test_a_checkpoint_has_no_sidecars(path: str, place: Path, outside: Path) -> None:
    checkpoint = one_of(place, f"{LOG.format('owned')}/*.checkpoint.parquet")
    shutil.copyfile(checkpoint, outside / "s.parquet")
    rows = pq.read_table(checkpoint)
    kind = rows.schema.field("sidecar")
    sidecar = {"path": path.format(outside), "sizeInBytes": 10, "modificationTime": 1, "tags": None}
    column = pa.array([None] * (rows.num_rows - 1) + [sidecar], kind.type)
    pq.write_table(rows.set_column(rows.schema.get_field_index("sidecar"), kind, column), checkpoint)
    os.utime(outside / "s.parquet", (1, 1))

    found = outcomes(StateLocation.at(place))

    assert (outside / "s.parquet").stat().st_atime == 1
    assert all("has sidecars" in found[use] for use in ("whole", "arrow", "update", "rollback", "gc")), found


@pytest.mark.parametrize(
    "name", ["{}.checkpoint.0000000001.0000000001.parquet", "{}.checkpoint.abc.json", "{0}.{0}.compacted.json"]
)
def test_a_log_has_nothing_that_we_do_not_write(name: str, place: Path) -> None:
    number = f"{11:020}"
    (place / LOG.format("owned") / name.format(number)).write_text("{}")
    with pytest.raises(StateError, match="the log of table owned has"):
        open_table(StateLocation.at(place), "owned")


def test_a_table_of_another_format_is_refused(place: Path) -> None:
    vector = {
        "storageType": "p",
        "pathOrInlineDv": "file:///etc/passwd",
        "offset": 1,
        "sizeInBytes": 9,
        "cardinality": 1,
    }
    edit_log(place, "owned", lambda add: add.update(deletionVector=vector))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    with one_of(place, f"{LOG.format('owned')}/*.json").open("a") as log:
        log.write("\n" + json.dumps(protocol))
    with pytest.raises(StateError, match="of another format"):
        open_table(StateLocation.at(place), "owned")


@pytest.mark.parametrize(
    "change",
    [
        {"stats": '{"numRecords'},
        {"stats": "[]"},
        {"stats": '{"numRecords": 1e99}'},
        {"stats": '{"numRecords": -1}'},
        {"stats": '{"numRecords": 0, "minValues": {"file_id": "z"}, "maxValues": {"file_id": "z"}}'},
        {"stats": '{"numRecords": 9, "nullCount": {"file_id": 9, "content_id": 9}}'},
        {"stats": None},
        {"size": -1},
        {"size": 1},
        {"size": 1 << 70},
        {"size": "x"},
        {"partitionValues": {"bucket": "../.."}},
        {"partitionValues": []},
        {"modificationTime": "x"},
    ],
    ids=str,
)
@pytest.mark.parametrize("table", [OWNED, CONTENTS], ids=lambda table: table.name)
def test_statistics_are_not_relied_on(change, table, place: Path) -> None:
    """Either the log cannot be read, or the rows are those that are there."""
    location = StateLocation.at(place)
    version = list_builds(open_state(location))[-1].tables[table.name].version
    expected = open_arrow(open_state(location), table, version).to_table().sort_by(table.names()[0])
    edit_log(place, table.name, lambda add: add.update(change))
    try:
        found = open_arrow(open_state(location), table, version).to_table().sort_by(table.names()[0])
    except StateError as error:
        assert "\n" not in str(error)
    else:
        assert found == expected


# What a build, a bundle or a cursor says.


def tables_json(**pins: object) -> str:
    return json.dumps(pins)


PIN = {"version": 0, "buckets": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"build_id": "../../outside"},
        {"build_id": "20260101T000099-abc/.."},
        {"build_id": "20260101T000099-\x1b[31m"},
        {"build_id": ""},
        {"parent_build_id": "../x"},
        {"rolled_back_to": "/etc"},
        {"created_at": "yesterday"},
        {"tables": "[]"},
        {"tables": "null"},
        {"tables": "{"},
        {"tables": '{"owned": ' * 5000 + "1" + "}" * 5000},
        {"tables": '{"../../outside": {"version": 0, "buckets": {}}}'},
        {"tables": '{"/etc": {"version": 0, "buckets": {}}}'},
        {"tables": '{"owned": {"version": -1, "buckets": {}}}'},
        {"tables": '{"owned": {"version": 9223372036854775808, "buckets": {}}}'},
        {"tables": '{"owned": {"version": true, "buckets": {}}}'},
        {"tables": '{"owned": {"version": "0", "buckets": {}}}'},
        {"tables": '{"owned": {"version": 1.5, "buckets": {}}}'},
        {"tables": '{"owned": {"buckets": {}}}'},
        {"tables": '{"owned": 7}'},
        {"tables": '{"owned": {"version": 0, "buckets": {"0": [1]}}}'},
        {"tables": '{"owned": {"version": 0, "buckets": {"x": [1, "00000000000000000000000000000000"]}}}'},
        {"tables": '{"owned": {"version": 0, "buckets": {"0": [-1, "00000000000000000000000000000000"]}}}'},
        {"tables": '{"owned": {"version": 0, "buckets": {"0": [1, "../../etc"]}}}'},
        {"fingerprints": "[]"},
        {"fingerprints": '{"extractor": 1}'},
        {"figures": "[]"},
        {"figures": '{"files": []}'},
        {"figures": '{"files": {"total": "many"}}'},
        {"figures": '{"problems": [{"path": 1, "reason": "x", "detail": "y"}]}'},
        {"figures": '{"problems": [{"path": "p"}]}'},
        {"figures": '{"index": "scip"}'},
        {"figures": '{"seconds": "long"}'},
    ],
    ids=lambda change: str(change)[:60],
)
def test_a_build_is_what_a_build_can_be(change, place: Path, outside: Path) -> None:
    state = open_state(StateLocation.at(place))
    table = open_table(state.location, "builds")
    row = builds_module._rows(state, table)[-1]
    new = {"build_id": "20260101T000099-abcdef", "parent_build_id": row["build_id"], "sequence": row["sequence"] + 1}
    builds_module._write(state, table, [{**row, **new, **change}], NOTHING)
    before = everything_in(outside)

    found = outcomes(state.location)

    assert everything_in(outside) == before
    assert {outcome[:1] for outcome in found.values()} <= {"", "4"}, found
    assert all(found[use].startswith("4 ") for use in ("builds", "whole", "gc")), found


def test_a_version_that_is_not_there(place: Path) -> None:
    state = open_state(StateLocation.at(place))
    table = open_table(state.location, "builds")
    row = builds_module._rows(state, table)[-1]
    pins = json.dumps({"owned": {"version": 1 << 40, "buckets": {}}})
    new = {"build_id": "20260101T000099-abcdef", "sequence": row["sequence"] + 1, "tables": pins}
    builds_module._write(state, table, [{**row, **new}], NOTHING)
    assert outcomes(state.location)["whole"].startswith("4 ")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"build_id": 7}',
        b'{"build_id": "../../outside"}',
        b'{"build_id": "\\u001b[31m"}',
        b"[" * 50_000,
        b"\xff\xfe",
        b" " * (1 << 17),
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_cursor_is_a_build_id(content: bytes, place: Path) -> None:
    (place / "cursors" / "c.json").write_bytes(content)
    with pytest.raises(StateError) as told:
        read_cursor(open_state(StateLocation.at(place)), "c")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "settings",
    [{"codeanatomy.buckets": "0"}, {"codeanatomy.buckets": "-4"}, {"codeanatomy.buckets": "99999999999"}],
    ids=str,
)
def test_the_number_of_buckets_is_one_that_we_choose(settings, place: Path) -> None:
    DeltaTable(place / "tables/builds").alter.set_table_properties(settings, raise_if_not_exists=False)
    with pytest.raises(StateError, match="buckets"):
        open_state(StateLocation.at(place))


def test_no_use_raises_anything_but_our_errors_on_a_log_of_noise(place: Path) -> None:
    for content in (b"", b"\0" * 100, b"{}", b"null", b"[]", b'{"add": null}', b'{"metaData": {}}', b"\xff\n"):
        one_of(place, f"{LOG.format('owned')}/*.json").write_bytes(content)
        for name, use in uses(StateLocation.at(place)).items():
            try:
                use()
            except CodeAnatomyError as error:
                assert error.exit_code == 4, (name, error)
