"""CPU seconds of extraction against `ast.parse` and one `ast.walk`, over the same files in the same process.

python -m bench.extract DIRECTORY [--every N]
"""

from __future__ import annotations

import argparse
import ast
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from codeanatomy.extract import extract_batch

_BATCH_BYTES = 2 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure every N-th file only")
    options = parser.parse_args()
    paths = sorted(options.directory.rglob("*.py"))[:: options.every]
    if not paths:
        parser.error(f"no Python files in {options.directory}")
    baseline, extraction = measure(paths)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} files, {size / 1e6:.1f} MB")
    print(f"ast.parse and ast.walk  {baseline:7.2f} s CPU")
    print(f"extract_batch           {extraction:7.2f} s CPU, {size / 1e6 / extraction:.1f} MB/s")
    print(f"ratio                   {extraction / baseline:7.2f}")


def measure(paths: Sequence[Path]) -> tuple[float, float]:
    """CPU seconds of the baseline and of extraction."""
    sources = [path.read_bytes() for path in paths]
    return _cpu_seconds(lambda: _parse_and_walk(sources)), _cpu_seconds(lambda: _extract(sources))


def _cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _parse_and_walk(sources: Sequence[bytes]) -> int:
    """The least a walker over `ast` does: names, calls, definitions and imports, with their places."""
    emitted = 0
    for source in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        rows: list[tuple[object, ...]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                rows.append((node.id, node.lineno, node.col_offset))
            elif isinstance(node, ast.Call):
                rows.append((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                rows.append((node.name, node.lineno, node.col_offset))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                rows.extend((alias.name, alias.asname, node.lineno) for alias in node.names)
        emitted += len(rows)
    return emitted


def _extract(sources: Sequence[bytes]) -> None:
    """In batches of the size a build uses."""
    batch: list[bytes] = []
    for source in sources:
        batch.append(source)
        if sum(map(len, batch)) >= _BATCH_BYTES:
            extract_batch([""] * len(batch), batch)
            batch = []
    extract_batch([""] * len(batch), batch)


if __name__ == "__main__":
    main()
