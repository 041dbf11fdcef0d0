"""Merge the schemas of several files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from partitions.schema_merging import merge_types

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def merge_schemas(schemas: Iterable[StructType]) -> StructType:
    """Return the columns of all these schemas, in the order of their files.

    Names are compared without case. A column has the type of the first file with a value of it, or a wider one of a
    later file, at any depth. Values that do not fit are reported when the files are checked.
    """
    from pyspark.sql.types import NullType, StructField, StructType

    fields: dict[str, StructField] = {}
    for schema in schemas:
        for field in schema.fields:
            earlier = fields.setdefault(field.name.lower(), field)
            if isinstance(earlier.dataType, NullType):
                fields[field.name.lower()] = StructField(earlier.name, field.dataType, True, field.metadata)
            elif earlier.dataType != field.dataType:
                merged_data_type = merge_types(earlier.dataType.jsonValue(), field.dataType.jsonValue())
                merged_field = {**earlier.jsonValue(), "type": merged_data_type}
                fields[field.name.lower()] = StructField.fromJson(merged_field)
    return StructType(list(fields.values()))


def nullable(schema: StructType) -> StructType:
    """Return a schema with only nullable columns."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
    )
