"""Semantic documents: what a type-aware indexer reports about one file.

Every dataset here is one `array<struct>` column of the stored `documents` table, which has one row per file. Spans are
UTF-8 byte offsets, as in facts, for every indexer. An occurrence also has its site: the call, reference, import or
definition whose name has the same span, by the numbers and keys of the facts.

Symbols are spelled as SCIP spells them, without the version of a package: a symbol names a thing, not a release of it.
`local N` of a document is `local N@path`.
"""

from __future__ import annotations

import pyarrow as pa

from codeanatomy.catalogue.columns import Column, Dataset, flag, number, span, text, texts

SCIP_OCCURRENCES = Dataset(
    "scip_occurrences",
    "Occurrences of symbols in a file.",
    (
        *span("the occurrence"),
        number("line_start", "first line, from 1", required=True),
        text("symbol", "the symbol", required=True),
        text("role", "definition, import, write, call (what runs here), read or reference", required=True),
        number("roles", "every role, as SCIP's bits", required=True),
        number(
            "ask_no", "question, below zero, that says what the symbol is in the repository; null where it is defined"
        ),
        number("call_no", "call whose callee ends in this name"),
        number("implicit_no", "implicit call made here"),
        number("ref_no", "use of a name that stands here"),
        number("import_no", "imported alias that stands here"),
        text("def_key", "definition that has its name here"),
        text("caller_key", "innermost enclosing function or lambda of that call or use; null in the module's own code"),
        number("alternatives", "symbols that this call, use or import can mean, this one included", required=True),
        text("alignment", "exact_span if the site has this very span, contained_span if one is inside the other"),
    ),
)

SCIP_SYMBOL_INFORMATION = Dataset(
    "scip_symbol_information",
    "Symbols with what the indexer knows about them; those of a file are defined in it.",
    (
        text("symbol", "the symbol", required=True),
        text("kind", "what it is: class, function, method, variable, …", required=True),
        text("display_name", "its own name", required=True),
        text("qname", "its dotted name; null for a local symbol"),
        text("signature", "its signature or type, as the indexer prints it"),
        text("documentation", "its documentation, as the indexer has it"),
        text("enclosing_symbol", "symbol it is part of"),
        text("def_key", "definition it stands for; null for a variable"),
        text("binding_key", "binding it stands for, if it is a variable that a scope binds"),
        *span("the name where it is defined", required=False),
        number("line_start", "line of that"),
    ),
)

SCIP_SYMBOL_RELATIONSHIPS = Dataset(
    "scip_symbol_relationships",
    "How symbols relate: a method to the one it overrides, a class to its base.",
    (
        text("symbol", "the symbol", required=True),
        text("related_symbol", "the other one", required=True),
        flag("is_reference", "references to one count for the other"),
        flag("is_implementation", "the first implements or extends the second"),
        flag("is_type_definition", "the second is the type of the first"),
        flag("is_definition", "the second defines the first"),
    ),
)

DIAGNOSTICS = Dataset(
    "diagnostics",
    "Diagnostics of the indexer.",
    (
        number("diagnostic_no", "ordinal in the file, in order of place", required=True),
        text("severity", "error, warning, information or hint", required=True),
        text("code", "kind of the diagnostic", required=True),
        text("message", "its message", required=True),
        *span("the place"),
        number("line_start", "first line, from 1", required=True),
        text("def_key", "innermost definition around the place; null at module level"),
    ),
)

SYMBOL_ASKS = Dataset(
    "symbol_asks",
    "Symbols that a document mentions, as questions: what are they in the repository, and do its own answers agree?",
    (
        number("ask_no", "ordinal of this question, from -1 down", required=True),
        text("question", "`y:` and the symbol", required=True),
        number("call_ask_no", "question of `asks` that the same call asks"),
        number("name_ask_no", "question of `asks` that the same name or import asks"),
    ),
)

DOCUMENT_DATASETS: tuple[Dataset, ...] = (
    SCIP_OCCURRENCES,
    SCIP_SYMBOL_INFORMATION,
    SCIP_SYMBOL_RELATIONSHIPS,
    DIAGNOSTICS,
    SYMBOL_ASKS,
)

DOCUMENT_COLUMNS: tuple[Column, ...] = (
    text("provider", "the indexer that made it", required=True),
    text("status", "ok, or failed when the indexer could not read the file", required=True),
    text("detail", "why it failed"),
    text("fingerprint", "hash of everything in the document about the file's own text", required=True),
    texts(
        "interface",
        "what other files can see of this one, sorted: each name of the module, a hash of its definition, and the "
        "dotted names which that mentions; empty if the indexer does not follow imports",
    ),
    texts("mentions", "dotted names of what the document and its types mention, modules included, sorted"),
)
"""Columns of a document besides its datasets."""

DOCUMENT_ARRAYS: tuple[Column, ...] = tuple(
    Column(d.name, pa.list_(pa.struct(list(d.schema()))), d.doc) for d in DOCUMENT_DATASETS
)
