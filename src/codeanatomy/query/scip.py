"""Write a build as a SCIP index, for code hosts and other tools that read one.

Columns count bytes of UTF-8. The same graph gives the same bytes; they do not depend on the machine or the directory of
the build.

How symbols are spelled
    modules, classes,      as `index.symbols` spells them, with the number of a redefinition. A definition inside a
    functions, variables   function or lambda has a global symbol too, because the graph knows its callers.
    local variables        `local N`, with the number of their binding in the file.
    other names            if the repository defines the beginning of the name, or an indexer has a symbol for it, the
                           rest is a variable of the longest such beginning. Otherwise it is not known where the module
                           ends: the name is a module if something imports it as one, else the module ends before the
                           first part (but not the very first) that starts with a capital, or before the last part.

A module is defined at the empty range at the start of its file. If a use has several candidates, all are written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import codeanatomy
from codeanatomy.catalogue.ids import binding_id, code_id, definition_id, module_id
from codeanatomy.index import scip_format as scip
from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, IMPORT, READ, WRITE
from codeanatomy.query.graph import Graph
from codeanatomy.query.result import QueryResult
from codeanatomy.query.statements import statement

_KINDS: Final = {
    "function": "function",
    "method": "method",
    "class": "class",
    "lambda": "function",
    "type_alias": "type_alias",
}

_BUILTIN: Final = "<builtin>"


class _Entity(NamedTuple):
    """Anything that has a symbol: the byte ranges of its name and of its definition, and what else SCIP records."""

    symbol: str
    kind: str
    name: str
    name_range: tuple[int, int] | None = None
    whole_range: tuple[int, int] | None = None
    documentation: str | None = None
    enclosing: str = ""


@dataclass(frozen=True)
class _File:
    """A file, and what is defined in it by node id."""

    path: str
    module: str
    line_starts: Sequence[int]
    entities: dict[str, _Entity]

    def scip_range(self, bstart: int, bend: int) -> list[int]:
        """A range as SCIP writes it."""
        line, last = (bisect_right(self.line_starts, at) - 1 for at in (bstart, bend))
        start, end = bstart - self.line_starts[line], bend - self.line_starts[last]
        return [line, start, end] if line == last else [line, start, last, end]


class _Use(NamedTuple):
    """A byte range that refers to a node."""

    path: str
    bstart: int
    bend: int
    node_id: str
    roles: int


def write_scip(graph: Graph, path: Path) -> int:
    """Write the index of a build to the file `path`; returns the number of documents."""
    parts = 0
    with path.open("wb") as file:
        for part in scip_parts(graph):
            file.write(part)
            parts += 1
    return parts - 2


def scip_parts(graph: Graph) -> Iterator[bytes]:
    """The index of a build: metadata, a document per file in order of path, external symbols. Joined, they are one."""
    tool = scip.new(scip.ToolInfo, name="codeanatomy", version=codeanatomy.__version__)
    metadata = scip.new(scip.Metadata, tool_info=tool, project_root="file:///", text_document_encoding=scip.UTF8_TEXT)
    yield scip.encode(scip.new(scip.Index, metadata=metadata))
    files = _files(graph)
    writer = _Writer(files, _external_entities(graph, files), _relationships(graph))
    uses = groupby(
        map(_Use._make, _rows(graph, "uses", import_role=IMPORT, read_role=READ, write_role=WRITE)),
        key=attrgetter("path"),
    )
    path, used = next(uses, ("", iter(())))
    for file in files:
        if path == file.path:
            document = writer.document(file, used)
            path, used = next(uses, ("", iter(())))
        else:
            document = writer.document(file, ())
        yield scip.encode(scip.new(scip.Index, documents=[document]))
    yield scip.encode(scip.new(scip.Index, external_symbols=writer.external_symbols()))


class _Writer:
    """Writes documents, and remembers which external symbols they use."""

    def __init__(
        self, files: Sequence[_File], external: Mapping[str, _Entity], related: Mapping[str, Mapping[str, bool]]
    ) -> None:
        self._external = external
        self._related = related
        self._symbols = {node_id: entity.symbol for file in files for node_id, entity in file.entities.items()}
        self._symbols |= {node_id: entity.symbol for node_id, entity in external.items()}
        self._defined = {entity.symbol for file in files for entity in file.entities.values()}
        self._used: set[str] = set()

    def document(self, file: _File, uses: Iterable[_Use]) -> scip.Document:
        """The document of a file: its occurrences and symbols."""
        roles: dict[tuple[int, int, str], int] = {}
        whole = {}
        for entity in file.entities.values():
            if entity.name_range is not None:
                roles[*entity.name_range, entity.symbol] = DEFINITION
                whole[*entity.name_range, entity.symbol] = entity.whole_range
        for use in uses:
            symbol = self._symbol(use.node_id)
            if symbol is not None:
                key = (use.bstart, use.bend, symbol)
                roles[key] = roles.get(key, 0) | use.roles
        occurrences = []
        for (bstart, bend, symbol), bits in sorted(roles.items()):
            around = whole.get((bstart, bend, symbol))
            occurrences.append(
                scip.new(
                    scip.Occurrence,
                    range=file.scip_range(bstart, bend),
                    symbol=symbol,
                    symbol_roles=bits,
                    enclosing_range=file.scip_range(*around) if around else (),
                )
            )
        known = sorted((entity.symbol, node_id) for node_id, entity in file.entities.items())
        return scip.new(
            scip.Document,
            relative_path=file.path,
            language="python",
            position_encoding=scip.UTF8,
            occurrences=occurrences,
            symbols=[self._information(node_id, file.entities[node_id]) for _, node_id in known],
        )

    def external_symbols(self) -> list[scip.SymbolInformation]:
        """Symbols that the documents so far use and none of them defines."""
        used = {self._external[node_id].symbol: node_id for node_id in sorted(self._used)}
        return [
            self._information(node_id, self._external[node_id])
            for symbol, node_id in sorted(used.items())
            if symbol not in self._defined
        ]

    def _symbol(self, node_id: str) -> str | None:
        if node_id in self._external:
            self._used.add(node_id)
        return self._symbols.get(node_id)

    def _information(self, node_id: str, entity: _Entity) -> scip.SymbolInformation:
        related = ((self._symbol(each), overrides) for each, overrides in self._related.get(node_id, {}).items())
        flags = {symbol: overrides for symbol, overrides in related if symbol not in (None, entity.symbol)}
        return scip.new(
            scip.SymbolInformation,
            symbol=entity.symbol,
            kind=scip.KIND_NUMBERS.get(entity.kind, 0),
            display_name=entity.name,
            documentation=[entity.documentation] if entity.documentation else (),
            enclosing_symbol=entity.enclosing,
            relationships=[
                scip.new(scip.Relationship, symbol=symbol, is_implementation=True, is_reference=overrides)
                for symbol, overrides in sorted(flags.items())
            ],
        )


def _files(graph: Graph) -> list[_File]:
    """Every file, with the modules, definitions and variables it holds."""
    files: dict[str, _File] = {}
    for file_id, path, module, line_starts, documentation in _rows(graph, "files"):
        name = module.rpartition(".")[2]
        entity = _Entity(symbols.namespace(module), "module", name, (0, 0), None, documentation)
        files[file_id] = _File(path, module, line_starts, {module_id(file_id): entity})
    for file_id, key, container, kind, name, ordinal, *spans, documentation in _rows(graph, "definitions"):
        entities = files[file_id].entities
        parent = entities[code_id(file_id, container)].symbol
        spell = symbols.class_in if kind in ("class", "type_alias") else symbols.function_in
        bstart, bend, name_bstart, name_bend = spans
        entities[definition_id(file_id, key)] = _Entity(
            spell(parent, name, ordinal), _KINDS[kind], name, (name_bstart, name_bend), (bstart, bend), documentation
        )
    for file_id, number, key, name, site, bstart, bend, scope, def_key in _rows(graph, "bindings"):
        entities = files[file_id].entities
        parent = entities[code_id(file_id, def_key)].symbol
        name_range = None if bstart is None else (bstart, bend)
        if scope in ("module", "class"):
            kind = "variable" if scope == "module" else "field"
            entity = _Entity(symbols.variable_in(parent, name), kind, name, name_range)
        else:
            kind = "parameter" if site == "parameter" else "variable"
            entity = _Entity(f"local {number}", kind, name, name_range, enclosing=parent)
        entities[binding_id(file_id, key)] = entity
    return list(files.values())


def _external_entities(graph: Graph, files: Iterable[_File]) -> dict[str, _Entity]:
    """Names without a definition in the repository, and names that an indexer has a symbol for, by node id."""
    own = [entity.symbol for file in files for entity in file.entities.values() if not symbols.is_local(entity.symbol)]
    known: dict[str, str] = {}
    for symbol in own:
        known.setdefault(symbols.dotted(symbol) or "", symbol)
    defined, found = set(own), {}
    for node_id, name, qname, text, is_module in _rows(graph, "names"):
        if text is None:
            symbol = _symbol_of_name(qname, known, is_module=is_module)
        elif symbols.is_local(text):
            continue
        else:
            symbol = text if text in defined else known.setdefault(symbols.dotted(text) or "", text)
        found[node_id] = _Entity(symbol, "module" if is_module else "", name)
    return found


def _symbol_of_name(name: str, known: Mapping[str, str], *, is_module: bool) -> str:
    """The symbol of a dotted name, spelled as the module's docstring says."""
    parts = name.split(".")
    taken = next((n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), 0)
    if taken:
        symbol = known[".".join(parts[:taken])]
    elif is_module:
        taken, symbol = len(parts), symbols.namespace(name)
    elif parts[0] == _BUILTIN:
        taken, symbol = 1, symbols.namespace("builtins")
    else:
        capitals = (n for n in range(1, len(parts)) if parts[n][:1].isupper())
        taken = next(capitals, max(len(parts) - 1, 1))
        symbol = symbols.namespace(".".join(parts[:taken]))
    for part in parts[taken:]:
        symbol = symbols.variable_in(symbol, part)
    return symbol


def _relationships(graph: Graph) -> Mapping[str, Mapping[str, bool]]:
    """Bases of classes (False) and methods that a method overrides (True), by node id."""
    related: dict[str, dict[str, bool]] = defaultdict(dict)
    for node_id, other_id, overrides in _rows(graph, "relationships"):
        related[node_id][other_id] = related[node_id].get(other_id, False) or overrides
    return related


def _rows(graph: Graph, name: str, /, **parameters: int) -> Iterator[tuple[Any, ...]]:
    return QueryResult(graph.read(statement(f"scip/{name}"), parameters=parameters)).rows()
