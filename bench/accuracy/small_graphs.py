"""Graphs of many tiny repositories at once, in this process: the project's extraction, resolution and rules on DuckDB.

A build takes seconds however small the repository, and there are hundreds of programs. Each is resolved over an index
of its own; the rules, which never join across files except by ids, then run once over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from graphlib import TopologicalSorter
from hashlib import sha256

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.columns import table_of
from codeanatomy.catalogue.tables import (
    DOCUMENT_VIEWS,
    DOCUMENTS,
    FACT_VIEWS,
    GIVEN_PATTERNS,
    REPO_FILES,
    SCAN_FILES,
    SCAN_REPO,
    SCIP_DOCUMENTS,
)
from codeanatomy.extract import extract_batch
from codeanatomy.query.view_queries import document_query, fact_query, rule_query
from codeanatomy.repo.modules import module_names
from codeanatomy.resolve import ContentNames, Index, Resolver, answer_files
from codeanatomy.rules.compiled import by_output, dependencies
from codeanatomy.rules.compiler import compile_rules
from codeanatomy.rules.definition import load_rules

Programs = Mapping[str, Mapping[str, str]]
"""Source text by path, by the name of the program."""


@contextmanager
def small_graphs(
    programs: Programs, *, index: bool = False
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Mapping[str, str]]]:
    """A connection that has every dataset of every program, and the program each file belongs to.

    With `index`, pyrefly is asked about each.
    """
    files, program_of = _scan(programs)
    sources = {_content_id(text): text.encode() for program in programs.values() for text in program.values()}
    facts = pa.Table.from_batches([extract_batch(list(sources), list(sources.values()))])
    documents = _documents(files, facts, sources) if index else DOCUMENTS.schema().empty_table()
    answers = [_answers(files.filter(pc.equal(files["repo"], name)), facts, documents) for name in programs]
    with duckdb.connect() as connection:
        connection.register("facts", facts)
        connection.register("contents", facts)
        connection.register(SCAN_FILES.name, files.select(list(SCAN_FILES.names())))
        connection.register(SCAN_REPO.name, SCAN_REPO.table([("",)]))
        connection.register(GIVEN_PATTERNS.name, GIVEN_PATTERNS.schema().empty_table())
        connection.register("answers", pa.Table.from_batches(answers))
        connection.register(DOCUMENTS.name, documents)
        connection.register(SCIP_DOCUMENTS.name, documents.select(list(SCIP_DOCUMENTS.names())))
        for view in DOCUMENT_VIEWS:
            connection.execute(f'CREATE VIEW "{view.name}" AS {document_query(view).sql(dialect="duckdb")}')
        _apply_rules(connection)
        yield connection, program_of


def _content_id(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _scan(programs: Programs) -> tuple[pa.Table, dict[str, str]]:
    rows = []
    program_of = {}
    for name, program in programs.items():
        for module in module_names(list(program)):
            text = program[module.path]
            file_id = sha256(f"{name}\0{module.path}".encode()).hexdigest()[:24]
            program_of[file_id] = name
            flags = (module.is_init, module.is_stub, module.root)
            rows.append(
                (file_id, module.path, _content_id(text), len(text), "ok", None, module.module_fqn, *flags, name)
            )
    schema = SCAN_FILES.schema().append(pa.field("repo", pa.string()))
    return table_of(schema, rows), program_of


def _documents(files: pa.Table, facts: pa.Table, sources: Mapping[str, bytes]) -> pa.Table:
    from bench.accuracy.small_index import documents  # noqa: PLC0415 - pyrefly is needed for this alone

    ids, contents, paths, programs = (files[n].to_pylist() for n in ("file_id", "content_id", "path", "repo"))
    texts = (sources[content].decode() for content in contents)
    return documents(
        dict(zip(ids, zip(programs, paths, texts, strict=True), strict=True)),
        facts,
        dict(zip(ids, contents, strict=True)),
    )


def _answers(files: pa.Table, facts: pa.Table, documents: pa.Table) -> pa.RecordBatch:
    asks = dict(zip(facts["content_id"].to_pylist(), facts["asks"], strict=True))
    ours = documents.filter(pc.is_in(documents["file_id"], files["file_id"].combine_chunks()))
    symbol_asks = dict(zip(ours["file_id"].to_pylist(), ours["symbol_asks"].to_pylist(), strict=True))
    ids, contents = (files[name].to_pylist() for name in ("file_id", "content_id"))
    asked = pa.record_batch(
        {
            "file_id": pa.array(ids, pa.string()),
            "asks": pa.array([asks[content].as_py() for content in contents], facts["asks"].type),
            "symbol_asks": pa.array([symbol_asks.get(file_id) for file_id in ids], documents["symbol_asks"].type),
        }
    )
    return answer_files(Resolver(Index(files, ContentNames(facts), ours)), asked)


def _apply_rules(connection: duckdb.DuckDBPyConnection) -> None:
    rules = by_output(compile_rules(load_rules()))

    def make(name: str) -> None:
        queries = (rule_query(each).sql(dialect="duckdb", comments=False) for each in rules[name])
        connection.execute(f'CREATE TABLE "{name}" AS {" UNION ALL ".join(queries)}')

    make(REPO_FILES.name)
    for view in FACT_VIEWS:
        connection.execute(f'CREATE VIEW "{view.name}" AS {fact_query(view).sql(dialect="duckdb")}')
    for name in TopologicalSorter(dependencies(rules)).static_order():
        if name in rules and name != REPO_FILES.name:
            make(name)
