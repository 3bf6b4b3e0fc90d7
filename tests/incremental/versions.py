"""Versions of a program, answered in this process, and what an update from one to the next would overlook.

An update asks a file again if a module that changed is on the trail of one of its answers. So the answers of every file
are worked out in both versions, and one that differs although its trail meets nothing that changed is an oversight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

import pyarrow as pa

from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.extract import extract_batch
from codeanatomy.impact import snapshots
from codeanatomy.repo.files import Files, SourceFile, file_table
from codeanatomy.repo.modules import module_names
from codeanatomy.repo.snapshot import file_id
from codeanatomy.resolve import ContentNames, Index, Resolver, answer_files
from codeanatomy.resolve.index import FileNames
from tests.incremental.generated import encoded, joined, statements

FEW = 60
"""So many files are each asked alone; of more, a sample is."""

_OWN = ("file_id", "path", "ask_no", "question")


class Contents:
    """Texts that were extracted, by their content ids. A batch of them takes hardly longer than one."""

    def __init__(self, texts: Iterable[str | bytes] = ()) -> None:
        self._names: dict[str, FileNames | None] = {}
        self._asks: dict[str, pa.Array] = {}
        self.add(texts)

    def add(self, texts: Iterable[str | bytes]) -> list[str]:
        """Extract what is not known yet; the ids of all."""
        sources = [encoded(text) if isinstance(text, str) else text for text in texts]
        ids = [sha256(source).hexdigest() for source in sources]
        new = {each: source for each, source in zip(ids, sources, strict=True) if each not in self._names}
        if new:
            facts = pa.Table.from_batches([extract_batch(list(new), list(new.values()))])
            names, asks = ContentNames(facts), facts["asks"].combine_chunks()
            for place, content_id in enumerate(facts["content_id"].to_pylist()):
                self._names[content_id] = names(content_id)
                self._asks[content_id] = asks.slice(place, 1)
        return ids

    def names(self, content_id: str) -> FileNames | None:
        """What a content holds for others."""
        return self._names[content_id]

    def asks(self, content_id: str) -> pa.Array:
        """The questions of a content, as an array of one list."""
        return self._asks[content_id]


Answers = Mapping[str, Mapping[int, tuple[tuple[Any, ...], ...]]]
"""For each path and question, its rows."""


@dataclass(frozen=True)
class Version:
    """A program and the answers to all its questions."""

    program: Mapping[str, str]
    files: snapshots.Snapshot
    answers: Answers


@dataclass(frozen=True)
class Oversight:
    """A question that is answered otherwise than before, and would not be asked again."""

    path: str
    question: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]


def snapshot_of(program: Mapping[str, str], contents: Contents) -> Files:
    """The files of a program as an update sees them."""
    content_of = dict(zip(program, contents.add(program.values()), strict=True))
    return {
        module.path: SourceFile(module.path, file_id(module.path), content_of[module.path], 0, "ok", "", module)
        for module in module_names(sorted(program))
    }


def answered(program: Mapping[str, str], contents: Contents) -> Version:
    """Answer every question of a program."""
    files = snapshot_of(program, contents)
    index = Index(file_table(files.values()), contents.names)
    return Version(program, files, _answers(Resolver(index), list(files.values()), contents))


def order_dependent(version: Version, contents: Contents, random: Random) -> Iterator[tuple[str, str, Any, Any]]:
    """Paths and questions that are answered otherwise if fewer others are asked, or in another order."""
    index = Index(file_table(version.files.values()), contents.names)
    files = list(version.files.values())
    alone = files if len(files) <= FEW else random.sample(files, 10)
    orders = [files[::-1], random.sample(files, len(files)), *([file] for file in alone)]
    for order in orders:
        for path, answers in _answers(Resolver(index), order, contents, random).items():
            expected = version.answers[path]
            for number in answers.keys() | expected.keys():
                if answers.get(number) != expected.get(number):
                    rows = answers.get(number) or expected[number]
                    yield path, rows[0][0], answers.get(number), expected.get(number)


def _answers(
    resolver: Resolver, files: Sequence[SourceFile], contents: Contents, random: Random | None = None
) -> Answers:
    """The answers of some files, asked one after the other; with a `random`, the questions of each in any order."""
    lists = [contents.asks(file.content_id or "") for file in files]
    if random is not None:
        lists = [_shuffled(each, random) for each in lists]
    asked = pa.record_batch(
        {
            "file_id": pa.array([file.file_id for file in files], pa.string()),
            "asks": pa.concat_arrays(lists),
            "symbol_asks": pa.nulls(len(files), DOCUMENTS.column("symbol_asks").type),
        }
    )
    rows = answer_files(resolver, asked)
    found: dict[str, dict[int, tuple[tuple[Any, ...], ...]]] = {file.path: {} for file in files}
    columns = [rows[name].to_pylist() for name in rows.schema.names]
    place = {name: number for number, name in enumerate(rows.schema.names)}
    for row in zip(*columns, strict=True):
        of_file = found[row[place["path"]]]
        number = row[place["ask_no"]]
        said = (row[place["question"]], *row[len(_OWN) : -1], tuple(row[-1] or ()))
        of_file[number] = (*of_file.get(number, ()), said)
    return found


def _shuffled(asks: pa.Array, random: Random) -> pa.Array:
    listed = asks[0].as_py() or []
    return pa.array([random.sample(listed, len(listed))], asks.type)


def overlooked(before: Version, after: Version, contents: Contents) -> list[Oversight]:
    """What an update from one version to the next would not ask again, although the answer is another."""
    changes = snapshots.snapshot_changes(before.files, after.files)
    entries = set(snapshots.module_changes(changes, contents.names).entries())
    found = []
    for path in sorted(after.files.keys() - set(changes.rebuilt())):
        old, new = before.answers.get(path, {}), after.answers[path]
        for number in sorted(old.keys() | new.keys()):
            was, now = old.get(number, ()), new.get(number, ())
            trail = {entry for row in was for entry in row[-1]}
            if was != now and not trail & entries:
                found.append(Oversight(path, (was or now)[0][0], was, now))
    return found


Pair = tuple[dict[str, str], dict[str, str]]


def shrunk(before: Mapping[str, str], after: Mapping[str, str], fails: Callable[[Pair], bool]) -> Pair:
    """A pair of programs that still fails, with nothing in it that could be left out."""
    pair = (dict(before), dict(after))
    while smaller := next((each for each in _smaller(pair) if fails(each)), None):
        pair = smaller
    return pair


def _smaller(pair: Pair) -> Iterator[Pair]:
    """Pairs with one thing less: a file, a change, a statement."""
    before, after = pair
    for path in sorted(before.keys() | after.keys()):
        yield _without(before, path), _without(after, path)
        if before.get(path) != after.get(path):
            yield before, _with(after, path, before.get(path))
    for path in sorted(before.keys() | after.keys()):
        for statement in dict.fromkeys([*statements(before.get(path, "")), *statements(after.get(path, ""))]):
            yield _less(before, path, statement), _less(after, path, statement)
    for path in sorted(before.keys() & after.keys()):
        if before[path] != after[path]:
            for statement in statements(before[path]):
                yield _less(before, path, statement), after
            for statement in statements(after[path]):
                yield before, _less(after, path, statement)


def _without(program, path):
    return {each: text for each, text in program.items() if each != path}


def _with(program, path, text):
    return _without(program, path) if text is None else {**program, path: text}


def _less(program, path, statement):
    if path not in program:
        return program
    return {**program, path: joined([each for each in statements(program[path]) if each != statement])}


def told(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Two versions of a program, for a reader."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            lines += [f"--- {path}", before[path].rstrip()]
        else:
            for word, program in (("before", before), ("after", after)):
                lines += [f"--- {path} ({word})", program[path].rstrip() if path in program else "(not there)"]
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode()
