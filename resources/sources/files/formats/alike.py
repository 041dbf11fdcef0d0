"""Files that go into one scan: those with the same columns, and whatever else their format asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import spellings
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def read_alike(
    form: FormatReader, files: Sequence[SourceFile], pinned: PinnedSchema
) -> Iterator[tuple[list[SourceFile], StructType]]:
    """Yield files that go into one scan, with the columns that stand in them."""
    schemas = form.schemas(files, pinned.data)
    apart: dict[tuple[str, str], list[SourceFile]] = {}
    for file in files:
        own = schemas.get(file.path)
        apart.setdefault((form.apart(file.path), "" if own is None else own.json()), []).append(file)
    for alike in apart.values():
        for group in form.scanner.together(alike):
            data = pinned.beside(spellings(file.path for file in group)).data
            yield group, schemas.get(group[0].path, data)
