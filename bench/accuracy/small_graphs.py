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

from codeanatomy.catalogue.tables import FACT_VIEWS, REPO_FILES, SCAN_FILES, SCAN_REPO
from codeanatomy.extract import EXTRACTOR_VERSION, extract_batch
from codeanatomy.query.views import fact_query, rule_query
from codeanatomy.repo.modules import module_names
from codeanatomy.resolve import Index, Resolver, answer_files
from codeanatomy.rules.compiler import by_output, compile_rules, dependencies
from codeanatomy.rules.definition import load_rules

Programs = Mapping[str, Mapping[str, str]]
"""Source text by path, by the name of the program."""


@contextmanager
def small_graphs(programs: Programs) -> Iterator[tuple[duckdb.DuckDBPyConnection, Mapping[str, str]]]:
    """A connection that has every dataset of every program, and the program each file belongs to."""
    files, program_of = _scan(programs)
    sources = {_content_id(text): text.encode() for program in programs.values() for text in program.values()}
    facts = pa.Table.from_batches([extract_batch(list(sources), list(sources.values()))])
    answers = [_answers(files.filter(pc.equal(files["repo"], name)), facts) for name in programs]
    with duckdb.connect() as connection:
        connection.register("facts", facts)
        connection.register("contents", facts)
        connection.register(SCAN_FILES.name, files.select(list(SCAN_FILES.names())))
        connection.register(SCAN_REPO.name, pa.table([[""]], schema=SCAN_REPO.schema()))
        connection.register("answers", pa.Table.from_batches(answers))
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
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=schema), program_of


def _answers(files: pa.Table, facts: pa.Table) -> pa.RecordBatch:
    asks = dict(zip(facts["content_id"].to_pylist(), facts["asks"], strict=True))
    asked = pa.record_batch(
        {
            "file_id": files["file_id"].combine_chunks(),
            "asks": pa.array(
                [asks[content].as_py() for content in files["content_id"].to_pylist()], facts["asks"].type
            ),
        }
    )
    return answer_files(Resolver(Index(files, facts)), asked)


def _apply_rules(connection: duckdb.DuckDBPyConnection) -> None:
    rules = by_output(compile_rules(load_rules()))

    def make(name: str) -> None:
        queries = (rule_query(each.rule).sql(dialect="duckdb", comments=False) for each in rules[name])
        connection.execute(f'CREATE TABLE "{name}" AS {" UNION ALL ".join(queries)}')

    make(REPO_FILES.name)
    for view in FACT_VIEWS:
        connection.execute(f'CREATE VIEW "{view.name}" AS {fact_query(view, EXTRACTOR_VERSION).sql(dialect="duckdb")}')
    for name in TopologicalSorter(dependencies(rules)).static_order():
        if name in rules and name != REPO_FILES.name:
            make(name)
