"""SQL statements of the queries, one per file, grouped by the module that runs them. `$name` is a parameter."""

from __future__ import annotations

from importlib.resources import files


def statement(name: str) -> str:
    """The statement in the file `name`.sql of this directory."""
    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
