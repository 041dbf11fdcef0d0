"""One schema of several files that each have their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partitions.errors import BadFile

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def merged(schemas: Mapping[str, StructType]) -> StructType:
    """Return the columns of all these schemas, each by the path of a file that has it. Upper and lower case name the same column.

    Raises:
        BadFile: if a column has two types.
    """
    from pyspark.sql.types import StructField, StructType

    fields: dict[str, StructField] = {}
    for path, schema in schemas.items():
        for field in schema.fields:
            known = fields.setdefault(field.name.lower(), field)
            if known.dataType != field.dataType:
                kinds = known.dataType.simpleString(), field.dataType.simpleString()
                why = f"column {field.name}: expected {kinds[0]}, as in other files, found {kinds[1]}"
                raise BadFile(
                    f"file {path}, {why}. Declare source.schema, or mend the file", path=path, why=why
                )
    return StructType(list(fields.values()))


def nullable(schema: StructType) -> StructType:
    """Return a schema in which a value may be missing from every column."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(field.name, field.dataType, True, field.metadata) for field in schema.fields]
    )
