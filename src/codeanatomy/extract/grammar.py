"""The parser's grammar: the language, and the numbers of the node kinds that the walk distinguishes."""

from __future__ import annotations

from typing import Final

import tree_sitter_python
from tree_sitter import Language

LANGUAGE: Final = Language(tree_sitter_python.language())

ERROR: Final = 0xFFFF


def kind(name: str, *, named: bool = True) -> int:
    """The number of the node kind `name`."""
    number = LANGUAGE.id_for_node_kind(name, named)
    if number is None:
        raise KeyError(f"the grammar has no node kind {name!r}")
    return number


IDENTIFIER: Final = kind("identifier")
ATTRIBUTE: Final = kind("attribute")
CALL: Final = kind("call")
SUBSCRIPT: Final = kind("subscript")
LAMBDA: Final = kind("lambda")
STRING: Final = kind("string")
CONCATENATED_STRING: Final = kind("concatenated_string")
INTERPOLATION: Final = kind("interpolation")
NAMED_EXPRESSION: Final = kind("named_expression")
PARENTHESIZED: Final = kind("parenthesized_expression")
TUPLE: Final = kind("tuple")
LIST: Final = kind("list")
SET: Final = kind("set")
DICTIONARY: Final = kind("dictionary")
BINARY_OPERATOR: Final = kind("binary_operator")
GENERATOR: Final = kind("generator_expression")
PAIR: Final = kind("pair")
INTEGER: Final = kind("integer")
UNARY_OPERATOR: Final = kind("unary_operator")
SLICE: Final = kind("slice")
FOR_IN_CLAUSE: Final = kind("for_in_clause")

ARGUMENT_LIST: Final = kind("argument_list")
KEYWORD_ARGUMENT: Final = kind("keyword_argument")
LIST_SPLAT: Final = kind("list_splat")
DICTIONARY_SPLAT: Final = kind("dictionary_splat")

EXPRESSION_LIST: Final = kind("expression_list")
PATTERN_LIST: Final = kind("pattern_list")
TUPLE_PATTERN: Final = kind("tuple_pattern")
LIST_PATTERN: Final = kind("list_pattern")
LIST_SPLAT_PATTERN: Final = kind("list_splat_pattern")
DICTIONARY_SPLAT_PATTERN: Final = kind("dictionary_splat_pattern")
AS_PATTERN: Final = kind("as_pattern")

EXPRESSION_STATEMENT: Final = kind("expression_statement")
ASSIGNMENT: Final = kind("assignment")
BLOCK: Final = kind("block")
WITH_CLAUSE: Final = kind("with_clause")
FOR_STATEMENT: Final = kind("for_statement")
WHILE_STATEMENT: Final = kind("while_statement")
RETURN_STATEMENT: Final = kind("return_statement")
RAISE_STATEMENT: Final = kind("raise_statement")
ELSE_CLAUSE: Final = kind("else_clause")
EXCEPT_CLAUSE: Final = kind("except_clause")
CHEVRON: Final = kind("chevron")
COMMENT: Final = kind("comment")
LINE_CONTINUATION: Final = kind("line_continuation")

DOTTED_NAME: Final = kind("dotted_name")
ALIASED_IMPORT: Final = kind("aliased_import")
WILDCARD_IMPORT: Final = kind("wildcard_import")

CASE_PATTERN: Final = kind("case_pattern")
CLASS_PATTERN: Final = kind("class_pattern")
KEYWORD_PATTERN: Final = kind("keyword_pattern")

DECORATOR: Final = kind("decorator")
FUNCTION_DEFINITION: Final = kind("function_definition")
CLASS_DEFINITION: Final = kind("class_definition")
PARAMETERS: Final = kind("parameters")
LAMBDA_PARAMETERS: Final = kind("lambda_parameters")
DEFAULT_PARAMETER: Final = kind("default_parameter")
TYPED_PARAMETER: Final = kind("typed_parameter")
TYPED_DEFAULT_PARAMETER: Final = kind("typed_default_parameter")
POSITIONAL_SEPARATOR: Final = kind("positional_separator")
KEYWORD_SEPARATOR: Final = kind("keyword_separator")

TYPE: Final = kind("type")
TYPE_PARAMETER: Final = kind("type_parameter")
CONSTRAINED_TYPE: Final = kind("constrained_type")
GENERIC_TYPE: Final = kind("generic_type")
UNION_TYPE: Final = kind("union_type")
SPLAT_TYPE: Final = kind("splat_type")

COMMA: Final = kind(",", named=False)
COLON: Final = kind(":", named=False)
EQUALS: Final = kind("=", named=False)
IN: Final = kind("in", named=False)
ASYNC: Final = kind("async", named=False)
FROM: Final = kind("from", named=False)

LITERALS: Final = frozenset(
    map(kind, ("string", "concatenated_string", "integer", "float", "true", "false", "none", "ellipsis"))
)
