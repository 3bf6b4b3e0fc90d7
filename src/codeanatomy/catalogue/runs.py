"""What a build did and why, as datasets: kept in the build's run bundle, one file each, and offered to SQL."""

from __future__ import annotations

from codeanatomy.catalogue.columns import Dataset, flag, number, text, texts

_OWNER = text("file_id", "the file", required=True)
_PATH = text("path", "its path", required=True)

DIFF_REPORT = Dataset(
    "diff_report",
    "Files that changed since the build before.",
    (
        _OWNER,
        _PATH,
        text("change_kind", "added, modified, deleted, renamed or module_renamed", required=True),
        text("previous", "content before; of a renamed file, its path before; of a renamed module, its name"),
        text("current", "content now; of a renamed module, its name"),
    ),
)

INC_INVALIDATIONS = Dataset(
    "inc_invalidations",
    "What changed that is not a file, and the tables that were computed anew for it.",
    (
        text("kind", "rule, layer (of facts), resolver, indexer or settings", required=True),
        text("name", "which one", required=True),
        texts("tables", "tables that were computed for every file"),
    ),
)

INC_CHANGED_EXPORTS = Dataset(
    "inc_changed_exports",
    "Names that changed files offer otherwise than before.",
    (
        _OWNER,
        _PATH,
        text("module", "module that offers it", required=True),
        text("name", "the name, after that of its class; `*` and its place for a star import", required=True),
        text("delta_kind", "added, removed or changed", required=True),
        text(
            "what",
            "what of it changed: of its identity, kind, target or in_all; of its shape, parameters, returns, "
            "decorators, bases or is_async, or shape where the source tells no more",
        ),
    ),
)

INC_CHANGED_ANSWERS = Dataset(
    "inc_changed_answers",
    "Questions of unchanged files that got another answer.",
    (
        _OWNER,
        _PATH,
        number("ask_no", "question, as `asks` or `symbol_asks` numbers it", required=True),
        text("question", "its text", required=True),
        text("reason_kind", "what the question is asked for, as in `inc_impacted_files`", required=True),
        text("reason_ref", "dotted name that it is about", required=True),
        texts("before", "dotted names that were the answer"),
        texts("after", "dotted names that are"),
        text("caused_by_path", "changed file that this comes from"),
    ),
)

_REASON = (
    text("reason_kind", "why, in a word", required=True),
    text("reason_ref", "the name, module or path that did it"),
    text("caused_by_path", "file whose change did it; null if it is this one"),
)

INC_IMPACTED_FILES = Dataset(
    "inc_impacted_files",
    "Files that were rebuilt, or whose rows went, and why.",
    (
        _OWNER,
        _PATH,
        *_REASON,
        text("caused_by_file_id", "id of that file"),
        texts("tables", "tables in which its rows changed"),
        flag("rows_changed", "whether any row did; rebuilding it was waste if not"),
    ),
)

INC_IMPACTED_CALLERS = Dataset(
    "inc_impacted_callers",
    "Files with a call, name or base that means something else now.",
    (_OWNER, _PATH, *_REASON),
)

INC_IMPACTED_IMPORTERS = Dataset(
    "inc_impacted_importers",
    "Files with an import that means something else now.",
    (_OWNER, _PATH, *_REASON),
)

INC_RECONSIDERED_FILES = Dataset(
    "inc_reconsidered_files",
    "Unchanged files that were asked again, because they had looked at a module that changed.",
    (
        _OWNER,
        _PATH,
        text("looked_at", "the module, as in a trail", required=True),
        text("caused_by_path", "changed file that this comes from", required=True),
        flag("impacted", "whether an answer came out otherwise"),
    ),
)

RUN_DATASETS: tuple[Dataset, ...] = (
    DIFF_REPORT,
    INC_INVALIDATIONS,
    INC_CHANGED_EXPORTS,
    INC_CHANGED_ANSWERS,
    INC_IMPACTED_FILES,
    INC_IMPACTED_CALLERS,
    INC_IMPACTED_IMPORTERS,
    INC_RECONSIDERED_FILES,
)
