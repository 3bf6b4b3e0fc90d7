"""Rows of facts while a batch is being extracted: integers, laid end to end.

Glossary
    cell     an integer. A text is its number in the `Pool`, a flag is 0 or 1, a missing value is -1, a list is its
             length (its elements are laid end to end in an array of their own).
    stored   a column that a row has a cell for. What follows from other cells (ordinals, lines, the enclosing
             definition) is not stored; `batch` computes it, for the whole batch at once.

Some cells have a preliminary value until the content is finished. The cell of a name's binding (`binding_no`, or
`binding_key` where there is no `binding_no`) is its symbol: `scopes` knows only at the end which binding that is. The
cell of a question (`ask_no`) is a value, until `values` numbers the questions. The cell of a key is a number.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from codeanatomy.catalogue import facts
from codeanatomy.catalogue.columns import Dataset
from codeanatomy.catalogue.ids import short_hash
from codeanatomy.catalogue.layers import FACT_DATASETS

NOTHING: Final = -1
"""The cell of a missing value."""

ORDINALS: Final = {
    "cst_defs": "def_no",
    "cst_params": "param_no",
    "cst_callsites": "call_no",
    "cst_implicit_calls": "implicit_no",
    "cst_name_refs": "ref_no",
    "cst_imports": "import_no",
    "cst_type_exprs": "type_no",
    "cst_assigns": "assign_no",
    "sym_scopes": "scope_no",
    "sym_bindings": "binding_no",
    "asks": "ask_no",
    "sym_passes": "pass_no",
    "all_names": "position",
}
"""The column that counts the rows of a content."""

DEF_OF_SCOPE: Final = {
    "cst_defs": "container_no",
    "cst_callsites": "def_no",
    "cst_implicit_calls": "def_no",
    "cst_name_refs": "def_no",
    "cst_imports": "def_no",
    "cst_type_exprs": "def_no",
    "cst_assigns": "def_no",
    "sym_scopes": "def_no",
}
"""The column with the definition whose body the row's scope is part of."""

NUMBER_OF_KEY: Final = {
    "def_key": "def_no",
    "container_key": "container_no",
    "scope_key": "scope_no",
    "parent_key": "parent_no",
    "binding_key": "binding_no",
    "target_key": "target_no",
}
"""For a key column, the column with its number."""

NAME_REF_COLUMNS: Final = ("is_attribute", "bend")
"""Computed columns: an attribute is a reference without a symbol, and a reference ends with its name."""

CALLER: Final = "caller_key"
LINES: Final = ("line_start", "line_end", "col_start")

BINDING_FLAGS: Final = tuple(c.name for c in facts.SYM_BINDINGS.columns if pa.types.is_boolean(c.type))
"""Flags of a binding, in the order of their bits in its one cell `flags`."""


def _stored(dataset: Dataset) -> tuple[str, ...]:
    """The columns of a dataset that a row has a cell for, in order."""
    names = dataset.names()
    computed = {*LINES, CALLER, ORDINALS.get(dataset.name), DEF_OF_SCOPE.get(dataset.name)}
    computed |= {key for key, number in NUMBER_OF_KEY.items() if number in names}
    computed |= set(NAME_REF_COLUMNS) if dataset is facts.CST_NAME_REFS else set()
    stored = [name for name in names if name not in computed]
    if dataset is facts.SYM_BINDINGS:
        stored = ["flags" if name == BINDING_FLAGS[0] else name for name in stored if name not in BINDING_FLAGS[1:]]
    return tuple(stored)


def key_of(text: bytes) -> str:
    """The key of a definition, scope or binding, from its qualified name and ordinal."""
    return short_hash(text)


STORED: Final = {dataset.name: _stored(dataset) for dataset in FACT_DATASETS}

AddRow = Callable[..., None]
"""Adds a row, given the cell of each stored column by name; a missing or unknown name is a `TypeError`."""


def _row_adder(columns: tuple[str, ...]) -> Callable[[Callable[[list[int]], None]], AddRow]:
    """Turns a function that takes the cells of a row as a list into one that takes them by name.

    Compiled, as `collections.namedtuple` is: a row is added for every name of a source, and a call with keywords is the
    cheapest check of names.
    """
    names = ", ".join(columns)
    source = f"def adder(extend):\n def add(*, {names}):\n  extend([{names}])\n return add"
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - the names are those of the catalogue
    adder: Callable[[Callable[[list[int]], None]], AddRow] = namespace["adder"]
    return adder


_ROW_ADDERS: Final = {name: _row_adder(columns) for name, columns in STORED.items()}


class Rows:
    """The rows of one dataset of a batch."""

    def __init__(self, dataset: str) -> None:
        self.columns: Final = STORED[dataset]
        self.width: Final = len(self.columns)
        self.cells = array("i")
        self.add: Final = _ROW_ADDERS[dataset](self.cells.fromlist)

    def __len__(self) -> int:
        return len(self.cells) // self.width

    def set(self, row: int, column: str, cell: int) -> None:
        """Change a cell of a row; the last one is row -1."""
        self.cells[(row if row >= 0 else len(self) + row) * self.width + self.columns.index(column)] = cell

    def column(self, name: str, first_row: int) -> slice:
        """Where the cells of a column are, from a row on."""
        return slice(first_row * self.width + self.columns.index(name), None, self.width)


class Pool(dict[bytes, int]):
    """Distinct texts of a batch, numbered as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[bytes] = []
        # Names whose key may be spelled differently: `__private` ones and those outside ASCII.
        self.respelled_names: set[int] = set()

    def __missing__(self, text: bytes) -> int:
        number = self[text] = len(self.texts)
        self.texts.append(text)
        if text.startswith(b"__") or not text.isascii():
            self.respelled_names.add(number)
        return number


class FactCells:
    """Cells of every fact dataset of a batch, while it is being extracted."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.rows = {name: Rows(name) for name in STORED}
        self.keywords = array("i")
        self.unpacks = array("i")
        self.def_of_scope = array("i")
        self.function_of_scope = array("i")
        self.binding_of_symbol = array("i")
        self.counts: list[list[int]] = []

    def close_content(self) -> None:
        """End a content: everything added since the last call belongs to it."""
        self.counts.append([len(rows) for rows in self.rows.values()])
