"""Which edges a diff of symbols shows, and why not the others."""

import re

from codeanatomy.catalogue.kinds import EdgeKind
from codeanatomy.query.statements import statement

NOT_COMPARED = {
    EdgeKind.CONTAINS: "the dotted name says what contains a symbol",
    EdgeKind.HAS_PARAM: "the aspect `parameters` has them",
    EdgeKind.ANNOTATED_BY: "the aspects `parameters` and `returns` have annotations",
    EdgeKind.SCOPE_PARENT: "a scope is no symbol",
    EdgeKind.SCOPE_BINDS: "a scope is no symbol; names that a class binds are the aspect `attribute`",
    EdgeKind.RESOLVES_TO: "a use of a name is identified by its position",
    EdgeKind.REFERENCES: "a use of a name is identified by its position",
    EdgeKind.IMPORT_BINDS: "an imported alias is identified by its position",
    EdgeKind.TYPE_REFERS_TO: "an annotation is identified by its position",
    EdgeKind.CALLS: "a call is identified by its position; CALLS_DEF has who calls what",
    EdgeKind.DIAGNOSES: "a diagnostic is identified by its position",
    EdgeKind.DEFINES: "what the indexer calls a symbol says nothing of the symbol",
    EdgeKind.SYMBOL_RELATED: "it joins what the indexer calls symbols",
}


def test_every_edge_kind_is_compared_or_has_a_reason_not_to_be():
    (listed,) = re.findall(r"edge_kind IN \(([^)]*)\)", statement("diff/relationships"))
    compared = set(re.findall(r"'(\w+)'", listed))
    assert compared | NOT_COMPARED.keys() == set(EdgeKind)
    assert not compared & NOT_COMPARED.keys()
