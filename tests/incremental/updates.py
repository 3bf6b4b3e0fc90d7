"""Updates of a repository, each held against a build from scratch, its own preview and what it says it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

import codeanatomy as ca
from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import ANSWERS, FLOW_TABLES, MODULE_LOOKUPS
from codeanatomy.pipeline.preview import Preview, preview
from codeanatomy.pipeline.progress import START
from codeanatomy.pipeline.warm import Warm
from codeanatomy.repo.snapshot import file_id
from codeanatomy.store.location import locate_state
from codeanatomy.store.owners import OWNER_DIGESTS, read_owner_digests
from codeanatomy.store.state import create_state
from tests.incremental.generated import encoded

BUCKETS = 4
"""More than a small repository gets, so that some are left alone."""

_FLOW = {table.name for table in FLOW_TABLES}
_REASONS = "SELECT path, reason_kind, reason_ref, caused_by_path FROM inc_impacted_files ORDER BY ALL"


def put(root: Path, program: Mapping[str, str]) -> None:
    """Make the Python files below `root` those of a program, and touch none that is one of them already."""
    there = {
        path.relative_to(root).as_posix(): path
        for path in root.rglob("*.py*")
        if path.is_file() and ".codeanatomy" not in path.parts
    }
    for path in there.keys() - program.keys():
        there[path].unlink()
    for path, text in program.items():
        if path not in there or there[path].read_bytes() != encoded(text):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(encoded(text))


def build_on(engine: SparkSession | Warm, request: ca.BuildRequest) -> ca.BuildResult:
    """Build on a session, with what it kept of earlier builds or without."""
    return engine.build(request) if isinstance(engine, Warm) else ca.build(request, spark=engine)


def session_of(engine: SparkSession | Warm) -> SparkSession:
    """The session alone."""
    return engine.spark if isinstance(engine, Warm) else engine


def first_build(
    root: Path,
    program: Mapping[str, str],
    engine: SparkSession | Warm,
    *,
    index: str | None = None,
    value_flow: bool | None = None,
) -> Path:
    """Build a repository for the first time."""
    root.mkdir(parents=True, exist_ok=True)
    put(root, program)
    create_state(locate_state(root, None, {}), BUCKETS)
    build_on(engine, ca.BuildRequest(root, index=index, value_flow=value_flow))
    return root


def update(
    root: Path,
    engine: SparkSession | Warm,
    *,
    strategy: str = "hybrid",
    index: str | None = None,
    value_flow: bool | None = None,
    compared: bool = True,
) -> str:
    """Bring a build up to date; what is wrong with that, in words.

    A preview that says otherwise, rows that changed of files that were not to be rebuilt, or (if they are `compared`)
    rows that are not those of a build from scratch.
    """
    request = ca.BuildRequest(root, strategy=strategy, index=index, value_flow=value_flow)
    before = ca.open(root)
    foreseen = preview(request)
    result = build_on(engine, request)
    if result.mode == "noop":
        return f"nothing was done, but {foreseen.files} were to be rebuilt" if foreseen.files else ""
    if result.mode != "incremental":
        return f"a {result.mode} build was made: {', '.join(result.reasons)}"
    after = ca.open(root)
    told = {tuple(row.values()) for row in after.sql(_REASONS).to_pylist()}
    expected = {(each.path, str(each.reason_kind), each.reason_ref, each.caused_by) for each in foreseen.files}
    wrong = [f"the preview had {sorted(expected - told)}, not {sorted(told - expected)}"] if told != expected else []
    wrong += _stages_that_differ(foreseen, result)
    wrong += _unannounced(before, after)
    if compared:
        wrong += unequal(ca.verify(request, spark=session_of(engine)))
    return "\n".join(wrong)


def _stages_that_differ(foreseen: Preview, result: ca.BuildResult) -> list[str]:
    """What the preview lists and what was run: the same, but for the start of a session, which tests share."""
    planned = sorted(each["name"] for each in foreseen.described() if each["name"] != START)
    run = sorted(stage.name for stage in result.stages)
    return [] if planned == run else [f"the stages {planned} were planned, and {run} were run"]


def _unannounced(before: ca.Graph, after: ca.Graph) -> Iterator[str]:
    """Rows that changed of a file that the build does not name, or that changed, or not, other than it says."""
    impacted = {row["file_id"]: row for row in after.sql("FROM inc_impacted_files").to_pylist()}
    renamed = after.sql("SELECT previous FROM diff_report WHERE change_kind = 'renamed'")["previous"].to_pylist()
    asked = set(after.sql("SELECT file_id FROM inc_reconsidered_files")["file_id"].to_pylist())
    named = {*impacted, *map(file_id, renamed), GLOBAL_OWNER}
    old, new = _digests(before), _digests(after)
    for table in sorted({name for name, _ in old.keys() | new.keys()}):
        changed = {
            owner
            for name, owner in old.keys() | new.keys()
            if name == table and old.get((name, owner)) != new.get((name, owner))
        }
        if table in _FLOW:  # what a file passes on may be evaluated differently although nothing of it asks
            continue
        may_change = named | asked if table in (ANSWERS.name, MODULE_LOOKUPS.name) else named
        for owner in sorted(changed - may_change):
            yield f"{table}: rows of {owner} changed, which was not to be rebuilt"
        for owner, row in impacted.items():
            if (table in row["tables"]) != (owner in changed):
                yield f"{table}: rows of {row['path']} {'changed' if owner in changed else 'stayed'}, against its word"


def _digests(graph: ca.Graph) -> dict[tuple[str, str], object]:
    """What is remembered of each table and owner."""
    found = read_owner_digests(graph.state, graph.build.tables[OWNER_DIGESTS.name])
    return {(table, owner): digest for table, owners in found.items() for owner, digest in owners.items()}


def unequal(verification: ca.Verification) -> list[str]:
    """How a build differs from one from scratch, in words."""
    return [
        f"{name}: {row}"
        for name, table in verification.tables.items()
        if not table.equal
        for row in table.examples or ("digests are not those of a build from scratch",)
    ]
