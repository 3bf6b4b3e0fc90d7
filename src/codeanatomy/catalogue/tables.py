"""Stored tables: the snapshot's files, relations, and the graph's nodes and edges.

`facts` is keyed by content; every other table here carries `file_id`, its owner, and is laid out in buckets of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from codeanatomy.catalogue.columns import Column, Dataset, flag, long, number, real, span, text, texts
from codeanatomy.catalogue.documents import DOCUMENT_ARRAYS, DOCUMENT_COLUMNS, DOCUMENT_DATASETS
from codeanatomy.catalogue.layers import FACT_DATASETS, LAYERS, facts_of

_OWNER = text("file_id", "owner: the file this row belongs to", required=True)

FACTS = facts_of([layer.name for layer in LAYERS])

SCAN_FILES = Dataset(
    "scan_files",
    "The snapshot as the scan found it; the input every build starts from.",
    (
        _OWNER,
        text("path", "path inside the repository, with `/`", required=True),
        text("content_id", "sha256 of the bytes; null if they were not read"),
        long("size", "bytes", required=True),
        text("status", "ok, too_large or unreadable", required=True),
        text("detail", "why it was not read"),
        text("module_fqn", "dotted module name the path answers to", required=True),
        flag("is_init", "an `__init__` file"),
        flag("is_stub", "a `.pyi` file"),
        text("root", "source root the module name starts from; empty for the repository's top", required=True),
    ),
)

SCAN_REPO = Dataset(
    "scan_repo",
    "The repository itself; one row.",
    (text("repo_id", "name of the repository among others; empty unless chosen", required=True),),
)

_PATTERN = (
    number("pattern_no", "place among the patterns, from 0; rows of one pattern share it", required=True),
    text("kind", "kind of entry point, such as `flask_route`", required=True),
    text(
        "matcher",
        "decorator, written, argument, method, base (of the methods of its pattern), function, module, main_block or "
        "declaration: what the other columns say",
        required=True,
    ),
    text("name", "dotted name of the decorator, of what is called or of the base class; what a declaration names"),
    text(
        "member",
        "LIKE pattern, with the escape character `!`, for the name of a method, of a function inside its module, or of "
        "a decorator as written",
    ),
    number("member_dots", "dots in such a name; null for any number"),
    text("path", "regular expression for the path of the file; of a declaration, the file it stands in"),
    text("path_like", "LIKE pattern for the paths that `path` can match, and others"),
    number("position", "positional argument that is the entry point, from 0"),
    text("keyword", "keyword argument that is the entry point"),
    number("detail_position", "positional argument of the decorator or call that is the detail, from 0"),
    text("detail_keyword", "keyword argument that is the detail"),
    text("makes", "class whose instance the decorated function becomes: `click.group` makes a `click.Group`"),
    text("evidence", "of a declaration, where in its file it stands"),
    text("detail", "of a declaration, the name it has there"),
    real("confidence", "how sure it is that something outside calls what matches", required=True),
)

GIVEN_PATTERNS = Dataset(
    "given_patterns",
    "What makes a function an entry point, as the descriptions and the project files of a build say.",
    _PATTERN,
)

CONTENTS = Dataset(
    "contents",
    "What each content of the snapshot says of itself.",
    tuple(FACTS.column(name) for name in ("content_id", "encoding", "has_bom", "line_starts")),
)

REPO_FILES = Dataset(
    "repo_files",
    "Files of the snapshot.",
    (
        _OWNER,
        text("path", "path inside the repository, with `/`", required=True),
        text("content_id", "sha256 of the bytes; null if they were not read"),
        long("size", "bytes", required=True),
        text("status", "ok, too_large, unreadable or undecodable", required=True),
        text("detail", "why it was not read"),
        text("encoding", "encoding of the source by PEP 263"),
        number("line_count", "lines"),
        Column("line_starts", pa.list_(pa.int32()), "offset of the first byte of each line"),
    ),
)

PY_MODULE_INDEX = Dataset(
    "py_module_index",
    "The module name each file answers to.",
    (
        _OWNER,
        text("path", "path inside the repository", required=True),
        text("module_fqn", "dotted module name", required=True),
        flag("is_init", "an `__init__` file"),
        flag("is_stub", "a `.pyi` file"),
        text("root", "source root the module name starts from; empty for the repository's top", required=True),
    ),
)

ENTRY_POINT_PATTERNS = Dataset(
    "entry_point_patterns",
    "What makes a function an entry point: one row per name of a pattern, and per declaration of a project file.",
    (_OWNER, *_PATTERN),
)

DOCUMENTS = Dataset(
    "documents",
    "Semantic documents: one row per file, one array column per document dataset.",
    (_OWNER, text("path", "path of the owner", required=True), *DOCUMENT_COLUMNS, *DOCUMENT_ARRAYS),
    identity=("file_id", "path", *(column.name for column in DOCUMENT_COLUMNS)),
)

SCIP_DOCUMENTS = Dataset(
    "scip_documents",
    "Which files have a semantic document, and what names it.",
    (_OWNER, text("path", "path of the owner", required=True), *DOCUMENT_COLUMNS),
)

ANSWERS = Dataset(
    "answers",
    "What each question of a file means in the repository: one row per question and candidate.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        number("ask_no", "question, as `asks` numbers it", required=True),
        text("question", "its text", required=True),
        number("candidate", "place of this candidate, from 0, in a total order", required=True),
        text(
            "status",
            "internal (it is in the repository), external (it is not), absent (it should be, and is not), "
            "limit (not followed to its end: there may be more), unknown (no candidate: the row keeps the trail)",
            required=True,
        ),
        text(
            "kind",
            "function, class, module, property, descriptor (a property seen from its class), variable, instance, name, "
            "builtin or limit; of a symbol, the indexer's kind",
        ),
        text("target_id", "node id of the candidate; of an instance, that of its class"),
        text("target_name", "dotted name of a candidate that is not in the repository"),
        flag("is_named", "it is what the expression names, not merely what a variable holds"),
        text("call_id", "node id of what runs when it is called: itself, `__init__` of a class, `__call__`"),
        text("set_id", "node id of what runs when a property is assigned to"),
        text(
            "resolution_method",
            "what it took: scope, builtin, import, star_import, mro, assignment, returns, annotation or symbol",
        ),
        real("confidence", "how sure it is", required=True),
        text("call_agreement", "of a symbol: how what it runs goes with the own answer of the call; see `agreement`"),
        text("name_agreement", "of a symbol: how what it is goes with the own answer of the name or import"),
        number("named_count", "candidates that are named", required=True),
        number("call_count", "candidates that can be called", required=True),
        text("outcome", "hash of all candidates of the question", required=True),
        texts(
            "trail",
            "names of the modules that were looked at, present or absent, in order; `?` before those of which only "
            "that mattered",
        ),
    ),
)

MODULE_LOOKUPS = Dataset(
    "module_lookups",
    "Which modules the answers of a file looked at: whose changes can alter them.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        text("looked_at", "an entry of a trail, as in `answers`", required=True),
    ),
)

_CODE = text("code_id", "node id of the function or module whose code the site is part of", required=True)
_AMBIGUITY = text("ambiguity_group_id", "shared by the candidates of one site; null when there is one candidate")


def _relation(name: str, doc: str, *more: Column) -> Dataset:
    """A dataset of sites and what they mean."""
    return Dataset(
        name,
        doc,
        (
            _OWNER,
            text("path", "path of the owner", required=True),
            text("site_id", "node id of the site", required=True),
            text("target_id", "node id of the target", required=True),
            *span("the site"),
            number("line", "line of the site"),
            number("candidate", "place of the target among the answers to the site's question", required=True),
            *more,
            text("resolution_method", "how the target was found", required=True),
            real("confidence", "how sure that is", required=True),
            real("score", "confidence, shared among the candidates", required=True),
            number("candidate_count", "targets of this site", required=True),
            _AMBIGUITY,
            text("rule_name", "rule that made the row", required=True),
            number("rule_priority", "1 for what is written in the source, then 2, …", required=True),
        ),
    )


ASKING_SITES = Dataset(
    "asking_sites",
    "Every place that asks a question: calls, names, imports, bases, decorators, annotations.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        text(
            "role",
            "call, implicit_call, raise, name, import, import_module, base, decorator, override or quoted_type; "
            "symbol_call, symbol_implicit_call, symbol_name or symbol_import where a semantic document asks",
            required=True,
        ),
        text("site_id", "node id of the site", required=True),
        number("ask_no", "its question", required=True),
        *span("the site"),
        number("line", "line of the site"),
        text("code_id", "node id of the function or module whose code the site is part of"),
        text(
            "ctx",
            "of a name, load, store or del, `attribute_` before it for an attribute; of an import, its kind; of a "
            "symbol, how it was aligned",
        ),
        number(
            "place",
            "of a base or decorator, its position; of a name, the annotation it is part of; of a symbol, how many "
            "there are",
        ),
    ),
)

SITE_ANSWERS = Dataset(
    "site_answers",
    "Every site with every answer to its question; relations and edges are made from this.",
    (
        *(ASKING_SITES.column(name) for name in ("file_id", "path", "role", "site_id", "ask_no", "bstart", "bend")),
        *(ASKING_SITES.column(name) for name in ("line", "code_id", "ctx", "place")),
        *(
            ANSWERS.column(name)
            for name in ("candidate", "status", "kind", "target_id", "target_name", "is_named", "call_id", "set_id")
        ),
        *(ANSWERS.column(name) for name in ("resolution_method", "confidence", "call_agreement", "name_agreement")),
        *(ANSWERS.column(name) for name in ("named_count", "call_count")),
    ),
)

REL_NAME_BINDING = _relation(
    "rel_name_binding", "Which binding of its own file each plain name means, by Python's scope rules."
)

REL_CALLSITE_QNAME = _relation(
    "rel_callsite_qname",
    "What each call can run: written calls, and those that decorators, `with`, `for` and properties make.",
    _CODE,
    text("status", "internal, external or absent", required=True),
    text("kind", "kind of what is called, as in `answers`"),
)

REL_NAME_QNAME = _relation(
    "rel_name_qname",
    "What each name and attribute refers to, across files.",
    _CODE,
    text("status", "internal, external or absent", required=True),
    text("kind", "kind of the target, as in `answers`"),
    text("ctx", "load, store or del, `attribute_` before it for an attribute", required=True),
    number("type_no", "annotation it is part of"),
)

REL_IMPORT_MODULE = _relation(
    "rel_import_module",
    "Which module each import names.",
    text("status", "internal, external or absent", required=True),
)

REL_CLASS_BASE = _relation(
    "rel_class_base",
    "Bases of classes.",
    number("position", "place among the class's arguments", required=True),
    text("status", "internal, external or absent", required=True),
)

_AGREEMENT = text(
    "agreement",
    "how it goes with the repository's own answers for the site: agrees (they have it too; of what is not in the "
    "repository the last name counts), adds (nothing of theirs speaks against it) or contradicts (they name "
    "something else)",
    required=True,
)

_SYMBOL = (
    number("ask_no", "question that the symbol is", required=True),
    text("status", "internal, external or absent", required=True),
    text("kind", "kind of the target, as in `answers`"),
    _AGREEMENT,
)

REL_CALLSITE_SYMBOL = _relation(
    "rel_callsite_symbol", "What each call can run, as the semantic document has it.", _CODE, *_SYMBOL
)

REL_NAME_SYMBOL = _relation(
    "rel_name_symbol",
    "What each name and attribute refers to, as the semantic document has it.",
    _CODE,
    *_SYMBOL,
)

REL_IMPORT_SYMBOL = _relation("rel_import_symbol", "What each import binds, as the semantic document has it.", *_SYMBOL)

REL_DEF_SYMBOL = _relation(
    "rel_def_symbol", "The symbol that the semantic document gives each definition and variable."
)

DISAGREEMENTS = Dataset(
    "disagreements",
    "Calls for which the repository's own answers and the semantic document name different things.",
    (
        _OWNER,
        text("path", "path of the caller", required=True),
        number("line", "line of the call", required=True),
        text("caller", "dotted name of the function or module whose code makes the call", required=True),
        texts("own", "what the repository's own answers name"),
        texts("semantic", "what the semantic document names"),
        real("own_confidence", "how sure the surest of the first is", required=True),
        real("semantic_confidence", "how sure the surest of the second is", required=True),
    ),
)

PY_IMPORTS_RESOLVED = Dataset(
    "py_imports_resolved",
    "Imports with the file they lead to.",
    (
        _OWNER,
        text("path", "path of the importing file", required=True),
        number("import_no", "alias, as `cst_imports` numbers it", required=True),
        text("importer", "module that imports", required=True),
        text("module", "absolute name of the module"),
        text("name", "imported name; null for `import m` and for a star"),
        flag("is_star", "imports every name"),
        text("resolved_file_id", "file of that module, if it is in the repository"),
        text("status", "internal, external or absent", required=True),
        number("line_start", "line of the alias", required=True),
    ),
)

DIM_EXPORTED_DEFS = Dataset(
    "dim_exported_defs",
    "Names that modules and classes offer to others.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        text("module", "module that offers it", required=True),
        text("container", "qualified name of the class it is a member of; null for a name of the module"),
        text("name", "the name; `*` for a star import, which offers whatever it brings", required=True),
        text("kind", "function, method, class, lambda, type_alias, import, variable, mixed, star or submodule"),
        text("target", "what it holds, in the language of questions; null when the file cannot tell"),
        flag("in_all", "listed in `__all__` by its name"),
        text("identity_hash", "hash of name, kind and target", required=True),
        text("shape_hash", "hash of signature, decorators, bases, members or annotation; null for what has none"),
    ),
)

QUESTIONS = Dataset(
    "questions",
    "What each file asks about the repository.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        number("ask_no", "question, as `asks` numbers it", required=True),
        text("question", "its text", required=True),
        text("status", "internal, external, absent, unknown, or ambiguous when it has several answers", required=True),
        number("candidate_count", "answers it has", required=True),
        text("outcome", "hash of the answers", required=True),
        texts(
            "trail",
            "names of the modules that were looked at, present or absent, in order; `?` before those of which only "
            "that mattered",
        ),
    ),
)

DIM_QUALIFIED_NAMES = Dataset(
    "dim_qualified_names",
    "The distinct things that questions were answered with.",
    (
        _OWNER,
        text("target_id", "node id", required=True),
        text("name", "dotted name", required=True),
        text("kind", "kind, as in `answers`"),
        text("status", "internal, external or absent", required=True),
        text("defining_path", "file that defines it"),
        long("asked", "times it is the answer", required=True),
    ),
)

CALLS = Dataset(
    "calls",
    "Calls: which function or module runs which function. A class without `__init__` in the repository runs none.",
    (
        _OWNER,
        text("caller", "dotted name of the function or module whose code makes the call", required=True),
        text("callee", "dotted name of what is called", required=True),
        text("path", "path of the caller", required=True),
        number("line", "line of the call", required=True),
        real("confidence", "how sure it is", required=True),
        text("method", "how the callee was found", required=True),
    ),
)

DEFINITIONS = Dataset(
    "definitions",
    "Functions, methods, classes, lambdas and type aliases.",
    (
        _OWNER,
        text("name", "dotted name", required=True),
        text("kind", "function, method, class, lambda or type_alias", required=True),
        text("path", "file", required=True),
        number("line", "first line", required=True),
        number("line_end", "last line", required=True),
        text("node_id", "node id", required=True),
    ),
)

REFERENCES = Dataset(
    "references",
    "Uses of names, and what they refer to.",
    (
        _OWNER,
        text("name", "dotted name of what is referred to", required=True),
        text("kind", "kind of the node it refers to: DEF, MODULE, BINDING, SYMBOL or QNAME", required=True),
        text("path", "file of the use", required=True),
        number("line", "line of the use", required=True),
        text("context", "load, store or del; `attribute_` before it for an attribute", required=True),
        real("confidence", "how sure it is", required=True),
        text("method", "how it was found", required=True),
    ),
)

IMPORTS = Dataset(
    "imports",
    "Which module imports which.",
    (
        _OWNER,
        text("importer", "module that imports", required=True),
        text("imported", "module that is imported", required=True),
        text("path", "file of the importer", required=True),
        flag("is_internal", "the imported module is in the repository"),
    ),
)

INHERITS = Dataset(
    "inherits",
    "Classes and their bases.",
    (
        _OWNER,
        text("class", "dotted name of the class", required=True),
        text("base", "dotted name of the base", required=True),
        text("path", "file of the class", required=True),
        flag("is_internal", "the base is in the repository"),
    ),
)

CLASS_ANCESTORS = Dataset(
    "class_ancestors",
    "Classes and everything they inherit from, directly or not, `object` included.",
    (
        _OWNER,
        text("class_id", "node id of the class", required=True),
        text("ancestor", "dotted name of the ancestor", required=True),
        number("distance", "1 for a base, 2 for a base of a base, …; 0 for `object`", required=True),
        real("confidence", "of the least sure step", required=True),
    ),
)

DECORATIONS = Dataset(
    "decorations",
    "Functions and classes, and the dotted names of what decorates them, also where that is a member of a decorated "
    "function (`@cli.command()`).",
    (
        _OWNER,
        text("node_id", "node id of the function or class", required=True),
        text("decorator", "dotted name of the decorator", required=True),
        number("bstart", "first byte of the decorator, without `@`", required=True),
        number("bend", "byte after the last", required=True),
        real("confidence", "how sure it is", required=True),
    ),
)

ENTRY_POINTS = Dataset(
    "entry_points",
    "Functions, classes and modules that something outside the repository calls, and how that is known.",
    (
        _OWNER,
        text("node_id", "node id of the function, class or module", required=True),
        text("qname", "its dotted name", required=True),
        text("kind", "kind of entry point, as `entry_point_patterns` has it", required=True),
        text("path", "file", required=True),
        number("line", "first line; of a module, that of its main block or 1", required=True),
        text(
            "evidence",
            "dotted name of the decorator, of what it is passed to or of the base class; the pattern of names; the key "
            "in a project file",
            required=True,
        ),
        text("detail", "text of the route, the command or the like, where it is a constant"),
        real("confidence", "how sure it is", required=True),
    ),
)

CPG_NODES = Dataset(
    "cpg_nodes",
    "Nodes of the graph.",
    (
        text("node_id", 'deterministic id; see "Ids" in the schema reference', required=True),
        text("node_kind", "kind of the node", required=True),
        _OWNER,
        text("path", "path of the owner"),
        text("parent_id", "node that contains it; null for the repository"),
        *span("its source", required=False),
        number("line_start", "first line, from 1"),
        number("line_end", "last line, from 1"),
        number("col_start", "byte column of the start, from 0"),
        text("name", "its own name"),
        text("qname", "dotted name from the module down, for what another file can name"),
        text("subkind", "kind within the kind: method, listcomp, keyword_only, store, …"),
        text("text", "source text: a callee, an annotation, an attribute's base, a return annotation, a default"),
        number("ordinal", "place among its like: redefinition, position of a parameter, dots of an import"),
        flag("is_async", "of a function or method: declared with `async`", required=False),
        text("flags", "what a binding is besides local, if anything: cell, parameter, imported, annotated, referenced"),
    ),
    sort_by=("node_kind", "bstart"),
)

CPG_EDGES = Dataset(
    "cpg_edges",
    "Edges of the graph.",
    (
        text("edge_id", "deterministic id, from the kind and the end that has only one such edge", required=True),
        text("edge_kind", "kind of the edge", required=True),
        text("src_id", "node it leaves", required=True),
        text("dst_id", "node it enters", required=True),
        _OWNER,
        text("path", "path of the owner"),
        *span("the source that makes it", required=False),
        text("resolution_method", "how the target was found", required=True),
        real("confidence", "1.0 when the source itself says so", required=True),
        number("line", "line of the site that makes it, for calls and references"),
        text("code_id", "function or module whose code that site is part of, for calls and references"),
        number("candidate_count", "targets of the site that makes it; null where there can be only one"),
        _AMBIGUITY,
        long("site_count", "sites that make it, for an edge that stands for several"),
        text("rule_name", "rule that made the row", required=True),
    ),
    sort_by=("edge_kind", "bstart"),
)

FACT_OWNER: tuple[Column, ...] = (_OWNER, text("path", "path of the owner", required=True))
"""Columns that a fact row gains when it is read as a row of a file."""

CPG_PROPS = Dataset(
    "cpg_props",
    "Every property of every node and edge, one row each, derived from their typed columns.",
    (
        text("entity_kind", "node or edge", required=True),
        text("entity_id", "id of the node or edge", required=True),
        text("prop_key", "name of the property", required=True),
        text("value_str", "its value, if it is text"),
        long("value_int", "its value, if it is a whole number"),
        real("value_float", "its value, if it is a number"),
        flag("value_bool", "its value, if it is a truth value", required=False),
    ),
)

CPG_PROPS_JSON = Dataset(
    "cpg_props_json",
    "Properties of nodes that are lists or objects, as JSON. Computed only where it is read or published.",
    (
        text("entity_kind", "node", required=True),
        text("entity_id", "id of the node", required=True),
        *FACT_OWNER,
        text("prop_key", "decorators, bases or parameters of a definition, keywords of a call", required=True),
        text("value_json", "the value", required=True),
    ),
)

FACT_VIEWS: tuple[Dataset, ...] = tuple(Dataset(d.name, d.doc, FACT_OWNER + d.columns) for d in FACT_DATASETS)
"""Fact datasets as rules and people see them: one row per file and fact."""

DOCUMENT_VIEWS: tuple[Dataset, ...] = tuple(Dataset(d.name, d.doc, FACT_OWNER + d.columns) for d in DOCUMENT_DATASETS)
"""Document datasets as rules and people see them: one row per file and element."""

INPUTS: tuple[Dataset, ...] = (
    SCAN_REPO,
    SCAN_FILES,
    GIVEN_PATTERNS,
    CONTENTS,
    *FACT_VIEWS,
    SCIP_DOCUMENTS,
    *DOCUMENT_VIEWS,
)
"""What rules start from."""

STORED_TABLES: tuple[Dataset, ...] = (
    REPO_FILES,
    PY_MODULE_INDEX,
    ANSWERS,
    MODULE_LOOKUPS,
    CPG_NODES,
    CPG_EDGES,
    ENTRY_POINT_PATTERNS,
)
"""Tables a build pins besides `facts`, each in buckets of its owner."""

RELATIONS: tuple[Dataset, ...] = (
    REL_NAME_BINDING,
    REL_NAME_QNAME,
    REL_CALLSITE_QNAME,
    REL_IMPORT_MODULE,
    REL_CLASS_BASE,
    REL_NAME_SYMBOL,
    REL_CALLSITE_SYMBOL,
    REL_IMPORT_SYMBOL,
    REL_DEF_SYMBOL,
)
"""What sites mean; the edges of the graph are made from these."""

SHARED_VIEWS: Mapping[Dataset, str] = {SITE_ANSWERS: "role"}
"""Views that so many rules read that a build computes them once, and the column that each of these filters on."""

VIEWS: tuple[Dataset, ...] = (
    ASKING_SITES,
    SITE_ANSWERS,
    *RELATIONS,
    PY_IMPORTS_RESOLVED,
    DIM_EXPORTED_DEFS,
    QUESTIONS,
    DIM_QUALIFIED_NAMES,
    CALLS,
    DEFINITIONS,
    REFERENCES,
    IMPORTS,
    INHERITS,
    DISAGREEMENTS,
    CLASS_ANCESTORS,
    DECORATIONS,
    ENTRY_POINTS,
    CPG_PROPS_JSON,
)
"""Rule outputs that are computed when read."""
