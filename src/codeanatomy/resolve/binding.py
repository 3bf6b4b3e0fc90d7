"""Which argument of a call goes to which parameter, as Python binds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from codeanatomy.resolve.index import Parameters


class Bound(NamedTuple):
    """An argument, by number, that reaches a parameter.

    `step` is applied to it first: of a starred argument, one item is passed. To a parameter with a star (`mark`), it is
    passed as the item of a `key`; `**` and `+` say that it is a container whose items are passed on.
    """

    argument: int
    parameter: str
    step: str = ""
    mark: str = ""
    key: str = ""


def bound_arguments(parameters: Parameters, places: Sequence[str], shift: int) -> Iterator[Bound]:
    """How arguments at these places are bound; the first `shift` parameters are bound already."""
    if not places:
        return
    names = parameters.names
    positional, named, rest, keywords = _kinds(names, parameters.marks)
    positional = positional[shift:]
    for number, place in enumerate(places):
        if place == "**":
            yield from (Bound(number, name, f"@'{name}") for name in names if name in named)
            if keywords is not None:
                yield Bound(number, keywords, mark="**", key="**")
        elif place[0] in "*+":
            start = int(place[1:])
            is_one = place[0] == "+"
            for at in range(start, len(positional)):
                yield Bound(number, positional[at], "" if is_one else f"@{at - start}")
            if rest is not None:
                key = "*" if is_one else "**" if start == len(positional) else "+"
                yield Bound(number, rest, mark="*", key=key)
        elif place.isdigit():
            at = int(place)
            if at < len(positional):
                yield Bound(number, positional[at])
            elif rest is not None:
                yield Bound(number, rest, mark="*", key=str(at - len(positional)))
        elif place in named:
            yield Bound(number, place)
        elif keywords is not None:
            yield Bound(number, keywords, mark="**", key=f"'{place}")


@lru_cache(maxsize=8192)
def _kinds(
    names: tuple[str, ...], marks: tuple[str, ...]
) -> tuple[tuple[str, ...], frozenset[str], str | None, str | None]:
    """The parameters that can be passed by position, by keyword, and those with one and two stars."""
    marked = list(zip(names, marks, strict=True))
    positional = tuple(name for name, mark in marked if mark in ("", "/"))
    named = frozenset(name for name, mark in marked if mark in ("", "!"))
    rest = next((name for name, mark in marked if mark == "*"), None)
    keywords = next((name for name, mark in marked if mark == "**"), None)
    return positional, named, rest, keywords
