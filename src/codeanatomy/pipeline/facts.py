"""Facts of single contents, read here: an update needs those of a few, and starting a job would take longer.

Stored facts are read one data file at a time, when one of its contents is first looked into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import FACTS
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.resolve.index import CONTENT_COLUMNS, ContentNames, FileNames
from codeanatomy.store.failures import reading
from codeanatomy.store.state import State
from codeanatomy.store.tables import open_arrow

if TYPE_CHECKING:
    import pyarrow.dataset as ds


class StoredFacts:
    """The facts of a version of the table."""

    def __init__(self, state: State, version: int | None) -> None:
        self._state = state
        self._version = version
        self._names: dict[str, ContentNames] = {}

    def __contains__(self, content_id: str) -> bool:
        """Whether there are facts of a content."""
        return content_id in self._file_of

    def names(self, content_id: str) -> FileNames | None:
        """What a content holds for others."""
        file = self._file_of.get(content_id)
        if file is None:
            return None
        if file not in self._names:
            self._names[file] = ContentNames(self._read(file, CONTENT_COLUMNS))
        return self._names[file](content_id)

    def rows(self, contents: Collection[str], columns: Sequence[str]) -> list[pa.Table]:
        """The facts of these contents, those columns of them."""
        files = sorted({self._file_of[each] for each in contents if each in self._file_of}) if contents else ()
        is_asked = pc.field("content_id").isin(pa.array(sorted(contents), pa.string()))
        return [self._read(file, columns, is_asked) for file in files]

    @cached_property
    def _dataset(self) -> ds.Dataset | None:
        return None if self._version is None else open_arrow(self._state, FACTS, self._version)

    @cached_property
    def _fragments(self) -> dict[str, ds.Fragment]:
        """The data files, by path."""
        return {each.path: each for each in self._dataset.get_fragments()} if self._dataset else {}

    @cached_property
    def _file_of(self) -> dict[str, str]:
        """The data file that has each content."""
        if self._dataset is None:
            return {}
        with reading(self._state.location):
            rows = self._dataset.to_table(["content_id", "__filename"], filter=_is_current())
        return dict(zip(rows["content_id"].to_pylist(), rows["__filename"].to_pylist(), strict=True))

    def _read(self, file: str, columns: Sequence[str], only: pc.Expression | None = None) -> pa.Table:
        wanted = _is_current() if only is None else _is_current() & only
        with reading(self._state.location):
            return self._fragments[file].to_table(schema=FACTS.schema(), columns=list(columns), filter=wanted)


def _is_current() -> pc.Expression:  # made when it is needed: it loads pandas
    return pc.field("extractor") == EXTRACTOR_VERSION


class KnownFacts:
    """Stored facts, and `fresh` ones."""

    def __init__(self, stored: StoredFacts, fresh: pa.Table) -> None:
        self._stored = stored
        self._fresh = fresh
        self._fresh_ids = set(fresh["content_id"].to_pylist())
        self._fresh_names = ContentNames(fresh.select(list(CONTENT_COLUMNS)))

    def names(self, content_id: str) -> FileNames | None:
        """What a content holds for others."""
        return self._fresh_names(content_id) if content_id in self._fresh_ids else self._stored.names(content_id)

    def rows(self, contents: Collection[str], columns: Iterable[str]) -> pa.Table:
        """The facts of these contents, those columns of them."""
        wanted = ["content_id", *columns]
        is_asked = pc.field("content_id").isin(pa.array(sorted(contents), pa.string()))
        fresh = self._fresh.select(wanted).filter(is_asked)
        return pa.concat_tables([fresh, *self._stored.rows(set(contents) - self._fresh_ids, wanted)])

    def by_content(self, contents: Collection[str], columns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """The same as dictionaries."""
        return {row["content_id"]: row for row in self.rows(contents, columns).to_pylist()}


def of_files(files: pa.Table, contents: pa.Table, *columns: str) -> pa.Table:
    """The rows of `contents` given to the files that have them, with `columns` of the files."""
    place_of = {content: place for place, content in enumerate(contents["content_id"].to_pylist())}
    places = pa.array([place_of.get(content) for content in files["content_id"].to_pylist()], pa.int64())
    known = files.filter(pc.is_valid(places))
    rows = contents.take(places.drop_null()).drop_columns("content_id")
    for name in (*columns, "path", "file_id"):
        rows = rows.add_column(0, name, known[name])
    return rows
