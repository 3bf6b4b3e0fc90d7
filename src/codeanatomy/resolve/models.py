"""Models of the standard library: what its functions do with the values they are given. `models.toml` has them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from codeanatomy.resolve.values import ContainerMethod, External, Value

MAPPINGS: Final = frozenset({"<builtin>.dict", "collections.defaultdict", "collections.OrderedDict"})
"""Containers whose iteration gives keys."""

_STEP: Final = re.compile(r"\[\]|\{\}|\(\)|\|\w+")


class Source(NamedTuple):
    """Where a value comes from: an argument, or the container itself, and what is done with it; several for a tuple."""

    place: str
    steps: tuple[str, ...] = ()


class Held(NamedTuple):
    """What is put into a container: under a key, or `*`, `+`, `**`; `parts` if it is a tuple."""

    key: str
    source: Source
    parts: tuple[Source | None, ...] = ()


class ModelledCall(NamedTuple):
    """A call that is made: of what, with what; `rest` are the arguments of the outer call from a position on."""

    what: str
    arguments: tuple[Source, ...]
    rest: int | None
    spread: str | None
    keywords: str | None


class Model(NamedTuple):
    """What a function does."""

    returns: tuple[Source, ...]
    makes: str
    holds: tuple[Held, ...]
    stores: tuple[Held, ...]
    calls: tuple[ModelledCall, ...]


def model_of(value: External | ContainerMethod | Value) -> Model | None:
    """The model of a function outside the repository, or of a method of a container; None if it has none."""
    if isinstance(value, ContainerMethod):
        return _models().get(f"<method>.{value.name}")
    return _models().get(value.name) if isinstance(value, External) else None


@cache
def _models() -> Mapping[str, Model]:
    text = files("codeanatomy.resolve").joinpath("models.toml").read_text(encoding="utf-8")
    return {name: _model(each) for each in tomllib.loads(text)["model"] for name in each["names"]}


def _model(row: Mapping[str, Any]) -> Model:
    return Model(
        tuple(map(_source, row.get("returns", ()))),
        row.get("makes", ""),
        _held(row.get("holds", ())),
        _held(row.get("stores", ())),
        tuple(
            ModelledCall(
                each["what"],
                tuple(map(_source, each.get("with", ()))),
                each.get("rest"),
                each.get("spread"),
                each.get("keywords"),
            )
            for each in row.get("calls", ())
        ),
    )


def _source(text: str) -> Source:
    steps = tuple(_STEP.findall(text))
    return Source(text[: len(text) - sum(map(len, steps))], steps)


def _held(texts: Sequence[str]) -> tuple[Held, ...]:
    return tuple(map(_held_value, texts))


def _held_value(text: str) -> Held:
    key, _, value = text.partition("=")
    if key == "keywords":
        return Held("keywords", Source(""))
    if value.startswith("("):
        parts = tuple(None if part == "-" else _source(part) for part in value[1:-1].split(","))
        return Held(key, Source(""), parts)
    return Held(key, _source(value))
