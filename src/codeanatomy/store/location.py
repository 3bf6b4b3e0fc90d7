"""Where a state is: a local directory or a prefix of an object store, with the options to reach it.

Nothing here reads or writes. Every uri of the store is built here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from codeanatomy.errors import InputError
from codeanatomy.store.opened import Opened


@dataclass(frozen=True)
class StateLocation:
    """The root of a state; created by `at`, which normalizes the uri."""

    uri: str
    storage_options: Mapping[str, str] = field(hash=False, repr=False)
    linked: Mapping[str, StateLocation] = field(default_factory=dict, hash=False, repr=False)
    """Tables that are read from another state, by name."""
    opened: Opened = field(default_factory=Opened, compare=False, repr=False)
    """What was opened through this value, and what is known of it."""

    @classmethod
    def at(cls, place: str | Path, storage_options: Mapping[str, str] | None = None) -> StateLocation:
        """The state at a path, a `file://` uri or an object store's uri."""
        text = str(place)
        if text.startswith("file://"):
            text = unquote(urlsplit(text).path)
        uri = text.rstrip("/") if "://" in text else str(Path(text).absolute())
        return cls(uri, MappingProxyType(dict(storage_options or {})))

    @property
    def is_local(self) -> bool:
        """Whether the state is a directory of this machine."""
        return "://" not in self.uri

    @property
    def local_path(self) -> Path:
        """The directory of a local state."""
        if not self.is_local:
            raise ValueError(f"{self.uri} is not a local directory")
        return Path(self.uri)

    @property
    def tables_uri(self) -> str:
        """The folder all tables live in."""
        return f"{self.uri}/tables"

    def table_uri(self, name: str) -> str:
        """The folder of the table called `name`."""
        return f"{self.home_of(name).tables_uri}/{name}"

    def home_of(self, name: str) -> StateLocation:
        """The state that has the table called `name`: this one, unless the table is linked."""
        return self.linked.get(name, self)

    def options(self) -> dict[str, str]:
        """The storage options in the form `deltalake` takes them."""
        return dict(self.storage_options)


def locate_state(repo: str | Path, state: str | None, storage_options: Mapping[str, str]) -> StateLocation:
    """The location of a repository's state: `state`, or a directory inside the repository, which must not be a link."""
    inside = Path(repo) / ".codeanatomy"
    if state is None and inside.is_symlink():
        raise InputError(f"{inside} is a link: if it is yours, name the place it leads to with --state")
    return StateLocation.at(state or inside, storage_options)


def literal_paths(paths: Iterable[str]) -> list[str]:
    """Paths escaped for Spark, which reads every path as a pattern."""
    return [re.sub(r"([\\{}\[\]*?])", r"\\\1", path) for path in paths]
