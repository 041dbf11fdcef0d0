"""Group files into scans: files with the same columns and the same format-specific key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def group_for_scans(
    form: FormatReader, files: Sequence[SourceFile], pinned: PinnedSchema
) -> Iterator[tuple[list[SourceFile], StructType]]:
    """Yield groups of files that one scan reads, each with the columns that stand in the files."""
    schemas = form.schemas(files, pinned.struct) or {}
    groups: dict[tuple[object, ...], list[SourceFile]] = {}
    schemas_by_path = {file.path: form.schema_of_file(file, pinned) for file in files}
    for file in files:
        own, folder_columns = schemas.get(file.path), folder_names([file.path]).values()
        # The same folder columns imply the same data columns, which take longer to compare.
        column_set = frozenset(schemas_by_path[file.path].folders)
        key = (form.scan_key(file.path), "" if own is None else own.json(), column_set, *folder_columns)
        groups.setdefault(key, []).append(file)
    for candidates in groups.values():
        for group in form.scanner.scan_groups(candidates):
            columns_of_file, own = schemas_by_path[group[0].path].data, schemas.get(group[0].path)
            if own is None or form.rules.rescues:
                yield group, own or columns_of_file
            else:
                yield group, select_columns(own, columns_of_file.names)


def select_columns(schema: StructType, names: Sequence[str]) -> StructType:
    """Return the columns of a schema with these names."""
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name in names])
