"""Edits made of real code: modules of installed packages are spliced, moved, renamed, wrapped, stubbed and chained.

A tree is the bytes of its files by path. It starts as modules of real packages; each step does something to it that
people do to code, with the code of other real modules, or something that only a stress test does: a chain of 500
values, a folder 300 deep, a file cut off in the middle. Everything is drawn from a `random.Random`, so that a seed and
the number of a step name a tree for as long as the environment stays the same.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import sysconfig
import tokenize
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, log
from pathlib import Path
from random import Random
from typing import Final

from codeanatomy.repo.modules import module_names

Tree = dict[str, bytes]

LARGEST: Final = 16_000
"""Bytes of a module that is taken."""

SMALLEST: Final = 200

FILES: Final = (10, 60)
"""So many modules a tree starts with."""

SHORTEST, LONGEST = 10, 500
"""Links of a chain."""

MOST_CHAINS: Final = 2
"""Chains that a tree has at a time: each has up to `LONGEST` files."""

TRIES: Final = 8
"""So often a place is looked for an edit before another kind is chosen."""

_LEFT_OUT: Final = frozenset({"test", "tests", "testing", "idlelib", "turtledemo", "site-packages", "codeanatomy"})
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


# Real modules.


@dataclass(frozen=True)
class Library:
    """The modules of the standard library and of installed packages, as far as they are small."""

    roots: tuple[Path, ...] = field(
        default_factory=lambda: tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    )

    @cached_property
    def packages(self) -> list[Path]:
        """Directories that are packages, at the top of the roots."""
        found = (each for root in self.roots for each in sorted(root.iterdir()) if each.name not in _LEFT_OUT)
        return [each for each in found if (each / "__init__.py").is_file()]

    @cached_property
    def single(self) -> list[Path]:
        """Modules of the standard library that are in no package."""
        return [each for each in sorted(self.roots[0].glob("*.py")) if _is_small(each)]

    def some_of_a_package(self, chance: Random, count: int) -> Tree:
        """Neighbouring modules of a package, with what makes their folders packages."""
        top = chance.choice(self.packages)
        files = _small_modules(top)
        if not files:
            return {}
        start = chance.randrange(len(files))
        taken = {*files[start : start + count]}
        taken |= {above / "__init__.py" for each in taken for above in each.parents if above.is_relative_to(top)}
        there = (each for each in sorted(taken) if each.is_file() and each.stat().st_size <= LARGEST)
        return {each.relative_to(top.parent).as_posix(): each.read_bytes() for each in there}

    def module(self, chance: Random) -> tuple[str, bytes]:
        """The name and the text of a module."""
        if chance.random() < 0.3:
            file = chance.choice(self.single)
            return file.name, file.read_bytes()
        while not (files := _small_modules(chance.choice(self.packages))):
            pass
        file = chance.choice(files)
        return (f"{file.parent.name}.py" if file.stem == "__init__" else file.name), file.read_bytes()


_modules_of: dict[Path, list[Path]] = {}


def _small_modules(package: Path) -> list[Path]:
    known = _modules_of.get(package)
    if known is None:
        files = (each for each in sorted(package.rglob("*.py*")) if not _LEFT_OUT & {*each.parts[len(package.parts) :]})
        known = _modules_of[package] = [each for each in files if each.suffix in (".py", ".pyi") and _is_small(each)]
    return known


def _is_small(file: Path) -> bool:
    return file.is_file() and SMALLEST <= file.stat().st_size <= LARGEST


# Sources and the statements in them.


@dataclass
class Source:
    """A parsed file: its lines, and the statements of the module that have lines of their own."""

    lines: list[str]
    blocks: list[tuple[int, int, ast.stmt]]
    encoding: str
    newline: str

    def definitions(self) -> list[tuple[int, int, ast.stmt]]:
        """Functions and classes."""
        return [each for each in self.blocks if isinstance(each[2], _DEFINITIONS)]

    def places(self) -> list[int]:
        """Numbers of lines before which a statement can stand: after the docstring and imports from the future."""
        head = 0
        for _, end, node in self.blocks:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                head = end
            else:
                break
        return sorted({head, *(end for _, end, _ in self.blocks if end >= head)})

    def encoded(self) -> bytes:
        """The file as bytes."""
        return self.newline.join(self.lines).encode(self.encoding, "replace")


def parsed(content: bytes) -> Source | None:
    """The source, if it is one that Python reads."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
        newline = "\r\n" if "\r\n" in text else "\n"
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(text).body
    except (SyntaxError, UnicodeError, LookupError, ValueError, RecursionError, MemoryError):
        return None
    blocks: list[tuple[int, int, ast.stmt]] = []
    ended = 0
    for node in body:
        start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) - 1
        end = node.end_lineno or node.lineno
        if start >= ended:
            blocks.append((start, end, node))
        elif blocks:
            blocks.pop()  # two statements on a line
        ended = end
    return Source(text.split("\n"), blocks, encoding, newline)


def name_of(node: ast.stmt) -> str:
    """The name of a definition."""
    assert isinstance(node, _DEFINITIONS)
    return node.name


def indented(lines: Iterable[str], by: str = "    ") -> list[str]:
    """Lines moved to the right."""
    return [by + line if line.strip() else line for line in lines]


# Edits.

Edit = Callable[["Splicer", Tree], str]
"""Changes a tree in place and says what was done; nothing if there is no place for it."""

EDITS: dict[str, Edit] = {}
"""The kinds of edits, by what they are called in reports."""

_WEIGHTS: dict[str, int] = {}


def edit(name: str, weight: int = 2) -> Callable[[Edit], Edit]:
    """Make a function a kind of edit, which comes up as often as its weight says."""

    def add(made: Edit) -> Edit:
        EDITS[name], _WEIGHTS[name] = made, weight
        return made

    return add


@dataclass
class Chain:
    """A chain in a tree: the files with its links, in order, and the file that uses its end."""

    links: list[str]
    user: str


class Splicer:
    """Makes a tree of real modules and edits it; remembers what the tree was."""

    def __init__(self, chance: Random, library: Library, longest: int = LONGEST) -> None:
        self.chance = chance
        self.library = library
        self.longest = longest
        self.past: list[Tree] = []
        self.chains: list[Chain] = []
        self.made = 0

    def tree(self, files: tuple[int, int] = FILES) -> Tree:
        """Some modules of some packages, at the top or below a source root."""
        wanted = self.chance.randint(*files)
        tree: Tree = {}
        while len(tree) < wanted:
            root = self.chance.choice(("", "", "", "src/", "lib/"))
            for path, content in self.library.some_of_a_package(self.chance, self.chance.randint(3, 15)).items():
                if len(tree) < wanted:
                    tree[root + path] = content
        return tree

    def step(self, tree: Tree) -> tuple[Tree, list[tuple[str, str]]]:
        """The tree after an edit or a few: their kinds, and what was done."""
        self.past.append(dict(tree))
        after = dict(tree)
        done: list[tuple[str, str]] = []
        wanted = self.chance.choice((1, 1, 1, 2, 3))
        while len(done) < wanted:
            (kind,) = self.chance.choices(list(EDITS), weights=list(_WEIGHTS.values()))
            told = (EDITS[kind](self, after) for _ in range(TRIES))
            if did := next(filter(None, told), ""):
                done.append((kind, did))
        return after, done

    # What to do it to.

    def path(self, tree: Tree, suffixes: tuple[str, ...] = (".py", ".pyi")) -> str:
        """Some file; of a chain, rarely."""
        in_chains = {path for chain in self.chains for path in chain.links}
        paths = [each for each in sorted(tree) if each.endswith(suffixes)]
        others = [each for each in paths if each not in in_chains]
        return self.chance.choice(others if others and self.chance.random() < 0.9 else paths or [""])

    def source(self, tree: Tree) -> tuple[str, Source] | None:
        """Some file that Python reads, and what is in it."""
        if not (path := self.path(tree)):
            return None
        source = parsed(tree[path])
        return (path, source) if source is not None else None

    def definition(self, tree: Tree) -> tuple[str, Source, tuple[int, int, ast.stmt]] | None:
        """Some function or class of a module."""
        if (found := self.source(tree)) is None or not (definitions := found[1].definitions()):
            return None
        return *found, self.chance.choice(definitions)

    def other_code(self) -> tuple[list[str], ast.stmt] | None:
        """A statement of another real module."""
        source = parsed(self.library.module(self.chance)[1])
        if source is None or not source.blocks:
            return None
        wanted = source.definitions() if self.chance.random() < 0.7 else source.blocks
        if not wanted:
            return None
        start, end, node = self.chance.choice(wanted)
        return source.lines[start:end], node

    def new_name(self, stem: str) -> str:
        """A name that no file has."""
        self.made += 1
        return f"{stem}{self.made}"

    def folder(self, tree: Tree) -> str:
        """Some folder of the tree, with a slash at its end unless it is the top."""
        return self.chance.choice([*sorted({each.rpartition("/")[0] + "/" for each in tree if "/" in each}), ""])

    def length(self) -> int:
        """Of a chain: a short one is as likely as one of ten times the length."""
        low, high = min(SHORTEST, self.longest), self.longest
        return round(exp(self.chance.uniform(log(low), log(high))))


def module_of(path: str, tree: Iterable[str]) -> str:
    """The module that a file of a tree is."""
    paths = sorted({path, *tree})
    return module_names(paths)[paths.index(path)].module_fqn


def is_importable(module: str) -> bool:
    """Whether an import statement can spell it."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in module.split("."))


# Code comes from elsewhere.


@edit("block spliced in", 6)
def _splice_block(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None or (other := splicer.other_code()) is None:
        return ""
    path, source = found
    place = splicer.chance.choice(source.places())
    source.lines[place:place] = ["", *other[0], ""]
    tree[path] = source.encoded()
    return f"{type(other[1]).__name__} into {path}"


@edit("block spliced into a definition", 3)
def _splice_inside(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None or (other := splicer.other_code()) is None:
        return ""
    path, source, (_, end, node) = found
    if not isinstance(node, _DEFINITIONS) or node.body[0].lineno == node.lineno:
        return ""
    source.lines[end:end] = ["", *indented(other[0], " " * node.body[-1].col_offset)]
    tree[path] = source.encoded()
    return f"{type(other[1]).__name__} into {node.name} of {path}"


@edit("file spliced in", 3)
def _splice_file(splicer: Splicer, tree: Tree) -> str:
    name, content = splicer.library.module(splicer.chance)
    path = splicer.folder(tree) + name
    tree[path] = content
    return path


@edit("content replaced by another module's")
def _replace_content(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    _, tree[path] = splicer.library.module(splicer.chance)
    return path


@edit("block replaced", 3)
def _replace_block(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None or not found[1].blocks or (other := splicer.other_code()) is None:
        return ""
    path, source = found
    start, end, _ = splicer.chance.choice(source.blocks)
    source.lines[start:end] = other[0]
    tree[path] = source.encoded()
    return path


@edit("block dropped", 3)
def _drop_block(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None or not found[1].blocks:
        return ""
    path, source = found
    start, end, _ = splicer.chance.choice(source.blocks)
    del source.lines[start:end]
    tree[path] = source.encoded()
    return path


@edit("definition imported and used elsewhere", 6)
def _use(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None or (user := splicer.source(tree)) is None:
        return ""
    path, _, (_, _, node) = found
    module, name = module_of(path, tree), name_of(node)
    if not is_importable(module):
        return ""
    asked, source = user
    chance = splicer.chance
    inner = (
        [each.name for each in node.body if isinstance(each, _DEFINITIONS)] if isinstance(node, ast.ClassDef) else []
    )
    use = chance.choice((f"{name}()", f"{name}", f"{name}().{chance.choice(inner or ['x'])}()"))
    imported = chance.choice(
        (f"from {module} import {name}\n{use}", f"import {module}\n{module}.{use}", f"import {module} as m\nm.{use}")
    )
    derived = f"from {module} import {name}\nclass Derived{name}({name}):\n    pass\nDerived{use}"
    lines = (derived if isinstance(node, ast.ClassDef) and chance.random() < 0.4 else imported).split("\n")
    place = chance.choice(source.places())
    source.lines[place:place] = lines
    tree[asked] = source.encoded()
    return f"{module}.{name} in {asked}"


# Code goes elsewhere.


@edit("definition moved, and imported back", 3)
def _move_and_export(splicer: Splicer, tree: Tree) -> str:
    return _moved(splicer, tree, is_exported=True)


@edit("definition moved away", 3)
def _move(splicer: Splicer, tree: Tree) -> str:
    return _moved(splicer, tree, is_exported=False)


def _moved(splicer: Splicer, tree: Tree, *, is_exported: bool) -> str:
    if (found := splicer.definition(tree)) is None or (other := splicer.source(tree)) is None:
        return ""
    path, source, (start, end, node) = found
    target, its_source = other
    module = module_of(target, tree)
    if target == path or not is_importable(module):
        return ""
    imports = [
        source.lines[number]
        for first, last, each in source.blocks
        if isinstance(each, ast.Import | ast.ImportFrom) and getattr(each, "module", "") != "__future__"
        for number in range(first, last)
    ]
    its_source.lines += ["", *(imports if splicer.chance.random() < 0.5 else ()), *source.lines[start:end], ""]
    source.lines[start:end] = [f"from {module} import {name_of(node)}"] if is_exported else ["pass"]
    tree[target], tree[path] = its_source.encoded(), source.encoded()
    return f"{name_of(node)} from {path} to {target}"


@edit("definition renamed, its users too", 2)
def _rename_everywhere(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    name, new = name_of(found[2][2]), splicer.new_name(name_of(found[2][2]) + "_r")
    pattern = re.compile(rf"\b{re.escape(name)}\b".encode())
    for path, content in tree.items():
        tree[path] = pattern.sub(new.encode(), content)
    return f"{name} of {found[0]}"


@edit("definition renamed alone", 3)
def _rename_alone(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    path, source, (_, _, node) = found
    line = node.lineno - 1
    new = splicer.new_name(name_of(node) + "_r")
    source.lines[line] = re.sub(rf"\b{re.escape(name_of(node))}\b", new, source.lines[line], count=1)
    tree[path] = source.encoded()
    return f"{name_of(node)} of {path}"


# Files move.


@edit("file renamed")
def _rename_file(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    new = f"{path.rpartition('/')[0]}/{splicer.new_name('renamed')}.py".lstrip("/")
    tree[new] = tree.pop(path)
    return f"{path} to {new}"


@edit("file renamed, its imports too")
def _rename_file_and_imports(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree, (".py",))
    name = path.rpartition("/")[2].removesuffix(".py")
    if not path or not name.isidentifier() or name == "__init__":
        return ""
    new = splicer.new_name(name)
    tree[f"{path.removesuffix(f'{name}.py')}{new}.py"] = tree.pop(path)
    pattern = re.compile(rf"(?m)^(\s*(?:from|import)\s[^#\n]*)\b{re.escape(name)}\b".encode())
    for each, content in tree.items():
        tree[each] = pattern.sub(rb"\g<1>" + new.encode(), content)
    return f"{path} to {new}.py"


@edit("file moved to another folder")
def _move_file(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    new = splicer.folder(tree) + path.rpartition("/")[2]
    if new == path:
        return ""
    tree[new] = tree.pop(path)
    return f"{path} to {new}"


@edit("package moved", 1)
def _move_package(splicer: Splicer, tree: Tree) -> str:
    if not (folder := splicer.folder(tree)) or folder.count("/") > 9:
        return ""
    new = splicer.folder(tree) + f"{splicer.new_name('moved')}/"
    for path in [each for each in sorted(tree) if each.startswith(folder)]:
        tree[new + path.removeprefix(folder)] = tree.pop(path)
    return f"{folder} to {new}"


@edit("module made a package")
def _to_package(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    stem, _, suffix = path.rpartition(".")
    if stem.endswith("__init__"):
        return ""
    tree[f"{stem}/__init__.{suffix}"] = tree.pop(path)
    return path


@edit("package made a module")
def _to_module(splicer: Splicer, tree: Tree) -> str:
    packages = [each for each in sorted(tree) if each.endswith("/__init__.py")]
    if not packages:
        return ""
    path = splicer.chance.choice(packages)
    tree[f"{path.removesuffix('/__init__.py')}.py"] = tree.pop(path)
    return path


@edit("package file dropped or added")
def _init_file(splicer: Splicer, tree: Tree) -> str:
    if not (folder := splicer.folder(tree)):
        return ""
    path = f"{folder}__init__.py"
    if tree.pop(path, None) is None:
        tree[path] = b""
    return path


@edit("two files swapped")
def _swap(splicer: Splicer, tree: Tree) -> str:
    one, other = splicer.path(tree), splicer.path(tree)
    if one == other:
        return ""
    tree[one], tree[other] = tree[other], tree[one]
    return f"{one} and {other}"


@edit("file copied under another root")
def _copy_elsewhere(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    root = splicer.chance.choice(("src/", "lib/src/", "tests/", "vendor/"))
    new = root + (path.removeprefix("src/") if splicer.chance.random() < 0.5 else path)
    tree[new] = tree[path]
    return f"{path} to {new}"


@edit("file deleted", 3)
def _delete(splicer: Splicer, tree: Tree) -> str:
    if len(tree) < 5:
        return ""
    path = splicer.path(tree)
    del tree[path]
    return path


@edit("file as it was before", 3)
def _undo_file(splicer: Splicer, tree: Tree) -> str:
    before = splicer.chance.choice(splicer.past)
    paths = sorted(path for path in before.keys() | tree.keys() if before.get(path) != tree.get(path))
    if not paths:
        return ""
    path = splicer.chance.choice(paths)
    if path in before:
        tree[path] = before[path]
    else:
        del tree[path]
    return path


@edit("step undone")
def _undo(splicer: Splicer, tree: Tree) -> str:
    if len(splicer.past) < 2:
        return ""
    number = splicer.chance.randint(2, min(4, len(splicer.past)))
    before = splicer.past[-number]
    tree.clear()
    tree.update(before)
    return f"{number - 1} back"


# Definitions are wrapped.


@edit("wrapped", 5)
def _wrap(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    path, source, (start, end, node) = found
    name, chance = name_of(node), splicer.chance
    body = source.lines[start:end]
    by = chance.choice(sorted(name_of(each) for _, _, each in source.definitions()))
    ways = {
        "a decorator": [f"@{by}", *body],
        "functools.wraps": ["import functools", f"@functools.wraps({by})", *body],
        "a class": [f"class In{name}:", *indented(body), f"{name} = In{name}.{name}"],
        "try": ["try:", *indented(body), "except ImportError:", f"    {name} = None"],
        "a failed import": ["try:", f"    from missing import {name}", "except ImportError:", *indented(body)],
        "TYPE_CHECKING": ["from typing import TYPE_CHECKING", "if TYPE_CHECKING:", *indented(body)],
        "a condition": [f"if {by}:", *indented(body), "else:", f"    {name} = {by}"],
        "a function": [f"def make_{name}():", *indented(body), f"    return {name}", f"{name} = make_{name}()"],
        "with": [f"with {by}() as opened:", *indented(body)],
        "a property": ["@property", *body],
    }
    way = chance.choice(sorted(ways))
    source.lines[start:end] = ways[way]
    tree[path] = source.encoded()
    return f"{name} of {path} in {way}"


@edit("result changed", 4)
def _return_something_else(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    path, source, (_, end, node) = found
    if not isinstance(node, ast.FunctionDef) or node.body[0].lineno == node.lineno:
        return ""
    by = splicer.chance.choice(sorted(name_of(each) for _, _, each in source.definitions()))
    result = splicer.chance.choice((f"return {by}()", f"return {by}", f"yield {by}()", "return None"))
    source.lines[end:end] = [" " * node.body[-1].col_offset + result]
    tree[path] = source.encoded()
    return f"{node.name} of {path}: {result}"


@edit("bases changed", 4)
def _change_bases(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    path, source, (_, _, node) = found
    if not isinstance(node, ast.ClassDef):
        return ""
    classes = sorted(each.name for _, _, each in source.blocks if isinstance(each, ast.ClassDef))
    bases = splicer.chance.sample(classes, splicer.chance.randint(0, min(2, len(classes))))
    line = node.lineno - 1
    source.lines[line] = re.sub(
        rf"class {node.name}\b(\(.*\))?", f"class {node.name}({', '.join(bases)})", source.lines[line]
    )
    tree[path] = source.encoded()
    return f"{node.name} of {path}: {', '.join(bases) or 'none'}"


# Stubs.


class _Stubbed(ast.NodeTransformer):
    """A module as its stub: signatures without bodies."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._hollow(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._hollow(node)

    @staticmethod
    def _hollow(node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.body = [ast.Expr(ast.Constant(...))]
        return node


def _stub(content: bytes) -> bytes | None:
    source = parsed(content)
    if source is None:
        return None
    module = ast.Module([node for _, _, node in source.blocks], [])
    return ast.unparse(ast.fix_missing_locations(_Stubbed().visit(module))).encode("utf-8", "replace")


@edit("stub beside a module")
def _stub_beside(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree, (".py",))
    if not path or (stub := _stub(tree[path])) is None:
        return ""
    tree[f"{path}i"] = stub
    return f"{path}i"


@edit("stub instead of a module")
def _stub_instead(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree, (".py",))
    if not path or (stub := _stub(tree[path])) is None:
        return ""
    tree[f"{path}i"] = stub
    del tree[path]
    return f"{path}i"


@edit("stub package", 1)
def _stub_package(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree, (".py",))
    top, _, inside = path.partition("/")
    if not inside or (stub := _stub(tree[path])) is None:
        return ""
    new = f"{top}-stubs/{inside}i"
    tree[new] = stub
    return new


# Names pass through modules.


@edit("star import added", 3)
def _star(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None:
        return ""
    path, source = found
    module = module_of(splicer.path(tree), tree)
    if not is_importable(module):
        return ""
    place = splicer.chance.choice(source.places())
    source.lines[place:place] = [f"from {module} import *"]
    tree[path] = source.encoded()
    return f"of {module} in {path}"


@edit("__all__ edited", 3)
def _exports(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None or not (definitions := found[1].definitions()):
        return ""
    path, source = found
    names = sorted(name_of(node) for _, _, node in definitions)
    chance = splicer.chance
    listed = chance.sample(names, min(len(names), chance.randint(1, 3)))
    other = module_of(splicer.path(tree), tree)
    more = [f"import {other} as other", "__all__ += other.__all__"] if is_importable(other) else []
    said = chance.choice(
        (
            [f"__all__ = {listed!r}"],
            [f"__all__ = {listed!r}", *more],
            [f"__all__ = {names!r}", f"__all__.remove({listed[0]!r})"],
            [f"__all__ = {listed!r}", "__all__ += ['nowhere']"],
        )
    )
    source.lines += said
    tree[path] = source.encoded()
    return f"{path}: {said[-1]}"


@edit("circular import", 3)
def _circle(splicer: Splicer, tree: Tree) -> str:
    one, other = splicer.source(tree), splicer.source(tree)
    if one is None or other is None or one[0] == other[0]:
        return ""
    modules = [module_of(path, tree) for path, _ in (one, other)]
    if not all(map(is_importable, modules)):
        return ""
    name = splicer.new_name("shared")
    way = splicer.chance.choice(("name", "star", "alias", "base"))
    for (path, source), module in zip((one, other), reversed(modules), strict=True):
        source.lines += {
            "name": [f"from {module} import {name}", f"{name}()"],
            "star": [f"from {module} import *", f"{name}()"],
            "alias": [f"import {module} as m", f"{name} = m.{name}"],
            "base": [f"from {module} import {name} as base", f"class {name}(base):", "    pass", f"{name}().m()"],
        }[way]
        tree[path] = source.encoded()
    return f"of a {way} between {one[0]} and {other[0]}"


@edit("alias added", 3)
def _alias(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.definition(tree)) is None:
        return ""
    path, source, (_, _, node) = found
    name = name_of(node)
    alias = splicer.chance.choice(sorted(name_of(each) for _, _, each in source.definitions()))
    source.lines += [f"{alias}_alias = {name}", f"{alias} = {alias}_alias", f"{alias}()"]
    tree[path] = source.encoded()
    return f"{alias} for {name} in {path}"


@edit("module hook added", 1)
def _hook(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None:
        return ""
    path, source = found
    source.lines += ["def __getattr__(name):", "    return name"]
    tree[path] = source.encoded()
    return path


# Texts that are odd.


@edit("comment added")
def _comment(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    tree[path] += f"\n# {splicer.new_name('comment ')}\n".encode()
    return path


@edit("cut off in the middle")
def _truncate(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    tree[path] = tree[path][: splicer.chance.randint(0, len(tree[path]))]
    return path


@edit("emptied", 1)
def _empty(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    tree[path] = b""
    return path


@edit("written in Latin-1")
def _latin(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None:
        return ""
    path, source = found
    source.encoding = "latin-1"
    source.lines = ["# -*- coding: latin-1 -*-", *source.lines, "# caf\xe9"]
    tree[path] = source.encoded()
    return path


@edit("bytes that are no text", 1)
def _undecodable(splicer: Splicer, tree: Tree) -> str:
    path = splicer.path(tree)
    tree[path] += b"\n# caf\xe9\n"
    return path


@edit("byte order mark or line ends")
def _line_ends(splicer: Splicer, tree: Tree) -> str:
    if (found := splicer.source(tree)) is None:
        return ""
    path, source = found
    if splicer.chance.random() < 0.5 and source.encoding in ("utf-8", "utf-8-sig"):
        source.encoding = "utf-8" if source.encoding == "utf-8-sig" else "utf-8-sig"
    else:
        source.newline = "\n" if source.newline == "\r\n" else "\r\n"
    tree[path] = source.encoded()
    return path


@edit("deep folders")
def _deep(splicer: Splicer, tree: Tree) -> str:
    name, content = splicer.library.module(splicer.chance)
    depth = round(exp(splicer.chance.uniform(log(5), log(300))))
    path = f"{splicer.new_name('deep')}/" + "d/" * depth + name
    tree[path] = content
    user = splicer.source(tree)
    module = module_of(path, tree)
    if user is not None and is_importable(module):
        user[1].lines += [f"import {module}", f"from {module} import *"]
        tree[user[0]] = user[1].encoded()
    return f"{depth} of them above {name}"


# Chains: `x1` is made of `x0`, `x2` of `x1`, and so on; another file uses the last.

_START: Final = "class B:\n    def m(self):\n        return self\n"


@dataclass(frozen=True)
class ChainKind:
    """How a chain starts, and how each link is made of the one before."""

    start: str
    link: str = ""
    across: str = "from {package}.m{before} import x{before}\n{link}"
    """A link in a file of its own."""
    use: str = ""
    """What is read of each link in turn, from the last on."""

    def links(self, package: str, length: int, *, across: bool) -> Tree:
        """The files of a chain: one for each link, or one with all of them, named as the last."""
        links = [self.link.format(number=number, before=number - 1) for number in range(1, length + 1)]
        if self.link and not across:
            return {f"{package}/m{length}.py": (self.start + "".join(links)).encode()}
        texts = {f"{package}/m0.py": self.start.encode()}
        for number, link in enumerate(links, 1):
            text = self.across.format(package=package, number=number, before=number - 1, link=link)
            texts[f"{package}/m{number}.py"] = text.encode()
        return texts

    def user(self, package: str, length: int) -> bytes:
        """A file that uses the end of a chain."""
        last = f"x{length}"
        uses = [f"from {package}.m{length} import {last}", f"{last}.m()", f"{last}().m()"]
        if self.use:
            uses.append(f"{last}(){self.use * length}.m()")
        return "".join(f"{line}\n" for line in uses).encode()


CHAINS: Final = {
    "values": ChainKind(f"{_START}x0 = B()\n", "x{number} = x{before}.m()\n"),
    "names": ChainKind(f"{_START}x0 = B()\n", "x{number} = x{before}\n"),
    "imports": ChainKind(f"{_START}x0 = B()\n", across="from {package}.m{before} import x{before} as x{number}\n"),
    "star imports": ChainKind(f"{_START}x0 = B()\n", across="from {package}.m{before} import *\nx{number} = x0\n"),
    "exports": ChainKind(
        f"{_START}x0 = B()\n__all__ = ['x0']\n",
        across="from {package} import m{before}\nfrom {package}.m{before} import *\n"
        "x{number} = x{before}.m()\n__all__ = m{before}.__all__ + ['x{number}']\n",
    ),
    "bases": ChainKind("class x0:\n    def m(self):\n        return self\n", "class x{number}(x{before}):\n    pass\n"),
    "decorators": ChainKind("def x0(f):\n    return f\n", "@x{before}\ndef x{number}(f):\n    return x{before}(f)\n"),
    "results": ChainKind(f"{_START}def x0():\n    return B()\n", "def x{number}():\n    return x{before}()\n"),
    "attributes": ChainKind(
        "class x0:\n    def m(self):\n        return self\n",
        "class x{number}:\n    def __init__(self):\n        self.y = x{before}()\n    def m(self):\n"
        "        return self.y.m()\n",
        use=".y",
    ),
}
"""Those without a link have one in files of their own alone."""


@edit("chain added", 8)
def _add_chain(splicer: Splicer, tree: Tree) -> str:
    while len(splicer.chains) >= MOST_CHAINS:
        old = splicer.chains.pop(0)
        for path in (*old.links, old.user):
            tree.pop(path, None)
    name, length = splicer.chance.choice(sorted(CHAINS)), splicer.length()
    package, user = splicer.new_name("chain"), f"{splicer.new_name('user')}.py"
    links = CHAINS[name].links(package, length, across=splicer.chance.random() < 0.5)
    tree |= {**links, user: CHAINS[name].user(package, length)}
    splicer.chains.append(Chain(list(links), user))
    return f"{length} {name} in {len(links)} files"


@edit("chain edited", 10)
def _edit_chain(splicer: Splicer, tree: Tree) -> str:
    chance = splicer.chance
    chains = [each for each in splicer.chains if each.user in tree and any(path in tree for path in each.links)]
    if not chains:
        return ""
    chain = chance.choice(chains)
    links = [path for path in chain.links if path in tree]
    way = chance.choice(("its user touched", "its user touched", "a link touched", "its start changed", "cut"))
    if way == "its user touched":
        tree[chain.user] += f"# {splicer.new_name('comment ')}\n".encode()
    elif way == "a link touched":
        tree[chance.choice(links)] += f"y = {splicer.new_name('1')}\n".encode()
    elif way == "its start changed":
        old, new = chance.choice(((b"def m(", b"def k("), (b"def k(", b"def m("), (b"return self", b"return 1")))
        tree[links[0]] = tree[links[0]].replace(old, new)
    elif len(links) > 1:
        del tree[chance.choice(links)]
    else:
        lines = tree[links[0]].split(b"\n")
        place = chance.randrange(len(lines))
        tree[links[0]] = b"\n".join([*lines[:place], *lines[place + 1 :]])
    return way
