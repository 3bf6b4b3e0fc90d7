"""The facts of contents as a build reads them: the stored ones, and those that were just extracted.

In the driver, stored facts are read one data file at a time, when one of its contents is first looked into: an update
needs the facts of a few contents, and a job would take longer. For many files, workers read them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.catalogue.tables import FACTS
from codeanatomy.resolve.index import CONTENT_COLUMNS, ContentNames, FileNames
from codeanatomy.store.failures import reading
from codeanatomy.store.state import State
from codeanatomy.store.tables import TablePin, open_arrow, open_as_stored, read_table

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

    from codeanatomy.engine.rows import Rows


class Facts:
    """The facts of a version of the table, and `fresh` ones, which may or may not be part of that version.

    Can be pickled: what was read is read again where it is needed.
    """

    def __init__(self, state: State, pin: TablePin | None, fresh: pa.Table | None = None, extracted: int = 0) -> None:
        """`extracted` is how many contents this build extracted."""
        self.pin = pin
        self.extracted = extracted
        self._state = state
        self.fresh = FACTS.schema().empty_table() if fresh is None else fresh

    def __reduce__(self) -> tuple[Any, ...]:
        return Facts, (self._state, self.pin, self.fresh, self.extracted)

    @property
    def key(self) -> tuple[str, int | None, tuple[str, ...]]:
        """Equal keys mean equal facts."""
        return self._state.location.uri, self.pin.version if self.pin else None, tuple(sorted(self._fresh_ids))

    @property
    def pinned(self) -> TablePin:
        """The version that has them all."""
        if self.pin is None:
            raise AssertionError("the facts of a build that only plans are not stored")
        return self.pin

    def names(self, content_id: str) -> FileNames | None:
        """What a content defines for others."""
        if content_id in self._fresh_ids:
            return self._fresh_names(content_id)
        file = self._file_of.get(content_id)
        if file is None:
            return None
        names = self._state.location.opened.keep(
            FACTS.name, (file, "names"), lambda: ContentNames(self._read(file, CONTENT_COLUMNS))
        )
        return names(content_id)

    def rows(self, contents: Collection[str], columns: Iterable[str]) -> pa.Table:
        """Some columns of the facts of these contents."""
        wanted = ["content_id", *columns]
        fresh = self.fresh.select(wanted).filter(_is_one_of(contents))
        stored = set(contents) - self._fresh_ids
        files = sorted({self._file_of[each] for each in stored if each in self._file_of}) if stored else ()
        return pa.concat_tables([fresh, *(self._read(file, wanted, _is_one_of(stored)) for file in files)])

    def by_content(self, contents: Collection[str], columns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """The same as dictionaries."""
        return {row["content_id"]: row for row in self.rows(contents, columns).to_pylist()}

    def of_files(self, files: pa.Table, columns: Sequence[str], spark: SparkSession | None) -> Rows:
        """Every column of `files` (rows of `scan_files`) that have facts, and columns of those facts.

        A column may be a field of a list, as `cst_defs.bstart`; it is then called `cst_defs_bstart`. With a session
        its workers read the facts, which must be stored.
        """
        if spark is None:
            return self._of_files_here(files, columns)
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        from codeanatomy.engine.frames import frame_of  # noqa: PLC0415

        facts = self.frame(spark, list(dict.fromkeys(column.partition(".")[0] for column in columns)))
        named = (F.col(column).alias(column.replace(".", "_")) for column in columns)
        return facts.select("content_id", *named).join(F.broadcast(frame_of(spark, files)), "content_id")

    def _of_files_here(self, files: pa.Table, columns: Sequence[str]) -> pa.Table:
        whole = list(dict.fromkeys(column.partition(".")[0] for column in columns))
        facts = self.rows({each for each in files["content_id"].to_pylist() if each}, whole).combine_chunks()
        place_of = {content: place for place, content in enumerate(facts["content_id"].to_pylist())}
        places = pa.array([place_of.get(content) for content in files["content_id"].to_pylist()], pa.int64())
        rows, known = files.filter(pc.is_valid(places)), facts.take(places.drop_null()).combine_chunks()
        for column in columns:
            dataset, _, field = column.partition(".")
            values = known[dataset]
            if field:
                lists = values.combine_chunks()
                values = pa.ListArray.from_arrays(lists.offsets, lists.values.field(field), mask=lists.is_null())
            rows = rows.append_column(column.replace(".", "_"), values)
        return rows

    def frame(self, spark: SparkSession, columns: Sequence[str]) -> DataFrame:
        """Some columns of the stored facts; only those, for Spark analyses the whole nested schema at every step."""
        narrow = replace(FACTS, columns=tuple(FACTS.column(each) for each in ("content_id", *columns)))
        return read_table(spark, self._state, narrow, self.pinned.version)

    @cached_property
    def _fresh_ids(self) -> set[str]:
        return set(self.fresh["content_id"].to_pylist())

    @cached_property
    def _fresh_names(self) -> ContentNames:
        return ContentNames(self.fresh.select(list(CONTENT_COLUMNS)))

    @cached_property
    def _dataset(self) -> ds.Dataset | None:
        return None if self.pin is None else open_arrow(self._state, FACTS, self.pin.version)

    @cached_property
    def _fragments(self) -> dict[str, ds.Fragment]:
        """The data files, by path."""
        return {each.path: each for each in self._dataset.get_fragments()} if self._dataset else {}

    @cached_property
    def _file_of(self) -> dict[str, str]:
        """The data file that has each content."""
        if self.pin is None:
            return {}
        keep = self._state.location.opened.keep
        contents = {
            file: keep(FACTS.name, (file, "contents"), partial(self._read, file, ["content_id"]))["content_id"]
            for file in self._fragments
        }
        return {content: file for file, inside in contents.items() for content in inside.to_pylist()}

    def _read(self, file: str, columns: Sequence[str], only: pc.Expression | None = None) -> pa.Table:
        with reading(self._state.location):
            return self._fragments[file].to_table(schema=FACTS.schema(), columns=list(columns), filter=only)


class StoredRows:
    """Rows of `facts` as they were written, whatever the versions of their layers and the columns of those.

    Can be pickled: what was read is read again where it is needed.
    """

    def __init__(self, state: State, version: int | None) -> None:
        self._state = state
        self._version = version

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredRows, (self._state, self._version)

    @cached_property
    def identities(self) -> dict[str, dict[str, Any]]:
        """The versions of the layers of each content, and the data file (`__filename`) that has them."""
        if self._dataset is None:
            return {}
        keep = self._state.location.opened.keep
        with reading(self._state.location):
            files = [
                keep(FACTS.name, (file.path, "identities"), partial(self._identities_in, file))
                for file in self._dataset.get_fragments()
            ]
        return {row["content_id"]: row for rows in files for row in rows}

    def _identities_in(self, file: ds.Fragment) -> list[dict[str, Any]]:
        schema = self._dataset.schema if self._dataset else FACTS.schema()
        columns = [name for name in FACTS.identity if name in schema.names]
        rows = file.to_table(schema=schema, columns=columns).to_pylist()
        return [{**row, "__filename": file.path} for row in rows]

    def read(self, files: Collection[str], contents: Collection[str]) -> pa.Table | None:
        """The rows of these contents in these data files."""
        if self._dataset is None:
            return None
        with reading(self._state.location):
            found = [file for file in self._dataset.get_fragments() if file.path in files]
            return pa.concat_tables([file.to_table(filter=_is_one_of(contents)) for file in found]) if found else None

    @cached_property
    def _dataset(self) -> ds.Dataset | None:
        return None if self._version is None else open_as_stored(self._state, FACTS.name, self._version)


def _is_one_of(contents: Collection[str]) -> pc.Expression:
    return pc.field("content_id").isin(pa.array(sorted(contents), pa.string()))
