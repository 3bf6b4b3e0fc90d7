"""The walk over one syntax tree: its stack, its place in the program, and the rows its facts go to.

Handlers (in the folders of the layers) are functions of the walk and a node. They add the facts of that node and push
what is inside it, last part first. Nothing recurses, so no nesting is too deep, and rows come in source order, outer
before inner. There is one walk for all layers: a handler of `syntax` tells `scopes` which names are bound and used, and
notes for `values` which values they are bound to.

Stack entries
    a node      goes to the handler of its kind, as something that is read;
    a number    is the scope in which what follows is evaluated;
    a tuple     is a function and its further arguments: for what needs more context than its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tree_sitter import Node

from codeanatomy.extract.cells import NOTHING, FactCells
from codeanatomy.extract.scopes.table import MODULE_SCOPE, ScopeTable
from codeanatomy.extract.values.structure import BindingSite, Block, Definition

# Texts that can contain one another without end must not make a batch grow with the square of a file.
_MAX_TEXT: Final = 2_000

Handler = Callable[["Walk", Node], None]


class Walk:
    """Where the walk is in one content."""

    def __init__(self, text: bytes, cells: FactCells) -> None:
        self.text = text
        self.cells = cells
        self.pool = cells.pool
        self.scopes = ScopeTable(cells.pool)
        self.stack: list[Any] = []
        self.scope = MODULE_SCOPE
        self.first_symbol = len(cells.binding_of_symbol)
        # A compound statement ends where its last simple statement does; its node may end in a comment.
        self.statement_end = 0
        self.block = 0
        self.type_no = NOTHING
        self.try_depth = 0
        self.type_checking_depth = 0
        self.call_count = 0
        self.param_count = 0
        self.generators: set[int] = set()
        self.def_qualnames: list[bytes] = []
        self.lambda_counts: dict[int, int] = {}
        # One element per scope: the definition whose body it is part of, and its path.
        self.scope_defs: list[int] = []
        self._scope_qualnames: list[bytes] = []
        self._seen: dict[tuple[str, bytes], int] = {}
        # What `values` follows them by; `forms` has the rows of values.
        self.values: list[tuple[Any, ...]] = []
        self.name_values: dict[int, int] = {}
        self.node_values: dict[int, int] = {}
        self.limits = 0
        self.blocks: list[Block] = []
        self.scope_blocks: dict[int, int] = {MODULE_SCOPE: 0}
        self.definitions: list[Definition] = []
        self.derived: set[int] = set()
        self.lambdas: dict[int, int] = {}
        self.binding_sites: dict[int, list[BindingSite]] = {}
        self.attribute_stores: list[tuple[int, bytes, int, bool]] = []
        self.returns: dict[int, list[int]] = {}
        self.yields: dict[int, list[int]] = {}
        self.return_types: dict[int, int] = {}
        self.declared_types: dict[int, bytes] = {}
        self.star_imports: list[tuple[int, int]] = []
        self.forks: list[list[int]] = []
        self.fork = NOTHING
        self.base_values: list[tuple[int, int, int, bytes]] = []
        rows = cells.rows
        self.first_rows = {name: len(each) for name, each in rows.items()}
        self.defs = rows["cst_defs"]
        self.assigns = rows["cst_assigns"]
        self.types = rows["cst_type_exprs"]
        self.scope_rows = rows["sym_scopes"]
        self.add_name_ref = rows["cst_name_refs"].add
        self.add_callsite = rows["cst_callsites"].add
        self.add_assign = self.assigns.add

    def run(self, handlers: Mapping[int, Handler]) -> None:
        """Visit what is on the stack, and everything inside it; a kind without a handler is only passed through."""
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

    def source(self, start: int, end: int) -> int:
        """The cell of a piece of source text, cut if it is very long."""
        if end - start <= _MAX_TEXT:
            return self.pool[self.text[start:end]]
        return self.pool[self.text[start : start + _MAX_TEXT].decode(errors="ignore").encode() + "…".encode()]

    def open_scope(
        self, kind: bytes, parent: int, name: bytes, node: Node | None, def_no: int = NOTHING, class_name: bytes = b""
    ) -> int:
        """Open a scope around `node`, or around everything; the walk is not yet in it."""
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
        """The dotted name of `name` in `container`; absurdly deep ones are all called like their container."""
        if not container:
            return name
        return b"%b.%b" % (container, name) if len(container) < _MAX_TEXT else container

    def ordinal(self, what: str, qualname: bytes) -> int:
        """How many of these had this name before."""
        count = self._seen.get((what, qualname), 0)
        self._seen[what, qualname] = count + 1
        return count
