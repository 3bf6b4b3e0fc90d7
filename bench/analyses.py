"""What an update would leave as it is, held against everything asked from scratch; in this process, without Spark.

A `Ledger` stands in for a state: it has the tables that the analysis of an update reads, and no others. Each `advance`
analyses the tree as a build would and then asks every question of every file. What the update would have stored must be
what was found, and an answer must not depend on what else was asked, nor in which order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import codeanatomy as ca
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.tables import ANSWERS, DOCUMENTS, FACTS, MODULE_LOOKUPS, REPO_FILES
from codeanatomy.engine.rows import in_driver
from codeanatomy.pipeline.context import Build
from codeanatomy.pipeline.extraction import extract_here
from codeanatomy.pipeline.facts import Facts
from codeanatomy.pipeline.inputs import BuildInputs, gather
from codeanatomy.pipeline.plan import Plan
from codeanatomy.pipeline.progress import Silent, StageClock
from codeanatomy.pipeline.request import Mode, Strategy
from codeanatomy.pipeline.stages import analyse
from codeanatomy.pipeline.work import Work
from codeanatomy.repo.files import file_table
from codeanatomy.resolve import Asked, Index, Resolver, answer_files
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.datafiles import CollectedRows
from codeanatomy.store.digests import SetDigest
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import State, create_state
from codeanatomy.store.tables import TablePin, append_rows, read_arrow, replace_rows

BUCKETS = 4
"""More than a small tree would get, so that some are left alone."""

ALONE = 12
"""So many of the changed files of a tree, and of all, are each asked on a resolver of its own."""

SINGLE = 60
"""So many questions of a tree are each asked on a resolver of its own."""

_ORDER = ("file_id", "ask_no", "candidate")


class Difference(NamedTuple):
    """A file of which an update would keep, or make, something else than a build from scratch."""

    path: str
    what: str
    example: str = ""


def differing(what: str, paths: Mapping[str, str], ours: pa.Table, theirs: pa.Table) -> list[Difference]:
    """The files whose rows are not the same in both tables; `paths` has those that are there, by their ids."""
    ours, theirs = _in_order(ours), _in_order(theirs)
    if ours.equals(theirs):
        return []
    sides = [_by_file(rows) for rows in (ours, theirs)]
    names = sorted((paths.get(each, "a file that is gone"), each) for each in sides[0].keys() | sides[1].keys())
    return [
        Difference(path, what, _example(*pair))
        for path, each in names
        if (pair := (sides[0].get(each, []), sides[1].get(each, [])))[0] != pair[1]
    ]


def rows_of(rows: pa.Table, owners: Collection[str]) -> pa.Table:
    """The rows of some files."""
    return rows.filter(pc.is_in(rows["file_id"], pa.array(sorted(owners), pa.string())))


def _in_order(rows: pa.Table) -> pa.Table:
    keys = [(name, "ascending") for name in _ORDER if name in rows.column_names]
    return rows.sort_by(keys).combine_chunks()


def _by_file(rows: pa.Table) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["file_id"], []).append(row)
    return found


def _example(ours: list[Mapping[str, Any]], theirs: list[Mapping[str, Any]]) -> str:
    """The first row that is not the same on both sides: what it is about, and what is wrong with it."""
    missing: Mapping[str, Any] = {}
    for mine, other in zip_longest(ours, theirs, fillvalue=missing):
        if mine != other:
            named = mine or other
            columns = [name for name in named if mine.get(name) != other.get(name)]
            sides = (", ".join(f"{name}={row.get(name)!r}"[:200] for name in columns) for row in (mine, other))
            return "{}: {} instead of {}".format(named.get("question", "the document"), *sides)
    return ""


class Questions:
    """Every question of a snapshot; each call answers some of them on a resolver of its own."""

    def __init__(self, files: pa.Table, facts: Facts) -> None:
        asks = in_driver(facts.of_files(files.select(["file_id", "path", "content_id"]), ["asks"], None))
        symbols = pa.nulls(asks.num_rows, DOCUMENTS.column("symbol_asks").type)
        self._asks = asks.append_column("symbol_asks", symbols).sort_by("path").combine_chunks()
        self._row_of = {file_id: row for row, file_id in enumerate(self._asks["file_id"].to_pylist())}
        self._numbers = {
            file_id: [ask["ask_no"] for ask in of_file or ()]
            for file_id, of_file in zip(self._row_of, self._asks["asks"].to_pylist(), strict=True)
        }
        self._index = Index(files, facts.names)

    def every(self) -> pa.Table:
        """All answers, one file after the other."""
        return self._answered([self._asks], None)

    def alone(self, file_id: str) -> pa.Table:
        """The answers of one file, when nothing else was asked."""
        return self._answered([self._of(file_id)], None)

    def one(self, file_id: str, number: int) -> pa.Table:
        """The answer to one question, when nothing else was asked."""
        return self._answered([self._of(file_id)], {file_id: {number}})

    def shuffled(self, chance: Random) -> pa.Table:
        """All answers, when files and the questions of each are asked in any order."""
        order = list(self._row_of)
        chance.shuffle(order)
        return self._answered([_with_shuffled_asks(self._of(file_id), chance) for file_id in order], None)

    def sample(self, chance: Random, count: int) -> Iterator[tuple[str, int]]:
        """Some questions: the file and the number of each."""
        every = [(file_id, number) for file_id, numbers in self._numbers.items() for number in numbers]
        yield from chance.sample(every, min(count, len(every)))

    def files(self) -> list[str]:
        """The files that have questions."""
        return [file_id for file_id, numbers in self._numbers.items() if numbers]

    def _of(self, file_id: str) -> pa.Table:
        return self._asks.slice(self._row_of[file_id], 1)

    def _answered(self, tables: Iterable[pa.Table], asked: Asked | None) -> pa.Table:
        resolver = Resolver(self._index)
        batches = (batch for table in tables for batch in table.to_batches())
        return pa.Table.from_batches([answer_files(resolver, each, asked) for each in batches], ANSWERS.schema())


def _with_shuffled_asks(row: pa.Table, chance: Random) -> pa.Table:
    (asks,) = row["asks"].to_pylist()
    chance.shuffle(asks := list(asks or ()))
    place = row.schema.get_field_index("asks")
    return row.set_column(place, "asks", pa.array([asks], row.schema.field("asks").type))


def order_dependent(
    questions: Questions, every: pa.Table, paths: Mapping[str, str], chance: Random, changed: Set[str]
) -> list[Difference]:
    """The files whose answers are not those of `every` if other questions, or the same in another order, are asked.

    All are asked in a random order; some of the `changed` files, some of all and some single questions are asked alone.
    """

    def some(files: Collection[str]) -> list[str]:
        return chance.sample(sorted(files), min(ALONE, len(files)))

    found = differing("answers that depend on the order of questions", paths, questions.shuffled(chance), every)
    there = questions.files()
    for file_id in dict.fromkeys([*some(changed & {*there}), *some(there)]):
        own = rows_of(every, {file_id})
        found += differing("answers that depend on other files' questions", paths, questions.alone(file_id), own)
    for file_id, number in questions.sample(chance, SINGLE):
        own = rows_of(every, {file_id}).filter(pc.field("ask_no") == number)
        found += differing("an answer that depends on other questions", paths, questions.one(file_id, number), own)
    return list({(each.path, each.what): each for each in reversed(found)}.values())


@dataclass(frozen=True)
class Examined:
    """What the analysis of an update came to, next to everything asked from scratch."""

    files: int
    questions: int
    kept: int
    """Questions that the update would not ask again."""
    missed: tuple[Difference, ...]
    order_dependent: tuple[Difference, ...]

    @property
    def failed(self) -> tuple[Difference, ...]:
        """All that is wrong."""
        return (*self.missed, *self.order_dependent)


class Ledger:
    """What the analysis of an update reads of a state, written without Spark, one version of the tree after another."""

    def __init__(self, root: Path, state: Path) -> None:
        """Begin with the tree as it is at `root`; `state` is a directory that is not there yet."""
        self._request = ca.BuildRequest(root, state=str(state), index="none")
        self._state: State = create_state(locate_state(root, str(state), {}), BUCKETS)
        inputs = self._inputs()
        contents = extract_here(inputs.root, inputs.snapshot.files)
        pin = append_rows(contents, FACTS, self._state).pin
        facts = Facts(self._state, pin)
        self._last = BuildRecord("0", None, datetime.now(UTC), "full", inputs.snapshot.snapshot_id, {FACTS.name: pin})
        self._keep(inputs, Questions(file_table(inputs.files.values()), facts).every())

    def advance(self, chance: Random, strategy: Strategy = Strategy.HYBRID) -> Examined:
        """Analyse the tree as it is now and compare; the next version is analysed on top of what this one left."""
        inputs = self._inputs()
        plan = Plan(Mode.INCREMENTAL, ())
        analysis = analyse(Build(self._state, self._last, inputs, plan, strategy, StageClock(Silent())))
        paths = {file.file_id: file.path for file in inputs.snapshot.files}
        questions = Questions(file_table(inputs.files.values()), analysis.facts)
        every = questions.every()
        before = read_arrow(self._state, ANSWERS, self._last.tables[ANSWERS.name].version)
        kept = rows_of(before, paths.keys() - analysis.impact.asked)
        after = pa.concat_tables([kept, analysis.impact.answers])
        missed = differing("answers that an update would leave as they were", paths, after, every)
        missed += _not_rebuilt(paths, before, every, analysis)
        changed = analysis.impact.rebuilt()
        examined = Examined(
            files=len(paths),
            questions=every.num_rows,
            kept=kept.num_rows,
            missed=tuple(missed),
            order_dependent=tuple(order_dependent(questions, every, paths, chance, changed)),
        )
        pin = append_rows(analysis.facts.fresh, FACTS, self._state, analysis.facts.pin).pin
        self._last = replace(self._last, tables={**self._last.tables, FACTS.name: pin})
        self._keep(inputs, every if missed else after)
        return examined

    def _inputs(self) -> BuildInputs:
        return gather(self._request, self._state.location, self._state)

    def _keep(self, inputs: BuildInputs, answers: pa.Table) -> None:
        """Remember the files and their answers."""
        files = file_table(inputs.files.values())
        known = {name: files[name] for name in REPO_FILES.names() if name in files.column_names}
        unknown = {name: pa.nulls(files.num_rows, REPO_FILES.column(name).type) for name in REPO_FILES.names()}
        tables = {
            REPO_FILES: pa.table({**unknown, **known}).select(list(REPO_FILES.names())).cast(REPO_FILES.schema()),
            ANSWERS: answers,
            MODULE_LOOKUPS: _lookups(answers),
        }
        pins = {dataset.name: self._write(dataset, rows) for dataset, rows in tables.items()}
        self._last = replace(self._last, tables={**self._last.tables, **pins})

    def _write(self, dataset: Dataset, rows: pa.Table) -> TablePin:
        owners = {owner: SetDigest(1, "0" * 32) for owner in pc.unique(rows["file_id"]).to_pylist()}
        return replace_rows(CollectedRows(rows, owners), dataset, self._state).pin


def _lookups(answers: pa.Table) -> pa.Table:
    """The modules that answers looked at, as the rule of that name has them."""
    trails = answers["trail"].combine_chunks()
    of_row = pc.list_parent_indices(trails)
    columns = [answers["file_id"].take(of_row), answers["path"].take(of_row), pc.list_flatten(trails)]
    rows = pa.table(columns, names=list(MODULE_LOOKUPS.names()))
    return rows.group_by(rows.column_names).aggregate([]).cast(MODULE_LOOKUPS.schema())


def _not_rebuilt(paths: Mapping[str, str], before: pa.Table, every: pa.Table, analysis: Work) -> Iterator[Difference]:
    """The files of which an answer changed, but whose rows an update would not make again."""
    changed = {file_id for file_id, *_ in _outcomes(before) ^ _outcomes(every)}
    for file_id in sorted(changed & paths.keys() - analysis.impact.rebuilt()):
        yield Difference(paths[file_id], "rows that an update would leave as they were")


def _outcomes(rows: pa.Table) -> set[tuple[Any, ...]]:
    known = rows.filter(pc.not_equal(rows["status"], "unknown"))
    return set(zip(*(known[name].to_pylist() for name in ("file_id", "ask_no", "outcome")), strict=True))
