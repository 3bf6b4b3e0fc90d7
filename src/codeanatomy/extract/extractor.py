"""From contents to facts: decode, parse, walk, resolve. It sees bytes and their ids only, one content at a time.

There is one walk for all layers, because a layer builds on those before it. The requested layers decide which columns
are returned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from tree_sitter import Parser

from codeanatomy.catalogue.revisions import LAYER_VERSIONS
from codeanatomy.errors import InputError
from codeanatomy.extract.batch import record_batch
from codeanatomy.extract.cells import NOTHING, FactCells
from codeanatomy.extract.grammar import LANGUAGE
from codeanatomy.extract.scopes import handlers as scopes
from codeanatomy.extract.source import Source, Undecodable, read_source
from codeanatomy.extract.syntax import (
    assignments,
    definitions,
    expressions,
    imports,
    patterns,
    statements,
    type_annotations,
)
from codeanatomy.extract.values import implicit_calls
from codeanatomy.extract.values.questions import add_values
from codeanatomy.extract.values.structure import Block
from codeanatomy.extract.walk import Handler, NewScope, Walk

_TYPE_AS_NAME: Final = re.compile(rb"type(?=[ \t]*[(\[])")

_HANDLERS: Final[Mapping[int, Handler]] = {
    **expressions.HANDLERS,
    **type_annotations.HANDLERS,
    **assignments.HANDLERS,
    **imports.HANDLERS,
    **patterns.HANDLERS,
    **definitions.HANDLERS,
    **statements.HANDLERS,
    **scopes.HANDLERS,
    **implicit_calls.HANDLERS,
}


def extract_batch(
    content_ids: Sequence[str], sources: Sequence[bytes], layers: Mapping[str, str] = LAYER_VERSIONS
) -> pa.RecordBatch:
    """The facts of each content, one row per content, with the columns of `facts` that belong to `layers`.

    `layers` maps the name of each layer to its version, which is stored in the row.
    """
    if len(content_ids) != len(sources):
        raise InputError(f"{len(content_ids)} content ids were given for {len(sources)} sources; give one for each.")
    parser = Parser(LANGUAGE)
    cells = FactCells()
    contents = [read_source(source) for source in sources]
    for content in contents:
        if isinstance(content, Source):
            _extract(content, parser, cells)
        else:
            _add_decoding_error(content, cells)
        cells.close_content()
    return record_batch(layers, content_ids, contents, cells)


def _extract(source: Source, parser: Parser, cells: FactCells) -> None:
    root = parser.parse(_parseable(source.text)).root_node
    walk = Walk(source.text, cells)
    walk.open_scope(NewScope(b"module", NOTHING, b"top"))
    definitions.docstring(walk, root, NOTHING)
    walk.blocks.append(Block(0, len(source.text) + 1, NOTHING, is_loop=False, always_leaves=False))
    walk.stack.append(root)
    walk.run(_HANDLERS)
    statements.add_parse_errors(walk, root)
    walk.scopes.resolve(cells.rows["sym_bindings"].add, cells.binding_of_symbol)
    cells.def_of_scope.fromlist(walk.scope_defs)
    cells.function_of_scope.fromlist(definitions.functions_of_scopes(walk))
    add_values(walk)


def _parseable(text: bytes) -> bytes:
    """The text as the parser gets it, of the same length; facts are read off the text itself.

    The grammar takes `type(x).y = z` for a type alias; before a bracket, `type` is never the keyword.
    """
    return _TYPE_AS_NAME.sub(b"tYpe", text)


def _add_decoding_error(content: Undecodable, cells: FactCells) -> None:
    pool = cells.pool
    cells.rows["parse_errors"].add(
        source=pool[b"decoder"],
        severity=pool[b"fatal"],
        message=pool[content.reason.encode(errors="replace")],
        bstart=0,
        bend=0,
    )
