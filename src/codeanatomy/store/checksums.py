"""Checksums of data files, in their names: for readers such as DuckDB that do not verify checksums of Parquet pages.

A local data file is renamed after it is written and before a commit names it. Comparing takes about a millisecond per
megabyte. On an object store files are read as Arrow datasets, which verify pages.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_WITH_CHECKSUM = re.compile(r".*\.crc32-([0-9a-f]{8})\.parquet")
_CHUNK = 1 << 20
_AT_ONCE = 4


def add_checksum(path: Path) -> Path:
    """Rename a finished file so that its name ends in its checksum."""
    return path.rename(path.with_name(f"{path.name.removesuffix('.parquet')}.crc32-{_checksum(path):08x}.parquet"))


def find_altered(files: Iterable[str]) -> str | None:
    """The first file whose content does not match its checksum; a file without a checksum is not read."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        paths = list(files)
        return next((path for path, altered in zip(paths, pool.map(_is_altered, paths), strict=True) if altered), None)


def find_unreadable(files: Iterable[str]) -> str | None:
    """The first file that does not match its checksum or, without one, cannot be read."""
    paths = list(files)
    return find_altered(paths) or next(
        (path for path in paths if not _WITH_CHECKSUM.fullmatch(path) and _fails(path)), None
    )


def _is_altered(path: str) -> bool:
    sealed = _WITH_CHECKSUM.fullmatch(path)
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
