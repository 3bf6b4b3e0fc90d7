"""Programs whose answers lie at the end of a chain, or behind many names: generators by shape, each of any size.

`main.py` asks about the far end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

Files = dict[str, str]


def values(size: int) -> Files:
    steps = "".join(f"b{n + 1} = b{n}.add()\n" for n in range(size))
    return {
        "base.py": "class B:\n    def add(self): return self\n",
        "chain.py": f"from base import B\nb0 = B()\n{steps}",
        "main.py": f"from chain import b{size}\nb{size}.add()\n",
    }


def imports(size: int) -> Files:
    links = {f"p/m{n}.py": f"from p.m{n + 1} import x\n" for n in range(size)}
    return {"p/__init__.py": "", **links, f"p/m{size}.py": "def x(): pass\n", "main.py": "from p.m0 import x\nx()\n"}


def stars(size: int) -> Files:
    links = {f"m{n}.py": f"from m{n + 1} import *\ndef f{n}(): pass\n" for n in range(size)}
    return {**links, f"m{size}.py": "def x(): pass\n", "main.py": "from m0 import *\nx()\n"}


def bases(size: int) -> Files:
    links = "".join(f"class C{n + 1}(C{n}):\n    def m{n}(self): self.root()\n" for n in range(size))
    return {
        "chain.py": f"class C0:\n    def root(self): pass\n{links}",
        "main.py": f"from chain import C{size}\nC{size}().root()\n",
    }


def bases_across_files(size: int) -> Files:
    links = {
        f"c{n + 1}.py": f"from c{n} import C{n}\nclass C{n + 1}(C{n}):\n    def m{n}(self): self.root()\n"
        for n in range(size)
    }
    return {
        "c0.py": "class C0:\n    def root(self): pass\n",
        **links,
        "main.py": f"from c{size} import C{size}\nC{size}().root()\n",
    }


def decorators(size: int) -> Files:
    links = "".join(f"def d{n + 1}(f): return d{n}(f)\n" for n in range(size))
    return {
        "chain.py": f"class B:\n    def go(self): pass\ndef d0(f): return B()\n{links}",
        "main.py": f"from chain import d{size}\n@d{size}\ndef f(): pass\nd{size}(f).go()\n",
    }


def returns(size: int) -> Files:
    links = "".join(f"def f{n + 1}(): return f{n}()\n" for n in range(size))
    return {
        "chain.py": f"class B:\n    def go(self): pass\ndef f0(): return B()\n{links}",
        "main.py": f"from chain import f{size}\nf{size}().go()\n",
    }


def ring_of_imports(size: int) -> Files:
    return {f"m{n}.py": f"from m{(n + 1) % size} import x\n" for n in range(size)} | {
        "main.py": "from m0 import x\nx()\n",
    }


def ring_of_stars(size: int) -> Files:
    return {f"m{n}.py": f"from m{(n + 1) % size} import *\ndef f{n}(): f{n * 7 % size}()\n" for n in range(size)} | {
        "main.py": f"from m0 import *\nf{size - 1}()\n",
    }


def ring_of_bases(size: int) -> Files:
    links = "".join(
        f"class C{n}(C{(n + 1) % size}):\n    def m{n}(self): self.m{n * 7 % size}()\n" for n in range(size)
    )
    return {"chain.py": links, "main.py": f"from chain import C0\nC0().m{size - 1}()\n"}


def wide_bases(size: int) -> Files:
    each = "".join(f"class B{n}(R):\n    def m{n}(self): self.root()\n" for n in range(size))
    names = ", ".join(f"B{n}" for n in range(size))
    return {
        "wide.py": f"class R:\n    def root(self): pass\n{each}class W({names}): pass\n",
        "main.py": f"from wide import W\nW().m{size - 1}()\n",
    }


def wide_stars(size: int) -> Files:
    each = {f"m{n}.py": f"def f{n}(): pass\n" for n in range(size)}
    stars = "".join(f"from m{n} import *\n" for n in range(size))
    calls = "".join(f"f{n}()\n" for n in range(size))
    return {**each, "main.py": stars + calls}


SHAPES: Final[Mapping[str, Callable[[int], Files]]] = {
    make.__name__: make
    for make in (
        values,
        imports,
        stars,
        bases,
        bases_across_files,
        decorators,
        returns,
        ring_of_imports,
        ring_of_stars,
        ring_of_bases,
        wide_bases,
        wide_stars,
    )
}

RINGS: Final = frozenset({"ring_of_imports", "ring_of_stars", "ring_of_bases"})
"""Shapes in which a search comes back to itself."""
