"""Checksums of data files, in their names: for readers that do not verify those of Parquet's pages, as DuckDB does not.

A data file on this machine is renamed once it is written and before a commit names it. Reading it whole to compare
takes about a millisecond per megabyte. On an object store files are read as Arrow datasets, which verify pages.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_SEALED = re.compile(r".*\.crc32-([0-9a-f]{8})\.parquet")
_CHUNK = 1 << 20
_AT_ONCE = 4


def seal(path: Path) -> Path:
    """Give a file that is written the name that tells its checksum."""
    return path.rename(path.with_name(f"{path.name.removesuffix('.parquet')}.crc32-{_checksum(path):08x}.parquet"))


def find_altered(files: Iterable[str]) -> str | None:
    """A file whose content is not what was written, if there is one; a file of an older version is not looked at."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        paths = list(files)
        return next((path for path, altered in zip(paths, pool.map(_is_altered, paths), strict=True) if altered), None)


def find_unreadable(files: Iterable[str]) -> str | None:
    """The same, and a file without a checksum in its name is read whole."""
    paths = list(files)
    return find_altered(paths) or next((path for path in paths if not _SEALED.fullmatch(path) and _fails(path)), None)


def _is_altered(path: str) -> bool:
    sealed = _SEALED.fullmatch(path)
    return sealed is not None and _checksum(Path(path)) != int(sealed[1], 16)


def _fails(path: str) -> bool:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError):
        return True
    return False


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            value = zlib.crc32(chunk, value)
    return value
