"""Step cases: small programs in versions, and the files that each step from one to the next must impact.

`cases/<theme>.case` holds the cases of a theme:

    [case short_snake_name]
    What it shows.
    [alone]
    [unindexed]
    [file short_snake_name/a.py]
    def f(): pass
    [step]
    What happens.
    [file short_snake_name/a.py]
    def g(): pass
    [bytes short_snake_name/b.py]
    x = '\\xe9'\\r\\n
    [delete short_snake_name/c.py]
    [rename short_snake_name/old short_snake_name/new]
    [impacted]
    short_snake_name/a.py  content_changed
    short_snake_name/d.py  import_name  short_snake_name.a.f  <- short_snake_name/a.py
    [impacted pyrefly]
    …
    [entry_points]
    flask_route  short_snake_name.a.f

- Prose may follow `[case …]` and `[step]`. Blank lines at the end of a section are no part of it.
- `[file …]` is text, each line with its newline. `[bytes …]` has the escapes of a bytes literal, and a line ends only
  where it says so.
- A step renames first (a file, or all files below a directory), then deletes, then writes. It need not change anything.
- `[impacted]` lists every impacted file with the kind of its reason; the reference and the cause may be left out, and
  are then not checked. `[impacted pyrefly]` is what a build with that semantic index does, if that is another list.
- `[entry_points]` lists all entry points of the case's files after the step that are more than guessed, each with its
  kind and name; without it, they are not checked.
- Cases share one repository, so each lives in modules of its own: the first name of a module is that of the case, or
  starts with it and an underscore. A case that cannot share a repository says `[alone]`.
- A case says `[unindexed]` if an index does not say the same of it each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent / "cases"

REASON_KINDS: Final = (
    "added",
    "content_changed",
    "renamed",
    "deleted",
    "module_renamed",
    "import_module",
    "import_name",
    "import_star",
    "base_class",
    "caller_qname",
    "name_qname",
    "caller_symbol",
    "semantic_document",
)
"""Reasons in the order in which the first is given."""

OWN_KINDS: Final = frozenset(REASON_KINDS[: REASON_KINDS.index("module_renamed")])
"""Reasons of files to which something happened themselves."""

Tree = Mapping[str, bytes]
"""Contents by path."""

_HEADER: Final = re.compile(
    r"\[(case|alone|unindexed|file|bytes|delete|rename|step|impacted|entry_points)((?: \S+)*)\]"
)
_ARGUMENTS: Final = {
    "case": 1,
    "alone": 0,
    "unindexed": 0,
    "file": 1,
    "bytes": 1,
    "delete": 1,
    "rename": 2,
    "step": 0,
    "entry_points": 0,
}
_CASE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_MARKERS: Final = frozenset({"alone", "unindexed"})
_SUFFIXES: Final = (".py", ".pyi", ".pyw")
_CAUSED_BY: Final = "<-"


class CaseError(ValueError):
    """A file of cases is malformed; the message starts with the place."""


@dataclass(frozen=True, slots=True)
class Impacted:
    """A file that is rebuilt, and why; what an expectation leaves out is None."""

    path: str
    kind: str
    ref: str | None = None
    cause: str | None = None

    def __str__(self) -> str:
        said = "  ".join(filter(None, (self.path, self.kind, self.ref)))
        return f"{said}  {_CAUSED_BY} {self.cause}" if self.cause else said

    def expects(self, found: Impacted) -> bool:
        """Whether `found` is what this expectation says."""
        return (
            (self.path, self.kind) == (found.path, found.kind)
            and self.ref in (None, found.ref)
            and self.cause in (None, found.cause)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to a tree, and the files that must be rebuilt; with an index, these may be others."""

    writes: Tree
    deletes: tuple[str, ...]
    renames: tuple[tuple[str, str], ...]
    impacted: tuple[Impacted, ...]
    impacted_indexed: tuple[Impacted, ...] | None = None
    entry_points: frozenset[tuple[str, str]] | None = None
    """Kind and name of each entry point after the step, if the case says."""

    def expected(self, *, indexed: bool) -> tuple[Impacted, ...]:
        """The files that a build must rebuild."""
        return self.impacted if self.impacted_indexed is None or not indexed else self.impacted_indexed


@dataclass(frozen=True, slots=True)
class Case:
    """A program and what happens to it; `place` is where it is written down."""

    name: str
    files: Tree
    steps: tuple[Step, ...]
    markers: frozenset[str] = frozenset()
    place: str = ""

    @property
    def is_alone(self) -> bool:
        """Whether it needs a repository of its own."""
        return "alone" in self.markers

    @property
    def is_indexed(self) -> bool:
        """Whether builds with an index can be held to it."""
        return "unindexed" not in self.markers

    def versions(self) -> list[Tree]:
        """The tree as it is at first and after each step."""
        trees: list[Tree] = [self.files]
        for step in self.steps:
            trees.append(changed(trees[-1], step))
        return trees


def changed(tree: Tree, step: Step) -> Tree:
    """The tree after a step."""
    after = dict(tree)
    for old, new in step.renames:
        for path in list(_at_or_below(after, old)):
            after[new + path.removeprefix(old)] = after.pop(path)
    for path in step.deletes:
        del after[path]
    return after | dict(step.writes)


def lay_out(tree: Tree, root: Path) -> None:
    """Write a tree into a directory."""
    for path, content in tree.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def apply_step(step: Step, root: Path) -> None:
    """Do to a directory what a step says; directories that it empties go too."""
    for old, new in step.renames:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)
        _remove_empty((root / old).parent, root)
    for path in step.deletes:
        (root / path).unlink()
        _remove_empty((root / path).parent, root)
    lay_out(step.writes, root)


def _remove_empty(directory: Path, root: Path) -> None:
    while directory != root and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent


def _at_or_below(paths: Iterable[str], place: str) -> Iterator[str]:
    return (path for path in paths if path == place or path.startswith(f"{place}/"))


def together(cases: Iterable[Case], number: int) -> Tree:
    """The trees of several cases after a number of steps, in one; those with fewer steps have come to rest."""
    return {path: content for case in cases for path, content in case.versions()[: number + 1][-1].items()}


def owners(cases: Iterable[Case]) -> dict[str, str]:
    """The case that each path belongs to, in whatever version it is there."""
    return {path: case.name for case in cases for tree in case.versions() for path in tree}


def differences(case: Case, number: int, found: Iterable[Impacted], *, indexed: bool = False) -> str:
    """How what a step impacted, of the files of a case, differs from what it should, in lines of the case's own."""
    step = case.steps[number - 1] if number <= len(case.steps) else None
    expected = {each.path: each for each in (step.expected(indexed=indexed) if step else ())}
    by_path = {each.path: each for each in found}
    lines = []
    for path in sorted(expected.keys() | by_path.keys()):
        wanted, got = expected.get(path), by_path.get(path)
        if wanted and got and wanted.expects(got):
            continue
        lines += [f"  missing  {wanted}"] if wanted else []
        lines += [f"  surplus  {got}"] if got else []
    return "\n".join([f"case {case.name} ({case.place}), step {number}:", *lines]) if lines else ""


def load_cases(directory: Path = DIRECTORY) -> tuple[Case, ...]:
    """Every case of every theme, in the order of the files and of their lines."""
    seen: dict[str, str] = {}
    cases: list[Case] = []
    for path in sorted(directory.glob("*.case")):
        for case in parse_cases(path.read_text(encoding="utf-8"), path.name):
            if case.name in seen:
                raise CaseError(f"{case.place}: there is already a case {case.name}, at {seen[case.name]}")
            seen[case.name] = case.place
            cases.append(case)
    if not cases:
        raise CaseError(f"{directory}: no cases")
    return tuple(cases)


def parse_cases(text: str, name: str) -> Iterator[Case]:
    """The cases of one file, whose name is for messages."""
    draft: _Draft | None = None
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}:{number}"
        header = _HEADER.fullmatch(line)
        if header is not None and header[1] == "case":
            if draft is not None:
                yield draft.case()
            draft = _Draft(_case_name(header[2].split(), place), place)
        elif draft is None:
            if line.strip():
                raise CaseError(f"{place}: expected [case …], found {line!r}")
        elif header is not None:
            draft.open(header[1], header[2].split(), place)
        elif line.startswith("[") and draft.section.word not in ("file", "bytes"):
            raise CaseError(f"{place}: there is no section {line!r}")
        else:
            draft.section.lines.append((place, line))
    if draft is not None:
        yield draft.case()


def _case_name(words: list[str], place: str) -> str:
    if len(words) != 1 or not _CASE_NAME.fullmatch(words[0]):
        raise CaseError(f"{place}: a case needs a name in snake_case")
    return words[0]


@dataclass(slots=True)
class _Section:
    """A header, its arguments, and the lines below it, each with its place."""

    word: str
    arguments: list[str]
    place: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def body(self) -> list[tuple[str, str]]:
        """The lines without blank ones at the end."""
        end = len(self.lines)
        while end and not self.lines[end - 1][1].strip():
            end -= 1
        return self.lines[:end]


class _Draft:
    """A case as far as it has been read: the sections of the program, then those of each step."""

    def __init__(self, name: str, place: str) -> None:
        self._name = name
        self._place = place
        self._steps: list[list[_Section]] = [[]]
        self.section = _Section("case", [name], place)

    def open(self, word: str, arguments: list[str], place: str) -> None:
        """Start another section."""
        wanted = _ARGUMENTS.get(word)
        if wanted is not None and len(arguments) != wanted:
            raise CaseError(f"{place}: [{word}] takes {wanted} words, not {len(arguments)}")
        if word == "impacted" and arguments not in ([], ["pyrefly"]):
            raise CaseError(f"{place}: [impacted] takes nothing or `pyrefly`")
        self.section = _Section(word, arguments, place)
        if word == "step":
            self._steps.append([])
        else:
            self._steps[-1].append(self.section)

    def case(self) -> Case:
        """The finished case."""
        program, *steps = self._steps
        markers = list(takewhile(lambda section: section.word in _MARKERS, program))
        files = program[len(markers) :]
        for section in files:
            if section.word not in ("file", "bytes"):
                raise CaseError(f"{section.place}: [{section.word}] cannot stand here, before the first [step]")
        if not files or not steps:
            raise CaseError(f"{self._place}: case {self._name} needs files and at least one [step]")
        tree = _writes(files)
        made: list[Step] = []
        after: Tree = tree
        for sections in steps:
            step = _step(sections, after, self._place)
            after = changed(after, step)
            made.append(step)
        return Case(self._name, tree, tuple(made), frozenset(each.word for each in markers), self._place)


def _step(sections: list[_Section], before: Tree, case_place: str) -> Step:
    """A step, which happens to the tree `before`."""
    listed: dict[str, tuple[Impacted, ...]] = {}
    entry_points = None
    for section in sections:
        if section.word in ("delete", "rename") and section.body():
            raise CaseError(f"{section.body()[0][0]}: nothing can follow [{section.word}]")
        if section.word == "impacted":
            key = " ".join(section.arguments)
            if key in listed:
                raise CaseError(f"{section.place}: this step has two such lists")
            listed[key] = _impacted(section)
        elif section.word == "entry_points":
            entry_points = frozenset(_entry_point(place, line) for place, line in section.body())
        elif section.word in _MARKERS or listed:
            raise CaseError(f"{section.place}: [{section.word}] cannot stand here")
    if "" not in listed:
        raise CaseError(f"{(sections[-1].place if sections else case_place)}: a step of this case has no [impacted]")
    renames = [section for section in sections if section.word == "rename"]
    deletes = [section for section in sections if section.word == "delete"]
    left = dict(before)
    for section in renames:
        old, new = section.arguments
        moved = Step({}, (), ((old, new),), ())
        if not any(_at_or_below(left, old)) or any(_at_or_below(left, new)):
            raise CaseError(f"{section.place}: {old} must be there, and {new} must not")
        left = dict(changed(left, moved))
    for section in deletes:
        if left.pop(section.arguments[0], None) is None:
            raise CaseError(f"{section.place}: there is no {section.arguments[0]} to delete")
    return Step(
        _writes([section for section in sections if section.word in ("file", "bytes")]),
        tuple(section.arguments[0] for section in deletes),
        tuple((section.arguments[0], section.arguments[1]) for section in renames),
        listed[""],
        listed.get("pyrefly"),
        entry_points,
    )


def _entry_point(place: str, line: str) -> tuple[str, str]:
    words = line.split()
    if len(words) != 2:
        raise CaseError(f"{place}: expected `kind  name`, found {line!r}")
    return words[0], words[1]


def _writes(sections: Iterable[_Section]) -> Tree:
    files: dict[str, bytes] = {}
    for section in sections:
        path = section.arguments[0]
        if path in files:
            raise CaseError(f"{section.place}: {path} is written twice")
        if path.startswith("/") or ".." in path.split("/") or not path.endswith(_SUFFIXES):
            raise CaseError(f"{section.place}: {path} is no relative path of a Python file")
        files[path] = _text(section) if section.word == "file" else _bytes(section)
    return files


def _text(section: _Section) -> bytes:
    return "".join(f"{line}\n" for _, line in section.body()).encode()


def _bytes(section: _Section) -> bytes:
    content = b""
    for place, line in section.body():
        try:
            content += line.encode("ascii").decode("unicode_escape").encode("latin-1")
        except UnicodeError as error:
            raise CaseError(f"{place}: not the inside of a bytes literal: {line!r}") from error
    return content


def _impacted(section: _Section) -> tuple[Impacted, ...]:
    found: dict[str, Impacted] = {}
    for place, line in section.body():
        said, _, cause = line.partition(_CAUSED_BY)
        words = said.split()
        causes = cause.split()
        if len(words) not in (2, 3) or len(causes) > 1 or (_CAUSED_BY in line and not causes):
            raise CaseError(f"{place}: expected `path  kind  reference  <- cause`, found {line!r}")
        if words[1] not in REASON_KINDS:
            raise CaseError(f"{place}: there is no reason {words[1]!r}, only {', '.join(REASON_KINDS)}")
        if words[0] in found:
            raise CaseError(f"{place}: {words[0]} is listed twice")
        ref = words[2] if len(words) == 3 else None
        found[words[0]] = Impacted(words[0], words[1], ref, causes[0] if causes else None)
    return tuple(sorted(found.values(), key=lambda each: each.path))
