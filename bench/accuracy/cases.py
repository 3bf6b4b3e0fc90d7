"""The hand-written programs the call graph is measured with, and the calls each of them makes.

`cases/<category>.txt` holds the cases of a category:

    [case short_snake_name]
    # what it shows, in one line
    [needs flow]
    [file main.py]
    def f(): pass
    f()
    [calls]
    main -> main.f
    [end]

- The remark and the markers are optional. `[needs flow]`: not to be resolved without following values through
  arguments, containers, closures or decorators. `[not run]`: the program cannot be executed (a missing package).
- Every case has a `main.py`; further files follow, each under its own `[file …]`.
- A call is `caller -> callee`, both qualified names. The list is complete: each pair the program's code can make, once.
- `caller -> callee  # why` is a call that running the program does not show: a branch not taken, say.
- After `[calls]`, `[implicit]` may list what is called without being written as a call: by an operator, by a protocol
  (`len(a)`, `str(a)`, attribute methods), or by a builtin that was given a function. Such a list is complete, too; a
  case without one says nothing of them. They are no part of `calls`.

`check_cases` holds the lists against what running the programs shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

Call = tuple[str, str]
"""Caller and callee."""

DIRECTORY: Final = Path(__file__).parent / "cases"

_HEADER: Final = re.compile(r"\[(case|file|needs flow|not run|calls|implicit|end)(?: (\S+))?\]")
_NAMED: Final = frozenset({"case", "file"})
_CASE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_CALL: Final = re.compile(r"(\S+) -> (\S+)(?:  # (\S.*))?")


@dataclass(frozen=True, slots=True)
class Case:
    """A program and the calls it makes; `unseen` are those that running it does not show.

    `implicit` are the calls that are not written as calls; None if the case does not say.
    """

    category: str
    name: str
    needs_flow: bool
    files: Mapping[str, str]
    calls: frozenset[Call]
    unseen: frozenset[Call] = frozenset()
    not_run: bool = False
    remark: str = ""
    implicit: frozenset[Call] | None = None


class CaseError(ValueError):
    """A file of cases is malformed; the message starts with the place."""


@dataclass(slots=True)
class _Draft:
    """A case as far as it has been read; `block` collects the lines of the section being read."""

    name: str
    section: str = "case"
    block: list[str] = field(default_factory=list)
    remark: list[str] = field(default_factory=list)
    markers: set[str] = field(default_factory=set)
    files: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[Call, str] = field(default_factory=dict)
    implicit: dict[Call, str] | None = None


def load_cases(directory: Path = DIRECTORY) -> tuple[Case, ...]:
    """Every case of every category, in the order of the files and of their lines."""
    cases = tuple(case for path in sorted(directory.glob("*.txt")) for case in _read(path))
    if not cases:
        raise CaseError(f"{directory}: no cases")
    return cases


def _read(path: Path) -> Iterator[Case]:
    seen: set[str] = set()
    draft: _Draft | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        place = f"{path.name}:{number}"
        header = _HEADER.fullmatch(line)
        if draft is not None and (header is None or header[1] != "end"):
            _line(draft, header, line, place)
        elif draft is not None:
            yield _case(path.stem, draft, place)
            draft = None
        elif header is not None and header[1] == "case":
            draft = _Draft(_unique_name(header[2], seen, place))
        elif line.strip():
            raise CaseError(f"{place}: expected [case …], found {line!r}")
    if draft is not None:
        raise CaseError(f"{path.name}: case {draft.name} has no [end]")


def _unique_name(name: str | None, seen: set[str], place: str) -> str:
    if name is None or not _CASE_NAME.fullmatch(name):
        raise CaseError(f"{place}: a case needs a name in snake_case")
    if name in seen:
        raise CaseError(f"{place}: there is already a case {name}")
    seen.add(name)
    return name


def _line(draft: _Draft, header: re.Match[str] | None, line: str, place: str) -> None:
    """Add a line to the section it stands in, or start another section."""
    if header is not None:
        _section(draft, header[1], header[2], place)
    elif draft.section == "file":
        draft.block.append(line)
    elif draft.section == "calls":
        _call(draft, draft.calls, line, place)
    elif draft.section == "implicit" and draft.implicit is not None:
        _call(draft, draft.implicit, line, place)
    elif draft.section == "case" and not draft.markers and line.startswith("# "):
        draft.remark.append(line[2:])
    else:
        raise CaseError(f"{place}: unexpected line {line!r}")


def _section(draft: _Draft, section: str, name: str | None, place: str) -> None:
    if section == "case":
        raise CaseError(f"{place}: case {draft.name} has no [end]")
    if (name is not None) != (section in _NAMED):
        raise CaseError(f"{place}: [{section}] {'needs a' if section in _NAMED else 'takes no'} name")
    if draft.section == "calls" and section == "implicit":
        draft.section, draft.implicit = section, {}
        return
    if draft.section in ("calls", "implicit"):
        raise CaseError(f"{place}: after [{draft.section}] comes [end]")
    if section == "implicit":
        raise CaseError(f"{place}: [implicit] comes after [calls]")
    if section == "file" and name is not None:
        if name in draft.files:
            raise CaseError(f"{place}: there is already a file {name}")
        draft.block = draft.files[name] = []
    elif section != "calls":
        if draft.files:
            raise CaseError(f"{place}: [{section}] comes before the files")
        draft.markers.add(section)
        return
    draft.section = section


def _call(draft: _Draft, calls: dict[Call, str], line: str, place: str) -> None:
    match = _CALL.fullmatch(line)
    if match is None:
        raise CaseError(f"{place}: expected `caller -> callee`, found {line!r}")
    call = (match[1], match[2])
    if call in draft.calls or call in calls:
        raise CaseError(f"{place}: {line!r} is there twice")
    calls[call] = match[3] or ""


def _case(category: str, draft: _Draft, place: str) -> Case:
    if "main.py" not in draft.files:
        raise CaseError(f"{place}: case {draft.name} has no [file main.py]")
    if draft.section not in ("calls", "implicit"):
        raise CaseError(f"{place}: case {draft.name} has no [calls]")
    listed = draft.calls | (draft.implicit or {})
    return Case(
        category=category,
        name=draft.name,
        needs_flow="needs flow" in draft.markers,
        files={path: "".join(f"{line}\n" for line in lines) for path, lines in draft.files.items()},
        calls=frozenset(draft.calls),
        unseen=frozenset(call for call, why in listed.items() if why),
        not_run="not run" in draft.markers,
        remark=" ".join(draft.remark),
        implicit=None if draft.implicit is None else frozenset(draft.implicit),
    )
