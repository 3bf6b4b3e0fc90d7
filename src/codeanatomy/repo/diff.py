"""What changed between two snapshots, file by file. Content decides; timestamps and order do not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Paths that were added, modified, deleted or renamed (new path → old path)."""

    added: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...]
    renamed: Mapping[str, str]


def diff_files(
    before: Mapping[str, str | None], after: Mapping[str, str | None], unread: Collection[str] = ()
) -> FileChanges:
    """Compare two maps of path to content; a content gone from one path and new at another is a rename.

    `unread` has the stand-ins for contents of files that were not read: two that are equal may still differ.
    """
    gone = sorted(before.keys() - after.keys())
    came = sorted(after.keys() - before.keys())
    sources: dict[str, list[str]] = {}
    for path in gone:
        if content := before[path]:
            sources.setdefault(content, []).append(path)
    renamed = {
        path: sources[content].pop(0)
        for path in came
        if (content := after[path]) and content not in unread and sources.get(content)
    }
    moved = set(renamed.values())
    return FileChanges(
        added=tuple(path for path in came if path not in renamed),
        modified=tuple(sorted(path for path in before.keys() & after.keys() if before[path] != after[path])),
        deleted=tuple(path for path in gone if path not in moved),
        renamed=renamed,
    )
