"""The paths of nested fields, and those that a schema does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from partitions.records.conversions import (
    ITEM,
    KEY,
    VALUE,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FieldPath = tuple[str, ...]
"""The path of a field: its own name after those above it, as spelled; ``ITEM``, ``KEY`` and ``VALUE`` in arrays and maps."""


def dotted_name(path: FieldPath) -> str:
    """Return a field's dotted name, without the markers for items of arrays and maps."""
    return ".".join(part for part in path if part not in (ITEM, KEY, VALUE))


def field_paths(schema: StructType) -> frozenset[FieldPath]:
    """Return all fields of a schema at any depth, case-folded, as Spark compares Parquet's columns."""
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType

    def walk(path: FieldPath, data_type: DataType) -> Iterator[FieldPath]:
        yield path
        if isinstance(data_type, StructType):
            for child in data_type.fields:
                yield from walk((*path, child.name.casefold()), child.dataType)
        elif isinstance(data_type, ArrayType):
            yield from walk((*path, ITEM), data_type.elementType)
        elif isinstance(data_type, MapType):
            yield from walk((*path, KEY), data_type.keyType)
            yield from walk((*path, VALUE), data_type.valueType)

    return frozenset(walk((), schema))


def find_unknown_columns(fields: Iterable[FieldPath], known_paths: Collection[FieldPath]) -> list[FieldPath]:
    """Return the topmost fields of a file that are not in ``known_paths``."""
    folded = {tuple(part.casefold() for part in path): path for path in fields}
    return sorted(path for key, path in folded.items() if key not in known_paths and key[:-1] in known_paths)
