"""Decide which tables, rows and loads our own commit can write (docs/explanation/adr/0016).

Delta's own writer commits all others.

Delta's writer handles everything beyond plain files and statistics: mapped or computed columns,
constraints, deletion vectors, casts. A feature or property that is not known to need nothing counts as
needing Delta's writer.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from partitions.file_statistics import ColumnStatistics
from partitions.loads import Append, Load
from partitions.predicate import Predicate, columns_of
from resources.connections.places import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType

_MISREAD_IN_PATHS = frozenset("[]\\^|%")
"""Characters of a path that deltalake 1.6 misreads."""
_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
_PROPERTIES = frozenset(
    {
        "delta.appendOnly",
        "delta.checkpointInterval",
        "delta.deletedFileRetentionDuration",
        "delta.enableExpiredLogCleanup",
        "delta.feature.timestampNtz",
        "delta.logRetentionDuration",
        "delta.minReaderVersion",
        "delta.minWriterVersion",
    }
)
_FIELD_METADATA = frozenset({"comment"})
_SAME_SPELLING = re.compile(r"(?:[A-Za-z0-9_.=/+~-]|%(?:20|25|[89A-F][0-9A-F]))*")
"""A path that deltalake spells as it stands in the log."""
_LOWEST_MISREAD = "\U00010000"
"""Lowest character that deltalake may have read for the two escapes of another one, such as U+10BB7 for U+20BB7."""
_HIGHEST_CHARACTER = "\U0010ffff"
_WITHIN_MILLISECOND = timedelta(microseconds=999)
"""Delta cuts the bounds of instants to milliseconds."""


def are_plain_columns(table: DeltaTable) -> bool:
    """Return whether a table's columns have the names and types of its Parquet files.

    Metadata that changes the meaning of a column disqualifies it.
    """
    return are_plain_fields(json.loads(table.schema().to_json())["fields"])


def are_plain_fields(fields: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether columns have the names and types of the Parquet files; see above."""
    return all(
        _has_plain_metadata(field)
        and _accepts_any_inner_value(field["type"])
        and _is_plain_type(field["type"])
        for field in fields
    )


def is_supported_location(place: Place) -> bool:
    """Return whether deltalake can commit at a place: a folder or S3, with a name that it spells as we do."""
    return (place.local is not None or place.url.startswith("s3://")) and not _MISREAD_IN_PATHS & set(
        place.url
    )


def unmet_demand(table: DeltaTable, load: Load) -> str | None:
    """Return why our own commit cannot write this load into a table, for people; None if it can."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    features = {*(protocol.writer_features or ()), *(protocol.reader_features or ())} - _FEATURES
    if features:
        return f"the table has the feature {', '.join(sorted(features))}"
    properties = [key for key in configuration if key.startswith("delta.") and key not in _PROPERTIES]
    if properties:
        return f"the table sets {', '.join(sorted(properties))}"
    if protocol.min_writer_version > 2 and protocol.min_writer_version != 7:
        return f"the table has writer version {protocol.min_writer_version}"
    if str(configuration.get("delta.appendOnly")).lower() == "true" and not isinstance(load, Append):
        return "the table sets delta.appendOnly"
    return None


def has_same_columns(table: DeltaTable, rows: StructType) -> bool:
    """Return whether rows have a table's columns in any order, so that nothing must be cast or checked."""
    fields = json.loads(table.schema().to_json())["fields"]
    return (
        all(_accepts_any_value(field) for field in fields)
        and {field["name"]: _bare_type(field["type"]) for field in fields} == _bare_types(rows)
        and len(fields) == len(rows.fields)
    )


def can_remove(path: str) -> bool:
    """Return whether deltalake can remove a file by its path in the log.

    deltalake writes every path in its own spelling; Spark keeps other characters.
    """
    return _SAME_SPELLING.fullmatch(path) is not None


def can_partition_by(rows: StructType, partition_by: Sequence[str]) -> bool:
    """Return whether folder names can hold the values of the partition columns: bytes are not always text."""
    types = _bare_types(rows)
    return all(types.get(name) != "binary" for name in partition_by)


def _bare_types(rows: StructType) -> dict[str, Any]:
    """Return the type of each column without nullability."""
    return {field["name"]: _bare_type(field["type"]) for field in json.loads(rows.json())["fields"]}


def can_create(rows: StructType, properties: Mapping[str, str]) -> bool:
    """Return whether our own commit can create a table for these rows.

    Args:
        rows: columns of the rows.
        properties: properties of new tables in the session's settings.
    """
    names = [field.name for field in rows.fields]
    return (
        not properties
        and len({name.lower() for name in names}) == len(names)
        and _is_plain_type(json.loads(rows.json()))
    )


def nullable_schema(rows: StructType) -> str:
    """Return the schema of a new table for these rows, with nullable columns."""
    fields = [
        {
            "name": field["name"],
            "type": _bare_type(field["type"]),
            "nullable": True,
            "metadata": field["metadata"],
        }
        for field in json.loads(rows.json())["fields"]
    ]
    return json.dumps({"type": "struct", "fields": fields})


def extents_of(action: Mapping[str, Any], rows: Predicate) -> dict[str, ColumnStatistics]:
    """Return the statistics of a file's columns that a predicate compares.

    Args:
        action: add action of the file, as deltalake flattens it.
        rows: predicate that names the columns.
    """
    return {column: _extent(action, column) for column in columns_of(rows)}


def _extent(action: Mapping[str, Any], column: str) -> ColumnStatistics:
    if (key := f"partition.{column}") in action:
        value = action[key]
        return ColumnStatistics(value, value, value is None, value is not None)
    if "." in column:  # ambiguous: a column ``a.b``, or field b of column a
        return ColumnStatistics()
    lower, upper = action.get(f"min.{column}"), action.get(f"max.{column}")
    if isinstance(lower, float) or isinstance(
        upper, float
    ):  # NaN sorts above all numbers and is in no statistics
        return ColumnStatistics()
    lower, upper = (bound if is_exact_bound(bound) else None for bound in (lower, upper))
    if isinstance(upper, datetime) and upper.microsecond % 1000 == 0:
        upper += _WITHIN_MILLISECOND
    nulls, rows = action.get(f"null_count.{column}"), action.get("num_records")
    if nulls is None or rows is None:
        return ColumnStatistics(lower, upper)
    return ColumnStatistics(lower, upper, nulls > 0, nulls < rows)


def is_exact_bound(bound: Any) -> bool:
    """Return whether a bound is exact, or lies outside the values.

    A decimal with many digits may have been rounded to a double, as delta-rs does. deltalake may have
    misread escapes of a text that older versions wrote.
    """
    match bound:
        case Decimal():
            return len(bound.as_tuple().digits) <= sys.float_info.dig
        case str():
            # A cut text ends with the highest character, which stands for any continuation.
            text = bound.removesuffix(_HIGHEST_CHARACTER)
            return text.isascii() or max(text) < _LOWEST_MISREAD
    return True


def partition_text(value: Any) -> str | None:
    """Return the text of a partition value in Delta's log; None if writers disagree on its form."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case datetime():
            utc_value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            text = utc_value.isoformat(sep=" ", timespec="microseconds")
            return f"{text.replace(' ', 'T')}Z" if value.tzinfo else text
        case date():
            return value.isoformat()
    return None


def _accepts_any_value(field: Mapping[str, Any]) -> bool:
    return bool(field["nullable"]) and _has_plain_metadata(field) and _accepts_any_inner_value(field["type"])


def _accepts_any_inner_value(data_type: Any) -> bool:
    """Return whether a type restricts none of its inner values."""
    if isinstance(data_type, str):
        return True
    match data_type.get("type"):
        case "struct":
            return all(_accepts_any_value(field) for field in data_type["fields"])
        case "array":
            return bool(data_type["containsNull"]) and _accepts_any_inner_value(data_type["elementType"])
        case "map":
            return bool(data_type["valueContainsNull"]) and all(
                _accepts_any_inner_value(data_type[type_key]) for type_key in ("keyType", "valueType")
            )
    return False


def _has_plain_metadata(field: Mapping[str, Any]) -> bool:
    """Return whether a field's metadata does not restrict its values, as lengths and collations do."""
    return set(field.get("metadata") or ()) <= _FIELD_METADATA


def _is_plain_type(data_type: Any) -> bool:
    """Return whether Delta and Parquet hold the values of a type alike, without a table feature."""
    if isinstance(data_type, str):
        return data_type in _PLAIN_TYPES or data_type.startswith("decimal(")
    match data_type.get("type"):
        case "struct":
            return all(
                _has_plain_metadata(field) and _is_plain_type(field["type"]) for field in data_type["fields"]
            )
        case "array":
            return _is_plain_type(data_type["elementType"])
        case "map":
            return _is_plain_type(data_type["keyType"]) and _is_plain_type(data_type["valueType"])
    return False


_PLAIN_TYPES = frozenset(
    {
        "binary",
        "boolean",
        "byte",
        "date",
        "double",
        "float",
        "integer",
        "long",
        "short",
        "string",
        "timestamp",
        "timestamp_ntz",
    }
)


def _bare_type(data_type: Any) -> Any:
    """Return a type without nullability and comments."""
    if isinstance(data_type, str):
        return data_type
    match data_type.get("type"):
        case "struct":
            fields = [
                {"name": field["name"], "type": _bare_type(field["type"]), "nullable": True, "metadata": {}}
                for field in data_type["fields"]
            ]
            return {"type": "struct", "fields": fields}
        case "array":
            return {
                "type": "array",
                "elementType": _bare_type(data_type["elementType"]),
                "containsNull": True,
            }
        case "map":
            key, value = _bare_type(data_type["keyType"]), _bare_type(data_type["valueType"])
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return data_type
