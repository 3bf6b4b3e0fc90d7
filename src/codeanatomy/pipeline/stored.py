"""What is on disk against what the last build says of it: the bytes of every file, then the rows of every table.

A damaged file is an error that names it. Rows that can be read but are not those the build wrote are an answer. Of a
build with another schema, rows are not compared: their digests are of other columns. Facts and semantic documents are
told by what names their rows; of the rest of them, the bytes are what is compared.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from codeanatomy.catalogue.tables import DOCUMENTS, FACTS, FLOW_TABLES, SCIP_DOCUMENTS, STORED_TABLES
from codeanatomy.engine.profiles import profile_named
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError
from codeanatomy.pipeline.context import engine_for
from codeanatomy.pipeline.plan import has_current_schema
from codeanatomy.pipeline.progress import Listener, Silent, StageClock
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.pipeline.verify import TableComparison, Verification
from codeanatomy.store.audit import check_bytes, digests_on_disk
from codeanatomy.store.builds import BuildRecord, current_build
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.failures import writing
from codeanatomy.store.filewriter import identity_digest
from codeanatomy.store.location import locate_state
from codeanatomy.store.owners import OWNER_DIGESTS, own_digests
from codeanatomy.store.state import State, open_state
from codeanatomy.store.tables import TablePin, read_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def verify_stored(
    request: BuildRequest, *, listener: Listener | None = None, spark: SparkSession | None = None
) -> Verification:
    """Compare what is on disk of the last build with the digests it pinned; a file that is damaged is an error."""
    began = time.monotonic()
    clock = StageClock(listener or Silent())
    state = open_state(locate_state(request.repo, request.state, request.storage_options))
    last = current_build(state)
    with clock.stage("files"):
        check_bytes(state, last)
    if not has_current_schema(last):  # digests are of the columns that were written
        raise InputError(
            f"build {last.build_id} has another schema: its files are whole, its rows cannot be compared",
            hint="run `codeanatomy build`, then verify",
        )
    settings = EngineSettings(
        profile=profile_named(request.profile), master=request.master, remote=request.remote, conf=request.spark_conf
    )
    with engine_for(settings, clock, spark) as session, clock.stage("rows"), writing(state.location):
        found = _digests(session, state, last)
    tables = {name: _compared(last.tables[name], digests) for name, digests in found.items()}
    return Verification(last.build_id, tables, time.monotonic() - began)


def _digests(spark: SparkSession, state: State, build: BuildRecord) -> dict[str, dict[int, SetDigest]]:
    """The digests of every table of the build, by bucket, computed from the rows."""
    optional = (replace(SCIP_DOCUMENTS, name=DOCUMENTS.name), *FLOW_TABLES)
    versions = {
        table: build.tables[table.name].version
        for table in (*STORED_TABLES, *optional)
        if table not in optional or table.name in build.tables
    }
    facts = identity_digest(read_arrow(state, FACTS, build.tables[FACTS.name].version, FACTS.identity), FACTS.identity)
    return {
        **digests_on_disk(spark, state, versions),
        OWNER_DIGESTS.name: own_digests(state, build.tables[OWNER_DIGESTS.name]),
        FACTS.name: {0: facts} if facts.rows else {},
    }


def _compared(pin: TablePin, digests: dict[int, SetDigest]) -> TableComparison:
    rows = sum(digest.rows for digest in digests.values())
    return TableComparison(rows, pin.rows, as_pinned=pin.buckets == digests)
