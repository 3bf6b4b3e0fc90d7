"""Blocks, branches and simple statements, and source that the parser could not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from tree_sitter import Node

from codeanatomy.extract import grammar as g
from codeanatomy.extract.cells import NOTHING
from codeanatomy.extract.scopes.table import MODULE_SCOPE
from codeanatomy.extract.shapes import significant_children
from codeanatomy.extract.syntax.expressions import read_name
from codeanatomy.extract.values.structure import Block
from codeanatomy.extract.walk import Handler, Walk

_MAX_ERRORS: Final = 100
_IS_MAIN: Final = re.compile(rb"""\(?\s*(?:__name__\s*==\s*(['"])__main__\1|(['"])__main__\2\s*==\s*__name__)\s*\)?""")


def block(w: Walk, node: Node) -> None:
    """An indented block of statements."""
    children = node.named_children
    last = next((child for child in reversed(children) if not child.is_extra), None)
    enclosing = node.parent
    w.scope_blocks.setdefault(w.scope, len(w.blocks))
    w.blocks.append(
        Block(
            node.start_byte,
            node.end_byte,
            w.block,
            enclosing is not None and enclosing.kind_id in (g.FOR_STATEMENT, g.WHILE_STATEMENT),
            last is not None and last.kind_id in (g.RETURN_STATEMENT, g.RAISE_STATEMENT),
            w.fork,
        )
    )
    if w.fork != NOTHING:
        w.forks[w.fork].append(len(w.blocks) - 1)
        w.fork = NOTHING
    w.stack.append((_end_block, w.block))
    w.stack += children[::-1]
    w.block = len(w.blocks) - 1


def _end_block(w: Walk, enclosing: int) -> None:
    w.block = enclosing


def simple_statement(w: Walk, node: Node) -> None:
    """A statement without a body."""
    w.statement_end = node.end_byte
    w.stack += node.named_children[::-1]


def print_statement(w: Walk, node: Node) -> None:
    """`print >> file, value`, an expression in Python 3. Without `>>` it is Python 2, and `print` is not a name."""
    simple_statement(w, node)
    children = node.children
    if any(child.kind_id == g.CHEVRON for child in children):
        read_name(w, children[0].start_byte, children[0].end_byte)


def if_statement(w: Walk, node: Node) -> None:
    """`if condition:`; the body of `if TYPE_CHECKING:` is for type checkers only."""
    condition, *branches = significant_children(node)
    fork = _new_fork(w) if branches and branches[-1].kind_id == g.ELSE_CLAUSE else NOTHING
    text = w.text_of(condition)
    for_types = text.rpartition(b".")[2] == b"TYPE_CHECKING"
    if w.scope == MODULE_SCOPE and _IS_MAIN.fullmatch(text):
        w.add_main_block(bstart=node.start_byte, bend=node.end_byte)
    for at in range(len(branches) - 1, -1, -1):
        entries = [branches[at], (_enter_branch, fork)]
        if at == 0 and for_types:
            entries = [(_shift_type_checking, -1), *entries, (_shift_type_checking, 1)]
        w.stack += entries
    w.stack.append(condition)


def _shift_type_checking(w: Walk, by: int) -> None:
    w.type_checking_depth += by


def try_statement(w: Walk, node: Node) -> None:
    """`try:`; imports in its body and its handlers are marked as tried."""
    fork = _new_fork(w)
    for child in node.named_children[::-1]:
        if child.kind_id in (g.BLOCK, g.EXCEPT_CLAUSE):
            w.stack += [(_shift_try, -1), child, (_enter_branch, fork), (_shift_try, 1)]
        else:
            w.stack.append(child)


def _new_fork(w: Walk) -> int:
    w.forks.append([])
    return len(w.forks) - 1


def _enter_branch(w: Walk, fork: int) -> None:
    """The next block is a branch of the statement `fork`."""
    w.fork = fork


def _shift_try(w: Walk, by: int) -> None:
    w.try_depth += by


def unparsed(w: Walk, node: Node) -> None:
    """Source that the parser could not read: complete constructs in it are visited, single names are ignored."""
    w.stack += [child for child in reversed(node.named_children) if child.named_child_count]


def add_parse_errors(w: Walk, root: Node) -> None:
    """One row per outermost syntax error, up to a maximum."""
    pending = [root] if root.has_error else []
    found = 0
    while pending and found < _MAX_ERRORS:
        node = pending.pop()
        below = [child for child in reversed(node.children) if child.has_error]
        if node.is_error:
            what, start, end = b"syntax error", node.start_byte, node.end_byte
        elif node.is_missing:
            what, start, end = b"missing %b" % node.type.encode(), node.start_byte, node.end_byte
        elif below:
            pending += below
            continue
        else:  # the missing token is one that the tree does not show: a newline
            what, start = b"missing newline", _joined_statement(w, node)
            end = start
        found += 1
        w.cells.rows["parse_errors"].add(
            source=w.pool[b"tree-sitter"], severity=w.pool[b"error"], message=w.pool[what], bstart=start, bend=end
        )


def _joined_statement(w: Walk, block: Node) -> int:
    """The start of the first statement that follows another on its line without a semicolon; else of the block."""
    for before, after in pairwise(block.named_children):
        between = w.text[before.end_byte : after.start_byte]
        if after.type != "comment" and not between.strip(b" \t\f") and b"\n" not in between:
            return after.start_byte
    return block.start_byte


HANDLERS: Final[Mapping[int, Handler]] = {
    g.BLOCK: block,
    g.kind("print_statement"): print_statement,
    g.kind("if_statement"): if_statement,
    g.kind("try_statement"): try_statement,
    g.ERROR: unparsed,
} | dict.fromkeys(
    map(
        g.kind,
        (
            "expression_statement",
            "assert_statement",
            "exec_statement",
            "pass_statement",
            "break_statement",
            "continue_statement",
        ),
    ),
    simple_statement,
)
