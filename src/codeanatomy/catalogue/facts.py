"""Facts: what extraction reads off one content, whatever its path.

Every fact dataset is one `array<struct>` column of the stored `facts` table. Rows of one content
refer to each other by small ordinals (`def_no`, `scope_no`, …), counted from 0 in source order of
the start byte (outer before inner), so they mean something only together with `content_id`.

Keys name a thing by what it is called, never by where it stands, so that an id made from one survives edits elsewhere
in the file. Each is the first 24 hex digits of a sha256 over UTF-8 text:
    def_key      `qualname#ordinal` of the definition
    scope_key    `qualname#ordinal` of the scope
    binding_key  `qualname#ordinal:name` of the scope and the name
A key column beside a `_no` column names the same thing: numbers join rows of one content, keys make ids.

Each dataset belongs to one layer of extraction (`layers`). A few columns are filled in by a later layer than that of
their dataset, and name it: which binding a name means (`scopes`), which question a site asks (`values`).

Spans are UTF-8 byte offsets into the decoded text, end-exclusive; for a UTF-8 file that is the file.
"""

from __future__ import annotations

from dataclasses import replace

from codeanatomy.catalogue.columns import Column, Dataset, flag, lines, number, span, text, texts

_SCOPE = number("scope_no", "scope in which it is evaluated", required=True)
_DEF = (
    number("def_no", "innermost enclosing definition; null at module level"),
    text("def_key", "key of that definition"),
)
_OF_DEF = text("def_key", "key of that definition", required=True)
_CALLER = text("caller_key", "key of the innermost enclosing function or lambda; null when the module's code runs it")


def _ask(what: str, prefix: str = "") -> Column:
    doc = f"question of `asks` that says what {what}; null if this content cannot tell"
    return replace(number(f"{prefix}ask_no", doc), layer="values")


def _by_scopes(column: Column) -> Column:
    return replace(column, layer="scopes")


CST_DEFS = Dataset(
    "cst_defs",
    "Definitions: functions, methods, classes, lambdas, type aliases.",
    (
        number("def_no", "ordinal of this definition", required=True),
        text("def_key", "key of this definition", required=True),
        number("container_no", "innermost enclosing definition; null at module level"),
        text("container_key", "key of that definition"),
        number("scope_no", "scope in which the definition stands", required=True),
        number("own_scope_no", "scope of its body; null for a definition without one"),
        text("kind", "function, method, class, lambda or type_alias", required=True),
        text(
            "name", "its name; `<lambdaN>` for a lambda, N from 1 in source order within its container", required=True
        ),
        text("qualname", "dotted name inside the module: `Class.method`, `outer.inner`", required=True),
        number("ordinal", "0 for the first definition of this qualname in the file, then 1, 2, …", required=True),
        *span("the definition, decorators excluded"),
        *span("the name", prefix="name_", required=False),
        *lines(),
        texts("decorators", "source text of each decorator, outermost first, without `@`"),
        texts("bases", "source text of each class argument, keyword or stars included"),
        text("returns", "source text of the return annotation"),
        flag("is_async", "declared with `async`"),
        flag("is_generator", "its own body yields"),
        *span("the docstring literal", prefix="doc_", required=False),
        _ask("a method overrides", "overrides_"),
    ),
)

CST_PARAMS = Dataset(
    "cst_params",
    "Parameters of functions and lambdas, in order.",
    (
        number("param_no", "ordinal of this parameter", required=True),
        number("def_no", "definition it belongs to", required=True),
        _OF_DEF,
        number("position", "place in the signature, from 0", required=True),
        text("name", "its name, as written", required=True),
        text(
            "kind", "positional_only, positional_or_keyword, var_positional, keyword_only or var_keyword", required=True
        ),
        *span("the name"),
        *lines(),
        text("default", "source text of the default"),
        text("annotation", "source text of the annotation"),
    ),
)

CST_DECORATORS = Dataset(
    "cst_decorators",
    "Decorators, outermost first.",
    (
        number("def_no", "definition it decorates", required=True),
        _OF_DEF,
        number("position", "place among the decorators, from 0", required=True),
        *span("the decorator expression, without `@`"),
        text("text", "its source text", required=True),
        text("dotted", "dotted name of the expression, or of what it calls; null if it is neither"),
        _ask("the expression is, or of what it calls,"),
    ),
)

CST_BASES = Dataset(
    "cst_bases",
    "Class arguments: bases and keywords such as `metaclass=`.",
    (
        number("def_no", "class it belongs to", required=True),
        _OF_DEF,
        number("position", "place among the arguments, from 0", required=True),
        text("keyword", "keyword name; null for a base; `*` or `**` for an unpacked argument"),
        *span("the expression, without keyword or stars"),
        text("text", "source text of the argument, keyword or stars included", required=True),
        text("dotted", "dotted name of the expression, subscripts dropped (`Generic[T]` is `Generic`)"),
        _ask("it is"),
    ),
)

CST_CALLSITES = Dataset(
    "cst_callsites",
    "Calls.",
    (
        number("call_no", "ordinal of this call", required=True),
        *_DEF,
        _CALLER,
        _SCOPE,
        *span("the call"),
        *lines(),
        *span("the callee expression", prefix="callee_"),
        *span("the last name of the callee", prefix="callee_name_", required=False),
        text("callee_shape", "name, attribute, call, subscript, lambda or other", required=True),
        text("callee_name", "last name of the callee, if it ends in one"),
        text("dotted", "the callee as a dotted name, if it is one: `a.b.c`"),
        number("arg_count", "positional arguments, unpacked ones not counted", required=True),
        texts("keywords", "keyword argument names, in order"),
        flag("has_star", "has a `*` argument"),
        flag("has_double_star", "has a `**` argument"),
        _ask("is called"),
    ),
)

CST_ARGUMENTS = Dataset(
    "cst_arguments",
    "Arguments of calls that are a name, an attribute or a plain string of up to 200 bytes; others have no row.",
    (
        number("call_no", "call it is an argument of", required=True),
        number(
            "position", "place among the positional arguments, from 0; null for a keyword, and after a `*` argument"
        ),
        text("keyword", "keyword name; null for a positional argument"),
        *span("the expression, without keyword"),
        text("constant", "the value of a string; null for a name or an attribute"),
    ),
)

CST_MAIN_BLOCKS = Dataset(
    "cst_main_blocks",
    'Statements `if __name__ == "__main__":` of the module\'s own code.',
    (*span("the statement"), *lines()),
)

CST_IMPLICIT_CALLS = Dataset(
    "cst_implicit_calls",
    "Calls that statements make without being written as calls.",
    (
        number("implicit_no", "ordinal of this call", required=True),
        *_DEF,
        _CALLER,
        _SCOPE,
        text(
            "kind",
            "decorator, with (enters and leaves), for (iterates) or raise (makes an instance of a class)",
            required=True,
        ),
        *span("the expression whose value is used"),
        *lines(),
        _ask("is called"),
    ),
)

CST_NAME_REFS = Dataset(
    "cst_name_refs",
    "Every use of a name or an attribute.",
    (
        number("ref_no", "ordinal of this reference", required=True),
        *_DEF,
        _CALLER,
        _SCOPE,
        text("name", "the name, or the attribute's own name", required=True),
        text("ctx", "load, store or del", required=True),
        flag("is_attribute", "an attribute (`base.name`), not a plain name"),
        text("base", "dotted base of an attribute, if it is a dotted name"),
        _by_scopes(number("binding_no", "binding in this file that a plain name means; null when it leaves the file")),
        _by_scopes(text("binding_key", "key of that binding")),
        *span("the whole expression, base included"),
        *span("the name itself", prefix="name_"),
        *lines(),
        number("type_no", "annotation it is part of"),
        _ask("it refers to"),
    ),
)

CST_IMPORTS = Dataset(
    "cst_imports",
    "One row per imported alias.",
    (
        number("import_no", "ordinal of this alias", required=True),
        *_DEF,
        _SCOPE,
        text("kind", "import or from", required=True),
        text("module", "module as written, without leading dots; null for `from . import x`"),
        number("level", "leading dots", required=True),
        text("name", "imported name of a `from` import; null for `import m` and for a star"),
        text("asname", "name after `as`"),
        text("bound_name", "name it binds here; null for a star"),
        flag("is_star", "`from m import *`"),
        *span("the alias, `as` part included"),
        *lines(),
        *span("the statement", prefix="stmt_"),
        flag("in_type_checking", "under `if TYPE_CHECKING:`"),
        flag("in_function", "inside a function"),
        flag("in_try", "in the body or a handler of a `try`"),
        _ask("module it imports, or imports from,", "module_"),
        _ask("it binds"),
    ),
)

CST_TYPE_EXPRS = Dataset(
    "cst_type_exprs",
    "Annotations.",
    (
        number("type_no", "ordinal of this annotation", required=True),
        *_DEF,
        _SCOPE,
        text("role", "parameter, return or variable", required=True),
        number("owner_no", "param_no of a parameter, def_no of a return; null for a variable"),
        text("owner_key", "def_key of the definition whose parameter or return it annotates; null for a variable"),
        number("position", "position of the annotated parameter; null otherwise"),
        _by_scopes(text("binding_key", "binding_key of an annotated variable that is a plain name; null otherwise")),
        text("target", "annotated name as source text; null for a return"),
        *span("the annotation"),
        *lines(),
        text("text", "its source text", required=True),
        _ask("class it names in quotes,"),
    ),
)

CST_ASSIGNS = Dataset(
    "cst_assigns",
    "Bindings of values to targets, one row per single target (a tuple target gives one row per element).",
    (
        number("assign_no", "ordinal of this binding", required=True),
        *_DEF,
        _SCOPE,
        text(
            "op",
            "assign, annotated, augmented, walrus, for, with, except, del, match, return (a lambda's body too), "
            "yield or yield_from",
            required=True,
        ),
        text("target_shape", "name, attribute, subscript, starred or none (what a function hands out)", required=True),
        text("target", "the target as a dotted name, if it is one"),
        *span("the target", prefix="target_", required=False),
        texts(
            "unpack", "path of an unpacked target inside the value: indexes, `*` for a starred one, negative after it"
        ),
        text("value_shape", "name, attribute, call, subscript, literal, lambda, list, tuple, set, dict, other or none"),
        text("value", "the value as a dotted name, if it is one; for a call, its callee"),
        *span("the value", prefix="value_", required=False),
        number("value_call_no", "call_no of the value, if it is a call"),
        number("value_def_no", "def_no of the value, if it is a lambda"),
    ),
)

SYM_SCOPES = Dataset(
    "sym_scopes",
    "Scopes, as the language defines them.",
    (
        number("scope_no", "ordinal of this scope; 0 is the module", required=True),
        text("scope_key", "key of this scope", required=True),
        number("parent_no", "enclosing scope; null for the module"),
        text("parent_key", "key of that scope"),
        text(
            "kind",
            "module, class, function, lambda, listcomp, setcomp, dictcomp, genexpr, "
            "type_params, type_alias or type_bound",
            required=True,
        ),
        text("name", "name of the scope, as `symtable` has it (Python 3.11); `top` for the module", required=True),
        text("qualname", "dotted path of scope names from the module; empty for the module", required=True),
        number("ordinal", "0 for the first scope of this qualname in the file, then 1, 2, …", required=True),
        number("def_no", "definition whose body it is, or else the innermost enclosing one; null at module level"),
        text("def_key", "key of that definition"),
        *span("the scope's syntax"),
        *lines(),
    ),
)

SYM_BINDINGS = Dataset(
    "sym_bindings",
    "What each name means in each scope that mentions it.",
    (
        number("binding_no", "ordinal of this row: by scope, then by name", required=True),
        text("binding_key", "key of this row", required=True),
        number("scope_no", "scope", required=True),
        text("scope_key", "key of that scope", required=True),
        text("name", "the name, as written", required=True),
        flag("is_local", "bound in this scope"),
        flag("is_global", "means the module's name (declared or not)"),
        flag("is_declared_global", "named by `global` here"),
        flag("is_nonlocal", "named by `nonlocal` here"),
        flag("is_free", "means a name of an enclosing function"),
        flag("is_cell", "local, and used by an inner scope"),
        flag("is_parameter", "a parameter"),
        flag("is_imported", "bound by an import"),
        flag("is_annotated", "annotated here"),
        flag("is_assigned", "bound here by any statement, parameters and imports excluded as in `symtable`"),
        flag("is_referenced", "read here"),
        number("target_no", "binding_no it resolves to in this file (itself if local); null when it leaves the file"),
        text("target_key", "key of that binding"),
        text(
            "site_kind",
            "first binding site: def, class, parameter, import, assign, annotated, augmented, walrus, for, with, "
            "except, match, del, type_param, type_alias, comprehension or implicit; null if not bound here. "
            "`implicit`: `__class__`, and a module's name that only functions bind, through `global` "
            "(the row is there so that they have something to resolve to)",
        ),
        *span("the first binding site's name", prefix="site_", required=False),
        number("line_start", "first line of that site, from 1"),
        number("line_end", "last line of that site, from 1"),
        number("col_start", "byte column of its start, from 0"),
        number("site_count", "number of binding sites here", required=True),
    ),
)

SYM_VALUES = Dataset(
    "sym_values",
    "What modules and classes hold under which name, and what functions give: the part of a content others can see.",
    (
        number("def_no", "class or function it belongs to; null for the module"),
        text("def_key", "key of that definition"),
        text("qualname", "qualified name of that definition"),
        text(
            "slot",
            "global (a name of the module), member (of a class), attribute (of its instances), setter (of a property), "
            "returns, yields or return_type (of a function), class (that there is one), base or metaclass (of a "
            "class), star (a star import)",
            required=True,
        ),
        text(
            "name", "the name; for a base or a star import, its place; empty for what a function gives", required=True
        ),
        text("binding_key", "key of the binding, if it is a name that a scope binds"),
        text("value", "what it can hold, in the language of `asks`; null when this content cannot tell"),
        text("kind", "function, method, class, lambda, type_alias, import, variable, or mixed when it can be several"),
        text("shape", "hash of signature, decorators, bases, members or annotation; null for what has none"),
        number("stars_before", "of a name of the module, star imports before its last binding", required=True),
    ),
)

ASKS = Dataset(
    "asks",
    "Distinct questions of a content: what its calls, names, bases and imports mean.",
    (
        number("ask_no", "ordinal of this question", required=True),
        text("question", "alternatives made of a root and steps; docs/resolution.md has the language", required=True),
    ),
)

DOCSTRINGS = Dataset(
    "docstrings",
    "Docstrings of the module, classes and functions.",
    (
        number("def_no", "whose docstring it is; null for the module"),
        text("def_key", "key of that definition"),
        *span("the literal"),
        *lines(),
        text("text", "its value", required=True),
    ),
)

ALL_NAMES = Dataset(
    "all_names",
    "What statements at module level put into or take out of `__all__`, in order.",
    (
        number("position", "order of the entry", required=True),
        text(
            "op", "set, add or remove: `set` empties it and has no entry, those it sets follow as `add`", required=True
        ),
        text("name", "the literal name; null when the entry is another module's `__all__` or not literal"),
        text("ref", "dotted expression added whole (`other.__all__` is `other.__all__`)"),
        *span("the entry"),
    ),
)

PARSE_ERRORS = Dataset(
    "parse_errors",
    "What could not be read, from every reader of sources.",
    (
        text("source", "who says so: decoder, tree-sitter", required=True),
        text("severity", "error (a part is lost) or fatal (the whole content is lost)", required=True),
        text("message", "what is wrong", required=True),
        *span("the trouble"),
        *lines(),
    ),
)
