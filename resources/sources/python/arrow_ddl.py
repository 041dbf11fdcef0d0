"""An Arrow schema as Spark DDL, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.ddl import ddl_name
from resources.sources.python.arrow_types import column_type, is_text

if TYPE_CHECKING:
    import pyarrow as pa

_WORDS = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "binary": "binary",
    "date32[day]": "date",
}
"""Arrow's words for types without parameters, in DDL."""


def arrow_ddl(schema: pa.Schema) -> str:
    """Return the columns of an Arrow schema in Spark DDL.

    Raises:
        TypeError: no column holds the values of a field.
    """
    columns = []
    for field in schema:
        try:
            columns.append(f"{ddl_name(field.name)} {_type_ddl(field.type)}")
        except TypeError as error:
            raise TypeError(f"the column {field.name}: {error}") from None
    return ", ".join(columns)


def type_words(source_type: pa.DataType) -> str:
    """Return a type as a person declares it, in Spark DDL; a type that no column has, in Arrow's words."""
    try:
        return _type_ddl(source_type)
    except TypeError:
        return str(source_type)


def _type_ddl(source_type: pa.DataType) -> str:
    import pyarrow as pa

    data_type = column_type(source_type)
    if data_type is None:
        raise TypeError("no type")
    if is_text(data_type):
        return "string"
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    if pa.types.is_struct(data_type):
        fields = ", ".join(f"{ddl_name(field.name)}: {_type_ddl(field.type)}" for field in data_type)
        return f"struct<{fields}>"
    if pa.types.is_map(data_type):
        return f"map<{_type_ddl(data_type.key_type)}, {_type_ddl(data_type.item_type)}>"
    if pa.types.is_list(data_type):
        return f"array<{_type_ddl(data_type.value_type)}>"
    return _WORDS[str(data_type)]
