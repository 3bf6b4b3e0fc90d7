"""A solution of value flow as tables: what is stored of it, and how it is read again.

Stored are the evaluations of passes, by the file that passes; what slots hold follows from them. A solution that is
read decodes what is asked of it: the evaluations of a pass, the passes that wrote or read a slot, what a slot held. So
an update that reaches little of the repository decodes little.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy.resolve.flow import Write
from codeanatomy.resolve.slots import is_attribute
from codeanatomy.resolve.solution import Evaluation, FilePasses, Held, PassKey, Solution, add, grown
from codeanatomy.resolve.values import EMPTY, LIMIT, Found, Trail, Value

_TEXTS: Final = pa.list_(pa.string())

EVALUATIONS: Final = pa.schema(
    {
        "file_id": pa.string(),
        "pass_no": pa.int32(),
        "round": pa.int32(),
        "slots": _TEXTS,
        "values": _TEXTS,
        "hows": pa.list_(pa.int32()),
        "read": _TEXTS,
        "trail": pa.string(),
    }
)
"""One row for each evaluation: what was written to which slots, the slots that were read, the trail, in lines.

The trail is without the slots. The rows of a file are together, in the order of its passes and of rounds.
"""

FILES: Final = pa.schema(
    {"file_id": pa.string(), "module": pa.string(), "passes": pa.int32(), "assigned": _TEXTS},
)
"""One row for each file: the number of its passes, and the names of the attributes that they set."""

_CLASSES: Final = {each._field_defaults["tag"]: each for each in get_args(Value)}
_Item = TypeVar("_Item")


class FlowTables(NamedTuple):
    """A solution, or the part of it that some files own."""

    evaluations: pa.Table
    files: pa.Table


def to_tables(solution: Solution, owners: Collection[str] | None = None) -> FlowTables:
    """The rows of a solution, or those of some owners."""
    files = {each: of for each, of in solution.files.items() if owners is None or each in owners}
    as_row = _Rows().row
    rows = [
        (*key, *as_row(evaluation))
        for key in sorted(solution.keys_of(files))
        for evaluation in solution.history.get(key, ())
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(EVALUATIONS)
    evaluations = pa.table([list(column) for column in columns], schema=EVALUATIONS)
    of_files = [(each, of.module, of.number, sorted(of.assigned)) for each, of in sorted(files.items())]
    columns = zip(*of_files, strict=True) if of_files else ((),) * len(FILES)
    return FlowTables(evaluations, pa.table([list(column) for column in columns], schema=FILES))


class _Rows:
    """Evaluations as rows. Most share their trail or what they read with others: each is converted once."""

    def __init__(self) -> None:
        self._trails: dict[Trail, str] = {}
        self._read: dict[frozenset[str], list[str]] = {}

    def row(self, evaluation: Evaluation) -> tuple[Any, ...]:
        """The columns of an evaluation."""
        slots, values, hows = zip(*evaluation.writes, strict=True) if evaluation.writes else ((), (), ())
        trail = self._trails.get(evaluation.folded)
        if trail is None:
            trail = self._trails[evaluation.folded] = "\n".join(sorted(filter(_is_no_slot, evaluation.trail)))
        read = self._read.get(evaluation.read)
        if read is None:
            read = self._read[evaluation.read] = sorted(evaluation.read)
        return evaluation.round, slots, list(map(_encoded, values)), hows, read, trail


def _is_no_slot(entry: str) -> bool:
    return not entry.startswith("=") or entry.startswith("=.")


@lru_cache(maxsize=1 << 16)
def _encoded(value: Value) -> str:
    return json.dumps(value, separators=(",", ":"))


@lru_cache(maxsize=1 << 16)
def _decoded(text: str) -> Value:
    return _value(json.loads(text))


def _value(fields: list[Any]) -> Value:
    *given, tag = fields
    if tag == LIMIT.tag:
        return LIMIT  # it is compared by identity
    value: Value = _CLASSES[tag](*(_value(each) if isinstance(each, list) else each for each in given))
    return value


def from_tables(tables: FlowTables) -> Solution:
    """The solution that was stored, decoded where it is read."""
    stored = _Stored(tables.evaluations)
    files = {
        file_id: FilePasses(count, frozenset(assigned or ()), module)
        for file_id, module, count, assigned in zip(
            *(tables.files[name].to_pylist() for name in FILES.names), strict=True
        )
    }
    return Solution(
        contents=_Lazy(stored.contents_of, stored.written.keys),
        held=_Lazy(stored.held_by, stored.written.keys),
        full=_Lazy(stored.full_from, stored.written.keys),
        history=_Lazy(stored.evaluations_of, stored.keys),
        writers=_Lazy(stored.writers_of, stored.written.keys),
        readers=_Lazy(stored.readers_of, stored.read.keys),
        evaluated=stored.evaluated(),
        files=files,
        stored_with_entries=stored.with_entries,
    )


class _Lazy(Mapping[Any, _Item], Generic[_Item]):
    """A mapping whose items are decoded when they are first read; those that are empty are not in it."""

    def __init__(self, decode: Callable[[Any], _Item], keys: Callable[[], Collection[Any]]) -> None:
        self._decode = decode
        self._keys = keys
        self._decoded: dict[Any, _Item] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        """The item of a key."""
        if key not in self._decoded:
            self._decoded[key] = self._decode(key)
        return self._decoded[key] or default

    def __getitem__(self, key: Any) -> _Item:
        found: _Item | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[Any]:
        return (key for key in self._keys() if self.get(key))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True  # whether there is anything is not worth decoding it


class _Places:
    """The rows in which each text of a column of lists is, and its places among all texts of the column."""

    def __init__(self, lists: pa.ChunkedArray) -> None:
        self._chunks = lists

    @cached_property
    def _lists(self) -> pa.ListArray:
        return self._chunks.combine_chunks()

    @cached_property
    def _codes(self) -> tuple[dict[str, int], npt.NDArray[Any], npt.NDArray[Any]]:
        """The number of each text, the places sorted by it, and where those of each begin."""
        encoded = self._lists.flatten().dictionary_encode()
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        return {text: number for number, text in enumerate(encoded.dictionary.to_pylist())}, order, starts

    @cached_property
    def _rows(self) -> npt.NDArray[Any]:
        rows: npt.NDArray[Any] = pc.list_parent_indices(self._lists).to_numpy()
        return rows

    def keys(self) -> Collection[str]:
        """All texts."""
        return self._codes[0].keys()

    def of(self, text: str) -> list[tuple[int, int]]:
        """The row and the place of each occurrence of a text, in order."""
        numbers, order, starts = self._codes
        number = numbers.get(text)
        if number is None:
            return []
        places = order[starts[number] : starts[number + 1]]
        return list(zip(self._rows[places].tolist(), places.tolist(), strict=True))


class _Stored:
    """The evaluations of a table, by pass and by slot."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        self.written = _Places(table["slots"])
        self.read = _Places(table["read"])
        self._rounds = table["round"].to_numpy()
        self._passes = table["pass_no"].to_numpy()

    @cached_property
    def _trails(self) -> pa.DictionaryArray:
        return self._table["trail"].combine_chunks().dictionary_encode()

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """The rows of each file, which are together."""
        runs = pc.run_end_encode(self._table["file_id"].combine_chunks())
        ends = runs.run_ends.to_pylist()
        return dict(zip(runs.values.to_pylist(), zip([0, *ends[:-1]], ends, strict=True), strict=True))

    @cached_property
    def _files(self) -> list[tuple[int, str]]:
        return [(start, file_id) for file_id, (start, _) in self._spans.items()]

    @cached_property
    def _values(self) -> tuple[pa.Array, npt.NDArray[Any]]:
        flat = [self._table[name].combine_chunks().flatten() for name in ("values", "hows")]
        return flat[0], flat[1].to_numpy()

    def evaluated(self) -> dict[int, int]:
        """The number of evaluations of each round."""
        rounds, counts = np.unique(self._rounds, return_counts=True)
        return dict(zip(rounds.tolist(), counts.tolist(), strict=True))

    def keys(self) -> Collection[PassKey]:
        """All passes."""
        files = (file_id for file_id, (start, end) in self._spans.items() for _ in range(start, end))
        return dict.fromkeys(zip(files, self._passes.tolist(), strict=True))

    def evaluations_of(self, key: PassKey) -> list[Evaluation]:
        """The evaluations of a pass."""
        start, end = self._spans.get(key[0], (0, 0))
        first, last = (start + np.searchsorted(self._passes[start:end], key[1], side) for side in ("left", "right"))
        return [self._evaluation(row) for row in self._table.slice(first, last - first).to_pylist()]

    def _evaluation(self, row: Mapping[str, Any]) -> Evaluation:
        values = map(_decoded, row["values"])
        writes = tuple(map(Write, row["slots"], values, row["hows"]))
        read = frozenset(row["read"])
        slots = (f"={slot}" for slot in read if not is_attribute(slot))
        return Evaluation(row["round"], writes, read, frozenset((*row["trail"].split("\n"), *slots)))

    def writers_of(self, slot: str) -> set[PassKey]:
        """The passes that ever wrote a slot."""
        return {self._key(row) for row, _ in self.written.of(slot)}

    def readers_of(self, slot: str) -> set[PassKey]:
        """The passes that ever read a slot."""
        return {self._key(row) for row, _ in self.read.of(slot)}

    def _key(self, row: int) -> PassKey:
        at = bisect_right(self._files, row, key=itemgetter(0)) - 1
        return self._files[at][1], int(self._passes[row])

    def with_entries(self, entries: Collection[str]) -> set[PassKey]:
        """The passes whose trail has one of these entries."""
        wanted = frozenset(entries)
        meets = [not wanted.isdisjoint(trail.split("\n")) for trail in self._trails.dictionary.to_pylist()]
        rows = np.flatnonzero(np.array(meets, bool)[self._trails.indices.to_numpy()])
        return set(map(self._key, rows.tolist()))

    def _rounds_of(self, slot: str) -> tuple[Held, int]:
        """What a slot held, and the round from which on it was too much, if it was."""
        texts, hows = self._values
        by_round: dict[int, Found] = {}
        for row, place in self.written.of(slot):
            added = by_round.setdefault(int(self._rounds[row]), {})
            add(added, _decoded(texts[place].as_py()), int(hows[place]))
        held: Held = []
        for round_no, added in sorted(by_round.items(), key=itemgetter(0)):
            after = grown(held[-1][1] if held else EMPTY, added)
            if after is not None:
                held.append((round_no + 1, after[0]))
                if after[1]:
                    return held, round_no + 1
        return held, 0

    def held_by(self, slot: str) -> Held:
        """What a slot held, by round."""
        return self._rounds_of(slot)[0]

    def full_from(self, slot: str) -> int:
        """The round from which on a slot held too many; 0 if it never did."""
        return self._rounds_of(slot)[1]

    def contents_of(self, slot: str) -> Found:
        """What a slot holds."""
        held = self.held_by(slot)
        return held[-1][1] if held else EMPTY
