"""Read-only SQL over the views of one build: DuckDB in memory, with no way to reach anything else.

The connection may read the data files of the pinned tables that a query needs and nothing more: no other file, no
extensions, no settings that a query could change back, one SELECT at a time. Tables on an object store come as Arrow
datasets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from codeanatomy.catalogue.columns import Dataset
from codeanatomy.engine.places import cache_directory
from codeanatomy.errors import CodeAnatomyError, InputError, StateError
from codeanatomy.query.views import PUBLIC, view_of
from codeanatomy.store.checksums import find_unreadable
from codeanatomy.store.failures import machine_failure

_REFERENCES = re.compile(r"\b((?:from|join)\s+)references\b", re.IGNORECASE)
"""The view `references` has the name of a keyword: people will not think of quoting it."""

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


_FAULTS_OF_QUERY = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)

OpenTable = Callable[[str], ds.Dataset | Sequence[str]]
"""Gives a stored table by name: its data files if they are on this machine, else a dataset."""


def connect() -> duckdb.DuckDBPyConnection:
    """A connection that holds nothing yet and installs nothing by itself."""
    # What does not fit into memory would by default be spilled to the current directory.
    spill = {"temp_directory": str(cache_directory() / "spill")}
    return duckdb.connect(":memory:", config=_LOCKED | spill)


def answer(query: str, open_table: OpenTable, extractor: str, rows_per_batch: int = 100_000) -> pa.RecordBatchReader:
    """Answer one SELECT, batch by batch."""
    return _Session(open_table, extractor).read(query, rows_per_batch)


class _Session:
    """One in-memory connection for one query; views appear when the query names them."""

    def __init__(self, open_table: OpenTable, extractor: str) -> None:
        self._open_table = open_table
        self._extractor = extractor
        self._connection = connect()
        self._offered: set[str] = set()
        self._files: list[str] = []

    def read(self, query: str, rows_per_batch: int) -> pa.RecordBatchReader:
        """Offer what the query names, lock the connection, then answer."""
        query = _REFERENCES.sub(r'\1"references"', query)
        with self._told_in_one_line():
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise InputError("sql takes one SELECT statement; the graph is read-only")
            for name in sorted(_named_tables(query)):
                if name not in PUBLIC:
                    raise InputError(f"sql: no dataset is called {name!r}; there are {', '.join(sorted(PUBLIC))}")
                self._offer(name)
            self._connection.execute(f"SET allowed_paths = {list_of(self._files)}")
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET lock_configuration = true")
            answer = self._connection.sql(query).to_arrow_reader(rows_per_batch)
        return pa.RecordBatchReader.from_batches(answer.schema, self._batches(answer))

    def _batches(self, answer: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The answer as it comes; holds on to the session until it is drained."""
        with self._told_in_one_line():
            yield from answer

    @contextmanager
    def _told_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException) as error:
            message = " ".join(str(error).split("\n\nLINE")[0].split())
            raise self._fault_of_data(error) or InputError(f"sql: {message}") from error

    def _fault_of_data(self, error: Exception) -> CodeAnatomyError | None:
        """The error as one of the machine or of the files that were read, if the query is not to blame."""
        if isinstance(error, _FAULTS_OF_QUERY):
            return None
        if isinstance(error, (duckdb.IOException, OSError)) and (failure := machine_failure(error, "the graph")):
            return failure
        lost = find_unreadable(self._files)
        return StateError(f"the state is damaged ({lost} cannot be read): delete it and build again") if lost else None

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


def _named_tables(query: str) -> set[str]:
    """Tables a statement names, without those it defines itself. DuckDB's own list fails on `JOIN … USING`."""
    try:
        tree = sqlglot.parse_one(query, dialect="duckdb")
    except SqlglotError as error:
        raise InputError(f"sql: {str(error).splitlines()[0]}") from error
    defined = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table) if table.name} - defined
