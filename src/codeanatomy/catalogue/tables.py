"""Stored tables: the snapshot's files, relations, and the graph's nodes and edges.

`facts` is keyed by content; every other table here carries `file_id`, its owner, and is laid out in buckets of it.
"""

from __future__ import annotations

import pyarrow as pa

from codeanatomy.catalogue.columns import Column, Dataset, flag, long, number, real, span, text
from codeanatomy.catalogue.facts import FACT_DATASETS

_OWNER = text("file_id", "owner: the file this row belongs to", required=True)

FACTS = Dataset(
    "facts",
    "What extraction reads off one content: one row per content, one array column per fact dataset.",
    (
        text("content_id", "sha256 of the bytes, in hex", required=True),
        text("extractor", "version of the extractor that read it", required=True),
        text("encoding", "encoding of the source by PEP 263; null if it could not be decoded"),
        flag("has_bom", "starts with a UTF-8 byte order mark"),
        Column("line_starts", pa.list_(pa.int32()), "offset of the first byte of each line"),
        *(Column(d.name, pa.list_(pa.struct(list(d.schema()))), d.doc) for d in FACT_DATASETS),
    ),
)

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

REL_NAME_BINDING = Dataset(
    "rel_name_binding",
    "Which binding of its own file each plain name means, by Python's scope rules.",
    (
        _OWNER,
        text("path", "path of the owner", required=True),
        text("site_id", "node id of the reference", required=True),
        text("target_id", "node id of the binding", required=True),
        *span("the reference"),
        text("resolution_method", "how the target was found", required=True),
        real("confidence", "1.0: the language defines it", required=True),
        text("rule_name", "rule that made the row", required=True),
    ),
)

CPG_NODES = Dataset(
    "cpg_nodes",
    "Nodes of the graph.",
    (
        text("node_id", "deterministic id; see the ids section of the architecture", required=True),
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
        flag("is_async", "declared with `async`", required=False),
        text("flags", "what a binding is besides local, if anything: cell, parameter, imported, annotated, referenced"),
    ),
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
        text("rule_name", "rule that made the row", required=True),
    ),
)

FACT_OWNER: tuple[Column, ...] = (_OWNER, text("path", "path of the owner", required=True))
"""Columns that a fact row gains when it is read as a row of a file."""

FACT_VIEWS: tuple[Dataset, ...] = tuple(Dataset(d.name, d.doc, FACT_OWNER + d.columns) for d in FACT_DATASETS)
"""Fact datasets as rules and people see them: one row per file and fact."""

INPUTS: tuple[Dataset, ...] = (SCAN_REPO, SCAN_FILES, CONTENTS, *FACT_VIEWS)
"""What rules start from."""

STORED_TABLES: tuple[Dataset, ...] = (REPO_FILES, PY_MODULE_INDEX, CPG_NODES, CPG_EDGES)
"""Tables a build pins besides `facts`, each in buckets of its owner."""

VIEWS: tuple[Dataset, ...] = (REL_NAME_BINDING,)
"""Rule outputs that are computed when read."""
