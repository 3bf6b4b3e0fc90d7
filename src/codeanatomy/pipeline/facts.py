"""Facts of single contents, read here: an update needs those of a few, and starting a job would take longer.

Stored facts are read one data file at a time, when one of its contents is first looked into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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


class KnownFacts:
    """The facts of a version of the table, and `fresh` ones that it may not have yet."""

    def __init__(self, state: State, version: int | None, fresh: pa.Table) -> None:
        self.fresh = fresh
        self._state = state
        self._version = version
        self._fresh_ids = set(fresh["content_id"].to_pylist())
        self._fresh_names = ContentNames(fresh.select(list(CONTENT_COLUMNS)))
        self._names: dict[int, ContentNames] = {}

    def __contains__(self, content_id: str) -> bool:
        """Whether there are facts of a content."""
        return content_id in self._fresh_ids or content_id in self._places

    def names(self, content_id: str) -> FileNames | None:
        """What a content holds for others."""
        if content_id in self._fresh_ids:
            return self._fresh_names(content_id)
        place = self._places.get(content_id)
        if place is None:
            return None
        if place not in self._names:
            self._names[place] = ContentNames(self._read(place, CONTENT_COLUMNS))
        return self._names[place](content_id)

    def rows(self, contents: Collection[str], columns: Iterable[str]) -> pa.Table:
        """The facts of these contents, those columns of them."""
        wanted = ["content_id", *columns]
        is_asked = pc.field("content_id").isin(pa.array(sorted(contents), pa.string()))
        stored = set(contents) - self._fresh_ids
        places = sorted({self._places[each] for each in stored if each in self._places}) if stored else ()
        is_stored = is_asked & ~pc.field("content_id").isin(pa.array(sorted(self._fresh_ids), pa.string()))
        fresh = self.fresh.select(wanted).filter(is_asked)
        return pa.concat_tables([fresh, *(self._read(place, wanted, is_stored) for place in places)])

    def by_content(self, contents: Collection[str], columns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """The same as dictionaries."""
        return {row["content_id"]: row for row in self.rows(contents, columns).to_pylist()}

    @cached_property
    def _fragments(self) -> list[ds.Fragment]:
        if self._version is None:
            return []
        with reading(self._state.location):
            return list(open_arrow(self._state, FACTS, self._version).get_fragments())

    @cached_property
    def _places(self) -> dict[str, int]:
        """The data file that has each content."""
        return {
            content: place
            for place in range(len(self._fragments))
            for content in self._read(place, ("content_id",))["content_id"].to_pylist()
        }

    def _read(self, place: int, columns: Iterable[str], only: pc.Expression | None = None) -> pa.Table:
        is_current = pc.field("extractor") == EXTRACTOR_VERSION
        wanted = is_current if only is None else is_current & only
        with reading(self._state.location):
            return self._fragments[place].to_table(schema=FACTS.schema(), columns=list(columns), filter=wanted)


def of_files(files: pa.Table, contents: pa.Table, *columns: str) -> pa.Table:
    """The rows of `contents` given to the files that have them, with `columns` of the files."""
    place_of = {content: place for place, content in enumerate(contents["content_id"].to_pylist())}
    places = pa.array([place_of.get(content) for content in files["content_id"].to_pylist()], pa.int64())
    known = files.filter(pc.is_valid(places))
    rows = contents.take(places.drop_null()).drop_columns("content_id")
    for name in (*columns, "path", "file_id"):
        rows = rows.add_column(0, name, known[name])
    return rows
