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
    schemas = form.schemas(files, pinned.struct) or {}
    apart: dict[tuple[object, ...], list[SourceFile]] = {}
    beside = {file.path: form.beside_folders(file, pinned) for file in files}
    for file in files:
        own, spelt = schemas.get(file.path), spellings([file.path]).values()
        # Files with the same columns of folders have the same data columns, which take long to compare.
        of_folders = frozenset(beside[file.path].folders)
        key = (form.apart(file.path), "" if own is None else own.json(), of_folders, *spelt)
        apart.setdefault(key, []).append(file)
    for alike in apart.values():
        for group in form.scanner.together(alike):
            columns_of_file, own = beside[group[0].path].data, schemas.get(group[0].path)
            if own is None or form.rules.rescues:
                yield group, own or columns_of_file
            else:
                yield group, only(own, columns_of_file.names)


def only(schema: StructType, names: Sequence[str]) -> StructType:
    """Return these columns of a schema."""
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name in names])
