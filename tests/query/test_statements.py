"""What the text of a query means: tables are found by syntax, and strings and comments stay as they are written."""

import pyarrow.dataset as ds
import pytest

from codeanatomy.catalogue.tables import DOCUMENTS, FACTS, STORED_TABLES
from codeanatomy.errors import InputError
from codeanatomy.query.sql import Session

EMPTY = {table.name: ds.dataset(table.schema().empty_table()) for table in (FACTS, DOCUMENTS, *STORED_TABLES)}


def rows(query):
    return [tuple(row.values()) for row in Session(EMPTY.__getitem__, [query]).read(query).read_all().to_pylist()]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 'from references' AS x", "from references"),
        ("SELECT 'join references' || count(*) FROM references", "join references0"),
        ("SELECT E'it\\'s from references'", "it's from references"),
        ("SELECT $$from references$$", "from references"),
        ("SELECT '😀 from references', count(*) FROM references", "😀 from references"),
        ("SELECT 1 -- from references", 1),
        ("SELECT /* from references */ 1 FROM (SELECT count(*) FROM references)", 1),
        ('SELECT 1 AS "from references"', 1),
    ],
)
def test_strings_and_comments_stay_as_they_are(query, expected):
    assert rows(query)[0][0] == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM references",
        "SELECT count(*) FROM References AS r",
        'SELECT count(*) FROM "references"',
        'SELECT count(*) FROM/* the view */references, "references" AS again',
        "SELECT count(*) FROM calls, references",
        "SELECT count(references.name) FROM references WHERE references.line > 1",
        "SELECT count(*) FROM calls JOIN references ON references.path = calls.path",
        "SELECT count(*) FROM calls LEFT JOIN references USING (path)",
        "SELECT count(*) FROM (SELECT references.* FROM references)",
        "SELECT count(*) FROM calls WHERE path IN (SELECT path FROM references)",
        "WITH used AS (SELECT * FROM references) SELECT count(*) FROM used",
        "SELECT count(*) FROM main.references",
        "FROM references SELECT count(*)",
    ],
)
def test_the_view_references_needs_no_quotes(query):
    assert rows(query) == [(0,)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH references AS (SELECT 7 AS n) SELECT n FROM references", [(7,)]),
        ("SELECT references FROM (SELECT 7 AS references)", [(7,)]),
        ("SELECT t.references FROM (SELECT 7 AS references) AS t ORDER BY references", [(7,)]),
        ('SELECT "references" FROM (SELECT 7 AS "references")', [(7,)]),
        ("SELECT references.n FROM (SELECT 7 AS n) AS references", [(7,)]),
    ],
)
def test_anything_may_be_called_references(query, expected):
    assert rows(query) == expected


def test_a_name_that_a_query_defines_may_be_that_of_a_view():
    assert rows("SELECT * FROM (WITH calls AS (SELECT 7 AS n) SELECT n FROM calls), (SELECT count(*) FROM calls)") == [
        (7, 0)
    ]


def test_columns_keep_the_names_that_were_written():
    query = 'SELECT 1 AS references, 2 AS References, 3 AS "it\'s"'
    found = Session(EMPTY.__getitem__, [query]).read(query)
    assert found.schema.names == ["references", "References", "it's"]


def test_a_name_that_is_no_dataset_is_refused():
    with pytest.raises(InputError, match="no dataset is called 'nowhere'"):
        rows("SELECT * FROM nowhere, references")
