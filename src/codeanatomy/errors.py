"""The one exception family. Each error says what happened and what to do; each kind has an exit code."""

from __future__ import annotations


class CodeAnatomyError(Exception):
    """Anything the user should be told in one line: what happened and, as `hint`, what to do next."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


class InputError(CodeAnatomyError):
    """Wrong usage or bad input: no such directory, an unknown build, invalid SQL."""

    exit_code = 2


class MachineError(CodeAnatomyError):
    """The machine lacks something: no Java, no memory, no disk space."""

    exit_code = 3


class LowMemoryError(MachineError):
    """The machine has too little free memory for what was started; less may fit."""


class StateError(CodeAnatomyError):
    """The state is busy, damaged, or from a newer version."""

    exit_code = 4
