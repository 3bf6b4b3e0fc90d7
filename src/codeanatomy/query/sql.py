"""Read-only SQL over the views of one build: DuckDB in memory, with no access to anything else.

The connection may read the data files of the pinned tables that a query needs and nothing more: no other file, no
extensions, no settings that a query could change back, one SELECT at a time. Tables on an object store are read as
Arrow datasets. `Limits` bound what a query may use; rows come in batches, so that a result of any size can be printed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.directories import cache_directory
from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
from codeanatomy.query.interrupts import interruptible
from codeanatomy.query.views import PUBLIC, view_of
from codeanatomy.store.checksums import find_unreadable
from codeanatomy.store.failures import REBUILD, machine_failure

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_CLOSED_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

_QUERY_ERRORS = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)

Opened: TypeAlias = "pa.Table | ds.Dataset | Sequence[str]"

OpenTable = Callable[[str], Opened]
"""Opens a stored table by name: its data files if they are on this machine, else a dataset, or its few rows."""


@dataclass(frozen=True)
class Limits:
    """The most a query may use: seconds of DuckDB's time, megabytes of its memory (None: no limit), rows at a time."""

    seconds: float | None = None
    memory_mb: int | None = None
    rows_per_batch: int = 100_000


NO_LIMITS = Limits()


def connect(memory_mb: int | None = None) -> duckdb.DuckDBPyConnection:
    """An empty connection that never installs an extension by itself."""
    # What does not fit into memory would by default be spilled to the current directory.
    config = _CLOSED_SETTINGS | {"temp_directory": str(cache_directory() / "spill")}
    if memory_mb is not None:
        config["memory_limit"] = f"{memory_mb}MiB"
    return duckdb.connect(":memory:", config=config)


Parameters = Mapping[str, Any]
"""Values of the `$name` parameters of a query."""


class Session:
    """One in-memory connection for SELECTs that are known when it is opened, with the views that they name."""

    def __init__(self, open_table: OpenTable, queries: Sequence[str], limits: Limits = NO_LIMITS) -> None:
        self._open_table = open_table
        self._limits = limits
        self._seconds_left = limits.seconds
        self._connection = connect(limits.memory_mb)
        self._created: set[str] = set()
        self._files: list[str] = []
        self._queries = {query: _with_quotes(query) for query in queries}
        with self._limited():
            for query in self._queries.values():
                statements = self._connection.extract_statements(query)
                if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                    raise InputError("sql takes one SELECT statement; the graph is read-only")
                for name in sorted(self._named_tables(query)):
                    self._create_view(name)
            self._connection.execute(f"SET allowed_paths = {_sql_list(self._files)}")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")

    def read(self, query: str, parameters: Parameters | None = None) -> pa.RecordBatchReader:
        """Answer one of the queries; the answer to the one before must have been read."""
        with self._limited():
            relation = self._connection.sql(self._queries[query], params=dict(parameters) if parameters else None)
            result = relation.to_arrow_reader(self._limits.rows_per_batch)
        return pa.RecordBatchReader.from_batches(result.schema, self._batches(result))

    def _batches(self, result: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The batches as they come; keeps the session until the last. The reader's own time is not limited."""
        while True:
            with self._limited():
                batch = _next_batch(result)
            if batch is None:
                return
            yield batch

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Let DuckDB work for the time that is left; turn its errors into ours."""
        with self._translated_errors(), interruptible(self._connection):
            if self._seconds_left is None:
                yield
                return
            began = time.monotonic()
            timer = threading.Timer(max(self._seconds_left, 0), self._connection.interrupt)
            timer.start()
            try:
                yield
            finally:
                timer.cancel()
                timer.join()  # a thread that refers to the connection must not outlive it
                self._seconds_left -= time.monotonic() - began

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            message = " ".join(str(error).split("\n\nLINE")[0].split())
            raise self._limit_error(message) or self._data_error(error) or InputError(f"sql: {message}") from error

    def _limit_error(self, message: str) -> MachineError | None:
        """The error of a query that hit a limit, if that is what the message says."""
        seconds, memory_mb = self._limits.seconds, self._limits.memory_mb
        if message.startswith("INTERRUPT") and seconds is not None:
            hint = "give it more time with --timeout, or no limit with --timeout 0"
            return MachineError(f"sql: stopped after {seconds:g} s", hint=hint)
        if message.startswith("Out of Memory") and memory_mb is not None:
            hint = "give it more with --max-memory-mb"
            return MachineError(f"sql: the query needs more than {memory_mb:,} MB", hint=hint)
        return None

    def _data_error(self, error: Exception) -> CodeAnatomyError | None:
        """The error of the machine or of the files that were read, if the query is not to blame."""
        if isinstance(error, _QUERY_ERRORS):
            return None
        if isinstance(error, (duckdb.IOException, OSError)) and (failure := machine_failure(error, "the graph")):
            return failure
        damaged = find_unreadable(self._files)
        return StateError(f"the state is damaged ({damaged} cannot be read)", hint=REBUILD) if damaged else None

    def _named_tables(self, query: str) -> set[str]:
        """Datasets that a SELECT reads, in the syntax tree of DuckDB; its own list of them fails on `JOIN … USING`."""
        (tree,) = self._connection.execute("SELECT json_serialize_sql($1)", [query]).fetchall()[0]
        named: set[str] = set()
        defined: set[str] = set()
        try:
            pending = [json.loads(tree)]
        except RecursionError as error:
            raise InputError("sql: the query is nested too deeply") from error
        while pending:
            node = pending.pop()
            if isinstance(node, dict):
                if node.get("type") == "BASE_TABLE":
                    named.add(node["table_name"].lower())
                defined |= {each["key"].lower() for each in node.get("cte_map", {}).get("map", ())}
                pending += node.values()
            elif isinstance(node, list):
                pending += node
        if unknown := named - PUBLIC.keys() - defined:
            hint = f"choose from {', '.join(sorted(PUBLIC))}"
            raise InputError(f"sql: no dataset is called {min(unknown)!r}", hint=hint)
        return named & PUBLIC.keys()

    def _create_view(self, name: str) -> None:
        """Create the view `name` and those it reads."""
        if name in self._created:
            return
        self._created.add(name)
        view = view_of(name)
        if view.query is None:
            self._create_table(view.dataset)
            return
        for needed in view.inputs:
            self._create_view(needed)
        self._connection.execute(f'CREATE VIEW "{name}" AS {view.query}')

    def _create_table(self, dataset: Dataset) -> None:
        table = self._open_table(dataset.name)
        if not isinstance(table, list):
            self._connection.register(dataset.name, table)
        else:
            self._files += table
            create_view_of_files(self._connection, f'"{dataset.name}"', dataset, table)


def create_view_of_files(
    connection: duckdb.DuckDBPyConnection, relation: str, dataset: Dataset, files: Sequence[str]
) -> None:
    """Create a view of stored rows; a column of `dataset`, or a field of one, that the files lack is null."""
    columns = ", ".join(f'"{name}"' for name in dataset.names())
    rows = f"FROM read_parquet({_sql_list(files)}, hive_partitioning = false)"
    if not _has_columns(files[0], dataset):  # all files of a version have the same
        connection.register(f"columns of {dataset.name}", dataset.schema().empty_table())  # loads pandas
        rows = f'FROM (FROM "columns of {dataset.name}" UNION ALL BY NAME {rows})'
    connection.execute(f"CREATE VIEW {relation} AS SELECT {columns} {rows}")


def _has_columns(file: str, dataset: Dataset) -> bool:
    """Whether a data file has all columns of the dataset, with their types."""
    try:
        stored = pq.read_schema(file)
    except OSError as error:
        raise duckdb.IOException(str(error)) from error
    return all(each.name in stored.names and stored.field(each.name).type == each.type for each in dataset.schema())


def _sql_list(texts: Sequence[str]) -> str:
    """A list of strings in DuckDB's SQL."""
    quoted = ("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{', '.join(quoted)}]"


def _with_quotes(query: str) -> str:
    """The query with every bare `references` in quotes: it is a view here and a keyword to DuckDB.

    In a SELECT it can only be a name, and a name means the same in quotes.
    """
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InputError("sql: the query is not valid UTF-8") from error
    if "references" not in query.lower().replace('"references"', ""):
        return query
    import sqlglot  # noqa: PLC0415 - few queries need it
    from sqlglot import TokenType  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    try:
        tokens = sqlglot.tokenize(query, dialect="duckdb")
    except SqlglotError:
        return query  # DuckDB's message is better
    for token in reversed([each for each in tokens if each.token_type is TokenType.REFERENCES]):
        query = f'{query[: token.start]}"{token.text}"{query[token.end + 1 :]}'
    return query


def _next_batch(result: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return next(result, None)
    except OSError as error:  # as which a stream raises DuckDB's errors
        raise duckdb.Error(str(error)) from error
