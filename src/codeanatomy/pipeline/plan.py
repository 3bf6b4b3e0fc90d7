"""Decide what a build has to do, from what changed since the last one. Writes nothing.

A file's rows are a pure function of its facts, the answers to its questions, its semantic document, and the rules and
settings. The snapshot names the contents; fingerprints name everything else. Equal snapshot and equal fingerprints
therefore mean equal rows, and only then is a build a no-op. A missing fingerprint is an unequal one. What an edited
rule changes is its own output and what is computed from that; any other change affects everything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from codeanatomy.catalogue.revisions import LAYER_VERSIONS, RESOLVER_REVISION
from codeanatomy.catalogue.tables import STORED_TABLES
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError, StateError
from codeanatomy.index.documents import INDEX_REVISION
from codeanatomy.index.provider import Provider
from codeanatomy.pipeline.request import BuildRequest, Mode
from codeanatomy.repo.modules import NAMING_REVISION
from codeanatomy.rules.compiled import CompiledRule, needed_rules
from codeanatomy.store.builds import BuildRecord

if TYPE_CHECKING:
    from codeanatomy.pipeline.inputs import BuildInputs


def as_built(request: BuildRequest, last: BuildRecord) -> BuildRequest:
    """The request with the index that `last` was made with, unless it asks for one."""
    if request.index or request.scip:
        return request
    index = last.figures.get("index") or {"choice": "none", "scip": None}
    choice, scip = index.get("choice"), index.get("scip")
    if choice not in INDEXES or not isinstance(scip, str | None):
        raise StateError(
            f"build {last.build_id} is damaged (made with index {choice!r}): run `codeanatomy build --full`"
        )
    if scip is not None and not Path(scip).is_file():  # a state can name a pipe, or a device without an end
        raise InputError(f"the last build was made with the index {scip}, which is not there: name it with --scip")
    return replace(request, index=choice, scip=scip)


ENTRY_POINTS = "entry points"
"""The fingerprint of what makes a function an entry point."""

INDEXES = ("auto", "pyrefly", "scip", "none")
"""The choices of an index."""


@dataclass(frozen=True)
class Invalidation:
    """Something other than a file that changed, and the tables that are computed again because of it."""

    kind: str
    name: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What a build will do, as far as can be told without looking at files, and why."""

    mode: Mode
    reasons: tuple[str, ...]
    invalidations: tuple[Invalidation, ...] = ()

    @property
    def whole(self) -> frozenset[str]:
        """Tables that are computed again for every file."""
        return frozenset(table for each in self.invalidations for table in each.tables)


def fingerprints(
    rules: tuple[CompiledRule, ...],
    settings: EngineSettings,
    roots: tuple[str, ...],
    repo_id: str,
    provider: Provider | None,
) -> Mapping[str, str]:
    """Names of everything but file contents that can alter a row."""
    return {
        **{f"{_LAYER}{name}": version for name, version in LAYER_VERSIONS.items()},
        "resolver": str(RESOLVER_REVISION),
        "settings": settings.fingerprint(),
        _SCHEMA: _schema_fingerprint(),
        "index": f"{provider.fingerprint} {INDEX_REVISION}" if provider else "none",
        **({_INDEX_CONTENT: provider.content} if provider and provider.content else {}),
        "modules": _hash([NAMING_REVISION, repo_id, *roots]),
        **{f"{_RULE}{each.rule.name}": f"{each.rule.output.name} {each.identity}" for each in rules},
    }


def has_current_schema(build: BuildRecord) -> bool:
    """Whether the tables of a build have the columns that this version writes."""
    return build.fingerprints.get(_SCHEMA) == _schema_fingerprint()


def plan_build(last: BuildRecord | None, inputs: BuildInputs, *, full: bool) -> Plan:
    """Compare with the last build; every reason to rebuild is named."""
    if last is None:
        return Plan(Mode.FULL, ("first build",))
    before, current = last.fingerprints, inputs.fingerprints
    rules = needed_rules(inputs.rules, documents=inputs.provider is not None)
    everything = tuple(table.name for table in STORED_TABLES)
    changed = [name for name in current if not _is_update(name) and before.get(name) != current[name]]
    known = any(name.startswith(_RULE) for name in before)
    invalidations = [Invalidation(*_kind_and_name(name), everything) for name in changed]
    if full or invalidations or not known:
        reasons = [*(["full build asked for"] if full else []), *(f"{name} changed" for name in changed)]
        return Plan(Mode.FULL, tuple(reasons) or ("rules are not known",), tuple(invalidations))
    reasons = ["files changed"] if last.snapshot_id != inputs.snapshot.snapshot_id else []
    if before.get(_INDEX_CONTENT) != current.get(_INDEX_CONTENT):
        reasons.append("index changed")
    if changes_entry_points(before, current):
        reasons.append("entry points are described differently")
    for rule in changed_rules(before, current):
        name = f"{_RULE}{rule}"
        outputs = {value.split(" ")[0] for value in (before.get(name), current.get(name)) if value}
        if tables := _made_from(outputs, rules):
            invalidations.append(Invalidation("rule", rule, tables))
            reasons.append(f"rule {rule} changed")
    return Plan(Mode.INCREMENTAL if reasons else Mode.NOOP, tuple(reasons), tuple(invalidations))


def changes_entry_points(before: Mapping[str, str], current: Mapping[str, str]) -> bool:
    """Whether other patterns make functions entry points; these are rows that belong to no file."""
    return before.get(ENTRY_POINTS) != current.get(ENTRY_POINTS)


def changed_rules(before: Mapping[str, str], current: Mapping[str, str]) -> list[str]:
    """The rules that differ between two builds with these fingerprints, by name."""
    differing = (name for name in current.keys() | before.keys() if before.get(name) != current.get(name))
    return sorted(name.removeprefix(_RULE) for name in differing if name.startswith(_RULE))


def _made_from(outputs: set[str], rules: Sequence[CompiledRule]) -> tuple[str, ...]:
    """The stored tables among these datasets and all that `rules` compute from them."""
    reached = outputs & {each.rule.output.name for each in rules} | outputs & {table.name for table in STORED_TABLES}
    while more := {each.rule.output.name for each in rules if reached & set(each.inputs)} - reached:
        reached |= more
    return tuple(table.name for table in STORED_TABLES if table.name in reached)


def layers_of(fingerprints: Mapping[str, str]) -> dict[str, str]:
    """The layers of facts that a build with these fingerprints works from, and the version of each."""
    return {n.removeprefix(_LAYER): version for n, version in fingerprints.items() if n.startswith(_LAYER)}


def _kind_and_name(fingerprint: str) -> tuple[str, str]:
    """How an invalidation calls what a fingerprint is of."""
    if fingerprint.startswith(_LAYER):
        return "layer", fingerprint.removeprefix(_LAYER)
    return _KINDS.get(fingerprint, "settings"), fingerprint


def _schema_fingerprint() -> str:
    return _hash([(table.name, str(table.schema())) for table in STORED_TABLES])


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]


def _is_update(fingerprint: str) -> bool:
    """Whether an update finds out what a change of this fingerprint affects."""
    return fingerprint in (_INDEX_CONTENT, ENTRY_POINTS) or fingerprint.startswith(_RULE)


_RULE = "rule "
_LAYER = "layer "
_SCHEMA = "schema"
_INDEX_CONTENT = "index content"
_KINDS = {"resolver": "resolver", "index": "indexer"}
