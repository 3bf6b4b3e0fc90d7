"""Everything a build works from, gathered before anything is written: the tree, its settings, our rules."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from codeanatomy.catalogue.tables import REPO_FILES
from codeanatomy.engine.directories import cache_directory
from codeanatomy.engine.profiles import profile_named, shuffle_partitions_for
from codeanatomy.engine.settings import EngineSettings
from codeanatomy.errors import InputError
from codeanatomy.index.choice import choose_provider
from codeanatomy.index.provider import Provider
from codeanatomy.pipeline.entry_points import Rows, fingerprint_of, patterns_of
from codeanatomy.pipeline.plan import ENTRY_POINTS, fingerprints, layers_of
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.repo.config import RepoConfig, read_config
from codeanatomy.repo.files import Files, with_modules
from codeanatomy.repo.git import head_commit
from codeanatomy.repo.identity import Identity, identify, identity_from
from codeanatomy.repo.scan import ScanOptions, scan
from codeanatomy.repo.snapshot import ScannedFile, Snapshot, StatCache
from codeanatomy.rules.compiled import CompiledRule
from codeanatomy.rules.own import own_rules
from codeanatomy.store.builds import BuildRecord
from codeanatomy.store.failures import damaged
from codeanatomy.store.location import StateLocation
from codeanatomy.store.state import State
from codeanatomy.store.tables import read_kept

DEFAULT_INDEX = "auto"

PRELOAD = ("codeanatomy.extract", "codeanatomy.store.filewriter")
"""What Python workers import before they are forked."""

_ROW_BYTES_PER_SOURCE_BYTE = 40

_SHORT_RUN_BYTES = 2 << 20
"""Below this, starting fast matters more than running fast."""

_LONG_RUN_BYTES = 100 << 20
"""Above this, the JVM's optimising compiler is worth what it takes."""


class TreeChangedError(Exception):
    """What was gathered is out of date (a file changed meanwhile): gather again."""


class OvertakenError(TreeChangedError):
    """Another process published a build meanwhile: start again from that."""


@dataclass(frozen=True)
class BuildInputs:
    """What one build works from."""

    root: Path
    location: StateLocation
    snapshot: Snapshot
    roots: tuple[str, ...]
    repo_id: str
    git_commit: str | None
    settings: EngineSettings
    rules: tuple[CompiledRule, ...]
    fingerprints: Mapping[str, str]
    provider: Provider | None
    scratch: str | None
    patterns: Rows
    """What makes a function an entry point: rows of `given_patterns`."""
    repository: str = ""

    @cached_property
    def files(self) -> Files:
        """The files of the snapshot as modules, by path."""
        return with_modules(self.snapshot.files, self.roots)

    @property
    def layers(self) -> Mapping[str, str]:
        """The layers of facts to work from, and the version of each."""
        return layers_of(self.fingerprints)

    def source_bytes(self, file_ids: Collection[str] | None = None) -> int:
        """The size of these files, or of all."""
        return sum(file.size for file in self.snapshot.files if file_ids is None or file.file_id in file_ids)


def gather(request: BuildRequest, location: StateLocation, state: State | None) -> BuildInputs:
    """Scan the tree and compile the rules; nothing is written but the cache of stats."""
    root = Path(request.repo)
    repo_id = request.repo_id or (state.repo_id if state else "")
    if state and repo_id != state.repo_id:
        raise InputError(f"the state at {location.uri} was made with repo id {state.repo_id!r}, not {repo_id!r}")
    repository = identify(root)
    if state and not request.moved and not request.repo_id:
        _refuse_other(repository, state, root)
    config = read_config(root)
    snapshot = _scan(request, config, repo_id, location)
    settings = engine_settings(request, snapshot)
    roots = request.roots or config.roots
    rules = own_rules()
    patterns = patterns_of(root, request.entry_points)
    provider = choose_provider(request.index or DEFAULT_INDEX, request.scip, root)
    return BuildInputs(
        root=root.resolve(),
        location=location,
        snapshot=snapshot,
        roots=roots,
        repo_id=repo_id,
        git_commit=head_commit(root),
        settings=settings,
        rules=rules,
        fingerprints={
            **fingerprints(rules, settings, roots, repo_id, provider),
            ENTRY_POINTS: fingerprint_of(patterns),
        },
        provider=provider,
        scratch=request.scratch,
        patterns=patterns,
        repository=repository.as_text(),
    )


def files_at(state: State, build: BuildRecord, roots: Sequence[str]) -> Files:
    """The files of a published build."""
    columns = ["path", "file_id", "content_id", "size", "status", "detail"]
    rows = read_kept(state, REPO_FILES, build.tables[REPO_FILES.name].version, columns)
    values = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return with_modules((ScannedFile(*row) for row in values), roots)


def _refuse_other(repository: Identity, state: State, root: Path) -> None:
    """Refuse the state of another repository; one that lies inside of this one moves with it."""
    if not state.repository:  # of an older version
        return
    try:
        known = identity_from(state.repository)
    except ValueError as error:
        raise damaged(state.location, "it is of no repository") from error
    inside = state.location.is_local and state.location.local_path.resolve().is_relative_to(root.resolve())
    if not repository.may_be(known, same_place=inside):
        raise InputError(
            f"the state at {state.location.uri} is of another repository ({known}, not {repository}): choose another "
            "--state, or run `codeanatomy build --moved` if it is the same"
        )


def engine_settings(request: BuildRequest, snapshot: Snapshot) -> EngineSettings:
    """How to run Spark for a build of that size."""
    source_bytes = sum(file.size for file in snapshot.files)
    return EngineSettings(
        profile=profile_named(request.profile),
        master=request.master,
        remote=request.remote,
        shuffle_partitions=shuffle_partitions_for(_ROW_BYTES_PER_SOURCE_BYTE * source_bytes),
        short_run=source_bytes < _SHORT_RUN_BYTES,
        long_run=source_bytes > _LONG_RUN_BYTES,
        preload=PRELOAD,
        conf=request.spark_conf,
    )


def warm_settings(request: BuildRequest) -> EngineSettings:
    """How to run Spark for many builds, of any size, one after the other."""
    return EngineSettings(
        profile=profile_named(request.profile),
        master=request.master,
        remote=request.remote,
        long_run=True,
        preload=PRELOAD,
        conf=request.spark_conf,
    )


def scan_options(request: BuildRequest, config: RepoConfig, repo_id: str, location: StateLocation) -> ScanOptions:
    """What to scan: what the request says, else what the repository says."""
    return ScanOptions(
        include=request.include or config.include,
        exclude=(*config.exclude, *request.exclude),
        repo_id=repo_id,
        state_dir=location.local_path if location.is_local else None,
        max_file_bytes=request.max_file_bytes,
    )


def _scan(request: BuildRequest, config: RepoConfig, repo_id: str, location: StateLocation) -> Snapshot:
    """Scan with the stats of the last time, which live in the user's cache: they are about this machine's files."""
    root = Path(request.repo)
    options = scan_options(request, config, repo_id, location)
    cache = cache_directory() / "scans" / hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:24]
    known = StatCache.load(cache)
    snapshot = scan(root, options, known)
    if snapshot.stat_cache.entries != known.entries or known.has_doubts():
        with suppress(OSError):  # the next scan reads more files, that is all
            cache.parent.mkdir(exist_ok=True)
            snapshot.stat_cache.save(cache)
    return snapshot
