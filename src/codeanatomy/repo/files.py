"""The files of a snapshot with their module names, as values and as a table. All stages use this form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from codeanatomy.catalogue.tables import SCAN_FILES
from codeanatomy.repo.modules import ModuleName, module_names
from codeanatomy.repo.snapshot import ScannedFile


class SourceFile(NamedTuple):
    """A scanned file and its module name."""

    path: str
    file_id: str
    content_id: str | None
    size: int
    status: str
    detail: str
    module: ModuleName

    @property
    def state(self) -> str:
        """Its content; for a file that was not read, a stand-in made of all that is known."""
        return self.content_id or f"{self.status} {self.size} {self.detail}"


Files = Mapping[str, SourceFile]
"""Files by path."""


def with_modules(scanned: Iterable[ScannedFile], roots: Sequence[str]) -> dict[str, SourceFile]:
    """The scanned files, by path and in its order, as modules below `roots`."""
    files = sorted(scanned, key=lambda file: file.path)
    modules = module_names([file.path for file in files], roots)
    return {
        file.path: SourceFile(
            file.path, file.file_id, file.content_id, file.size, file.status, file.detail or "", module
        )
        for file, module in zip(files, modules, strict=True)
    }


def file_table(files: Iterable[SourceFile]) -> pa.Table:
    """Files as rows of `scan_files`."""
    return SCAN_FILES.table(
        (
            file.file_id,
            file.path,
            file.content_id,
            file.size,
            file.status,
            file.detail or None,
            file.module.module_fqn,
            file.module.is_init,
            file.module.is_stub,
            file.module.root,
        )
        for file in files
    )
