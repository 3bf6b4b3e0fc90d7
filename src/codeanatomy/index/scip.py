"""Read a SCIP index of any indexer: find its documents without parsing them, then turn each into a `Document`.

An index may be several `Index` messages one after the other (that is how indexers stream), so a path may come up more
than once: its slices are parsed as one document. A document says what its columns count; if it does not, they are units
of UTF-16, as in the language server protocol and in scip-python, which never says.

Nothing in an index is trusted: places outside of the text and symbols that are not spelled as symbols are dropped and
counted.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

from codeanatomy.errors import InputError
from codeanatomy.index import scip_format as scip
from codeanatomy.index import symbols
from codeanatomy.index.documents import DEFINITION, Diagnostic, Document, Occurrence, Relationship, Symbol
from codeanatomy.index.positions import Positions
from codeanatomy.repo.reading import open_regular

SCIP_PYTHON: Final = "scip-python"
"""The indexer that reads every source as UTF-8 and ignores its coding cookie."""

_METADATA, _DOCUMENTS, _EXTERNAL_SYMBOLS = 1, 2, 3
_RELATIVE_PATH: Final = 1
_BYTES: Final = 2  # wire type of texts and messages
_FIXED_SIZES: Final = {1: 8, 5: 4}
_ENDS: Final = ("/", "#", ".", ":", "!", ")", "]")  # of descriptors
_FENCE: Final = re.compile(r"```python\n(.*?)\n?```", re.DOTALL)


class Slice(NamedTuple):
    """Bytes of an index file."""

    offset: int
    length: int


@dataclass(frozen=True)
class ScipIndex:
    """An index file and the positions of its documents, not parsed yet."""

    path: Path
    tool: str
    tool_version: str
    documents: Mapping[str, tuple[Slice, ...]]
    external: tuple[Slice, ...]

    def read(self, slices: Iterable[Slice]) -> list[bytes]:
        """The bytes of `slices`."""
        with self.path.open("rb") as file:
            return [_bytes_of(file, each) for each in slices]


@dataclass
class ScipDocument(Document):
    """The document of one file, and how many of its entries are invalid."""

    dropped_places: int = 0
    dropped_symbols: int = 0


def open_index(path: Path) -> ScipIndex:
    """Find the documents of an index; of each, only the path is looked at."""
    try:
        with (
            open_regular(path, follow_link=True) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            return _scanned(path, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} is not a SCIP index: {reason}") from error


def read_document(
    data: bytes | Sequence[bytes],
    source: bytes,
    line_starts: Sequence[int] | None,
    tool: str,
    path: str,
) -> ScipDocument:
    """Read the document `data`, or its several slices, about the file `path` with the bytes `source`.

    `line_starts` are those of the file's facts, if they are known. `tool` is the name of the indexer.
    """
    try:
        parsed = scip.parse(scip.Document, data if isinstance(data, bytes) else b"".join(data))
    except ValueError as error:
        raise InputError(f"the SCIP document of {path} is damaged") from error
    unit = parsed.position_encoding or scip.UTF16
    positions = Positions(source, unit, line_starts, read_as_utf8=tool == SCIP_PYTHON)
    return _Reading(path, positions).document(parsed)


def read_external_symbols(data: Iterable[bytes]) -> list[Symbol]:
    """What an index knows of symbols that are not defined in it."""
    reading = _Reading("", None)
    try:
        for each in data:
            reading.add_information(scip.parse(scip.SymbolInformation, each))
    except ValueError as error:
        raise InputError("the external symbols of the SCIP index are damaged") from error
    return reading.symbols()


class _Information(NamedTuple):
    """What one message has about a symbol."""

    kind: str
    display_name: str
    signature: str
    documentation: str
    enclosing_symbol: str


class _Reading:
    """One document while it is read."""

    def __init__(self, path: str, positions: Positions | None) -> None:
        self._path = path
        self._positions = positions
        self._canonical: dict[str, str | None] = {}
        self._information: dict[str, _Information] = {}
        self._relationships: dict[tuple[str, str], Relationship] = {}
        self._local_names: dict[str, str] = {}

    def document(self, parsed: scip.Document) -> ScipDocument:
        """Read everything in `parsed`."""
        document = ScipDocument()
        self._add_occurrences(parsed, document)
        for information in parsed.symbols:
            self.add_information(information)
        document.symbols = self.symbols()
        document.relationships = list(self._relationships.values())
        document.dropped_symbols = sum(raw != "" and each is None for raw, each in self._canonical.items())
        document.mentions = _modules(each for each in self._canonical.values() if each is not None)
        return document

    def _add_occurrences(self, parsed: scip.Document, document: ScipDocument) -> None:
        assert self._positions is not None
        span_of, text = self._positions.span, self._positions.text
        roles: dict[tuple[int, int, str], int] = {}
        for occurrence in parsed.occurrences:
            span = span_of(list(occurrence.range))
            if span is None:
                document.dropped_places += 1
                continue
            symbol = self._symbol(occurrence.symbol)
            if symbol is not None:
                key, bits = (*span, symbol), occurrence.symbol_roles
                roles[key] = roles.get(key, 0) | bits
                if symbols.is_local(symbol) and (bits & DEFINITION or symbol not in self._local_names):
                    self._local_names[symbol] = text[span[0] : span[1]].decode(errors="replace")
            for each in occurrence.diagnostics:
                severity = scip.SEVERITIES.get(each.severity, "information")
                document.diagnostics.append(Diagnostic(*span, severity, each.code, each.message))
        document.occurrences = [Occurrence(*key, bits) for key, bits in roles.items()]

    def add_information(self, information: scip.SymbolInformation) -> None:
        """Add what a message has about a symbol; of duplicates the first counts."""
        symbol = self._symbol(information.symbol)
        if symbol is None:
            return
        new = self._read_information(symbol, information)
        before = self._information.get(symbol)
        self._information[symbol] = new if before is None else _Information(*map(_either, before, new))
        for each in information.relationships:
            if (related := self._symbol(each.symbol)) is not None:
                known = self._relationships.get((symbol, related), Relationship(symbol, related))
                self._relationships[symbol, related] = Relationship(
                    symbol,
                    related,
                    known.is_reference or each.is_reference,
                    known.is_implementation or each.is_implementation,
                    known.is_type_definition or each.is_type_definition,
                    known.is_definition or each.is_definition,
                )

    def _read_information(self, symbol: str, information: scip.SymbolInformation) -> _Information:
        documentation = list(information.documentation)
        signature = information.signature_documentation.text
        if not signature and documentation and (fenced := _FENCE.fullmatch(documentation[0])):
            signature = fenced[1]  # older indexers have no field for it
            del documentation[0]
        return _Information(
            scip.KINDS.get(information.kind, ""),
            information.display_name,
            signature,
            "\n\n".join(filter(None, documentation)),
            self._symbol(information.enclosing_symbol) or "",
        )

    def symbols(self) -> list[Symbol]:
        """What is known of each symbol."""
        return [self._known(symbol, information) for symbol, information in self._information.items()]

    def _known(self, symbol: str, information: _Information) -> Symbol:
        kind, qname = information.kind or _kind(symbol), symbols.dotted(symbol)
        if information.display_name:
            name = information.display_name
        elif qname is None:
            name = self._local_names.get(symbol, symbol.partition("@")[0])
        else:
            name = qname if kind == "module" else qname.rpartition(".")[2]
        signature, documentation = information.signature or None, information.documentation or None
        return Symbol(symbol, kind, name, qname, signature, documentation, information.enclosing_symbol or None)

    def _symbol(self, raw: str) -> str | None:
        """A symbol as `symbols` spells it; None if it is not valid."""
        if raw not in self._canonical:
            self._canonical[raw] = self._spelled(raw)
        return self._canonical[raw]

    def _spelled(self, raw: str) -> str | None:
        if symbols.is_local(raw):
            number = raw.removeprefix("local ").strip()
            return symbols.local(number, self._path) if number else None
        try:
            symbol = symbols.without_version(raw)
        except ValueError:
            return None
        return symbol if symbol.endswith(_ENDS) else None


def _modules(spelled: Iterable[str]) -> set[str]:
    """The modules that symbols are in. Many begin with the same one, so only beginnings are taken apart."""
    beginnings = {symbol[: symbol.rfind("/") + 1] for symbol in spelled if not symbols.is_local(symbol)}
    found = set()
    for beginning in beginnings:
        with suppress(ValueError):  # the slash was in the name of a package
            found.add(symbols.module_of(beginning))
    return {module for module in found if module}


def _kind(symbol: str) -> str:
    """A kind for a symbol whose indexer gives none; scip-python ends the symbol of a module in `__init__:`."""
    kind = symbols.kind_of(symbol)
    return "module" if kind == "meta" and symbol.endswith("/__init__:") else kind


def _either(before: str, new: str) -> str:
    return before or new


def _scanned(path: Path, data: mmap.mmap) -> ScipIndex:
    metadata: list[bytes] = []
    documents: dict[str, list[Slice]] = {}
    external = []
    for number, begin, end in _fields(data, 0, len(data)):
        if number == _METADATA:
            metadata.append(data[begin:end])
        elif number == _DOCUMENTS:
            documents.setdefault(_relative_path(data, begin, end), []).append(Slice(begin, end - begin))
        elif number == _EXTERNAL_SYMBOLS:
            external.append(Slice(begin, end - begin))
    if not metadata:
        raise ValueError("it has no metadata")
    tool = scip.parse(scip.Metadata, b"".join(metadata)).tool_info
    slices = {name: tuple(each) for name, each in documents.items()}
    return ScipIndex(path, tool.name, tool.version, slices, tuple(external))


def _relative_path(data: mmap.mmap, begin: int, end: int) -> str:
    for number, first, last in _fields(data, begin, end):
        if number == _RELATIVE_PATH:
            return data[first:last].decode()
    raise ValueError("a document has no path")


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, first and last byte of each field of a message that is a text or a message; others are skipped."""
    while at < end:
        tag, at = _varint(data, at, end)
        wire_type = tag & 7
        if wire_type == _BYTES:
            length, at = _varint(data, at, end)
            if at + length > end:
                raise ValueError("it is cut off")
            yield tag >> 3, at, at + length
            at += length
        elif wire_type == 0:
            _, at = _varint(data, at, end)
        elif wire_type in _FIXED_SIZES:
            at += _FIXED_SIZES[wire_type]
        else:
            raise ValueError("it has a field of no known type")
    if at > end:
        raise ValueError("it is cut off")


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("it is cut off")


def _bytes_of(file: IO[bytes], part: Slice) -> bytes:
    file.seek(part.offset)
    return file.read(part.length)
