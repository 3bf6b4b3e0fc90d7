"""The walk over one syntax tree: its stack, where it is in the program, and the rows its facts go to.

Handlers (in the folders of the layers) are functions of the walk and a node. They add the facts of that node and push
its children, the last one first. Nothing recurses, so no nesting is too deep, and rows come in source order, outer
before inner. There is one walk for all layers: a handler of `syntax` tells `scopes` which names are bound and used, and
records for `values` which values they are bound to.

Stack entries
    a node      is given to the handler of its kind, as an expression that is read, or a statement;
    a number    is the scope in which the entries below it are evaluated;
    a tuple     is a function and its further arguments: for nodes that need more context than their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tree_sitter import Node

from codeanatomy.extract.cells import NOTHING, FactCells
from codeanatomy.extract.scopes.table import MODULE_SCOPE, ScopeTable
from codeanatomy.extract.values.structure import BindingSite, Block, Definition

# Texts that can contain one another (nested definitions) must not make a batch grow with the square of a file.
_MAX_TEXT: Final = 2_000

Handler = Callable[["Walk", Node], None]


class NewScope(NamedTuple):
    """A scope to open inside `parent`; `def_no` if it is the body of a definition, `class_name` mangles names in it."""

    kind: bytes
    parent: int
    name: bytes
    def_no: int = NOTHING
    class_name: bytes = b""


class Walk:
    """The state of the walk over one content."""

    def __init__(self, text: bytes, cells: FactCells) -> None:
        self.text = text
        self.cells = cells
        self.pool = cells.pool
        self.scopes = ScopeTable(cells.pool)
        self.stack: list[Any] = []
        self.scope = MODULE_SCOPE
        self.first_symbol = len(cells.binding_of_symbol)
        # The end of the last simple statement. A compound statement ends there; its node may end in a comment.
        self.statement_end = 0
        self.block = 0
        self.type_no = NOTHING
        self.try_depth = 0
        self.type_checking_depth = 0
        self.call_count = 0
        self.param_count = 0
        self.generator_scopes: set[int] = set()
        self.def_qualnames: list[bytes] = []
        self.lambda_counts: dict[int, int] = {}
        # One element per scope: the definition whose body it is part of, and its qualified name.
        self.scope_defs: list[int] = []
        self._scope_qualnames: list[bytes] = []
        self._ordinals: dict[tuple[str, bytes], int] = {}
        # What the walk records for the layer `values`; the rows of `values` are described in `values.forms`.
        self.values: list[tuple[Any, ...]] = []
        self.name_values: dict[int, int] = {}  # by the first byte of the name
        self.node_values: dict[int, int] = {}  # by the id of the node
        self.limit_count = 0
        self.blocks: list[Block] = []
        self.scope_blocks: dict[int, int] = {MODULE_SCOPE: 0}  # the outermost block of each scope
        self.definitions: list[Definition] = []
        self.classes_with_bases: set[int] = set()
        self.lambdas: dict[int, int] = {}  # their definitions, by the first byte
        self.binding_sites: dict[int, list[BindingSite]] = {}  # by symbol
        self.attribute_stores: list[tuple[int, bytes, int, bool]] = []  # object, name, value, always in `__init__`?
        self.returns: dict[int, list[int]] = {}  # values, by definition
        self.yields: dict[int, list[int]] = {}
        self.return_types: dict[int, int] = {}
        self.declared_types: dict[int, bytes] = {}  # the text of annotations, by symbol
        self.star_imports: list[tuple[int, int]] = []  # position, value of the module
        self.forks: list[list[int]] = []  # the blocks of each statement one of whose branches is always taken
        self.fork = NOTHING  # the statement whose branch is entered next
        self.base_values: list[tuple[int, int, int, bytes]] = []  # class, value, position, keyword
        rows = cells.rows
        self.first_rows = {name: len(each) for name, each in rows.items()}
        self.defs = rows["cst_defs"]
        self.assigns = rows["cst_assigns"]
        self.types = rows["cst_type_exprs"]
        self.scope_rows = rows["sym_scopes"]
        self.add_name_ref = rows["cst_name_refs"].add
        self.add_callsite = rows["cst_callsites"].add
        self.add_argument = rows["cst_arguments"].add
        self.add_main_block = rows["cst_main_blocks"].add
        self.add_assign = self.assigns.add

    def run(self, handlers: Mapping[int, Handler]) -> None:
        """Visit the stack and everything inside its nodes; of a kind without a handler, the children are visited."""
        stack = self.stack
        pop = stack.pop
        find = handlers.get
        while stack:
            entry = pop()
            if type(entry) is Node:
                handler = find(entry.kind_id)
                if handler is None:
                    stack += entry.named_children[::-1]
                else:
                    handler(self, entry)
            elif type(entry) is int:
                self.scope = entry
            else:
                entry[0](self, *entry[1:])

    def text_of(self, node: Node) -> bytes:
        """The source text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def source_text(self, node: Node | None) -> int:
        """The cell of a node's source text, truncated if it is very long; `NOTHING` without a node."""
        if node is None:
            return NOTHING
        text = self.text_of(node)
        if len(text) > _MAX_TEXT:
            text = text[:_MAX_TEXT].decode(errors="ignore").encode() + "…".encode()
        return self.pool[text]

    def open_scope(self, new: NewScope, node: Node | None = None) -> int:
        """Open a scope for `node`, or for the entire content, and return its number; the walk does not enter it yet."""
        kind, parent, name, def_no, class_name = new
        scope = self.scopes.open(kind, parent, class_name)
        qualname = self.qualify(self._scope_qualnames[parent], name) if scope != MODULE_SCOPE else b""
        self._scope_qualnames.append(qualname)
        self.scope_defs.append(def_no if def_no != NOTHING or scope == MODULE_SCOPE else self.scope_defs[parent])
        pool = self.pool
        self.scope_rows.add(
            parent_no=parent if scope != MODULE_SCOPE else NOTHING,
            kind=pool[kind],
            name=pool[name],
            qualname=pool[qualname],
            ordinal=self.ordinal("scope", qualname),
            bstart=node.start_byte if node is not None else 0,
            bend=node.end_byte if node is not None else len(self.text),
        )
        return scope

    def qualify(self, container: bytes, name: bytes) -> bytes:
        """The dotted name of `name` in `container`; in a very long container, the container's own."""
        if not container:
            return name
        return b"%b.%b" % (container, name) if len(container) < _MAX_TEXT else container

    def ordinal(self, what: str, qualname: bytes) -> int:
        """Count the definitions, or scopes, of one name: the ordinal of the next."""
        ordinal = self._ordinals.get((what, qualname), 0)
        self._ordinals[what, qualname] = ordinal + 1
        return ordinal
