"""The one exception family. Each error says what happened and what to do; each kind has an exit code."""

from __future__ import annotations


class CodeAnatomyError(Exception):
    """Anything the user should be told in one line."""

    exit_code = 2


class InputError(CodeAnatomyError):
    """Wrong usage or bad input: no such directory, an unknown build, invalid SQL."""

    exit_code = 2


class MachineError(CodeAnatomyError):
    """The machine lacks something: no Java, no memory, no disk space."""

    exit_code = 3


class StateError(CodeAnatomyError):
    """The state is busy, damaged, or from a newer version."""

    exit_code = 4
