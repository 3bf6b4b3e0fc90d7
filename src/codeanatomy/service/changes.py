"""Wait until a tree has changed and is quiet again.

Only the directories that a scan looks into are watched, one by one: what it ignores costs nothing, and no link is
followed. Every build scans the whole tree, so it is enough to notice that something changed after the last scan began.
When directories come or go, others are watched from then on; the next build scans after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from codeanatomy.errors import MachineError
from codeanatomy.repo.scan import may_matter

STALE_LOCK_SECONDS = 60.0
"""A lock of git that is older was left by a git that was killed."""

_MAX_BURST_MS = 2_000
_ATTEMPTS = 5


class TreeWatcher:
    """Watches directories from the moment it is made."""

    def __init__(self, directories: Callable[[], Sequence[Path]], locks: Sequence[Path], quiet_seconds: float) -> None:
        """`directories` finds those to watch; `locks` are files that exist while git changes many files."""
        self._find_directories = directories
        self._locks = locks
        self._of_git = {str(path.parent) for path in locks}
        self._quiet_ms = max(1, round(quiet_seconds * 1000))
        self._watch()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until something has changed and then nothing for a while; False if nothing did for so many seconds."""
        changed = False
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = 0 if deadline is None else max(1, round((deadline - time.monotonic()) * 1000))
            found = self._notify.watch(_MAX_BURST_MS, self._quiet_ms, self._quiet_ms if changed else left, None)
            if found == "signal":
                raise KeyboardInterrupt
            if isinstance(found, set):
                changed |= self._matter([Path(path) for _, path in found])
            if changed and not self._is_locked():
                return True
            if not changed and deadline is not None and time.monotonic() >= deadline:
                return False

    def _matter(self, paths: Iterable[Path]) -> bool:
        """Whether a change at any of these paths can matter to a scan."""
        of_tree = [path for path in paths if str(path.parent) not in self._of_git]
        if any(str(path) in self._watched or path.name == ".gitignore" or path.is_dir() for path in of_tree):
            self._watch()
            return True
        # What is gone may have been a directory that was moved away, whatever its name.
        return any(may_matter(path.name) or not path.exists() for path in of_tree)

    def _is_locked(self) -> bool:
        """Whether git is at work."""
        for lock in self._locks:
            try:
                age = time.time() - lock.lstat().st_mtime
            except OSError:
                continue
            if age < STALE_LOCK_SECONDS:
                return True
        return False

    def _watch(self) -> None:
        for attempt in range(_ATTEMPTS):
            found = [str(path) for path in self._find_directories()]
            git = [path for path in self._of_git if Path(path).is_dir()]
            try:
                self._notify = RustNotify(
                    [*found, *git],
                    debug=False,
                    force_polling=False,
                    poll_delay_ms=0,
                    recursive=False,
                    ignore_permission_denied=True,
                )
            except FileNotFoundError:  # a directory has just gone
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            except (OSError, WatchfilesRustInternalError) as error:
                raise MachineError(
                    f"cannot watch {len(found):,} directories: {error}", hint="raise fs.inotify.max_user_watches"
                ) from error
            self._watched = set(found)
            return
