"""Requests: which repository, and what to do with it. Cheap to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.query.request import FORMATS, PublishRequest

__all__ = ["FORMATS", "BuildRequest", "PublishRequest", "Repository", "RepositoryLike", "as_repository"]


@dataclass(frozen=True)
class Repository:
    """A repository and where its state is: by default in `.codeanatomy` inside it."""

    repo: str | Path = "."
    state: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)
    """Options of the object store that holds the state."""


RepositoryLike = Repository | str | Path
"""A repository, or only its path."""


def as_repository(repo: RepositoryLike) -> Repository:
    """The repository that is given, or the one at a path."""
    return repo if isinstance(repo, Repository) else Repository(repo)
