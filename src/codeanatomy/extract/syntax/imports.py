"""Imports, one row per alias. Which module of the repository they mean is left to the resolver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import IMPORTED, MODULE_SCOPE
from codeanatomy.extract.shapes import significant_children
from codeanatomy.extract.values.forms import Form, bind_value, new_value
from codeanatomy.extract.walk import Handler, Walk


class _Origin(NamedTuple):
    """What the aliases of one statement share."""

    kind: bytes
    module: int
    level: int
    start: int
    end: int


def import_statement(w: Walk, node: Node) -> None:
    """`import a.b as c, d`."""
    w.statement_end = node.end_byte
    origin = _Origin(b"import", NOTHING, 0, node.start_byte, node.end_byte)
    for alias in significant_children(node):
        _alias(w, alias, origin)


def import_from_statement(w: Walk, node: Node) -> None:
    """`from ..a import b as c, d`, or a star."""
    w.statement_end = node.end_byte
    inside = significant_children(node)
    if not inside:
        return
    module, level = _module(w, inside[0])
    origin = _Origin(b"from", module, level, node.start_byte, node.end_byte)
    for alias in inside[1:]:
        _alias(w, alias, origin)


def future_import_statement(w: Walk, node: Node) -> None:
    """`from __future__ import a`, whose module is a keyword of the grammar."""
    w.statement_end = node.end_byte
    origin = _Origin(b"from", w.pool[b"__future__"], 0, node.start_byte, node.end_byte)
    for alias in significant_children(node):
        _alias(w, alias, origin)


def _module(w: Walk, node: Node) -> tuple[int, int]:
    """Module and level of a `from` import."""
    if node.kind_id == g.DOTTED_NAME:
        return w.pool[_dotted(w, node)], 0
    prefix, *name = significant_children(node)
    level = w.text_of(prefix).count(b".")
    return w.pool[_dotted(w, name[0])] if name else NOTHING, level


def _dotted(w: Walk, node: Node) -> bytes:
    """A dotted name, without the white space in it."""
    return b".".join(w.text_of(part) for part in significant_children(node))


def _text(w: Walk, cell: int) -> bytes:
    return w.pool.texts[cell] if cell != NOTHING else b""


def _alias(w: Walk, node: Node, origin: _Origin) -> None:
    asname = bound = name = NOTHING
    site = node
    kind = node.kind_id
    if kind == g.ALIASED_IMPORT:
        site = node.children[-1]
        asname = bound = w.pool[w.text_of(site)]
        name = w.pool[_dotted(w, node.children[0])]
    elif kind == g.DOTTED_NAME:
        name = w.pool[_dotted(w, node)]
        site = node.children[0]
        bound = w.pool[w.text_of(site)]
    elif kind != g.WILDCARD_IMPORT:
        return
    pool = w.pool
    module = _text(w, name if origin.kind == b"import" else origin.module)
    module_value = new_value(w, Form.IMPORT, origin.level, module, b"")
    value = module_value
    if origin.kind == b"from" and name != NOTHING:
        value = new_value(w, Form.IMPORT, origin.level, module, _text(w, name))
    elif asname == NOTHING and bound != NOTHING:  # `import a.b` binds `a`
        value = new_value(w, Form.IMPORT, 0, _text(w, bound), b"")
    if bound != NOTHING:
        symbol = w.scopes.bind(w.scope, bound, b"import", (site.start_byte, site.end_byte), IMPORTED)
        bind_value(w, symbol, origin.end, value)
    elif w.scope == MODULE_SCOPE:
        w.star_imports.append((origin.end, module_value))
    w.cells.rows["cst_imports"].add(
        scope_no=w.scope,
        kind=pool[origin.kind],
        module=name if origin.kind == b"import" else origin.module,
        level=origin.level,
        name=name if origin.kind == b"from" else NOTHING,
        asname=asname,
        bound_name=bound,
        is_star=kind == g.WILDCARD_IMPORT,
        bstart=node.start_byte,
        bend=node.end_byte,
        stmt_bstart=origin.start,
        stmt_bend=origin.end,
        in_type_checking=w.type_checking_depth > 0,
        in_function=w.scopes.in_function(w.scope),
        in_try=w.try_depth > 0,
        module_ask_no=module_value,
        ask_no=value,
    )


HANDLERS: Final[Mapping[int, Handler]] = {
    g.kind("import_statement"): import_statement,
    g.kind("import_from_statement"): import_from_statement,
    g.kind("future_import_statement"): future_import_statement,
}
