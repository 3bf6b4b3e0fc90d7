"""How long answers take when they lie deep, or behind many names: time against the size of a program, by its shape.

`python -m bench.depth` writes bench/DEPTH.md. What counts is how the time grows when the size doubles: 2 is linear. An
answer keeps the modules that were looked at, so a chain across files has an output that grows with its square.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.chains import RINGS, SHAPES
from codeanatomy.catalogue.tables import DOCUMENTS
from codeanatomy.extract import extract_batch
from codeanatomy.repo.modules import module_names
from codeanatomy.resolve import ContentNames, Index, Resolver, answer_files

RESULT = Path(__file__).with_name("DEPTH.md")
SIZES = (75, 150, 300, 600)
REPEATS = 3

Answers = dict[tuple[str, str], list[dict[str, Any]]]
"""Rows of `answers`, by path and question."""


class Program:
    """The files of a program, resolved in this process: together, in any order, or each question alone."""

    def __init__(self, files: Mapping[str, str]) -> None:
        contents = {path: sha256(text.encode()).hexdigest() for path, text in files.items()}
        sources = {contents[path]: text.encode() for path, text in files.items()}
        self._facts = pa.Table.from_batches([extract_batch(list(sources), list(sources.values()))])
        modules = list(module_names(list(files)))
        self._files = pa.table(
            {
                "file_id": [module.path for module in modules],
                "path": [module.path for module in modules],
                "content_id": [contents[module.path] for module in modules],
                "module_fqn": [module.module_fqn for module in modules],
                "is_init": [module.is_init for module in modules],
                "is_stub": [module.is_stub for module in modules],
            }
        )
        asks = dict(zip(self._facts["content_id"].to_pylist(), self._facts["asks"].to_pylist(), strict=True))
        self._asks: dict[str, list[dict[str, Any]]] = {path: asks[content] for path, content in contents.items()}
        self.paths = list(files)

    def batch(self, order: Sequence[str] | None = None) -> pa.RecordBatch:
        """What is asked, in this order of files."""
        return self._batch([(path, self._asks[path]) for path in order or self.paths])

    def resolver(self) -> Resolver:
        """A resolver that was asked nothing yet."""
        return Resolver(Index(self._files, ContentNames(self._facts)))

    def answers(self, order: Sequence[str] | None = None) -> Answers:
        """The answers to all questions of files, asked in this order of one resolver."""
        return _by_question(answer_files(self.resolver(), self.batch(order)))

    def answers_alone(self, path: str) -> Answers:
        """The answers of one file, each question asked of a resolver that was asked nothing before."""
        found: Answers = {}
        for ask in self._asks[path]:
            found |= _by_question(answer_files(self.resolver(), self._batch([(path, [ask])])))
        return found

    def _batch(self, asked: Sequence[tuple[str, list[dict[str, Any]]]]) -> pa.RecordBatch:
        paths, asks = zip(*asked, strict=True)
        return pa.record_batch(
            {
                "file_id": pa.array(paths, pa.string()),
                "asks": pa.array(asks, self._facts["asks"].type),
                "symbol_asks": pa.nulls(len(paths), DOCUMENTS.column("symbol_asks").type),
            }
        )


def _by_question(answers: pa.RecordBatch) -> Answers:
    found: Answers = {}
    for row in answers.to_pylist():
        found.setdefault((row["path"], row["question"]), []).append(row)
    return found


def measure(shape: str, size: int) -> tuple[float, int]:
    """CPU seconds for all answers of a program, the best of a few runs, and how many modules they keep in all."""
    program = Program(SHAPES[shape](size))
    batch = program.batch()
    best = float("inf")
    kept = 0
    for _ in range(REPEATS):
        resolver = program.resolver()
        began = time.process_time()
        answers = answer_files(resolver, batch)
        best = min(best, time.process_time() - began)
        kept = sum(len(trail or ()) for trail in answers["trail"].to_pylist())
    return best, kept


def main() -> None:
    """Measure every shape and write the table."""
    lines = [
        "# Answers that lie deep",
        "",
        "CPU seconds for all answers of one program, by shape and size, best of three, one process",
        "(`make bench-depth`). *Growth* is the time at the largest size over that at half of it: 2 is linear.",
        "*Kept* is the growth of what the answers themselves list: each names every module that was looked at.",
        "",
        "| shape | " + " | ".join(map(str, SIZES)) + " | growth | kept |",
        "|---|" + "---|" * (len(SIZES) + 2),
    ]
    for shape in SHAPES:
        measured = [measure(shape, size) for size in SIZES]
        times = [seconds for seconds, _ in measured]
        (_, half), (_, whole) = measured[-2:]
        cells = [f"{seconds:.3f}" for seconds in times]
        row = f"| {shape} | {' | '.join(cells)} | {times[-1] / times[-2]:.1f} | {whole / half:.1f} |"
        print(row, flush=True)
        lines.append(row)
    lines += [
        "",
        f"In {', '.join(sorted(RINGS))} a search comes back to itself. What it finds depends on",
        "where it entered, so each question goes round once.",
        "",
    ]
    RESULT.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
