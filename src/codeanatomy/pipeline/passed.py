"""What slots hold, as it is handed to the workers that answer questions."""

from __future__ import annotations

import pickle
from functools import cached_property
from hashlib import sha256
from typing import Any

from codeanatomy.resolve import Flow
from codeanatomy.resolve.slots import Contents


class PassedValues:
    """What slots hold, as questions are answered with it. Can be pickled: a worker unpacks it when it is first read."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @classmethod
    def of(cls, contents: Contents) -> PassedValues:
        """What these slots hold."""
        return cls(pickle.dumps(dict(contents), pickle.HIGHEST_PROTOCOL))

    def __reduce__(self) -> tuple[Any, ...]:
        return PassedValues, (self._packed,)

    @cached_property
    def key(self) -> str:
        """Equal keys mean equal values."""
        return sha256(self._packed).hexdigest()

    @cached_property
    def flow(self) -> Flow:
        """The slots as a resolver reads them."""
        return Flow(pickle.loads(self._packed))  # noqa: S301 - our own bytes
