"""Whether the last build still describes the tree, and what changed if not. Writes nothing to the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codeanatomy.pipeline.inputs import BuildInputs, files_at, gather
from codeanatomy.pipeline.plan import as_built, plan_build
from codeanatomy.pipeline.request import BuildRequest
from codeanatomy.repo.diff import FileChanges
from codeanatomy.store.builds import BuildRecord, check_whole, current_build
from codeanatomy.store.location import locate_state
from codeanatomy.store.state import State, open_state


@dataclass(frozen=True)
class Freshness:
    """The last build against the tree as it is now."""

    build: BuildRecord
    reasons: tuple[str, ...]
    files: FileChanges

    @property
    def fresh(self) -> bool:
        """Whether a build now would change nothing."""
        return not self.reasons

    def changes(self) -> Mapping[str, tuple[str, ...]]:
        """Changed paths by kind of change."""
        renamed = tuple(f"{old} → {new}" for new, old in sorted(self.files.renamed.items()))
        kinds = {
            "added": self.files.added,
            "modified": self.files.modified,
            "deleted": self.files.deleted,
            "renamed": renamed,
        }
        return {kind: paths for kind, paths in kinds.items() if paths}

    def as_json(self) -> dict[str, Any]:
        """The answer of `status --json`."""
        return {
            "build_id": self.build.build_id,
            "created_at": self.build.created_at.isoformat(),
            "mode": self.build.mode,
            "git_commit": self.build.git_commit,
            "fresh": self.fresh,
            "reasons": list(self.reasons),
            "changes": {kind: list(paths) for kind, paths in self.changes().items()},
            "tables": {name: {"rows": pin.rows} for name, pin in self.build.tables.items()},
        }


def freshness(request: BuildRequest) -> Freshness:
    """Compare the tree with the last build."""
    location = locate_state(request.repo, request.state, request.storage_options)
    state = open_state(location)
    last = current_build(state)
    check_whole(state, last)
    request = as_built(request, last)
    inputs = gather(request, location, state)
    return Freshness(last, plan_build(last, inputs, full=False).reasons, _changed_files(state, last, inputs))


def _changed_files(state: State, last: BuildRecord, inputs: BuildInputs) -> FileChanges:
    """What changed in the tree; the files of the last build are read only if any did."""
    if last.snapshot_id == inputs.snapshot.snapshot_id:
        return FileChanges((), (), (), {})
    from codeanatomy.impact.snapshots import snapshot_changes  # noqa: PLC0415 - loads the resolver

    return snapshot_changes(files_at(state, last, inputs.roots), inputs.files).files
