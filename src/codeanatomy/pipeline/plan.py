"""Decide what a build has to do, from what changed since the last one. Writes nothing.

A file's rows are a pure function of its facts, the answers to its questions, its semantic document, and the rules and
settings. The snapshot names the contents; fingerprints name everything else. Equal snapshot and equal fingerprints
therefore mean equal rows, and only then is a build a no-op. A missing fingerprint is an unequal one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from codeanatomy.catalogue.tables import STORED_TABLES
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.extract import EXTRACTOR_VERSION
from codeanatomy.index.documents import INDEX_REVISION
from codeanatomy.index.provider import Provider
from codeanatomy.pipeline.request import BuildRequest, Mode
from codeanatomy.repo.modules import NAMING_REVISION
from codeanatomy.repo.snapshot import Snapshot
from codeanatomy.resolve import RESOLVER_REVISION
from codeanatomy.rules.compiler import CompiledRule, rules_fingerprint
from codeanatomy.store.builds import Build


def as_built(request: BuildRequest, last: Build) -> BuildRequest:
    """The request with the index that `last` was made with, unless it asks for one."""
    if request.index or request.scip:
        return request
    index = last.figures.get("index") or {"choice": "none", "scip": None}
    return replace(request, index=index["choice"], scip=index["scip"])


@dataclass(frozen=True)
class Plan:
    """What a build will do, and why."""

    mode: Mode
    reasons: tuple[str, ...]


def fingerprints(
    rules: tuple[CompiledRule, ...],
    settings: EngineSettings,
    roots: tuple[str, ...],
    repo_id: str,
    provider: Provider | None,
) -> Mapping[str, str]:
    """Names of everything but file contents that can alter a row."""
    return {
        "extractor": EXTRACTOR_VERSION,
        "resolver": str(RESOLVER_REVISION),
        "rules": rules_fingerprint(rules),
        "settings": settings.fingerprint(),
        "schema": _hash([(d.name, str(d.schema())) for d in STORED_TABLES]),
        "index": f"{provider.fingerprint} {INDEX_REVISION}" if provider else "none",
        "modules": _hash([NAMING_REVISION, repo_id, *roots]),
    }


def plan_build(last: Build | None, snapshot: Snapshot, current: Mapping[str, str], *, full: bool) -> Plan:
    """Compare with the last build; every reason to rebuild is named."""
    if last is None:
        return Plan(Mode.FULL, ("first build",))
    reasons = ["full build asked for"] if full else []
    if last.snapshot_id != snapshot.snapshot_id:
        reasons.append("files changed")
    reasons += [f"{name} changed" for name in current if last.fingerprints.get(name) != current[name]]
    return Plan(Mode.FULL if reasons else Mode.NOOP, tuple(reasons))


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
