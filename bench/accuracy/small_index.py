"""Semantic documents of many tiny programs, by pyrefly: one run for all programs of one file, one for each other.

Programs of one file can share a run, each in a tree of its own, because none imports another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

import pyarrow as pa

from codeanatomy.index.documents import SITE_FIELDS, DocumentRow, Sites, as_batch, finished, sites_in
from codeanatomy.index.mirror import Mirror
from codeanatomy.index.pyrefly import Asked, Ran, find_pyrefly, run_pyrefly
from codeanatomy.index.report import Report
from codeanatomy.repo.modules import module_names

File = tuple[str, str, str]
"""Program, path, text."""


def documents(files: Mapping[str, File], facts: pa.Table, content_of: Mapping[str, str]) -> pa.Table:
    """The documents of `files`, by file id; `content_of` gives the content whose facts each has."""
    programs: dict[str, list[str]] = {}
    for file_id, (program, _, _) in files.items():
        programs.setdefault(program, []).append(file_id)
    single = [ids for ids in programs.values() if len(ids) == 1]
    groups = [[file_id for ids in single for file_id in ids], *(ids for ids in programs.values() if len(ids) > 1)]
    sites = _sites(facts)
    rows: list[DocumentRow] = []
    for group in filter(None, groups):
        with tempfile.TemporaryDirectory() as scratch:
            for file_id, link, report in _run(group, files, Path(scratch)):
                where = sites[content_of[file_id]]
                rows.append(finished(report.document(str(link), where), where, file_id, files[file_id][1], "pyrefly"))
    return pa.Table.from_batches([as_batch(rows)])


def _sites(facts: pa.Table) -> dict[str, Sites]:
    columns = {"line_starts": facts["line_starts"], "size": pa.array([0] * facts.num_rows)}
    for dataset, fields in SITE_FIELDS.items():
        for field in fields:
            values = facts[dataset].combine_chunks()
            flat = values.values.field(field)
            columns[f"{dataset}_{field}"] = pa.ListArray.from_arrays(values.offsets, flat)
    batch = pa.table(columns).combine_chunks().to_batches()[0]
    return dict(zip(facts["content_id"].to_pylist(), sites_in(batch), strict=True))


def _run(group: Sequence[str], files: Mapping[str, File], scratch: Path) -> Iterator[tuple[str, Path, Report]]:
    pyrefly = find_pyrefly()
    assert pyrefly is not None
    repository = scratch / "repository"
    mirrors: list[Path] = []
    links: dict[Path, str] = {}
    names: dict[str, str] = {}
    for program in dict.fromkeys(files[file_id][0] for file_id in group):
        own = [file_id for file_id in group if files[file_id][0] == program]
        root = repository / str(len(mirrors))
        for file_id in own:
            place = root / files[file_id][1]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(files[file_id][2].encode())
        mirror = Mirror(root, scratch / "mirror" / str(len(mirrors)))
        modules = module_names([files[file_id][1] for file_id in own])
        mirror.add(modules)
        mirrors += mirror.trees
        by_path = {files[file_id][1]: file_id for file_id in own}
        links |= {link: by_path[path] for path, link in mirror.links.items()}
        names |= {str(mirror.links[module.path]): module.module_fqn for module in modules}
    asked = [Asked(str(link), link, 0) for link in links]
    for result in run_pyrefly(pyrefly, asked, mirrors, scratch, Event()):
        if isinstance(result, Ran):
            report = Report(result.folder, names)
            yield from ((links[file.link], file.link, report) for file in result.files)
