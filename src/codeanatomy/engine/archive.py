"""The class-data archive: Spark's classes, parsed once per installation. It halves the start time of later sessions.

It is in the user's cache, under a hash of the Java version and the jars. Without a valid archive a session works the
same and starts slower. `training` creates it in a process of its own, with the lowest priority: started by running this
module, which `make build` does once Java and Spark are installed, or after the first session has ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from codeanatomy.engine.directories import cache_directory
from codeanatomy.engine.java import JavaRuntime, require_java
from codeanatomy.engine.jvm import SPARK_HOME, worker_path

ARCHIVES_KEPT = 3


def archive_path(java: JavaRuntime, cache: Path) -> Path:
    """Where the archive for this Java and these jars is, or would be."""
    jars = sorted((jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in (SPARK_HOME / "jars").iterdir())
    # The JVM compares the whole class path, which begins with the configuration directory in the cache.
    identity = repr((str(java.home), java.version, str(SPARK_HOME), str(cache), jars))
    return cache / "archives" / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.jsa"


def is_usable(archive: Path) -> bool:
    """Whether the archive exists and is complete: a truncated one crashes the JVM, which detects all other damage."""
    try:
        return archive.stat().st_size == int(_size_mark(archive).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False


def archive_options(archive: Path) -> list[str]:
    """The JVM options that use this archive, if it exists."""
    if not is_usable(archive):
        return []
    with contextlib.suppress(OSError):
        os.utime(archive)  # keeps it among the recently used
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]


def publish_archive(new: Path, archive: Path) -> None:
    """Give a finished archive its name, atomically, and delete the least recently used ones."""
    _size_mark(archive).write_text(str(new.stat().st_size), encoding="ascii")
    new.replace(archive)
    by_use = sorted(archive.parent.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_use[ARCHIVES_KEPT:]:
        old.unlink(missing_ok=True)
        _size_mark(old).unlink(missing_ok=True)


def failure_mark(archive: Path) -> Path:
    """The file that exists if creating this archive failed; it is not tried again."""
    return archive.with_suffix(".failed")


def train_in_background(archive: Path) -> None:
    """Start a process that creates the archive and outlives this one, unless there is an archive."""
    if is_usable(archive) or failure_mark(archive).exists():
        return
    # The shell ends at once, so that the training becomes a child of init, which reaps it.
    subprocess.run(
        ["/bin/sh", "-c", 'nice -n 19 "$0" -P -m codeanatomy.engine.training &', sys.executable],
        cwd=archive.parents[1],
        env={**os.environ, "PYTHONPATH": worker_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )


def _size_mark(archive: Path) -> Path:
    return archive.with_suffix(".size")


if __name__ == "__main__":
    train_in_background(archive_path(require_java(), cache_directory()))
