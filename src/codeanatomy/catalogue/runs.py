"""Datasets that describe what a build did and why. They are files of its run bundle, and SQL can read them."""

from __future__ import annotations

from codeanatomy.catalogue.columns import Dataset, flag, long, number, real, text, texts

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

RUN_STAGES = Dataset(
    "run_stages",
    "The stages of the build, in the order in which they ended.",
    (
        number("position", "place in that order, from 0", required=True),
        text("stage", "name of the stage", required=True),
        real("seconds", "how long it took; stages of tables overlap"),
        long("row_count", "rows it computed, if it counted them"),
        number("statement_count", "statements that Spark planned for it; with the profile dev_debug"),
        number("scan_count", "operators in their plans that read data; with dev_debug"),
        number("join_count", "operators that join; with dev_debug"),
        number("exchange_count", "operators that move rows between tasks; with dev_debug"),
    ),
)

RUN_PLANS = Dataset(
    "run_plans",
    "Physical plans of the statements that computed the tables; only of builds with the profile dev_debug.",
    (
        text("stage", "stage that ran the statement", required=True),
        texts("rules", "rules whose union the statement is"),
        text("physical_plan", "the plan, as Spark's EXPLAIN FORMATTED prints it", required=True),
    ),
)

RUN_TABLE_READS = Dataset(
    "run_table_reads",
    "Data files that the build opened, of all that a version of a table has: the others were pruned.",
    (
        text("table_name", "the table", required=True),
        long("version", "version that was read", required=True),
        number("file_count", "data files of that version", required=True),
        number("files_read", "how many of them were opened", required=True),
        long("byte_count", "their size", required=True),
        long("bytes_read", "size of those that were opened", required=True),
    ),
)

RUN_FALLBACKS = Dataset(
    "run_fallbacks",
    "Where the build left its usual way: more work, a second attempt, less memory.",
    (
        text("kind", "full_build, restart, split_shard or memory", required=True),
        text("detail", "what happened", required=True),
    ),
)

RUN_FEATURES = Dataset(
    "run_features",
    "What was switched on for the build, and in which version.",
    (
        text("name", "the feature", required=True),
        text("value", "its value", required=True),
    ),
)

RUN_RULE_LINEAGE = Dataset(
    "run_rule_lineage",
    "For each column of each rule, the columns that its value comes from.",
    (
        text("rule_name", "the rule", required=True),
        text("output", "dataset that its rows go to", required=True),
        text("column_name", "column of that dataset", required=True),
        text("source", "dataset that the value comes from; null for a constant"),
        text("source_column", "column of that dataset"),
    ),
)

RUN_RULE_CHANGES = Dataset(
    "run_rule_changes",
    "How the rules differ from those of the previous build: differences of their syntax trees, not of their texts.",
    (
        text("rule_name", "the rule", required=True),
        text("change_kind", "added, removed or changed", required=True),
        text("edit", "of a changed rule: insert, remove, move or update; contract if only that changed"),
        text("expression", "kind of the expression"),
        text("before", "its SQL in the previous build"),
        text("after", "its SQL in this build"),
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
    RUN_STAGES,
    RUN_PLANS,
    RUN_TABLE_READS,
    RUN_FALLBACKS,
    RUN_FEATURES,
    RUN_RULE_LINEAGE,
    RUN_RULE_CHANGES,
)
