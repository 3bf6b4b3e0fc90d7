"""Datasets that describe what a build did and why. They are files of its run bundle, and SQL can read them."""

from __future__ import annotations

from codeanatomy.catalogue.columns import Dataset, flag, number, text, texts

_OWNER = text("file_id", "the file", required=True)
_PATH = text("path", "its path", required=True)

DIFF_REPORT = Dataset(
    "diff_report",
    "Files that changed since the previous build.",
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
    "Changes that are not changes of files, and the tables that were computed again because of them.",
    (
        text("kind", "rule, layer (of facts), resolver, indexer or settings", required=True),
        text("name", "which one", required=True),
        texts("tables", "tables that were computed for every file"),
    ),
)

INC_CHANGED_EXPORTS = Dataset(
    "inc_changed_exports",
    "Names that changed files add, remove or change for other files.",
    (
        _OWNER,
        _PATH,
        text("module", "module that offers it", required=True),
        text("name", "the name, after that of its class; `*` and its place for a star import", required=True),
        text("delta_kind", "added, removed or changed", required=True),
        text(
            "what",
            "what changed: of its identity, kind, target or in_all; of its shape, parameters, returns, "
            "decorators, bases or is_async, or shape if nothing more is known",
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
        text("caused_by_path", "changed file that caused it"),
    ),
)

_REASON = (
    text("reason_kind", "kind of the reason", required=True),
    text("reason_ref", "the name, module or path that caused it"),
    text("caused_by_path", "file whose change caused it; null if it is this one"),
)

INC_IMPACTED_FILES = Dataset(
    "inc_impacted_files",
    "Files that were rebuilt or removed, and why.",
    (
        _OWNER,
        _PATH,
        *_REASON,
        text("caused_by_file_id", "id of that file"),
        texts("tables", "tables in which its rows changed"),
        flag("rows_changed", "whether any of its rows changed"),
    ),
)

INC_IMPACTED_CALLERS = Dataset(
    "inc_impacted_callers",
    "Files with a call, name or base whose meaning changed.",
    (_OWNER, _PATH, *_REASON),
)

INC_IMPACTED_IMPORTERS = Dataset(
    "inc_impacted_importers",
    "Files with an import whose meaning changed.",
    (_OWNER, _PATH, *_REASON),
)

INC_RECONSIDERED_FILES = Dataset(
    "inc_reconsidered_files",
    "Unchanged files whose questions were answered again, because they looked at a module that changed.",
    (
        _OWNER,
        _PATH,
        text("looked_at", "the module, as in a trail", required=True),
        text("caused_by_path", "changed file that caused it", required=True),
        flag("impacted", "whether an answer changed"),
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
