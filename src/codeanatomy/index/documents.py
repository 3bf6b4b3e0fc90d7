"""Turn the document of an indexer into a row: aligned with the facts of the file, sorted, with a fingerprint.

Glossary
    site       a call, a use of a name, an import or a definition of the file, with the span of its name.
    alignment  finding the site of an occurrence: the one with the same span, else the best that contains it or is
               contained in it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from codeanatomy.catalogue.columns import GLOBAL_OWNER
from codeanatomy.catalogue.documents import DOCUMENT_DATASETS
from codeanatomy.catalogue.ids import short_hash
from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.index.symbols import is_local

INDEX_REVISION: Final = 7
"""Raise it whenever the same report gives another document."""

DEFINITION: Final = 1
IMPORT: Final = 2
WRITE: Final = 4
READ: Final = 8
CALL: Final = 1 << 16
"""Roles as bits of SCIP. `CALL` is an addition: the symbol is what runs here, not only what is named."""


class Occurrence(NamedTuple):
    """A symbol in a span; `implicit` if it runs there without a call: a property, a loop, a decorator."""

    bstart: int
    bend: int
    symbol: str
    roles: int = 0
    implicit: bool = False


class Symbol(NamedTuple):
    """What the indexer knows about a symbol."""

    symbol: str
    kind: str
    display_name: str
    qname: str | None = None
    signature: str | None = None
    documentation: str | None = None
    enclosing_symbol: str | None = None


class Relationship(NamedTuple):
    """How a symbol relates to another."""

    symbol: str
    related_symbol: str
    is_reference: bool = False
    is_implementation: bool = False
    is_type_definition: bool = False
    is_definition: bool = False


class Diagnostic(NamedTuple):
    """A diagnostic of the indexer about a span."""

    bstart: int
    bend: int
    severity: str
    code: str
    message: str


@dataclass
class Document:
    """What an indexer reports about one file, in any order.

    An indexer that `marks_calls` reports what runs. For others, the symbol at the name of a callee is what is called.
    """

    occurrences: list[Occurrence] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    relationships: list[Relationship] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)
    interface: list[str] = field(default_factory=list)
    marks_calls: bool = False


class Site(NamedTuple):
    """The span of a name, its number and question, the code that it is part of, and the binding that it means."""

    bstart: int
    bend: int
    number: int
    ask_no: int | None = None
    caller_key: str | None = None
    binding_key: str | None = None


@dataclass(frozen=True)
class Sites:
    """The sites of one file, and its lines; `call_spans` are the spans of entire calls."""

    size: int
    line_starts: Sequence[int]
    calls: Sequence[Site]
    call_spans: Sequence[tuple[int, int]]
    implicit_calls: Sequence[Site]
    refs: Sequence[Site]
    imports: Sequence[Site]
    defs: Sequence[tuple[int, int, str]]
    def_bodies: Sequence[tuple[int, int, str]]

    def offset(self, line: int, column: int) -> int:
        """The byte at a line and column, both from 1; the line after a last newline is at the end."""
        return self.line_starts[line - 1] + column - 1 if line <= len(self.line_starts) else self.size

    def line(self, offset: int) -> int:
        """The line of a byte, from 1."""
        return bisect_right(self.line_starts, offset)


SITE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cst_callsites": (
        "bstart",
        "bend",
        "callee_bstart",
        "callee_bend",
        "callee_name_bstart",
        "callee_name_bend",
        "ask_no",
        "caller_key",
    ),
    "cst_implicit_calls": ("bstart", "bend", "ask_no", "caller_key"),
    "cst_name_refs": ("name_bstart", "name_bend", "ask_no", "caller_key", "binding_key"),
    "cst_imports": ("bstart", "bend", "ask_no"),
    "cst_defs": ("bstart", "bend", "name_bstart", "name_bend", "def_key"),
}
"""Facts that alignment reads; each field is a list column named `dataset_field`."""


def sites_in(batch: pa.RecordBatch) -> Iterator[Sites]:
    """The sites of each file of a batch, which has `size`, `line_starts` and the columns of `SITE_FIELDS`."""

    def lists(dataset: str) -> Iterator[list[tuple[Any, ...]]]:
        """For each file, the rows of a dataset; the number of a fact is its index in this list."""
        columns = (batch.column(f"{dataset}_{field}").to_pylist() for field in SITE_FIELDS[dataset])
        return (list(zip(*row, strict=True)) for row in zip(*columns, strict=True))

    sizes, starts = (batch.column(name).to_pylist() for name in ("size", "line_starts"))
    for size, lines, calls, implicit, refs, imports, defs in zip(sizes, starts, *map(lists, SITE_FIELDS), strict=True):
        yield Sites(
            size=size,
            line_starts=lines,
            calls=[
                Site(*((start, end) if name_start is None else (name_start, name_end)), number, *more)
                for number, (_, _, start, end, name_start, name_end, *more) in enumerate(calls)
            ],
            call_spans=[call[:2] for call in calls],
            implicit_calls=[Site(start, end, number, *more) for number, (start, end, *more) in enumerate(implicit)],
            refs=[Site(start, end, number, *more) for number, (start, end, *more) in enumerate(refs)],
            imports=[Site(start, end, number, *more) for number, (start, end, *more) in enumerate(imports)],
            defs=[(start, end, key) for _, _, start, end, key in defs if start is not None],
            def_bodies=[(start, end, key) for start, end, _, _, key in defs],
        )


@dataclass(frozen=True)
class DocumentRow:
    """A row of `documents`."""

    file_id: str
    path: str
    provider: str
    status: str
    detail: str | None = None
    fingerprint: str = ""
    interface: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    arrays: tuple[Sequence[tuple[Any, ...]], ...] = ((),) * len(DOCUMENT_DATASETS)


def finished(document: Document, sites: Sites, file_id: str, path: str, provider: str) -> DocumentRow:
    """Align, order and fingerprint a document."""
    occurrences, asks = _occurrences(document, sites)
    arrays = (
        occurrences,
        _symbols(document, sites),
        sorted(set(document.relationships)),
        _diagnostics(document.diagnostics, sites),
        asks,
    )
    mentions = tuple(sorted(document.mentions))
    content = json.dumps((provider, arrays), ensure_ascii=False, separators=(",", ":"))
    return DocumentRow(
        file_id=file_id,
        path=path,
        provider=provider,
        status="ok",
        fingerprint=fingerprint_of(content),
        interface=tuple(sorted(document.interface)),
        mentions=mentions,
        arrays=arrays,
    )


def finished_or_failed(
    read: Callable[[], Document], sites: Sites, file_id: str, path: str, provider: str
) -> DocumentRow:
    """A document, or a row with the reason why there is none: one unreadable document must not stop a build."""
    try:
        return finished(read(), sites, file_id, path, provider)
    except Exception as error:
        return DocumentRow(file_id, path, provider, "failed", f"its document cannot be read: {error!r}"[:300])


def about_other_packages(symbols: Iterable[Symbol], provider: str) -> DocumentRow:
    """The document that belongs to no file: symbols that no file of the index defines."""
    unplaced = (None,) * 5
    rows = [(*symbol, *unplaced) for symbol in sorted(set(symbols), key=str)]
    arrays = ((), rows, (), (), ())
    content = json.dumps((provider, rows), ensure_ascii=False, separators=(",", ":"))
    return DocumentRow(GLOBAL_OWNER, "", provider, "ok", fingerprint=fingerprint_of(content), arrays=arrays)


def fingerprint_of(text: str) -> str:
    """A hash of a text, which may have lone surrogates."""
    return short_hash(text.encode(errors="surrogatepass"))


def _occurrences(document: Document, sites: Sites) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Occurrences as rows of `scip_occurrences`, and the questions about their symbols."""
    ordered = _merged(document.occurrences)
    calls, refs, imports, implicit = (
        {(site.bstart, site.bend): site for site in some}
        for some in (sites.calls, sites.refs, sites.imports, sites.implicit_calls)
    )
    defs = {(bstart, bend): key for bstart, bend, key in sites.defs}
    contained = _contained(ordered, sites.imports, exact=(calls, refs, imports, defs))
    asks = _Asks()
    rows: list[list[Any]] = []
    for each in ordered:
        span = (each.bstart, each.bend)
        is_call, is_definition = bool(each.roles & CALL), bool(each.roles & DEFINITION)
        is_written = is_call or not (document.marks_calls or is_definition)
        call = calls.get(span) if is_written and not each.implicit else None
        implied = implicit.get(span) if each.implicit else None
        ref = None if each.roles == CALL or implied else refs.get(span)
        imported = None if is_call else imports.get(span)
        key = defs.get(span) if is_definition else None
        alignment = "exact_span" if call or implied or ref or imported or key else None
        if alignment is None and each in contained:
            imported, alignment = contained[each], "contained_span"
        running = call or implied or (ref if is_call else None)
        named = ref or imported
        rows.append(
            [
                each.bstart,
                each.bend,
                sites.line(each.bstart),
                each.symbol,
                _role(each.roles),
                each.roles & ~CALL,
                None if is_definition else asks.number(each.symbol, running, named),
                call.number if call else None,
                implied.number if implied else None,
                ref.number if ref else None,
                imported.number if imported else None,
                key,
                (running or ref or _NOWHERE).caller_key,
                alignment,
            ]
        )
    for other in sorted({each.related_symbol for each in document.relationships}):
        asks.number(other, None, None)
    return _counted(rows), asks.rows()


class _Asks:
    """Questions about symbols, numbered from -1 down: one for each symbol and the questions of its site."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int | None, int | None], int] = {}

    def number(self, symbol: str, running: Site | None, named: Site | None) -> int:
        key = (symbol, running.ask_no if running else None, named.ask_no if named else None)
        return self._numbers.setdefault(key, -1 - len(self._numbers))

    def rows(self) -> list[tuple[Any, ...]]:
        return [(number, f"y:{symbol}", *own) for (symbol, *own), number in self._numbers.items()]


_NOWHERE: Final = Site(0, 0, 0)


def _merged(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Occurrences in order, each symbol once at each place, in all its roles."""
    merged: dict[tuple[int, int, str], tuple[int, bool]] = {}
    for bstart, bend, symbol, roles, implicit in occurrences:
        before, was_implicit = merged.get((bstart, bend, symbol), (0, False))
        merged[bstart, bend, symbol] = before | roles, was_implicit or implicit
    return [Occurrence(*place, *how) for place, how in sorted(merged.items())]


_SITE: Final = slice(7, 11)


def _counted(rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Rows with the number of symbols that stand on the same site, before the alignment."""
    on_site = Counter(next(_sites(row), None) for row in rows)
    return [(*row[:-1], on_site[site] if (site := next(_sites(row), None)) else 1, row[-1]) for row in rows]


def _sites(row: Sequence[Any]) -> Iterator[tuple[int, int]]:
    return ((place, number) for place, number in enumerate(row[_SITE]) if number is not None)


def _contained(
    occurrences: Iterable[Occurrence], imports: Sequence[Site], exact: Iterable[Mapping[tuple[int, int], Any]]
) -> dict[Occurrence, Site]:
    """The best occurrence inside each import that has none of its very span: the longest, then the first.

    What is imported comes before the local name it is given (`codec` of `import json as codec`). Of the sites, only an
    imported alias is more than a name (`module as name`, `a.b.c`).
    """
    taken = set().union(*exact)
    starts = [site.bstart for site in imports]
    best: dict[Site, Occurrence] = {}
    with_exact = {(each.bstart, each.bend) for each in occurrences}
    for each in occurrences:
        if each.roles & (CALL | DEFINITION) or (each.bstart, each.bend) in taken:
            continue
        place = bisect_right(starts, each.bstart) - 1
        if place < 0 or each.bend > imports[place].bend or imports[place][:2] in with_exact:
            continue
        known = best.get(imports[place])
        if known is None or _rank(each) < _rank(known):
            best[imports[place]] = each
    return {each: site for site, each in best.items()}


def _rank(occurrence: Occurrence) -> tuple[Any, ...]:
    return is_local(occurrence.symbol), occurrence.bstart - occurrence.bend, *occurrence


def _role(roles: int) -> str:
    for bit, name in ((DEFINITION, "definition"), (CALL, "call"), (IMPORT, "import"), (WRITE, "write"), (READ, "read")):
        if roles & bit:
            return name
    return "reference"


def _symbols(document: Document, sites: Sites) -> list[tuple[Any, ...]]:
    """Symbols as rows of `scip_symbol_information`, with the place of their first definition."""
    places: dict[str, tuple[int, int]] = {}
    for each in sorted(document.occurrences):
        if each.roles & DEFINITION:
            places.setdefault(each.symbol, (each.bstart, each.bend))
    keys = {(bstart, bend): key for bstart, bend, key in sites.defs}
    bindings = {(site.bstart, site.bend): site.binding_key for site in sites.refs}
    rows = []
    for symbol in sorted(set(document.symbols), key=str):
        place = places.get(symbol.symbol)
        where = (*place, sites.line(place[0])) if place else (None, None, None)
        key = keys.get(place) if place else None
        binding = bindings.get(place) if place and key is None else None
        rows.append((*symbol, key, binding, *where))
    return rows


def _diagnostics(found: Iterable[Diagnostic], sites: Sites) -> list[tuple[Any, ...]]:
    return [
        (
            number,
            each.severity,
            each.code,
            each.message,
            each.bstart,
            each.bend,
            sites.line(each.bstart),
            _innermost(sites.def_bodies, each.bstart),
        )
        for number, each in enumerate(sorted(set(found)))
    ]


def _innermost(bodies: Sequence[tuple[int, int, str]], offset: int) -> str | None:
    """The definition around a byte; `bodies` are in order of their start, outer before inner."""
    place = bisect_right(bodies, (offset, 1 << 31, ""))
    return next((key for _, bend, key in reversed(bodies[:place]) if bend > offset), None)


def as_batch(rows: Sequence[DocumentRow]) -> pa.RecordBatch:
    """Documents as rows of the table."""
    schema = DOCUMENTS.schema()
    plain = len(schema) - len(DOCUMENT_DATASETS)
    values = [
        (r.file_id, r.path, r.provider, r.status, r.detail, r.fingerprint, list(r.interface), list(r.mentions))
        for r in rows
    ]
    columns = zip(*values, strict=True) if values else ((),) * plain
    arrays = [pa.array(list(column), schema[place].type) for place, column in enumerate(columns)]
    arrays += [
        _lists([row.arrays[place] for row in rows], schema[plain + place].type)
        for place in range(len(DOCUMENT_DATASETS))
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _lists(lists: Sequence[Sequence[tuple[Any, ...]]], kind: pa.ListType) -> pa.Array:
    """Lists of tuples as an array of lists of structs, column by column."""
    struct = kind.value_type
    flat = [row for rows in lists for row in rows]
    columns = list(zip(*flat, strict=True)) or [()] * struct.num_fields
    fields = [struct.field(place) for place in range(struct.num_fields)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    offsets = [0]
    for rows in lists:
        offsets.append(offsets[-1] + len(rows))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields), type=kind
    )
