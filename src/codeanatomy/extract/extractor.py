"""Contents in, facts out: decode, parse, walk, resolve. It sees bytes and their ids only, one content at a time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final
from unicodedata import unidata_version

import pyarrow as pa
from tree_sitter import Parser

from codeanatomy.catalogue.tables import FACTS
from codeanatomy.errors import InputError
from codeanatomy.extract import assignments, definitions, expressions, imports, patterns, statements, type_exprs
from codeanatomy.extract.columns import FactCells, record_batch
from codeanatomy.extract.flow import emit_flow
from codeanatomy.extract.grammar import LANGUAGE
from codeanatomy.extract.source import Source, Undecodable, read_source
from codeanatomy.extract.structure import Block
from codeanatomy.extract.walk import NOTHING, Handler, Walk

_REVISION: Final = 3
"""To be raised whenever the facts of some content change."""

_MADE_WITH: Final = (version("tree-sitter"), version("tree-sitter-python"), unidata_version, str(FACTS.schema()))

EXTRACTOR_VERSION: Final = f"{_REVISION}-{hashlib.sha256(repr(_MADE_WITH).encode()).hexdigest()[:12]}"
"""Names the extractor, its parser and the shape of its facts; facts of another version are never read."""

_TYPE_AS_NAME: Final = re.compile(rb"type(?=[ \t]*[(\[])")

_HANDLERS: Final[Mapping[int, Handler]] = {
    **expressions.HANDLERS,
    **type_exprs.HANDLERS,
    **assignments.HANDLERS,
    **imports.HANDLERS,
    **patterns.HANDLERS,
    **definitions.HANDLERS,
    **statements.HANDLERS,
}


def extract_batch(content_ids: Sequence[str], sources: Sequence[bytes]) -> pa.RecordBatch:
    """The facts of each content, one row per content in the schema of `facts`."""
    if len(content_ids) != len(sources):
        raise InputError(f"{len(content_ids)} content ids were given for {len(sources)} sources; give one for each.")
    parser = Parser(LANGUAGE)
    cells = FactCells()
    contents = [read_source(source) for source in sources]
    for content in contents:
        if isinstance(content, Source):
            _extract(content, parser, cells)
        else:
            _refuse(content, cells)
        cells.close_content()
    return record_batch(EXTRACTOR_VERSION, content_ids, contents, cells)


def _extract(source: Source, parser: Parser, cells: FactCells) -> None:
    root = parser.parse(_parseable(source.text)).root_node
    walk = Walk(source.text, cells)
    walk.open_scope(b"module", NOTHING, b"top", None)
    definitions.docstring(walk, root, NOTHING)
    walk.blocks.append(Block(0, len(source.text) + 1, NOTHING, is_loop=False, leaves=False))
    walk.stack.append(root)
    walk.run(_HANDLERS)
    statements.emit_errors(walk, root)
    walk.scopes.resolve(cells.rows["sym_bindings"], cells.binding_of_symbol)
    cells.def_of_scope.fromlist(walk.scope_defs)
    cells.function_of_scope.fromlist(definitions.functions_of_scopes(walk))
    emit_flow(walk)


def _parseable(text: bytes) -> bytes:
    """The text as the parser gets it: of the same length, and read by nobody else.

    The grammar takes `type(x).y = z` for a type alias; in front of a bracket, `type` is never the keyword.
    """
    return _TYPE_AS_NAME.sub(b"tYpe", text)


def _refuse(content: Undecodable, cells: FactCells) -> None:
    pool = cells.pool
    # source, severity, message, span
    cells.rows["parse_errors"].fromlist(
        [pool[b"decoder"], pool[b"fatal"], pool[content.reason.encode(errors="replace")], 0, 0]
    )
