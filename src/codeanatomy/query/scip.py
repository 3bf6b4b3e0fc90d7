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

# ruff: noqa: S608 - nothing but constants is put into a statement

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
from codeanatomy.index import scip_format as scip
from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, IMPORT, READ, WRITE
from codeanatomy.query.graph import Graph
from codeanatomy.query.result import QueryResult

_FILES: Final = """
    SELECT f.file_id, f.path, m.module_fqn, f.line_starts, d.text AS documentation
    FROM repo_files AS f
    JOIN py_module_index AS m ON m.file_id = f.file_id
    LEFT JOIN docstrings AS d ON d.file_id = f.file_id AND d.def_key IS NULL
    WHERE f.line_starts IS NOT NULL
    ORDER BY f.path
"""

_DEFINITIONS: Final = """
    SELECT
      d.file_id, d.def_key, d.container_key, d.kind, d.name, d.ordinal, d.bstart, d.bend,
      coalesce(d.name_bstart, d.bstart) AS name_bstart,
      coalesce(d.name_bend, d.bstart + length('lambda')) AS name_bend,
      t.text AS documentation
    FROM cst_defs AS d
    LEFT JOIN docstrings AS t ON t.file_id = d.file_id AND t.def_key = d.def_key
    ORDER BY d.file_id, d.def_no
"""
"""A container comes before what it contains. A lambda is named by its keyword."""

_BINDINGS: Final = """
    SELECT b.file_id, b.binding_no, b.binding_key, b.name, b.site_kind, b.site_bstart, b.site_bend, s.kind, s.def_key
    FROM sym_bindings AS b
    JOIN sym_scopes AS s ON s.file_id = b.file_id AND s.scope_no = b.scope_no
    WHERE b.target_key = b.binding_key
      AND (
        coalesce(b.site_kind, '') NOT IN ('def', 'class', 'type_alias', 'import')
        OR concat('b:', b.file_id, ':', b.binding_key) IN (
          SELECT dst_id FROM cpg_edges WHERE edge_kind IN ('REFERENCES', 'IMPORT_BINDS', 'CALLS')
        )
      )
    ORDER BY b.file_id, b.binding_no
"""
"""Variables, and other names that something refers to as such."""

_NAMES: Final = """
    SELECT
      n.node_id, n.name, n.qname, n.text,
      n.subkind = 'package' OR n.node_id IN (SELECT dst_id FROM cpg_edges WHERE edge_kind = 'IMPORTS') AS is_module
    FROM cpg_nodes AS n
    WHERE n.node_kind IN ('QNAME', 'SYMBOL')
    ORDER BY n.text NULLS LAST, n.node_id
"""

_RELATIONSHIPS: Final = """
    SELECT DISTINCT src_id, dst_id, edge_kind = 'OVERRIDES' AS overrides
    FROM cpg_edges
    WHERE edge_kind IN ('INHERITS', 'OVERRIDES')
    ORDER BY ALL
"""

_USES: Final = f"""
    WITH named AS (
      SELECT concat('n:', file_id, ':', ref_no) AS site_id, file_id, path, name_bstart AS bstart, name_bend AS bend,
        CASE ctx WHEN 'store' THEN {WRITE} WHEN 'load' THEN {READ} ELSE 0 END AS roles
      FROM cst_name_refs
    ), meant AS (
      SELECT n.*, e.dst_id FROM named AS n
      JOIN cpg_edges AS e ON e.src_id = n.site_id AND e.edge_kind = 'REFERENCES' AND e.confidence >= 0.5
    ), bound AS (
      SELECT n.*, e.dst_id FROM named AS n
      JOIN cpg_edges AS e ON e.src_id = n.site_id AND e.edge_kind = 'RESOLVES_TO'
    ), called AS (
      SELECT c.file_id, c.path, c.callee_name_bstart AS bstart, c.callee_name_bend AS bend, {READ} AS roles, e.dst_id
      FROM cst_callsites AS c
      JOIN cpg_edges AS e ON e.src_id = concat('c:', c.file_id, ':', c.call_no) AND e.edge_kind = 'CALLS'
      WHERE c.callee_name_bstart IS NOT NULL
        AND e.confidence >= 0.5
        AND NOT EXISTS (SELECT 1 FROM meant AS m WHERE m.file_id = c.file_id AND m.bstart = c.callee_name_bstart)
    ), aliases AS (
      SELECT concat('i:', file_id, ':', import_no) AS site_id, file_id, path, kind, bstart, bend, asname,
        CASE
          WHEN asname IS NULL THEN bend
          ELSE bstart + octet_length(encode(coalesce(name, module)))
        END AS name_bend,
        bend - octet_length(encode(asname)) AS asname_bstart
      FROM cst_imports
      WHERE NOT is_star
    ), imported AS (
      SELECT a.*, e.dst_id FROM aliases AS a
      JOIN cpg_edges AS e ON e.src_id = a.site_id AND e.edge_kind = 'IMPORT_BINDS'
      WHERE a.kind = 'from' OR a.asname IS NOT NULL
      UNION
      SELECT a.*, r.target_id FROM aliases AS a JOIN rel_import_module AS r ON r.site_id = a.site_id
      WHERE a.kind = 'import' AND a.asname IS NULL
    )
    SELECT path, bstart, bend, dst_id, bit_or(roles) AS roles
    FROM (
      SELECT path, bstart, bend, dst_id, roles FROM meant
      UNION ALL SELECT path, bstart, bend, dst_id, roles FROM bound
      UNION ALL SELECT path, bstart, bend, dst_id, roles FROM called
      UNION ALL SELECT path, bstart, name_bend, dst_id, {IMPORT} FROM imported
      UNION ALL SELECT path, asname_bstart, bend, dst_id, {IMPORT} FROM imported WHERE asname IS NOT NULL
    )
    GROUP BY path, bstart, bend, dst_id
    ORDER BY path, bstart, bend, dst_id
"""
"""Names: what they refer to and the variables they are bound to; calls whose name refers to nothing; imported names.

`import a.b` binds `a` but names the module `a.b`.
"""

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
    uses = groupby(map(_Use._make, _rows(graph, _USES)), key=attrgetter("path"))
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
    for file_id, path, module, line_starts, documentation in _rows(graph, _FILES):
        name = module.rpartition(".")[2]
        entity = _Entity(symbols.namespace(module), "module", name, (0, 0), None, documentation)
        files[file_id] = _File(path, module, line_starts, {f"m:{file_id}": entity})
    for file_id, key, container, kind, name, ordinal, *spans, documentation in _rows(graph, _DEFINITIONS):
        entities = files[file_id].entities
        parent = entities[f"d:{file_id}:{container}" if container else f"m:{file_id}"].symbol
        spell = symbols.class_in if kind in ("class", "type_alias") else symbols.function_in
        bstart, bend, name_bstart, name_bend = spans
        entities[f"d:{file_id}:{key}"] = _Entity(
            spell(parent, name, ordinal), _KINDS[kind], name, (name_bstart, name_bend), (bstart, bend), documentation
        )
    for file_id, number, key, name, site, bstart, bend, scope, def_key in _rows(graph, _BINDINGS):
        entities = files[file_id].entities
        parent = entities[f"d:{file_id}:{def_key}" if def_key else f"m:{file_id}"].symbol
        name_range = None if bstart is None else (bstart, bend)
        if scope in ("module", "class"):
            kind = "variable" if scope == "module" else "field"
            entity = _Entity(symbols.variable_in(parent, name), kind, name, name_range)
        else:
            kind = "parameter" if site == "parameter" else "variable"
            entity = _Entity(f"local {number}", kind, name, name_range, enclosing=parent)
        entities[f"b:{file_id}:{key}"] = entity
    return list(files.values())


def _external_entities(graph: Graph, files: Iterable[_File]) -> dict[str, _Entity]:
    """Names without a definition in the repository, and names that an indexer has a symbol for, by node id."""
    own = [entity.symbol for file in files for entity in file.entities.values() if not symbols.is_local(entity.symbol)]
    known: dict[str, str] = {}
    for symbol in own:
        known.setdefault(symbols.dotted(symbol) or "", symbol)
    defined, found = set(own), {}
    for node_id, name, qname, text, is_module in _rows(graph, _NAMES):
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
    for node_id, other_id, overrides in _rows(graph, _RELATIONSHIPS):
        related[node_id][other_id] = related[node_id].get(other_id, False) or overrides
    return related


def _rows(graph: Graph, statement: str) -> Iterator[tuple[Any, ...]]:
    return QueryResult(graph.read(statement)).rows()
