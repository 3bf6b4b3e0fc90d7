"""Kinds of nodes and edges. Every kind is made by a rule and occurs in a test repository."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """A kind and what it means."""

    doc: str

    def __new__(cls, value: str, doc: str) -> Self:
        """A member that is equal to `value`."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        return member


class NodeKind(Kind):
    """What a node of the graph stands for."""

    REPO = "REPO", "The repository itself; one node, owned by no file."
    FILE = "FILE", "A file of the snapshot, readable or not."
    MODULE = "MODULE", "The module a file answers to."
    DEF = "DEF", "A function, method, class, lambda or type alias."
    PARAM = "PARAM", "A parameter of a function or lambda."
    CALLSITE = "CALLSITE", "A call."
    NAME_REF = "NAME_REF", "A use of a name or an attribute."
    IMPORT = "IMPORT", "One imported alias."
    TYPE_EXPR = "TYPE_EXPR", "An annotation."
    SCOPE = "SCOPE", "A scope, as the language defines it."
    BINDING = "BINDING", "A name that a scope binds."
    SYMBOL = (
        "SYMBOL",
        "A symbol of a semantic document: of a definition or variable here, of something local to a file, or external.",
    )
    DIAGNOSTIC = "DIAGNOSTIC", "A diagnostic of the indexer."
    QNAME = "QNAME", "A dotted name without a definition here: a builtin, an external or absent name, a bare package."


class EdgeKind(Kind):
    """What an edge of the graph says of its two ends."""

    CONTAINS = (
        "CONTAINS",
        "Repository to file, file to module, module or definition to definition. Of everything else, the node's "
        "`parent_id` says what contains it.",
    )
    HAS_PARAM = "HAS_PARAM", "Definition to parameter."
    ANNOTATED_BY = (
        "ANNOTATED_BY",
        "Parameter, definition (its return) or binding to its annotation; an attribute's comes from what is around it.",
    )
    SCOPE_PARENT = "SCOPE_PARENT", "Scope to the scope around it."
    SCOPE_BINDS = "SCOPE_BINDS", "Scope to a name it binds."
    RESOLVES_TO = "RESOLVES_TO", "Name reference to the binding it means."
    IMPORTS = "IMPORTS", "Module to a module it imports or imports from."
    IMPORT_BINDS = "IMPORT_BINDS", "Import to the definition, module, variable or name that it binds."
    REFERENCES = "REFERENCES", "Name reference to the definition, module, variable or name it refers to, in any file."
    READS = "READS", "Function or module to a variable of a module or class that its code reads."
    WRITES = "WRITES", "Function or module to a variable of a module or class that its code assigns."
    CALLS = (
        "CALLS",
        "Call (or the decorator, `with`, `for` or property that makes it) to the definition or name it can run.",
    )
    CALLS_DEF = "CALLS_DEF", "Function or module to a definition it can run: the call graph, one edge per pair."
    INHERITS = "INHERITS", "Class to a base."
    OVERRIDES = "OVERRIDES", "Method to the method of a base that it hides."
    DECORATED_BY = "DECORATED_BY", "Definition to what decorates it."
    DEFINES = (
        "DEFINES",
        "Definition or variable to the symbol it has in the semantic document. Not containment, which is CONTAINS.",
    )
    SYMBOL_RELATED = "SYMBOL_RELATED", "Symbol to one that it implements, extends or has as its type."
    DIAGNOSES = "DIAGNOSES", "Diagnostic to the innermost definition, or the module, that it is about."
    TYPE_REFERS_TO = "TYPE_REFERS_TO", "Annotation to what it names."
