"""Small repositories for tests: a mapping of paths to sources, written to a directory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SHOP: Mapping[str, str] = {
    "shop/__init__.py": "from .cart import Cart\n\n__all__ = ['Cart']\n",
    "shop/cart.py": '''\
"""Carts."""
from __future__ import annotations
import typing as t
from .prices import price_of

LIMIT: int = 10


class Cart:
    """Holds items."""

    items: list[str]

    def __init__(self, *items: str, owner: str = "nobody") -> None:
        self.items = list(items)
        self.owner = owner

    @property
    def total(self) -> float:
        return sum(price_of(item) for item in self.items)

    async def send(self, to, /, *, fast=False):
        cheap = [i for i in self.items if (p := price_of(i)) < LIMIT]
        key = lambda item: (price_of(item), item)
        return sorted(cheap, key=key)
''',
    "shop/prices.py": """\
import functools

PRICES = {"tea": 3.5}


@functools.cache
def price_of(item: str) -> float:
    global PRICES
    try:
        return PRICES[item]
    except KeyError as error:
        del error
        return 0.0


class Odd(ValueError, metaclass=type):
    pass


def counter():
    n = 0

    def up():
        nonlocal n
        n += 1
        return n

    return up
""",
    "src/tools/run.py": """\
from shop import *
import os.path

match os.name:
    case 'nt' as name:
        pass


class Gift(Cart):
    async def send(self, to):
        return await super().send(to)
""",
    "stubs/shop.pyi": "class Cart: ...\n",
    "broken.py": "def ok():\n    return 1\n\ndef bad(:\n    pass\n\nx = ok()\n",
    "empty.py": "",
}


def write_repository(root: Path, files: Mapping[str, str | bytes] = SHOP) -> Path:
    """Write `files` below `root`."""
    for path, source in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.encode() if isinstance(source, str) else source)
    return root


@contextmanager
def deep_file(root: Path, depth: int) -> Iterator[str]:
    """A file so many folders below `root`, by its path; gone afterwards, because not every tool can remove it."""
    folder = os.open(root, os.O_RDONLY)
    for _ in range(depth):  # step by step, because the whole path may be too long to be given
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("m.py", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
    try:
        yield "d/" * depth + "m.py"
    finally:
        subprocess.run(["rm", "-rf", "d"], cwd=root, check=True)
