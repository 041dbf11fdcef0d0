"""The columns of a Parquet table: Spark's JSON of them, as Arrow has them, and rows that are made to fit them."""

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
    """Return the columns of a table that is made for these rows, each of which may be NULL.

    Raises:
        RowsRefused: Parquet files have no such type, or two columns have one name.
    """
    names = [name.lower() for name in rows.names]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RowsRefused(f"table {place}: expected each column once, found {twice} twice")
    fields = [_nullable(field) for field in json.loads(rows.json())["fields"]]
    for field in fields:
        try:
            _arrow_type(field["type"])
        except KeyError as error:
            raise RowsRefused(
                f"table {place}: expected types that Parquet files keep, found column {field['name']} of type {error.args[0]}."
                " Convert it in sql or transform, or use format: delta"
            ) from None
    return json.dumps({"type": "struct", "fields": fields})


def named_as(columns: Sequence[str], rows: Sequence[str]) -> tuple[str, ...]:
    """Return columns by the names that rows have for them, as Spark finds them: in any case."""
    names = {name.lower(): name for name in rows}
    return tuple(names.get(column.lower(), column) for column in columns)


def check_layout(rows: StructType, partition_by: Sequence[str], place: Place) -> None:
    """Raise if columns of partitions cannot be kept as names of folders.

    Raises:
        RowsRefused: one is missing, holds bytes or nested values, or no column is left for the files.
    """
    types = {field.name: field.dataType for field in rows.fields}
    for name in partition_by:
        if name not in types:
            raise RowsRefused(
                f"table {place}: expected the column {name} of partition_by among {', '.join(rows.names)}"
            )
        kind = types[name].simpleString()
        if kind == "binary" or "<" in kind:
            raise RowsRefused(
                f"table {place}: expected single values that can be a folder's name in {name} of partition_by, found {kind}"
            )
    if set(types) <= set(partition_by):
        raise RowsRefused(f"table {place}: expected a column beside those of partition_by, found none")


def fitted(rows: DataFrame, columns_json: str, place: Place) -> DataFrame:
    """Return rows with the columns of a table, by name and in its order; one that they lack is NULL.

    Raises:
        RowsRefused: a column is not the table's, or of another type.
    """
    from pyspark.sql import functions as F

    table = spark_schema(columns_json)
    types = {field.name.lower(): field.dataType.simpleString() for field in table}
    given = {field.name.lower(): field for field in rows.schema}
    for name, field in given.items():
        kind, expected = field.dataType.simpleString(), types.get(name)
        if kind != expected:
            wanted = f"type {expected}" if expected else f"one of its columns ({', '.join(table.names)})"
            raise RowsRefused(f"table {place}: expected {wanted}, found column {field.name} of type {kind}")
    columns = [
        (F.col(quoted(given[name.lower()].name)) if name.lower() in given else F.lit(None).cast(kind)).alias(
            name
        )
        for name, kind in ((field.name, field.dataType) for field in table)
    ]
    return rows.select(*columns)


def taken(
    rows: StructType, columns_json: str, partition_by: Sequence[str], mode: SchemaMode, place: Place
) -> str:
    """Return the columns that a table has with rows that do not replace all of its own; the same text if the rows fit.

    Files that are there stay as they are: what they lack is NULL, and what they have narrower is read as the wider type.

    Args:
        rows: their columns.
        columns_json: of the table.
        partition_by: its columns of partitions.
        mode: merge or rescue.
        place: of the table.

    Raises:
        RowsRefused: the mode does not accept the rows' columns, or Parquet files cannot keep them.
    """
    known = json.loads(columns_json)
    evolution = evolve_columns(known, all_nullable(json.loads(rows.json())), mode, place)
    if evolution.action == "none":
        return columns_json
    for name in partition_by:
        if evolution.widened.get(name) == "double":
            raise RowsRefused(
                f"table {place}: expected the type float of column {name} of partition_by to stay, found double: names of folders keep the"
                " digits of the narrower type. Convert it in sql, or load into a new table"
            )
    return schema_of(spark_schema(json.dumps(evolution.schema)), place)


def spark_schema(columns_json: str) -> StructType:
    """Return the columns as Spark has them."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(columns_json))


def types_of(columns_json: str) -> dict[str, Any]:
    """Return the types as Spark's JSON has them, by column, in the table's order; a nested one is no text."""
    return {field["name"]: field["type"] for field in json.loads(columns_json)["fields"]}


def arrow_types(columns_json: str) -> dict[str, pa.DataType]:
    """Return the types as Arrow has them, by column, in the table's order."""
    return {name: _arrow_type(kind) for name, kind in types_of(columns_json).items()}


def _nullable(field: dict[str, Any]) -> dict[str, Any]:
    return {"name": field["name"], "type": _without_nulls(field["type"]), "nullable": True, "metadata": {}}


def _without_nulls(kind: Any) -> Any:
    """A type without what it says of NULL: columns of a file may be NULL."""
    if isinstance(kind, str):
        return kind
    match kind.get("type"):
        case "struct":
            return {"type": "struct", "fields": [_nullable(field) for field in kind["fields"]]}
        case "array":
            element = _without_nulls(kind["elementType"])
            return {"type": "array", "elementType": element, "containsNull": True}
        case "map":
            parts = {part: _without_nulls(kind[part]) for part in ("keyType", "valueType")}
            return {"type": "map", **parts, "valueContainsNull": True}
    return kind


def _arrow_type(kind: Any) -> pa.DataType:
    """The type; KeyError with its name if files do not keep it."""
    import pyarrow as pa

    if isinstance(kind, str):
        if match := _DECIMAL.fullmatch(kind):
            return pa.decimal128(int(match[1]), int(match[2]))
        plain = {
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
        return plain[kind]
    match kind.get("type"):
        case "struct":
            return pa.struct([(field["name"], _arrow_type(field["type"])) for field in kind["fields"]])
        case "array":
            return pa.list_(_arrow_type(kind["elementType"]))
        case "map":
            return pa.map_(_arrow_type(kind["keyType"]), _arrow_type(kind["valueType"]))
    raise KeyError(str(kind.get("type")))
