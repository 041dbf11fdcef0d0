"""The columns of a Parquet table as Spark's JSON and as Arrow types, and rows that fit them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused
from partitions.evolution import SchemaMode
from partitions.schema_types import all_nullable
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.row_columns import evolve_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def schema_of(rows: StructType, place: Place) -> str:
    """Return the columns of a new table for these rows, all nullable.

    Raises:
        RowsRefused: Parquet files have no such type, or two columns have one name.
    """
    names = [name.lower() for name in rows.names]
    if repeated_name := next((name for name in names if names.count(name) > 1), None):
        raise RowsRefused(f"table {place}: expected each column once, found {repeated_name} twice")
    fields = [_nullable_field(field) for field in json.loads(rows.json())["fields"]]
    for field in fields:
        try:
            _arrow_type(field["type"])
        except KeyError as error:
            raise RowsRefused(
                f"table {place}: expected types that Parquet files can hold, found column {field['name']} of type {error.args[0]}."
                " Convert it in sql or transform, or use format: delta"
            ) from None
    return json.dumps({"type": "struct", "fields": fields})


def spelled_as_in(columns: Sequence[str], rows: Sequence[str]) -> tuple[str, ...]:
    """Return columns as the rows spell them; case does not matter."""
    names = {name.lower(): name for name in rows}
    return tuple(names.get(column.lower(), column) for column in columns)


def check_partition_columns(rows: StructType, partition_by: Sequence[str], place: Place) -> None:
    """Raise if folder names cannot hold the partition columns.

    Raises:
        RowsRefused: one is missing, holds bytes or nested values, or no column is left for the files.
    """
    types = {field.name: field.dataType for field in rows.fields}
    for name in partition_by:
        if name not in types:
            raise RowsRefused(
                f"table {place}: expected the column {name} of partition_by among {', '.join(rows.names)}"
            )
        type_name = types[name].simpleString()
        if type_name == "binary" or "<" in type_name:
            raise RowsRefused(
                f"table {place}: expected a type whose values can name a folder for {name} of partition_by, found {type_name}"
            )
    if set(types) <= set(partition_by):
        raise RowsRefused(f"table {place}: expected a column beside those of partition_by, found none")


def fit_rows(rows: DataFrame, columns_json: str, place: Place) -> DataFrame:
    """Return rows with the columns of a table, in its order; missing ones are NULL.

    Raises:
        RowsRefused: the table lacks a column, or has another type for it.
    """
    from pyspark.sql import functions as F

    table = spark_schema(columns_json)
    types = {field.name.lower(): field.dataType.simpleString() for field in table}
    row_fields = {field.name.lower(): field for field in rows.schema}
    for name, field in row_fields.items():
        type_name, expected_type = field.dataType.simpleString(), types.get(name)
        if type_name != expected_type:
            expected_text = (
                f"type {expected_type}" if expected_type else f"one of its columns ({', '.join(table.names)})"
            )
            raise RowsRefused(
                f"table {place}: expected {expected_text}, found column {field.name} of type {type_name}"
            )
    columns = [
        (
            F.col(quoted(row_fields[name.lower()].name))
            if name.lower() in row_fields
            else F.lit(None).cast(data_type)
        ).alias(name)
        for name, data_type in ((field.name, field.dataType) for field in table)
    ]
    return rows.select(*columns)


def evolve_columns_json(
    rows: StructType, columns_json: str, partition_by: Sequence[str], mode: SchemaMode, place: Place
) -> str:
    """Return the table's columns after a load that may extend them; the same text if the rows fit.

    Existing files stay as they are: missing columns are NULL, and narrower types are read as the wider
    ones.

    Args:
        rows: columns of the rows.
        columns_json: columns of the table.
        partition_by: partition columns of the table.
        mode: merge or rescue.
        place: place of the table.

    Raises:
        RowsRefused: the mode does not accept the rows' columns, or Parquet files cannot hold them.
    """
    existing = json.loads(columns_json)
    evolution = evolve_columns(existing, all_nullable(json.loads(rows.json())), mode, place)
    if evolution.action == "none":
        return columns_json
    for name in partition_by:
        if evolution.widened.get(name) == "double":
            raise RowsRefused(
                f"table {place}: expected the type float of column {name} of partition_by to stay, found double: folder names keep the"
                " digits of the narrower type. Convert the column in sql, or load into a new table"
            )
    return schema_of(spark_schema(json.dumps(evolution.schema)), place)


def spark_schema(columns_json: str) -> StructType:
    """Return the columns as a Spark schema."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(columns_json))


def column_types(columns_json: str) -> dict[str, Any]:
    """Return each column's type in Spark's JSON, in the table's order; a nested type is an object."""
    return {field["name"]: field["type"] for field in json.loads(columns_json)["fields"]}


def arrow_types(columns_json: str) -> dict[str, pa.DataType]:
    """Return each column's Arrow type, in the table's order."""
    return {name: _arrow_type(data_type) for name, data_type in column_types(columns_json).items()}


def _nullable_field(field: dict[str, Any]) -> dict[str, Any]:
    return {"name": field["name"], "type": _nullable_type(field["type"]), "nullable": True, "metadata": {}}


def _nullable_type(data_type: Any) -> Any:
    """Return a type whose inner values may all be NULL."""
    if isinstance(data_type, str):
        return data_type
    match data_type.get("type"):
        case "struct":
            return {"type": "struct", "fields": [_nullable_field(field) for field in data_type["fields"]]}
        case "array":
            element = _nullable_type(data_type["elementType"])
            return {"type": "array", "elementType": element, "containsNull": True}
        case "map":
            inner_types = {key: _nullable_type(data_type[key]) for key in ("keyType", "valueType")}
            return {"type": "map", **inner_types, "valueContainsNull": True}
    return data_type


def _arrow_type(data_type: Any) -> pa.DataType:
    """Return the Arrow type; raise KeyError with the type's name if files cannot hold it."""
    import pyarrow as pa

    if isinstance(data_type, str):
        if match := _DECIMAL.fullmatch(data_type):
            return pa.decimal128(int(match[1]), int(match[2]))
        types = {
            "binary": pa.binary(),
            "boolean": pa.bool_(),
            "byte": pa.int8(),
            "date": pa.date32(),
            "double": pa.float64(),
            "float": pa.float32(),
            "integer": pa.int32(),
            "long": pa.int64(),
            "short": pa.int16(),
            "string": pa.string(),
            "timestamp": pa.timestamp("us", "UTC"),
            "timestamp_ntz": pa.timestamp("us"),
        }
        return types[data_type]
    match data_type.get("type"):
        case "struct":
            return pa.struct([(field["name"], _arrow_type(field["type"])) for field in data_type["fields"]])
        case "array":
            return pa.list_(_arrow_type(data_type["elementType"]))
        case "map":
            return pa.map_(_arrow_type(data_type["keyType"]), _arrow_type(data_type["valueType"]))
    raise KeyError(str(data_type.get("type")))
