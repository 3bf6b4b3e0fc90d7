"""Generated programs and edits of them: small packages over few names, so that names collide, dangle and come back.

A program is a tree of texts by path. Everything is drawn from a `random.Random`, or from what Hypothesis gives for one.
With a `prefix` its top-level names are its own, so that several programs fit into one repository. A byte that is no
UTF-8 is in a text as what `surrogateescape` makes of it.

Now and then a program is deep or wide: chains of 10 to 500 links, in one file or across files, packages many folders
down, names that come through many star imports, modules that import each other. Some files are in an encoding that an
indexer does not read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from math import exp, log
from random import Random
from typing import Final

from codeanatomy.repo.modules import ModuleName, module_names

Program = dict[str, str]

_USUAL_PATHS: Final = ("{}p/a.py", "{}p/b.py", "{}p/__init__.py", "{}q/a.py", "{}top.py")
_OTHER_PATHS: Final = (
    "{}p/sub/__init__.py",
    "{}p/sub/a.py",
    "{}d/src/{}r/a.py",
    "{}p/a.pyi",
    "{}p/b/__init__.py",
    "{}p/b/f.py",
    "{}q/__init__.py",
    "{}q/b.py",
    "{}d/src/{}r/__init__.py",
    "{}d/__init__.py",
    "{}p-stubs/b.pyi",
    "{}d/src/{}p/a.py",
    "{}q/src/{}r/a.py",
    "{}deep/" + "n/" * 60 + "a.py",
)
"""Packages with and without `__init__`, one beside a module of its name, stubs, and source roots."""

_USUAL_MODULES: Final = ("{}p.a", "{}p.b", "{}p", "{}q.a", "{}top")
"""Mostly a module imports from those before it, so that what it names is somewhere."""

_OTHER_MODULES: Final = ("{}p.sub", "{}p.sub.a", "{}p.b.f", "{}q", "{}q.b", "{}r", "{}r.a", "{}d", "{}d.src.{}r.a")
_DEEP_MODULE: Final = "{}deep" + ".n" * 60 + ".a"
_OUTER_MODULES: Final = ("os", "{}none", "{}none.deep", "{}p.none")
_RELATIVE_MODULES: Final = (".a", ".b", ".", "..", ".sub", ".sub.a", "..a", ".none")

_FUNCTIONS: Final = ("f", "f", "g")
_CLASSES: Final = ("C", "C", "D")
_OBJECTS: Final = (*_FUNCTIONS, *_CLASSES, "x")
_NAMES: Final = (*_OBJECTS, "a", "b", "sub")
_MEMBERS: Final = ("m", "m", "m", "n")
"""Names; those that come up more often stand there more often."""

_WORD: Final = re.compile(r"\b[fgCDxabmn]\b")
_IMPORTED: Final = re.compile(r"\bfrom (\.*)([\w.]*) import (\w+|\*)")
_DOTTED: Final = re.compile(r"\w+(?:\.\w+)*")
_BROKEN: Final = "def (:\n    pass"
_LATIN: Final = "# -*- coding: latin-1 -*-\n# caf\udce9"
_UNPARSED: Final = (_BROKEN, _LATIN)

SHORTEST, LONGEST = 10, 500
"""Links of a chain."""

WIDEST: Final = 40
"""Modules whose names one module imports."""

_STARTS: Final = {
    "value": "class C:\n    def m(self):\n        return self\n\nv0 = C()",
    "function": "class C:\n    def m(self):\n        return self\n\ndef v0():\n    return C()",
    "class": "class v0:\n    def m(self):\n        return self",
    "decorator": "def v0(f):\n    return f",
}
CHAINS: Final = {
    "values": (_STARTS["value"], "v{0} = v{1}.m()"),
    "imports": (_STARTS["function"], ""),
    "names": (_STARTS["function"], "v{0} = v{1}"),
    "bases": (_STARTS["class"], "class v{0}(v{1}):\n    pass"),
    "decorators": (_STARTS["decorator"], "@v{1}\ndef v{0}(f):\n    return f"),
    "results": (_STARTS["function"], "def v{0}():\n    return v{1}()"),
}
"""How a chain starts, and how each link is made of the one before; one of imports is always across files."""


class Author:
    """Writes programs, and edits them; remembers every text that a path ever had."""

    def __init__(self, random: Random, prefix: str = "") -> None:
        self.random = random
        self._prefix = prefix
        self._past: dict[str, list[str]] = {}
        self._modules: Sequence[str] = ()
        self._bound: list[str] = []

    def program(self) -> Program:
        """A program of the usual files and a few others."""
        others = self.random.sample(self._own(_OTHER_PATHS), self._number(1, 4))
        made = {path: self._source(path) for path in (*self._own(_USUAL_PATHS), *others)}
        if self._number(0, 9) == 9:
            self._chain(made)
        return made

    def edited(self, program: Mapping[str, str], kinds: Sequence[str] = ()) -> Program:
        """The program after edits of these kinds, or after a few of any."""
        for path, text in program.items():
            if text not in self._past.setdefault(path, []):
                self._past[path].append(text)
        after = dict(program)
        for kind in kinds or self.random.choices(_WEIGHTED, k=self._one_of((1, 1, 1, 2, 3))):
            getattr(self, f"_{kind}")(after)
        return after

    # Sources.

    def _source(self, path: str) -> str:
        """A module: imports, definitions, uses of names."""
        self._begin(path)
        parts = [self._import() for _ in range(self._number(0, 3))]
        parts += [self._definition() for _ in range(self._number(0, 5))]
        parts += [self._use() for _ in range(self._number(0, 3))]
        if self._sometimes():
            parts.insert(self._number(0, len(parts)), self._one_of((self._exports, self._hook))())
        return joined(parts)

    def _begin(self, path: str, text: str = "") -> None:
        """Get ready to write into a file that has this text already."""
        usual = self._own(_USUAL_PATHS)
        self._modules = self._own(_USUAL_MODULES)[: usual.index(path) if path in usual else None]
        self._bound = sorted({*_OBJECTS} & {*_WORD.findall(text)})

    def _statement(self) -> str:
        return self._one_of((self._import, self._definition, self._definition, self._use, self._exports))()

    def _import(self) -> str:
        kind = self._number(0, 9)
        module, name = self._module(), self._binding(self._one_of((*_FUNCTIONS, *_FUNCTIONS, *_CLASSES, *_NAMES)))
        if kind < 4:
            return f"from {module} import {name}"
        if kind < 6:
            self._bound += _OBJECTS
            return f"from {module} import *"
        if kind == 6:
            return f"from {module} import {self._one_of(_NAMES)} as {name}"
        if kind == 7:
            return f"try:\n    from {module} import {name}\nexcept ImportError:\n    {name} = {self._value()}"
        absolute = self._absolute()
        return f"import {absolute}" if kind == 8 else f"import {absolute} as {name}"

    def _module(self) -> str:
        return self._one_of(_RELATIVE_MODULES) if self._sometimes() else self._absolute()

    def _absolute(self) -> str:
        if self._modules and not self._sometimes():
            return self._one_of(self._modules)
        return self._one_of(self._own((*_USUAL_MODULES, *_OTHER_MODULES, *_OUTER_MODULES, _DEEP_MODULE)))

    def _binding(self, name: str) -> str:
        """The name, which is bound from here on."""
        if name in _OBJECTS:
            self._bound.append(name)
        return name

    def _object(self) -> str:
        """A name, mostly one that is bound."""
        return self._one_of(self._bound) if self._bound and not self._sometimes() else self._one_of(_OBJECTS)

    def _class_name(self) -> str:
        return self._one_of([name for name in self._bound if name in _CLASSES] or _CLASSES)

    def _exports(self) -> str:
        names = sorted(self.random.sample(sorted({*_NAMES}), self._number(1, 3)))
        more = ("", "", f"\n__all__ += {self._one_of(_NAMES)}.__all__", f"\n__all__.remove({names[0]!r})")
        return f"__all__ = {names!r}{self._one_of(more)}"

    def _hook(self) -> str:
        return "def __getattr__(name):\n    return 1"

    def _definition(self) -> str:
        return self._one_of((self._function, self._class, self._assignment))()

    def _function(self) -> str:
        name, made = self._binding(self._one_of(_FUNCTIONS)), self._value()
        kind = self._number(0, 9)
        if kind < 4:
            return f"def {name}():\n    return {made}"
        if kind < 6:
            return f"def {name}() -> {self._class_name()}:\n    ..."
        if kind < 8:
            return f"def {name}():\n    yield {made}"
        if kind == 8:
            return (
                f"@{self._one_of(_OBJECTS)}\ndef {name}(x: {self._one_of(_CLASSES)}):\n    return x.{self._member()}()"
            )
        return f"def {name}():\n    from {self._module()} import {self._one_of(_NAMES)} as x\n    return x()"

    def _class(self) -> str:
        bases = [
            self._one_of((self._class_name(), self._class_name(), self._value()))
            for _ in range(self._one_of((0, 0, 1, 1, 2)))
        ]
        bases += [f"metaclass={self._class_name()}"] if self._number(0, 9) == 9 else []
        body = [self._class_member() for _ in range(self._number(0, 3))] or ["    pass"]
        head = f"class {self._binding(self._one_of(_CLASSES))}"
        return "\n".join([f"{head}({', '.join(bases)}):" if bases else f"{head}:", *body])

    def _class_member(self) -> str:
        name, made = self._member(), self._value()
        return self._one_of(
            (
                f"    def {name}(self):\n        return {made}",
                f"    def {name}(self):\n        return {made}",
                f"    def {name}(self):\n        return self.{self._member()}()",
                f"    def {name}(self):\n        return super().{self._member()}()",
                f"    {name} = {made}",
                f"    @property\n    def {name}(self):\n        return {made}",
                f"    def __init__(self):\n        self.{name} = {made}",
                f"    def __call__(self):\n        return {made}",
                f"    def __enter__(self):\n        return {made}",
                f"    def __iter__(self):\n        yield {made}",
                f"    @classmethod\n    def {name}(cls):\n        return cls()",
            )
        )

    def _assignment(self) -> str:
        value = self._value()
        return f"{self._binding(self._one_of(_OBJECTS))} = {value}"

    def _use(self) -> str:
        name, value = self._one_of(_OBJECTS), self._value()
        kind = self._number(0, 9)
        if kind < 6:
            return f"{value}.{self._member()}()"
        if kind == 6:
            return value
        if kind == 7:
            return f"with {value} as {name}:\n    {name}.{self._member()}()"
        if kind == 8:
            return f"for {name} in {value}:\n    {name}.{self._member()}()"
        return f"if {value}:\n    {name} = {self._value()}\nelse:\n    {name} = {self._value()}"

    def _value(self) -> str:
        """An expression: what calling a class or a function gives, a name, what that has."""
        kind = self._number(0, 11)
        if kind < 4:
            return f"{self._class_name()}()"
        if kind < 7:
            return f"{self._object()}()"
        name, member = self._object(), self._member()
        if kind == 7:
            return f"{self._one_of(_NAMES)}.{name}()"
        if kind == 8:
            return f"{self._absolute()}.{name}()"
        return name + self._one_of(("", "", f".{member}", f"().{member}", f"().{member}()", f".{member}()"))

    def _member(self) -> str:
        return self._one_of(_MEMBERS)

    # Edits: each changes a program in place, or does nothing if there is nothing to do it to.

    def _add_statement(self, program: Program) -> None:
        path = self._path(program)
        self._begin(path, program[path])
        parts = statements(program[path])
        parts.insert(self._number(0, len(parts)), self._statement())
        program[path] = joined(parts)

    def _remove_statement(self, program: Program) -> None:
        path = self._path(program)
        if parts := statements(program[path]):
            parts.pop(self._number(0, len(parts) - 1))
        program[path] = joined(parts)

    def _replace_word(self, program: Program) -> None:
        path = self._path(program)
        if places := list(_WORD.finditer(program[path])):
            place = self._one_of(places)
            alike = next(words for words in (_FUNCTIONS, _CLASSES, _MEMBERS, _NAMES) if place[0] in words)
            program[path] = program[path][: place.start()] + self._one_of(alike) + program[path][place.end() :]

    def _rename_definition(self, program: Program) -> None:
        path = self._path(program)
        word, old, new = self._one_of((("def", "f", "g"), ("def", "g", "f"), ("class", "C", "D"), ("class", "D", "C")))
        program[path] = re.sub(rf"^{word} {old}\b", f"{word} {new}", program[path], flags=re.MULTILINE)

    def _replace(self, program: Program) -> None:
        path = self._path(program)
        program[path] = self._source(path)

    def _break(self, program: Program) -> None:
        path = self._path(program)
        parts = statements(program[path])
        parts.insert(self._number(0, len(parts)), _BROKEN)
        program[path] = joined(parts)

    def _empty(self, program: Program) -> None:
        program[self._path(program)] = ""

    def _add(self, program: Program) -> None:
        path = self._free_path(program)
        program[path] = self._source(path)

    def _delete(self, program: Program) -> None:
        if len(program) > 1:
            del program[self._path(program)]

    def _rename(self, program: Program) -> None:
        new = self._free_path(program)
        program[new] = program.pop(self._path(program))

    def _copy(self, program: Program) -> None:
        program[self._free_path(program)] = program[self._path(program)]

    def _swap(self, program: Program) -> None:
        one, other = self._path(program), self._path(program)
        program[one], program[other] = program[other], program[one]

    def _revert(self, program: Program) -> None:
        path = self._one_of(sorted(self._past))
        program[path] = self._one_of(self._past[path])

    # Deep and wide ones.

    def _chain(self, program: Program) -> None:
        """A chain in place of the one that is there, and a use of its end."""
        for path in self._links(program):
            del program[path]
        kind = self._one_of(sorted(CHAINS))
        length = self._length(LONGEST if kind != "names" else LONGEST // 10)  # each name is all those before it
        self.chain(program, kind, length, across=bool(self._number(0, 1)))

    def chain(self, program: Program, kind: str, length: int, *, across: bool) -> None:
        """Add a chain of this kind and length, and a use of its end."""
        package, user = self._own(("{}chain", "{}end.py"))
        start, link = CHAINS[kind]
        links = [link.format(number, number - 1) for number in range(1, length + 1)]
        if link and not across:
            program[f"{package}/m{length}.py"] = joined([start, *links])
        else:
            program[f"{package}/m0.py"] = joined([start])
            for number, each in enumerate(links, 1):
                imported = f"from {package}.m{number - 1} import v{number - 1}"
                parts = [imported, each] if link else [f"{imported} as v{number}"]
                program[f"{package}/m{number}.py"] = joined(parts)
        last = f"v{length}"
        program[user] = joined([f"from {package}.m{length} import {last}", f"{last}.m()", f"{last}().m()"])

    def _links(self, program: Program) -> list[str]:
        """The files of the chain that is there."""
        return sorted(path for path in program if path.startswith(self._own(("{}chain/",))[0]))

    def _length(self, longest: int) -> int:
        """Of a chain: mostly a short one."""
        steps = 20
        share = self._number(0, steps) * self._number(0, steps) / steps**2
        return round(exp(log(SHORTEST) + log(longest / SHORTEST) * share))

    def _cut(self, program: Program) -> None:
        """A chain without one of its links, or with another start."""
        if not (paths := self._links(program)):
            return
        path = self._one_of(paths)
        parts = statements(program[path])
        if len(parts) > 1:
            parts.pop(self._number(0, len(parts) - 1))
            program[path] = joined(parts)
        else:
            del program[path]

    def _touch(self, program: Program) -> None:
        """A comment, which changes nothing."""
        path = self._one_of(sorted(program))
        program[path] = joined([*statements(program[path]), "pass  # touched"])

    def _widen(self, program: Program) -> None:
        """A module that has the names of many others, and one that uses them."""
        package, wide, user = self._own(("{}wide", "{}every.py", "{}top.py"))
        names = range(self._number(2, WIDEST))
        program |= {f"{package}/m{number}.py": joined([f"class w{number}(C):\n    pass"]) for number in names}
        program[wide] = joined([f"from {package}.m{number} import *" for number in names])
        bases = ", ".join(f"w{number}" for number in names)
        uses = [f"from {wide.removesuffix('.py')} import *", f"class D({bases}):\n    pass", "D().m()"]
        program[user] = joined([*statements(program.get(user, "")), *uses])

    def _circle(self, program: Program) -> None:
        """Modules that import the same name from each other, in a circle."""
        paths = self._own(_USUAL_PATHS)[: self._number(2, len(_USUAL_PATHS))]
        modules = self._own(_USUAL_MODULES)[: len(paths)]
        name = self._one_of(_OBJECTS)
        way = self._one_of((f"import {name}", "import *", f"import {name} as x"))
        for path, module in zip(paths, (*modules[1:], modules[0]), strict=True):
            program[path] = joined([*statements(program.get(path, "")), f"from {module} {way}"])

    def _encode(self, program: Program) -> None:
        """A file in Latin-1, or one that was and is not text any more; then the other way round."""
        path = self._path(program)
        parts = statements(program[path])
        if _LATIN in parts:
            parts.remove(_LATIN)
        else:
            parts.insert(0 if not self._sometimes() else len(parts), _LATIN)
        program[path] = joined(parts)

    def _path(self, program: Program) -> str:
        """A path of the program, mostly one that others import from."""
        imported = [path for path in self._own(_USUAL_PATHS[:3]) if path in program]
        return self._one_of(sorted(program) if not imported or self._number(0, 2) == 2 else imported)

    def _free_path(self, program: Program) -> str:
        paths = self._own((*_USUAL_PATHS, *_OTHER_PATHS))
        return self._one_of([path for path in paths if path not in program] or paths)

    # Chance.

    def _one_of(self, choices):
        return self.random.choice(choices)

    def _number(self, lowest: int, highest: int) -> int:
        return self.random.randint(lowest, highest)

    def _sometimes(self) -> bool:
        return self._number(0, 4) == 4

    def _own(self, names: Sequence[str]) -> list[str]:
        """Paths or modules with the prefix."""
        return [name.format(self._prefix, self._prefix) for name in names]


EDITS: Final = (
    *("add_statement", "remove_statement", "replace_word", "rename_definition", "replace", "break", "empty"),
    *("add", "delete", "rename", "copy", "swap", "revert"),
    *("chain", "cut", "touch", "widen", "circle", "encode"),
)
"""The kinds of edits there are."""

_WEIGHTED: Final = (
    *EDITS,
    *("add_statement", "remove_statement", "rename_definition", "add", "delete", "rename"),
    *["replace_word"] * 5,
)


class PassingAuthor(Author):
    """Writes programs in which functions and classes are passed around: to parameters, containers and attributes."""

    def _function(self) -> str:
        if self._sometimes():
            return super()._function()
        name, member = self._binding(self._one_of(_FUNCTIONS)), self._member()
        head, body = self._one_of(
            (
                ("x", "return x()"),
                ("x", "return x"),
                ("x", f"x.{member}()"),
                ("x, y", "return y(x)"),
                ("*x", "return x[0]()"),
                ("**x", "return x['a']()"),
                (f"x={self._object()}", "x()"),
                ("x", f"def y():\n        return x()\n    return {self._one_of(('y', 'y()'))}"),
                ("x", f"return {self._object()}(x)"),
                ("x", "yield x"),
            )
        )
        return f"def {name}({head}):\n    {body}"

    def _class_member(self) -> str:
        if self._sometimes():
            return super()._class_member()
        name = self._member()
        return "    " + self._one_of(
            (
                f"def __init__(self, x={self._object()}):\n        self.{name} = x",
                f"def {name}(self, x):\n        self.{self._member()} = x",
                f"def {name}(self, x):\n        return x(self)",
                f"def {name}(self):\n        return self.{self._member()}()()",
            )
        )

    def _use(self) -> str:
        if self._sometimes():
            return super()._use()
        name, other, value, member = self._object(), self._object(), self._value(), self._member()
        return self._one_of(
            (
                f"{name}({other})",
                f"{name}({value})",
                f"{name}(x={other})",
                f"{name}(a={other})",
                f"{name}({other}, {value})",
                f"{name}(lambda: {value})",
                f"{name}().{member}({other})",
                f"{name}.{member} = {other}",
                f"{name}().{member} = {value}",
                f"x = [{name}, {other}]\nx[0]()\nfor a in x:\n    a()",
                f"x = {{'a': {name}}}\nx['b'] = {other}\nx['a']()",
                f"x = []\nx.append({name})\n{other}(*x)",
                f"@{name}\ndef {self._binding(self._one_of(_FUNCTIONS))}(x):\n    return {value}",
            )
        )


def statements(source: str) -> list[str]:
    """The statements of a generated source."""
    return [each for each in source.strip("\n").split("\n\n") if each]


def encoded(text: str) -> bytes:
    """The file of a text."""
    return text.encode("utf-8", "surrogateescape")


def joined(parts: Sequence[str]) -> str:
    """The source made of these statements."""
    return "".join(f"{part}\n\n" for part in parts)


def untangled(program: Mapping[str, str]) -> Program:
    """The program without what goes in circles: imports, and names that are used before they are bound.

    What an indexer says of those depends on where it starts, and is not the same each time.
    """
    modules = {each.path: each for each in module_names(sorted(program))}
    seen_by: dict[str, set[str]] = {}
    straight: Program = {}
    for path, module in modules.items():
        kept = []
        for part in _in_order(statements(program[path])):
            looked_at = _looked_at(part, module) & {each.module_fqn for each in modules.values()}
            if module.module_fqn not in _reached(looked_at, seen_by):
                seen_by.setdefault(module.module_fqn, set()).update(looked_at)
                kept.append(part)
        straight[path] = joined(kept)
    return straight


def _in_order(parts: Sequence[str]) -> list[str]:
    """The statements that use no name which is bound by themselves or later, nor another method of their class."""
    kept: list[str] = []
    bound_later: set[str] = set()
    for part in reversed(parts):
        if part in _UNPARSED:
            kept.append(part)
            continue
        bound, used = _names_in(ast.parse(part).body)
        if not used & (bound | bound_later) and "return self." not in part:
            bound_later |= bound
            kept.append(part)
    return kept[::-1]


def _names_in(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """The names that statements of a module bind, and those that they use."""
    bound, used = set(), set()
    for top in body:
        nodes = list(ast.walk(top))
        if isinstance(top, ast.FunctionDef | ast.ClassDef):
            bound.add(top.name)
        else:
            bound |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
            bound |= {(each.asname or each.name).partition(".")[0] for each in nodes if isinstance(each, ast.alias)}
        inner = top.body if isinstance(top, ast.With | ast.For) else []  # what these bind is theirs to use
        skipped = {id(node) for each in inner for node in ast.walk(each)}
        used |= {each.id for each in nodes if _is_read(each) and (id(each) not in skipped or each.id not in bound)}
    return bound, used


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _looked_at(part: str, module: ModuleName) -> set[str]:
    """The modules that a statement may look at: those it imports from, those in it, and whatever it spells out."""
    found = set()
    for dots, name, imported in _IMPORTED.findall(part):
        package = module.module_fqn.split(".")[: None if module.is_init else -1]
        above = package[: len(package) - len(dots) + 1] if dots else []
        source = ".".join([*above, *filter(None, [name])])
        found |= {source, f"{source}.{imported}"}
    for name in _DOTTED.findall(part):
        steps = name.split(".")
        found |= {".".join(steps[: number + 1]) for number in range(len(steps))}
    return found


def _reached(modules: set[str], seen_by: Mapping[str, set[str]]) -> set[str]:
    reached, pending = set(modules), list(modules)
    while pending:
        new = seen_by.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached
