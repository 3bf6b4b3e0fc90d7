"""Requests from parsed options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codeanatomy.api.requests import BuildRequest, PublishRequest, Repository
from codeanatomy.errors import InputError

if TYPE_CHECKING:
    from codeanatomy.service.engine import EngineOptions

_BUILD_NAME = re.compile(r"\d+(T\d*(-[0-9a-f]*)?)?|[0-9a-fA-F]{7,}")
"""The beginning of a build's id, or of a git commit."""


def build_request(options: argparse.Namespace) -> BuildRequest:
    """The request of a command that has some of the options of `build`."""
    scan: dict[str, Any] = {}
    if "include" in options:
        scan = {
            "repo_id": options.repo_id,
            "include": tuple(options.include or ()),
            "exclude": tuple(options.exclude or ()),
            "index": options.index,
            "scip": options.scip,
            "entry_points": options.entry_points,
            "roots": tuple(options.root or ()),
            "max_file_bytes": options.max_file_mb << 20,
        }
    engine: dict[str, Any] = {}
    if "profile" in options:
        engine = {
            "profile": options.profile,
            "master": options.master,
            "remote": options.remote,
            "spark_conf": _pairs(options.conf, "--conf"),
        }
    return BuildRequest(
        repo=options.repo,
        state=options.state,
        full=getattr(options, "full", False),
        strategy=getattr(options, "strategy", "hybrid"),
        max_impact_depth=getattr(options, "max_impact_depth", None),
        scratch=getattr(options, "scratch", None),
        moved=getattr(options, "moved", False),
        determinism=getattr(options, "determinism", "stable"),
        storage_options=_pairs(options.storage_option, "--storage-option"),
        **scan,
        **engine,
    )


def publish_request(options: argparse.Namespace) -> PublishRequest:
    """The request of `publish`."""
    return PublishRequest(
        out=options.out,
        format=options.format,
        tables=options.table,
        determinism=options.determinism,
        props_json=options.props_json,
        diagnostics=options.diagnostics,
    )


def engine_options(options: argparse.Namespace) -> EngineOptions:
    """How to run the engine."""
    from codeanatomy.service.engine import EngineOptions  # noqa: PLC0415 - other commands do not need it

    return EngineOptions(
        profile=options.profile,
        master=options.master,
        conf=_pairs(options.conf, "--conf"),
        idle_minutes=options.idle_minutes,
        max_memory_mb=options.max_memory_mb,
        rehearsals=options.rehearsals,
    )


def repository(options: argparse.Namespace) -> Repository:
    """The repository a command is about, and its state."""
    return Repository(options.repo, options.state, _pairs(options.storage_option, "--storage-option"))


def builds_to_compare(options: argparse.Namespace) -> tuple[str | None, str | None, Repository]:
    """The arguments of `diff`: up to two builds, then the repository, each of which may be left out."""
    builds = [word for word in (options.a, options.b) if word is not None]
    if builds and options.repo == "." and not _BUILD_NAME.fullmatch(builds[-1]):
        options.repo = builds.pop()
    before, after = (*builds, None, None)[:2]
    return before, after, repository(options)


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if any(not separator for _, separator, _ in pairs):
        raise InputError(f"{option} takes KEY=VALUE")
    return {key: value for key, _, value in pairs}
