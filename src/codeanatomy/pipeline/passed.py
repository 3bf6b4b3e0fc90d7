"""What slots hold, as questions are answered with it. Workers get it packed, and unpack it when they first read it."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

from codeanatomy.resolve import Flow
from codeanatomy.resolve.slots import Contents


class PassedValues:
    """What slots hold, and the names of attributes that are set from elsewhere; either may be packed."""

    def __init__(self, contents: Contents | bytes, assigned: frozenset[str]) -> None:
        self._contents = contents
        self._assigned = assigned

    def __reduce__(self) -> tuple[Any, ...]:
        return PassedValues, (self._packed, self._assigned)

    @cached_property
    def key(self) -> str:
        """Equal keys mean equal values."""
        return sha256(self._packed).hexdigest()

    @cached_property
    def flow(self) -> Flow:
        """The slots as a resolver reads them."""
        held = self._contents
        contents = held if isinstance(held, Mapping) else pickle.loads(held)  # noqa: S301 - the driver packed it
        return Flow(contents, self._assigned, is_complete=True)

    @cached_property
    def _packed(self) -> bytes:
        held = self._contents
        return pickle.dumps(dict(held), pickle.HIGHEST_PROTOCOL) if isinstance(held, Mapping) else held
