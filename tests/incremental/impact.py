"""Which files a step must impact, worked out in this process: every file's answers in both versions, compared.

This is the definition that incremental builds are held against. It knows nothing of trails: whatever is asked is
answered again, over the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.extract import extract_batch
from codeanatomy.index.choice import choose_provider
from codeanatomy.index.documents import SITE_FIELDS, DocumentRow, as_batch
from codeanatomy.index.provider import Failed, IndexTask, Split
from codeanatomy.repo.diff import diff_files
from codeanatomy.repo.modules import ModuleName, module_names
from codeanatomy.repo.snapshot import ScannedFile, file_id
from codeanatomy.resolve import ContentNames, Index, Resolver, answer_files
from tests.incremental.cases import REASON_KINDS, Tree, lay_out

_ASKED: Final = (
    ("cst_imports", "module_ask_no", "import_module"),
    ("cst_bases", "ask_no", "base_class"),
    ("cst_callsites", "ask_no", "caller_qname"),
    ("cst_implicit_calls", "ask_no", "caller_qname"),
    ("cst_decorators", "ask_no", "caller_qname"),
    ("cst_name_refs", "ask_no", "name_qname"),
    ("cst_type_exprs", "ask_no", "name_qname"),
    ("cst_defs", "overrides_ask_no", "name_qname"),
)
"""Who asks, and the reason there is when the answer changes; what imports bind is told apart by their kind."""

_CANDIDATE: Final = (
    "status",
    "kind",
    "target_id",
    "target_name",
    "is_named",
    "call_id",
    "set_id",
    "resolution_method",
    "confidence",
)

_RANK: Final = {kind: rank for rank, kind in enumerate(REASON_KINDS)}


@dataclass(frozen=True)
class Question:
    """A question of a file: what it is asked for, its candidates, and their dotted names."""

    kinds: frozenset[str]
    candidates: tuple[tuple[Any, ...], ...]
    names: frozenset[str]

    def kind(self) -> str:
        """The reason there is when it changes."""
        starred = any(
            candidate[_CANDIDATE.index("resolution_method")] == "star_import" for candidate in self.candidates
        )
        return _first({*self.kinds, *(["import_star"] if starred else [])})


@dataclass(frozen=True)
class Outcome:
    """What the rows of a file follow from, besides the rules."""

    content_id: str
    module: str
    questions: Mapping[str, Question]
    document: str | None


@dataclass(frozen=True)
class Reason:
    """Why a file is impacted: the kind, and the names that may be told."""

    kind: str
    names: frozenset[str] = frozenset()


def impact(before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> dict[str, Reason]:
    """The impacted files of a step, by path."""
    diff = diff_files(*({path: each.content_id for path, each in side.items()} for side in (before, after)))
    reasons = {path: Reason("added") for path in diff.added}
    reasons |= {path: Reason("content_changed") for path in diff.modified}
    reasons |= {path: Reason("deleted") for path in diff.deleted}
    reasons |= {new: Reason("renamed", frozenset((old,))) for new, old in diff.renamed.items()}
    for path in before.keys() & after.keys() - reasons.keys():
        reason = _changed_answers(before[path], after[path])
        if reason is not None:
            reasons[path] = reason
    return dict(sorted(reasons.items()))


def _changed_answers(before: Outcome, after: Outcome) -> Reason | None:
    found: dict[str, set[str]] = {}
    for question in before.questions.keys() | after.questions.keys():
        sides = [side.questions.get(question, _UNASKED) for side in (before, after)]
        if sides[0].candidates == sides[1].candidates or (question.startswith("y:") and _UNASKED in sides):
            continue
        kind = _first(side.kind() for side in sides if side is not _UNASKED)
        found.setdefault(kind, set()).update(*(side.names for side in sides))
    if before.module != after.module:
        found.setdefault("module_renamed", set()).update((before.module, after.module))
    if before.document != after.document:
        found.setdefault("semantic_document", set())
    if not found:
        return None
    kind = _first(found)
    return Reason(kind, frozenset(found[kind]))


_UNASKED: Final = Question(frozenset(), (), frozenset())


def _first(kinds: Iterable[str]) -> str:
    return min(kinds, key=_RANK.__getitem__)


def outcomes(tree: Tree, *, indexed: bool = False) -> dict[str, Outcome]:
    """What the rows of every file of a tree follow from; with `indexed`, pyrefly is asked too."""
    contents = {sha256(content).hexdigest(): content for content in tree.values()}
    content_of = {path: sha256(content).hexdigest() for path, content in tree.items()}
    facts = pa.Table.from_batches([extract_batch(list(contents), list(contents.values()))])
    row_of = {content_id: row for row, content_id in enumerate(facts["content_id"].to_pylist())}
    modules = module_names(sorted(tree))
    documents = _documents(tree, modules, facts, row_of, content_of) if indexed else DOCUMENTS.schema().empty_table()
    symbol_asks = dict(zip(documents["file_id"].to_pylist(), documents["symbol_asks"].to_pylist(), strict=True))
    prints = dict(zip(documents["path"].to_pylist(), documents["fingerprint"].to_pylist(), strict=True))
    ids = [file_id(module.path) for module in modules]
    rows = [row_of[content_of[module.path]] for module in modules]
    files = pa.table(
        {
            "file_id": ids,
            "path": [module.path for module in modules],
            "content_id": [content_of[module.path] for module in modules],
            "module_fqn": [module.module_fqn for module in modules],
            "is_init": [module.is_init for module in modules],
            "is_stub": [module.is_stub for module in modules],
        }
    )
    asked = pa.record_batch(
        {
            "file_id": pa.array(ids, pa.string()),
            "asks": pa.array([facts["asks"][row].as_py() for row in rows], facts["asks"].type),
            "symbol_asks": pa.array([symbol_asks.get(each) for each in ids], documents["symbol_asks"].type),
        }
    )
    answers = answer_files(Resolver(Index(files, ContentNames(facts), documents)), asked).to_pylist()
    named = _Names(modules, facts, rows)
    return {
        module.path: Outcome(
            content_of[module.path],
            module.module_fqn,
            _questions([each for each in answers if each["path"] == module.path], _kinds(facts, row), named),
            prints.get(module.path),
        )
        for module, row in zip(modules, rows, strict=True)
    }


def _kinds(facts: pa.Table, row: int) -> dict[int, set[str]]:
    """What each question of a content is asked for, by its number."""
    kinds: dict[int, set[str]] = {}
    for dataset, column, kind in _ASKED:
        for fact in facts[dataset][row].as_py() or ():
            is_keyword = dataset == "cst_bases" and fact["keyword"] is not None
            kinds.setdefault(fact[column], set()).add("name_qname" if is_keyword else kind)
    for fact in facts["cst_imports"][row].as_py() or ():
        kinds.setdefault(fact["ask_no"], set()).add(
            "import_module" if fact["is_star"] or fact["kind"] == "import" else "import_name"
        )
    return kinds


def _questions(
    answers: Iterable[Mapping[str, Any]], kinds: Mapping[int, set[str]], named: _Names
) -> dict[str, Question]:
    """Questions of a file with their answers; what a symbol is does not depend on where it stands."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for answer in answers:
        grouped.setdefault(answer["question"], []).append(answer)
    return {
        question: Question(
            frozenset(kinds[rows[0]["ask_no"]] if rows[0]["ask_no"] >= 0 else ("caller_symbol",)),
            tuple(dict.fromkeys(tuple(row[n] for n in _CANDIDATE) for row in rows if row["status"] != "unknown")),
            frozenset(named.dotted(row) for row in rows if row["target_id"]),
        )
        for question, rows in grouped.items()
    }


class _Names:
    """Dotted names of what answers point to."""

    def __init__(self, modules: Iterable[ModuleName], facts: pa.Table, rows: Iterable[int]) -> None:
        self._names: dict[str, str] = {}
        for module, row in zip(modules, rows, strict=True):
            owner = file_id(module.path)
            self._names[f"m:{owner}"] = module.module_fqn
            for each in facts["cst_defs"][row].as_py() or ():
                self._names[f"d:{owner}:{each['def_key']}"] = f"{module.module_fqn}.{each['qualname']}"
            scopes = {each["scope_no"]: each["qualname"] for each in facts["sym_scopes"][row].as_py() or ()}
            for each in facts["sym_bindings"][row].as_py() or ():
                inside = filter(None, (module.module_fqn, scopes.get(each["scope_no"]), each["name"]))
                self._names[f"b:{owner}:{each['binding_key']}"] = ".".join(inside)

    def dotted(self, answer: Mapping[str, Any]) -> str:
        """The name of a candidate."""
        name = answer["target_name"] or self._names.get(answer["target_id"]) or answer["target_id"]
        return str(name).removeprefix("<builtin>.")


def _documents(
    tree: Tree,
    modules: Iterable[ModuleName],
    facts: pa.Table,
    row_of: Mapping[str, int],
    content_of: Mapping[str, str],
) -> pa.Table:
    """What pyrefly says about the files of a tree."""
    sites = _sites(facts)
    with TemporaryDirectory() as place:
        root, scratch = Path(place, "repository"), Path(place, "scratch")
        scratch.mkdir()
        lay_out(tree, root)
        provider = choose_provider("pyrefly", None, root)
        assert provider is not None
        files = [ScannedFile(path, file_id(path), content_of[path], len(tree[path]), "ok") for path in sorted(tree)]
        batches = []
        for result in provider.run(IndexTask(root, files, tuple(modules), scratch)):
            if isinstance(result, Failed):
                batches.append(
                    as_batch([DocumentRow(file_id(result.path), result.path, "pyrefly", "failed", result.detail)])
                )
                continue
            if isinstance(result, Split):
                continue
            told = [
                row
                for row in result.rows().to_pylist()
                if facts["line_starts"][row_of[content_of[row["path"]]]].is_valid
            ]
            paths = [row["path"] for row in told]
            of_shard = sites.take(pa.array([row_of[content_of[path]] for path in paths], pa.int64()))
            keys = {
                "file_id": [file_id(path) for path in paths],
                "path": paths,
                "link": [row["link"] for row in told],
                "size": [len(tree[path]) for path in paths],
            }
            asked = pa.table({**keys, **{name: of_shard[name] for name in of_shard.column_names}})
            batches += result.reader()(asked.combine_chunks().to_batches())
    documents = pa.Table.from_batches(batches, DOCUMENTS.schema())
    return documents.filter(pa.compute.not_equal(documents["file_id"], GLOBAL_OWNER))


def _sites(facts: pa.Table) -> pa.Table:
    """What alignment reads of the facts, a row for each content."""
    columns = {"line_starts": facts["line_starts"]}
    for dataset, fields in SITE_FIELDS.items():
        values = facts[dataset].combine_chunks()
        for name in fields:
            columns[f"{dataset}_{name}"] = pa.ListArray.from_arrays(values.offsets, values.values.field(name))
    return pa.table(columns)
