"""Extraction agrees with the interpreter on a sample of real code, and on sources that once did not agree."""

from __future__ import annotations

import random

import pytest

from .oracle import compare, default_roots, explanation, python_files

SAMPLE = 150


def test_a_sample_of_real_code_reads_as_the_interpreter_reads_it():
    compared = 0
    unexplained = []
    files = python_files(default_roots())
    for path in random.Random(1).sample(files, min(SAMPLE, len(files))):
        source = path.read_bytes()
        if len(source) > 200_000:
            continue
        disagreements = compare(source)
        compared += disagreements is not None
        unexplained += [f"{path}: {d}" for d in disagreements or () if explanation(d, source) is None]
    assert compared > SAMPLE // 2
    assert unexplained == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    [y := x for x in z]\n    return y\n",
        "[y := x for x in z]\n",
        "def f():\n    global y\n    [y := x for x in z]\n",
        "class C:\n    a = 1\n    b = [a for _ in a if a]\n    def m(self): return a, b\n",
        "class C:\n    def m(self): return super().m, lambda: __class__\n",
        "class C:\n    __x = 1\n    def m(self, __y): return __x, __y, _C__y, self.__z\n",
        "def f(a, b=c, *d, e: g = h, **i) -> j:\n    def k(): nonlocal a; a = b\n    return k\n",
        "def f():\n    x = 1\n    class C:\n        x = x\n        def m(self): return x\n    return C\n",
        "def f():\n    global x\n    x = 1\n    def g(): return x\n",
        "def f(x):\n    def g():\n        global x\n        def h(): return x\n",
        "try: pass\nexcept E as e: del e\n",
        "with a as (b, [c, *d]), e as f.g: pass\n",
        "match a:\n    case b.C(d, e=[f, *_]) | {'k': g, **h} if i: pass\n    case -1 | 'x' | None | j: pass\n",
        "import a.b, c.d as e\nfrom f import g as h\n",
        "x: int\n(y): int = 1\nz.w: int\nv += 1\n",
        "f'{x!r:>{y}} {z=} {w:=5} {(v := 1)}'\n",
        "a = [*b.c]\nd = (*e.f(),)\ng(*h.i)\nfor j in *k, *l.m: pass\n",
        "type(a).b = c\ntype (a).b = c\ntype[a] = b\nx: type[a]\ntype = 1\ntype(d)\n",
        "match = type\nmatch(e)\nmatch[f] = g\nprint >>f, g\nprint -1\n",
        "ﬁ = 1\nfi\nclass ª: __ª = ª\n",
        "async def f():\n    async with a as b: pass\n    async for c in d: await e\n    return [g async for g in h]\n",
        "lambda a, /, *, b=(yield): (lambda: a)\n",
        "def f(): pass; \nclass C: x = 1; # c\n",
        "@a.b\n@(c)\n@d[0](e)\nclass C(f, g=h, *i, **j): pass\n",
        "def f(a: (b), c: (d | e) = g) -> (h): i: (j) = k\n",
        "(a.b).c(d)\n(e)(f)\n((g)).h = i\n",
    ],
)
def test_hard_cases(source):
    assert compare(source.encode()) == []


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        ("x = 1\n", "cst_name_refs"),
        ("def f(): pass\n", "cst_defs"),
        ("f(1)\n", "cst_callsites"),
        ("def f(a): pass\n", "cst_params"),
        ("import a\n", "cst_imports"),
        ("x: int\n", "cst_type_exprs"),
        ("x\n", "sym_bindings"),
    ],
)
def test_the_comparison_notices_what_is_missing(source, broken, monkeypatch):
    from . import oracle

    def without(content_ids, sources):
        batch = extract_batch(content_ids, sources)
        rows = batch.to_pylist()
        rows[0][broken] = []
        return type(batch).from_pylist(rows, batch.schema)

    extract_batch = oracle.extract_batch
    monkeypatch.setattr(oracle, "extract_batch", without)
    assert compare(source.encode())
