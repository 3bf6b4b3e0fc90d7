"""Read-only SQL over the views of one build: DuckDB in memory, with no way to reach anything else.

The connection may read the data files of the pinned tables that a query needs and nothing more: no other file, no
extensions, no settings that a query could change back, one SELECT at a time. Tables on an object store come as Arrow
datasets. `Limits` bound what a query may take; its rows come in batches, so that an answer of any size can be printed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.directories import cache_directory
from codeanatomy.errors import CodeAnatomyError, InputError, MachineError, StateError
from codeanatomy.query.interrupts import interruptible
from codeanatomy.query.views import PUBLIC, view_of
from codeanatomy.store.checksums import find_unreadable
from codeanatomy.store.failures import REBUILD, machine_failure

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


_FAULTS_OF_QUERY = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)

OpenTable = Callable[[str], ds.Dataset | Sequence[str]]
"""Gives a stored table by name: its data files if they are on this machine, else a dataset."""


@dataclass(frozen=True)
class Limits:
    """The most a query may take: seconds that DuckDB works on it, and megabytes that DuckDB holds; None is no limit."""

    seconds: float | None = None
    memory_mb: int | None = None


NO_LIMITS = Limits()


def connect(memory_mb: int | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that holds nothing yet and installs nothing by itself."""
    # What does not fit into memory would by default be spilled to the current directory.
    config = _LOCKED | {"temp_directory": str(cache_directory() / "spill")}
    if memory_mb is not None:
        config["memory_limit"] = f"{memory_mb}MiB"
    return duckdb.connect(":memory:", config=config)


def answer(
    query: str, open_table: OpenTable, extractor: str, limits: Limits = NO_LIMITS, rows_per_batch: int = 100_000
) -> pa.RecordBatchReader:
    """Answer one SELECT, batch by batch."""
    return _Session(open_table, extractor, limits).read(query, rows_per_batch)


class _Session:
    """One in-memory connection for one query; views appear when the query names them."""

    def __init__(self, open_table: OpenTable, extractor: str, limits: Limits) -> None:
        self._open_table = open_table
        self._extractor = extractor
        self._limits = limits
        self._seconds_left = limits.seconds
        self._connection = connect(limits.memory_mb)
        self._offered: set[str] = set()
        self._files: list[str] = []

    def read(self, query: str, rows_per_batch: int) -> pa.RecordBatchReader:
        """Offer what the query names, lock the connection, then answer."""
        query = _with_quotes(query)
        with self._limited():
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError("sql takes one SELECT statement; the graph is read-only")
            for name in sorted(_named_tables(query)):
                self._offer(name)
            self._connection.execute(f"SET allowed_paths = {list_of(self._files)}")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
            answer = self._connection.sql(query).to_arrow_reader(rows_per_batch)
        return pa.RecordBatchReader.from_batches(answer.schema, self._batches(answer))

    def _batches(self, answer: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The answer as it comes; holds on to the session until it is drained. Time the reader takes is its own."""
        while True:
            with self._limited():
                batch = _next_of(answer)
            if batch is None:
                return
            yield batch

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """Let DuckDB work for the time that is left; what it fails with is told in one line."""
        with self._told_in_one_line(), interruptible(self._connection):
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
                timer.join()  # a thread that holds on to the connection must not outlive it
                self._seconds_left -= time.monotonic() - began

    @contextmanager
    def _told_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            message = " ".join(str(error).split("\n\nLINE")[0].split())
            raise self._beyond_limits(message) or self._fault_of_data(error) or InputError(f"sql: {message}") from error

    def _beyond_limits(self, message: str) -> MachineError | None:
        """The error of a query that takes more than it may, if that is what the message says."""
        seconds, memory_mb = self._limits.seconds, self._limits.memory_mb
        if message.startswith("INTERRUPT") and seconds is not None:
            hint = "give it more time with --timeout, or no limit with --timeout 0"
            return MachineError(f"sql: stopped after {seconds:g} s", hint=hint)
        if message.startswith("Out of Memory") and memory_mb is not None:
            hint = "give it more with --max-memory-mb"
            return MachineError(f"sql: the query needs more than {memory_mb:,} MB", hint=hint)
        return None

    def _fault_of_data(self, error: Exception) -> CodeAnatomyError | None:
        """The error as one of the machine or of the files that were read, if the query is not to blame."""
        if isinstance(error, _FAULTS_OF_QUERY):
            return None
        if isinstance(error, (duckdb.IOException, OSError)) and (failure := machine_failure(error, "the graph")):
            return failure
        lost = find_unreadable(self._files)
        return StateError(f"the state is damaged ({lost} cannot be read)", hint=REBUILD) if lost else None

    def _offer(self, name: str) -> None:
        """Make the dataset `name`, and what it is made from, known to the connection."""
        if name in self._offered:
            return
        self._offered.add(name)
        view = view_of(name, self._extractor)
        if view.query is None:
            self._offer_table(view.dataset)
            return
        for needed in view.inputs:
            self._offer(needed)
        query = view.query.sql(dialect="duckdb", comments=False)
        self._connection.execute(f'CREATE VIEW "{name}" AS {query}')

    def _offer_table(self, dataset: Dataset) -> None:
        table = self._open_table(dataset.name)
        if isinstance(table, ds.Dataset):
            self._connection.register(dataset.name, table)
        else:
            self._files += table
            columns = ", ".join(f'"{column}"' for column in dataset.names())
            rows = f"read_parquet({list_of(table)}, hive_partitioning = false)"
            self._connection.execute(f'CREATE VIEW "{dataset.name}" AS SELECT {columns} FROM {rows}')  # noqa: S608


def list_of(texts: Sequence[str]) -> str:
    """A list of strings in DuckDB's SQL."""
    return exp.convert(list(texts)).sql(dialect="duckdb")


def _with_quotes(query: str) -> str:
    """The query with every bare `references` in quotes, for people will not think of quoting the name of a view.

    To DuckDB it is a keyword. In a SELECT it can only be a name, and a name means the same in quotes.
    """
    try:
        query.encode()
        tokens = sqlglot.tokenize(query, dialect="duckdb")
    except UnicodeEncodeError as error:
        raise InputError("sql: the query is not valid UTF-8") from error
    except SqlglotError:
        return query  # DuckDB says better what is wrong with it
    for token in reversed([each for each in tokens if each.token_type is TokenType.REFERENCES]):
        query = f'{query[: token.start]}"{token.text}"{query[token.end + 1 :]}'
    return query


def _named_tables(query: str) -> set[str]:
    """Datasets that a statement names. DuckDB's own list fails on `JOIN … USING`."""
    try:
        tree = sqlglot.parse_one(query, dialect="duckdb")
    except SqlglotError as error:
        raise InputError(f"sql: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise InputError("sql: the query is nested too deeply") from error
    named = {table.name.lower() for table in tree.find_all(exp.Table) if table.name}
    defined = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    if unknown := named - PUBLIC.keys() - defined:
        raise InputError(f"sql: no dataset is called {min(unknown)!r}", hint=f"there are {', '.join(sorted(PUBLIC))}")
    return named & PUBLIC.keys()


def _next_of(answer: pa.RecordBatchReader) -> pa.RecordBatch | None:
    try:
        return next(answer, None)
    except OSError as error:  # what a stream makes of DuckDB's errors
        raise duckdb.Error(str(error)) from error
