"""Find typed values that no column type holds yet, such as a list of only nulls.

NULL would be a different value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import VOID
from partitions.records.forms import Type
from partitions.untyped_columns import has_untyped, typed_fields
from resources.sources.files.converting import spark_type
from resources.sources.files.failures import bad_document_error
from resources.sources.files.first_values import first_values
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.pinned import PinnedSchema
from resources.sql import any_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType


def files_with_untyped_values(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    types: Mapping[str, Mapping[str, Type | None]],
    pinned: PinnedSchema,
) -> dict[str, BadFile]:
    """Return the files with a value that the pinned columns would drop because it has no type, by path.

    Args:
        form: the format's reader.
        spark: a session.
        files: files of the format.
        types: the columns' types in Spark's JSON form, by path and name; None for an unknown type.
        pinned: the schema.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructField, StructType

    columns = {field.name.casefold(): field.dataType for field in pinned.struct.fields}
    groups: dict[str, list[SourceFile]] = {}
    for file in files:
        own = {
            name: own_type
            for name, own_type in types.get(file.path, {}).items()
            if own_type is not None and own_type != VOID and has_untyped({"fields": [_field(name, own_type)]})
        }
        if own:
            groups.setdefault(json.dumps(own), []).append(file)
    bad_files: dict[str, BadFile] = {}
    for text, same_types in groups.items():
        own = json.loads(text)
        schema = StructType([StructField(name, spark_type(own_type)) for name, own_type in own.items()])
        dropped_values = [
            F.when(_is_left_out(F.col(quoted(name)), own_type, columns.get(name.casefold())), F.lit(""))
            for name, own_type in own.items()
        ]
        for group in form.scanner.scan_groups(same_types):
            rows, path_column = form.scan(spark, group, schema), form.scanner.path_of(group)
            for path, place, _ in first_values(rows, path_column, dropped_values):
                why = (
                    f"column {list(own)[place]}: expected a list, map or struct with typed values, found one with nothing "
                    "but null, whose type is unknown: declare the column in source.schema, or write NULL"
                )
                bad_files.setdefault(path, bad_document_error(path, why))
    return bad_files


def _is_left_out(value: Column, own: Type, column: DataType | None) -> Column:
    """Return whether a value, or a part of it, would be dropped.

    ``column`` is the pinned type; None if there is none yet.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(own, str):
        return F.lit(False)
    type_name = own["type"]
    if column is None and not typed_fields({"fields": [_field("c", own)]})["fields"]:
        return value.isNotNull() if type_name == "struct" else F.size(value) > 0
    if type_name == "struct":
        fields = column.fields if isinstance(column, StructType) else ()
        column_types = {field.name.casefold(): field.dataType for field in fields}
        parts = [
            _is_left_out(
                value.getField(field["name"]), field["type"], column_types.get(field["name"].casefold())
            )
            for field in own["fields"]
        ]
        return any_of([F.coalesce(part, F.lit(False)) for part in parts])
    if type_name == "map":
        value_type = column.valueType if isinstance(column, MapType) else None
        return F.exists(F.map_values(value), lambda item: _is_left_out(item, own["valueType"], value_type))
    item_type = column.elementType if isinstance(column, ArrayType) else None
    return F.exists(value, lambda item: _is_left_out(item, own["elementType"], item_type))


def _field(name: str, data_type: Type) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": {}}
