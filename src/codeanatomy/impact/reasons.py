"""Why a file is rebuilt: which of its answers changed, and which changed file that comes from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from codeanatomy.catalogue.ids import parse_node_id
from codeanatomy.catalogue.kinds import Kind, NodeKind

if TYPE_CHECKING:  # `why` needs the kinds of reasons and nothing else
    from codeanatomy.impact.snapshots import ModuleChanges
    from codeanatomy.resolve.index import FileNames, Index


class ReasonKind(Kind):
    """Why a file is rebuilt. Of several reasons a file is told by the first.

    In words, `{ref}` is the name, module or path that caused it.
    """

    ADDED = "added", "it is a new file"
    CONTENT_CHANGED = "content_changed", "its content changed"
    RENAMED = "renamed", "it was renamed from {ref}"
    DELETED = "deleted", "it was deleted"
    MODULE_RENAMED = "module_renamed", "its module name is {ref} now"
    IMPORT_MODULE = "import_module", "its import of module {ref} resolves differently now"
    IMPORT_NAME = "import_name", "its import of {ref} resolves differently now"
    IMPORT_STAR = "import_star", "a star import resolves {ref} differently now"
    BASE_CLASS = "base_class", "one of its classes inherits from {ref}, or did before"
    CALLER_QNAME = "caller_qname", "it calls {ref}, or did before"
    NAME_QNAME = "name_qname", "it uses {ref}, or did before"
    CALLER_SYMBOL = "caller_symbol", "it refers to {ref}, or did before, according to the type index"
    SEMANTIC_DOCUMENT = "semantic_document", "the type index resolves it differently now: {ref}"
    IMPORT_CLOSURE = "import_closure", "it depends on {ref}, directly or through other modules (import_closure)"
    RULE_CHANGED = "rule_changed", "rule {ref} changed"
    SETTINGS_CHANGED = "settings_changed", "every file was rebuilt: {ref}"
    FULL_REFRESH = "full_refresh", "every file was rebuilt: {ref}"


IMPORT_REASONS: Final = frozenset({ReasonKind.IMPORT_MODULE, ReasonKind.IMPORT_NAME, ReasonKind.IMPORT_STAR})
"""The reasons of questions that imports ask."""

_ORDER: Final = {kind: place for place, kind in enumerate(ReasonKind)}


@dataclass(frozen=True)
class ImpactedFile:
    """A file that is rebuilt, or whose rows go, and why; `caused_by` is the path of the file it comes from."""

    path: str
    file_id: str
    reason_kind: ReasonKind
    reason_ref: str | None = None
    caused_by: str | None = None


class ChangedAnswer(NamedTuple):
    """A question of a file whose answer changed."""

    path: str
    ask_no: int
    question: str
    reason_kind: ReasonKind
    reason_ref: str
    before: list[str]
    after: list[str]
    caused_by: str | None


Answers = Mapping[int, Sequence[Mapping[str, Any]]]
"""The rows of a file's answers, by question."""


def answers_by_question(rows: pa.Table) -> dict[str, dict[int, list[dict[str, Any]]]]:
    """Rows of `answers`, by file and question."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["file_id"], {}).setdefault(row["ask_no"], []).append(row)
    for questions in found.values():
        for candidates in questions.values():
            candidates.sort(key=lambda row: row["candidate"])
    return found


def changed_answers(
    path: str,
    answers: tuple[Answers, Answers],
    roles: Mapping[int, Collection[str]],
    names: Names,
    modules: ModuleChanges,
) -> list[ChangedAnswer]:
    """The questions of a file whose answers (before and after) differ, in the order of their reasons."""
    before, after = answers
    found = []
    for ask_no in sorted(before.keys() | after.keys()):
        old, new = before.get(ask_no, ()), after.get(ask_no, ())
        if _outcome(old) == _outcome(new):
            continue
        question = (new or old)[0]["question"]
        looked_at = {entry for row in (*old[:1], *new[:1]) for entry in row["trail"] or ()}
        causes = modules.causes(looked_at)
        kind = _kind(ask_no, question, roles.get(ask_no, ()), (*old, *new))
        was, now = ({name: row["is_named"] for row in rows if (name := names.of(row))} for rows in (old, new))
        ref = _ref(kind, question, names.package_of(path), was, now)
        cause = names.defining_cause((*new, *old), causes) or min(causes, default=None)
        found.append(ChangedAnswer(path, ask_no, question, kind, ref, sorted(was), sorted(now), cause))
    return sorted(found, key=lambda each: (_ORDER[each.reason_kind], each.ask_no))


def _outcome(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """What names the candidates; a question without any may or may not have a row, for its trail."""
    return rows[0]["outcome"] if rows and rows[0]["status"] != "unknown" else None


def _kind(ask_no: int, question: str, roles: Collection[str], rows: Iterable[Mapping[str, Any]]) -> ReasonKind:
    if ask_no < 0:
        return ReasonKind.CALLER_SYMBOL
    if "import_module" in roles or ("import" in roles and " " not in question):
        return ReasonKind.IMPORT_MODULE
    if "import" in roles:
        return ReasonKind.IMPORT_NAME
    if any(row["resolution_method"] == "star_import" for row in rows):
        return ReasonKind.IMPORT_STAR
    if "base" in roles:
        return ReasonKind.BASE_CLASS
    return ReasonKind.CALLER_QNAME if "call" in roles else ReasonKind.NAME_QNAME


def _ref(kind: ReasonKind, question: str, package: str, before: Mapping[str, bool], after: Mapping[str, bool]) -> str:
    """The dotted name a change goes by: what is imported, else what is named now, else what was named before.

    Only of what names nothing, what it holds.
    """
    if kind in (ReasonKind.IMPORT_MODULE, ReasonKind.IMPORT_NAME):
        return _imported(question, package)
    was, now = ({name for name, is_named in side.items() if is_named} for side in (before, after))
    if not was | now:
        was, now = set(before), set(after)
    return min(now - was or now or was, default=question)


def _imported(question: str, package: str) -> str:
    """`i:1:m .x` as the dotted name that it asks for; its dots start from `package`."""
    root, *steps = question.partition(" | ")[0].split(" ")
    _, level, name = root.split(":", 2)
    for _ in range(int(level) - 1):
        package = package.rpartition(".")[0]
    parts = [package if level != "0" else "", name, *(step.removeprefix(".") for step in steps)]
    return ".".join(part for part in parts if part)


class Names:
    """Dotted names of what answers point to, in either snapshot."""

    def __init__(self, before: Callable[[], Index], after: Index) -> None:
        self._before = before
        self._after = after
        self._qualnames: dict[tuple[int, str], dict[str, str]] = {}

    @cached_property
    def _sides(self) -> tuple[Index, Index]:
        return self._after, self._before()

    @cached_property
    def _packages(self) -> dict[str, str]:
        return {file.path: file.package() for file in self._after.files.values()}

    def package_of(self, path: str) -> str:
        """The package that relative imports of a file start from."""
        return self._packages[path]

    def of(self, row: Mapping[str, Any]) -> str | None:
        """The dotted name of a candidate's target."""
        if row["target_name"]:
            return str(row["target_name"])
        target = row["target_id"]
        if not target:
            return None
        node = parse_node_id(str(target))
        if node is None or node.file_id is None:
            return None
        file_id, key = node.file_id, node.parts.get("def_key") or node.parts.get("binding_key")
        for number, side in enumerate(self._sides):
            file = side.files.get(file_id)
            if file is None:
                continue
            if node.kind is NodeKind.MODULE:
                return file.module
            if (number, file_id) not in self._qualnames:
                self._qualnames[number, file_id] = _qualnames(side.names(file))
            if key in self._qualnames[number, file_id]:
                return f"{file.module}.{self._qualnames[number, file_id][key]}"
        return None

    def defining_cause(self, rows: Iterable[Mapping[str, Any]], causes: Collection[str]) -> str | None:
        """The first of the causes that defines a target."""
        for row in rows:
            node = parse_node_id(str(row["target_id"] or ""))
            for side in self._sides:
                file = side.files.get(node.file_id or "") if node else None
                if file and file.path in causes:
                    return file.path
        return None


def _qualnames(held: FileNames) -> dict[str, str]:
    """Names by the keys of definitions and bindings, as far as others can see them."""
    found: dict[str, str] = {}
    for name, slot in held.names.items():
        _note(found, name, slot.alternatives, slot.binding_key)
    for key, names in held.classes.items():
        found[key] = names.qualname
        for name, slot in names.members.items():
            _note(found, f"{names.qualname}.{name}", slot.alternatives, slot.binding_key)
    return found


def _note(found: dict[str, str], name: str, alternatives: Iterable[str], binding_key: str | None) -> None:
    if binding_key:
        found.setdefault(binding_key, name)
    for alternative in alternatives:
        letter, _, key = alternative.partition(":")
        if letter in ("f", "c", "p", "s", "k") and " " not in key:
            found.setdefault(key, name)


_ROLES: Final = (
    ("cst_bases", "ask_no", "base"),
    ("cst_callsites", "ask_no", "call"),
    ("cst_implicit_calls", "ask_no", "call"),
    ("cst_imports", "ask_no", "import"),
    ("cst_imports", "module_ask_no", "import_module"),
)
ROLE_DATASETS: Final = tuple(dict.fromkeys(dataset for dataset, _, _ in _ROLES))
"""Facts that tell what a question is asked for."""


def roles_of(facts: Mapping[str, Any]) -> dict[int, set[str]]:
    """What each question of a content is asked for, where that makes a difference to reasons."""
    roles: dict[int, set[str]] = {}
    for dataset, column, role in _ROLES:
        for fact in facts[dataset] or ():
            if fact[column] is not None and not (role == "base" and fact["keyword"]):
                roles.setdefault(fact[column], set()).add(role)
    return roles
