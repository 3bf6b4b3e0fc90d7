"""Ids of nodes and edges: how each is spelled, written once. Rules and Python code are checked against it.

Glossary
    form    the spelling of an id, with its parts in braces: `d:{file_id}:{def_key}`.
    part    what fills a brace: a hash, a name, or a number.
    key     a hash of what a thing is called inside its file. It survives edits elsewhere in the file.
    number  the place of a thing among its like, in source order. It changes when something is written before it.

Other files may point only to nodes whose id has no such number: otherwise an edit would leave edges of unchanged files
without an end. No id contains a byte offset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from codeanatomy.catalogue.kinds import EdgeKind, NodeKind

HASH_DIGITS: Final = 24
"""Hex digits of every hash in an id: 96 bits."""

_HASH: Final = rf"[0-9a-f]{{{HASH_DIGITS}}}"
_NUMBER: Final = r"[0-9]+"
_EXAMPLE_HASH: Final = "6c1f9a04b2d87e53f0a1c9d2"


def short_hash(text: bytes) -> str:
    """The hash that ids are made with."""
    return sha256(text).hexdigest()[:HASH_DIGITS]


class Part(NamedTuple):
    """What a brace in a form stands for."""

    doc: str
    pattern: str
    example: str
    columns: tuple[str, ...] = ()
    """Columns of facts and documents that hold it, besides the one of its name."""
    counts_source_order: bool = False


def _hash_part(doc: str, *columns: str) -> Part:
    return Part(doc, _HASH, _EXAMPLE_HASH, columns)


def _number_part(doc: str) -> Part:
    return Part(doc, _NUMBER, "7", counts_source_order=True)


PARTS: Final[Mapping[str, Part]] = {
    "repo_id": Part("chosen name of the repository; empty unless chosen", r".*", "web"),
    "file_id": _hash_part("hash of the path, after the name of the repository if it has one"),
    "def_key": _hash_part("key of a definition", "container_key", "owner_key", "caller_key"),
    "scope_key": _hash_part("key of a scope", "parent_key"),
    "binding_key": _hash_part("key of a scope and a name in it"),
    "symbol_hash": _hash_part("hash of a symbol as its indexer spells it, without version"),
    "name": Part("dotted name", r".+", "os.path.join"),
    "position": Part("place in a list: of a parameter, a base or a decorator", _NUMBER, "0"),
    "candidate": Part("place among the answers to one question", _NUMBER, "0"),
    "call_no": _number_part("number of a call"),
    "implicit_no": _number_part("number of a call that a statement makes"),
    "ref_no": _number_part("number of a use of a name"),
    "import_no": _number_part("number of an imported alias"),
    "type_no": _number_part("number of an annotation"),
    "diagnostic_no": _number_part("number of a diagnostic"),
    "ask_no": _number_part("number of a question"),
    "bstart": Part("first byte of the source", _NUMBER, "120", counts_source_order=True),
    "bend": Part("byte after the last", _NUMBER, "124", counts_source_order=True),
}

PART_OF_COLUMN: Final[Mapping[str, str]] = {
    column: name for name, part in PARTS.items() for column in (name, *part.columns)
}

_BRACES: Final = re.compile(r"\{(\w+)\}")


class NodeId(NamedTuple):
    """How ids of a node kind are spelled, the kinds that `parent_id` can name, and whether other files point to it."""

    forms: tuple[str, ...]
    parents: tuple[NodeKind, ...]
    other_files_point_to_it: bool


CODE_KINDS: Final = (NodeKind.DEF, NodeKind.MODULE)
"""What contains code."""

NODE_IDS: Final[Mapping[NodeKind, NodeId]] = {
    NodeKind.REPO: NodeId(("r:{repo_id}",), (), True),
    NodeKind.FILE: NodeId(("f:{file_id}",), (NodeKind.REPO,), True),
    NodeKind.MODULE: NodeId(("m:{file_id}",), (NodeKind.FILE,), True),
    NodeKind.DEF: NodeId(("d:{file_id}:{def_key}",), CODE_KINDS, True),
    NodeKind.PARAM: NodeId(("p:{file_id}:{def_key}:{position}",), (NodeKind.DEF,), True),
    NodeKind.CALLSITE: NodeId(("c:{file_id}:{call_no}", "c:{file_id}:i{implicit_no}"), CODE_KINDS, False),
    NodeKind.NAME_REF: NodeId(("n:{file_id}:{ref_no}",), CODE_KINDS, False),
    NodeKind.IMPORT: NodeId(("i:{file_id}:{import_no}",), CODE_KINDS, False),
    NodeKind.TYPE_EXPR: NodeId(("t:{file_id}:{type_no}",), CODE_KINDS, False),
    NodeKind.SCOPE: NodeId(("s:{file_id}:{scope_key}",), CODE_KINDS, True),
    NodeKind.BINDING: NodeId(("b:{file_id}:{binding_key}",), (NodeKind.SCOPE,), True),
    NodeKind.SYMBOL: NodeId(("s:{symbol_hash}",), (NodeKind.MODULE, NodeKind.REPO), True),
    NodeKind.DIAGNOSTIC: NodeId(("g:{file_id}:{diagnostic_no}",), CODE_KINDS, False),
    NodeKind.QNAME: NodeId(("q:{name}",), (NodeKind.REPO,), True),
}


class EdgeId(NamedTuple):
    """How ids of an edge kind are spelled, after the kind and a colon, and the node kinds that it joins.

    `{src_id}` and `{dst_id}` are the ids of its ends. An end that has only one such edge is enough: the parts of its id
    without the letter, or the whole id where it can be of several kinds. Else both ends (`_BY_PAIR`), or one end and
    what tells its edges apart (`_BY_CANDIDATE`, `_BY_POSITION`).
    """

    forms: tuple[str, ...]
    src: tuple[NodeKind, ...]
    dst: tuple[NodeKind, ...]


_NAMED: Final = (NodeKind.DEF, NodeKind.MODULE, NodeKind.BINDING, NodeKind.QNAME)
"""What a name can refer to, by the repository's own answers."""

_BY_PAIR: Final = ("{src_id}:{dst_id}",)
"""One edge for each pair of ends."""

_BY_CANDIDATE: Final = ("{src_id}:{candidate}",)
_BY_CANDIDATE_OR_SYMBOL: Final = (*_BY_CANDIDATE, "{src_id}:s{ask_no}:{candidate}")
"""One edge for each answer to the question of a site, or to that of a symbol that stands there."""

_BY_POSITION: Final = ("{src_id}:{position}:{candidate}",)

EDGE_IDS: Final[Mapping[EdgeKind, EdgeId]] = {
    EdgeKind.CONTAINS: EdgeId(
        ("{dst_id}",), (NodeKind.REPO, NodeKind.FILE, *CODE_KINDS), (NodeKind.FILE, NodeKind.MODULE, NodeKind.DEF)
    ),
    EdgeKind.HAS_PARAM: EdgeId(("{file_id}:{def_key}:{position}",), (NodeKind.DEF,), (NodeKind.PARAM,)),
    EdgeKind.ANNOTATED_BY: EdgeId(
        ("{file_id}:{type_no}",), (NodeKind.PARAM, NodeKind.BINDING, *CODE_KINDS), (NodeKind.TYPE_EXPR,)
    ),
    EdgeKind.SCOPE_PARENT: EdgeId(("{file_id}:{scope_key}",), (NodeKind.SCOPE,), (NodeKind.SCOPE,)),
    EdgeKind.SCOPE_BINDS: EdgeId(("{file_id}:{binding_key}",), (NodeKind.SCOPE,), (NodeKind.BINDING,)),
    EdgeKind.RESOLVES_TO: EdgeId(("{src_id}",), (NodeKind.NAME_REF,), (NodeKind.BINDING,)),
    EdgeKind.IMPORTS: EdgeId(_BY_PAIR, (NodeKind.MODULE,), (NodeKind.MODULE, NodeKind.QNAME)),
    EdgeKind.IMPORT_BINDS: EdgeId(_BY_CANDIDATE_OR_SYMBOL, (NodeKind.IMPORT,), (*_NAMED, NodeKind.SYMBOL)),
    EdgeKind.REFERENCES: EdgeId(_BY_CANDIDATE_OR_SYMBOL, (NodeKind.NAME_REF,), (*_NAMED, NodeKind.SYMBOL)),
    EdgeKind.READS: EdgeId(_BY_PAIR, CODE_KINDS, (NodeKind.BINDING,)),
    EdgeKind.WRITES: EdgeId(_BY_PAIR, CODE_KINDS, (NodeKind.BINDING,)),
    EdgeKind.CALLS: EdgeId(
        _BY_CANDIDATE_OR_SYMBOL,
        (NodeKind.CALLSITE, NodeKind.NAME_REF),
        (NodeKind.DEF, NodeKind.QNAME, NodeKind.SYMBOL),
    ),
    EdgeKind.CALLS_DEF: EdgeId(_BY_PAIR, CODE_KINDS, (NodeKind.DEF,)),
    EdgeKind.INHERITS: EdgeId(_BY_POSITION, (NodeKind.DEF,), (NodeKind.DEF, NodeKind.QNAME)),
    EdgeKind.OVERRIDES: EdgeId(_BY_CANDIDATE, (NodeKind.DEF,), (NodeKind.DEF,)),
    EdgeKind.DECORATED_BY: EdgeId(_BY_POSITION, (NodeKind.DEF,), _NAMED),
    EdgeKind.DEFINES: EdgeId(_BY_PAIR, (NodeKind.DEF, NodeKind.BINDING), (NodeKind.SYMBOL,)),
    EdgeKind.SYMBOL_RELATED: EdgeId(("{symbol_hash}:{symbol_hash}",), (NodeKind.SYMBOL,), (NodeKind.SYMBOL,)),
    EdgeKind.DIAGNOSES: EdgeId(("{src_id}",), (NodeKind.DIAGNOSTIC,), CODE_KINDS),
    EdgeKind.TYPE_REFERS_TO: EdgeId(
        ("{file_id}:{type_no}:{dst_id}", "{src_id}:quoted:{candidate}"), (NodeKind.TYPE_EXPR,), _NAMED
    ),
}

AMBIGUITY_GROUP_FORMS: Final = ("a:{file_id}:{ask_no}", "a:{file_id}:{bstart}:{bend}")
"""What the candidates of one site share: its question, or the place of the symbols."""

ANSWER_IDS: Final[Mapping[str, tuple[NodeKind, ...]]] = {
    "target_id": (*_NAMED, NodeKind.SYMBOL),
    "call_id": (NodeKind.DEF, NodeKind.QNAME, NodeKind.SYMBOL),
    "set_id": (NodeKind.DEF,),
}
"""Columns of `answers` that hold node ids, and the kinds of these nodes. Rules read such ids, and do not make them."""


_MODULE, _DEF, _BINDING, _QNAME, _SYMBOL = (
    NODE_IDS[kind].forms[0].format
    for kind in (NodeKind.MODULE, NodeKind.DEF, NodeKind.BINDING, NodeKind.QNAME, NodeKind.SYMBOL)
)


def module_id(file_id: str) -> str:
    """The id of a file's module."""
    return _MODULE(file_id=file_id)


def definition_id(file_id: str, def_key: str) -> str:
    """The id of a definition."""
    return _DEF(file_id=file_id, def_key=def_key)


def code_id(file_id: str, def_key: str | None) -> str:
    """The id of a definition, or of the module where there is none."""
    return definition_id(file_id, def_key) if def_key else module_id(file_id)


def binding_id(file_id: str, binding_key: str) -> str:
    """The id of a name that a scope binds."""
    return _BINDING(file_id=file_id, binding_key=binding_key)


def name_id(name: str) -> str:
    """The id of a dotted name without a definition in the repository."""
    return _QNAME(name=name)


def symbol_id(symbol: str) -> str:
    """The id of a symbol of a semantic document."""
    return _SYMBOL(symbol_hash=short_hash(symbol.encode()))


def edge_forms(kind: EdgeKind) -> tuple[str, ...]:
    """The complete forms of an edge's id."""
    return tuple(f"{kind}:{form}" for form in EDGE_IDS[kind].forms)


@dataclass(frozen=True)
class ParsedId:
    """The id of a node, taken apart."""

    kind: NodeKind
    parts: Mapping[str, str]

    @property
    def file_id(self) -> str | None:
        """The file that the node belongs to, if its id says so."""
        return self.parts.get("file_id")


def parse_node_id(text: str) -> ParsedId | None:
    """Take the id of a node apart; None if `text` is not one, as in a state that others wrote."""
    for kind, pattern in _NODE_PATTERNS:
        if match := pattern.fullmatch(text):
            return ParsedId(kind, match.groupdict())
    return None


def parts_of(form: str) -> tuple[str, ...]:
    """The names of the parts of a form."""
    return tuple(_BRACES.findall(form))


def example_of(form: str) -> str:
    """An id of this form."""
    return form.format_map({name: part.example for name, part in PARTS.items()})


def _pattern(form: str) -> re.Pattern[str]:
    """A form as a regular expression with a group for each part."""
    return re.compile(_BRACES.sub(lambda brace: f"(?P<{brace[1]}>{PARTS[brace[1]].pattern})", form), re.DOTALL)


_NODE_PATTERNS: Final = tuple((kind, _pattern(form)) for kind, spelled in NODE_IDS.items() for form in spelled.forms)
