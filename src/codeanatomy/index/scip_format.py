"""The SCIP format: its messages as plain classes, from which protobuf's own are made when this module is imported.

A class here is read twice: by the type checker, and by `_described`, which turns annotations and field numbers into a
protobuf descriptor. So there is no compiler, no generated file, and one description. Only `new` and `parse` make
messages; what they return behaves as the class says. Fields that are neither read nor written here are left out: a
parser skips them.

Enumerations are written as whole numbers, which is the same on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

PACKAGE: Final = "codeanatomy.scip"

UTF8_TEXT: Final = 1
"""Text encoding of a project's files."""

UTF8, UTF16, UTF32 = 1, 2, 3
"""The unit of columns in a document; 0 is unspecified."""

SEVERITIES: Final = {1: "error", 2: "warning", 3: "information", 4: "hint"}

KINDS: Final = {
    4: "attribute",
    7: "class",
    8: "constant",
    9: "constructor",
    11: "enum",
    12: "enum_member",
    15: "field",
    17: "function",
    18: "getter",
    21: "interface",
    26: "method",
    29: "module",
    30: "namespace",
    35: "package",
    37: "parameter",
    41: "property",
    42: "protocol",
    44: "self_parameter",
    45: "setter",
    54: "type",
    55: "type_alias",
    58: "type_parameter",
    61: "variable",
    66: "abstract_method",
    80: "static_method",
    82: "static_variable",
}
"""Kinds of symbols that make sense in Python."""

KIND_NUMBERS: Final = {word: number for number, word in KINDS.items()}

Item = TypeVar("Item")


class Repeated(Protocol[Item]):
    """A repeated field."""

    def __iter__(self) -> Iterator[Item]: ...
    def __len__(self) -> int: ...
    def extend(self, items: Iterable[Item], /) -> None:
        """Add copies of `items`."""


def _at(number: int) -> Any:
    """The number of a field."""
    return number


class ToolInfo:
    """The program that created an index."""

    name: str = _at(1)
    version: str = _at(2)
    arguments: Repeated[str] = _at(3)


class Metadata:
    """Metadata of an index."""

    version: int = _at(1)
    tool_info: ToolInfo = _at(2)
    project_root: str = _at(3)
    text_document_encoding: int = _at(4)


class Relationship:
    """How a symbol relates to another."""

    symbol: str = _at(1)
    is_reference: bool = _at(2)
    is_implementation: bool = _at(3)
    is_type_definition: bool = _at(4)
    is_definition: bool = _at(5)


class Signature:
    """A signature: formally a document, of which only this is used."""

    language: str = _at(4)
    text: str = _at(5)


class SymbolInformation:
    """What an index has about a symbol."""

    symbol: str = _at(1)
    documentation: Repeated[str] = _at(3)
    relationships: Repeated[Relationship] = _at(4)
    kind: int = _at(5)
    display_name: str = _at(6)
    signature_documentation: Signature = _at(7)
    enclosing_symbol: str = _at(8)


class Diagnostic:
    """A diagnostic."""

    severity: int = _at(1)
    code: str = _at(2)
    message: str = _at(3)
    source: str = _at(4)


class Occurrence:
    """A symbol at a place: line, column, then end line if it is another, and end column; all from 0."""

    range: Repeated[int] = _at(1)
    symbol: str = _at(2)
    symbol_roles: int = _at(3)
    diagnostics: Repeated[Diagnostic] = _at(6)
    enclosing_range: Repeated[int] = _at(7)


class Document:
    """One file."""

    relative_path: str = _at(1)
    occurrences: Repeated[Occurrence] = _at(2)
    symbols: Repeated[SymbolInformation] = _at(3)
    language: str = _at(4)
    position_encoding: int = _at(6)


class Index:
    """A whole index. Several of them, one after the other, are one as well."""

    metadata: Metadata = _at(1)
    documents: Repeated[Document] = _at(2)
    external_symbols: Repeated[SymbolInformation] = _at(3)


_MESSAGES: Final[tuple[type, ...]] = (
    ToolInfo,
    Metadata,
    Relationship,
    Signature,
    SymbolInformation,
    Diagnostic,
    Occurrence,
    Document,
    Index,
)

Message = TypeVar("Message")


def new(kind: type[Message], /, **fields: object) -> Message:
    """An empty message of a kind, or one with `fields`."""
    made: Message = _CLASSES[kind](**fields)
    return made


def parse(kind: type[Message], data: bytes) -> Message:
    """Read a message; raises `ValueError` if `data` is none."""
    made: Message = _CLASSES[kind]()
    try:
        made.MergeFromString(data)  # type: ignore[attr-defined]
    except DecodeError as error:
        raise ValueError(f"not a {kind.__name__} of SCIP") from error
    return made


def encode(message: object) -> bytes:
    """The bytes of a message, the same for the same content."""
    data: bytes = message.SerializeToString(deterministic=True)  # type: ignore[attr-defined]
    return data


def _described(kind: type) -> Any:
    """A class of this module as a protobuf descriptor."""
    field = descriptor_pb2.FieldDescriptorProto
    scalars = {"str": field.TYPE_STRING, "int": field.TYPE_INT32, "bool": field.TYPE_BOOL}
    described = descriptor_pb2.DescriptorProto(name=kind.__name__)
    for name, annotation in kind.__annotations__.items():
        item = annotation.removeprefix("Repeated[").removesuffix("]")
        described.field.add(
            name=name,
            number=getattr(kind, name),
            label=field.LABEL_OPTIONAL if item == annotation else field.LABEL_REPEATED,
            type=scalars.get(item, field.TYPE_MESSAGE),
            type_name=None if item in scalars else f".{PACKAGE}.{item}",
        )
    return described


def _made() -> dict[type, Any]:
    """Protobuf's class for each of ours, in a private pool."""
    file = descriptor_pb2.FileDescriptorProto(name="codeanatomy/scip.proto", package=PACKAGE, syntax="proto3")
    file.message_type.extend(map(_described, _MESSAGES))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    return {kind: message_factory.GetMessageClass(find(f"{PACKAGE}.{kind.__name__}")) for kind in _MESSAGES}


_CLASSES: Final = _made()
