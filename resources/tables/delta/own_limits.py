"""Which tables, rows and loads Strandline commits itself; all others Delta's own writer commits (docs/adr/0016).

What a table asks of its writers beyond plain files and their statistics is Delta's to do: columns by another name or computed, constraints,
deletion vectors, casts. So whatever is not known to ask nothing counts as asking.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from partitions.file_statistics import Extent
from partitions.loads import Append, Load
from partitions.predicate import Predicate, columns_of
from resources.connections.places import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType

_MISTAKEN = frozenset("[]\\^|%")
"""Characters of a path that deltalake 1.6 takes for something else."""
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
_WRITTEN_ALIKE = re.compile(r"(?:[A-Za-z0-9_.=/+~-]|%(?:20|25|[89A-F][0-9A-F]))*")
"""A path of the log as both Delta's writer and deltalake write it, or as deltalake alone does."""
_MISREAD = "\U00010000"
"""The lowest letter that deltalake may have read for the two escapes of another one, such as U+10BB7 for U+20BB7."""
_LAST = "\U0010ffff"
_WITHIN_MILLISECOND = timedelta(microseconds=999)
"""Delta cuts an instant's bounds to milliseconds."""


def are_plain_columns(table: DeltaTable) -> bool:
    """Return whether the columns of a table are in its files as they are: by their names, of types that Parquet has, with no meaning beside."""
    fields = json.loads(table.schema().to_json())["fields"]
    return all(
        _means_its_type(field) and _holds_anything(field["type"]) and _is_plain_type(field["type"])
        for field in fields
    )


def takes_place(place: Place) -> bool:
    """Return whether a table at a place can be committed to: a folder or a bucket of S3 whose name deltalake takes as it stands."""
    return (place.local is not None or place.url.startswith("s3://")) and not _MISTAKEN & set(place.url)


def demand_of(table: DeltaTable, load: Load) -> str | None:
    """Return what a table asks of its writers that this load would not give it, for people; None if it asks nothing."""
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


def fits(table: DeltaTable, rows: StructType) -> bool:
    """Return whether rows have a table's columns, by name and type in any order, so that nothing is to be cast or checked."""
    fields = json.loads(table.schema().to_json())["fields"]
    return (
        all(_takes_anything(field) for field in fields)
        and {field["name"]: _type(field["type"]) for field in fields} == _columns(rows)
        and len(fields) == len(rows.fields)
    )


def may_remove(path: str) -> bool:
    """Return whether deltalake removes a file by the path that its table's log has: it writes the path as itself would, and Spark keeps other letters."""
    return _WRITTEN_ALIKE.fullmatch(path) is not None


def lays_out(rows: StructType, partition_by: Sequence[str]) -> bool:
    """Return whether the values of the columns of partitions are kept by the names of Spark's folders: bytes are not always a text."""
    kinds = _columns(rows)
    return all(kinds.get(name) != "binary" for name in partition_by)


def _columns(rows: StructType) -> dict[str, Any]:
    """Name and type of each column, without what rows say of NULL."""
    return {field["name"]: _type(field["type"]) for field in json.loads(rows.json())["fields"]}


def may_make(rows: StructType, properties: Mapping[str, str]) -> bool:
    """Return whether a table for these rows is a plain one.

    Args:
        rows: their columns.
        properties: of new tables, by the session's settings.
    """
    names = [field.name for field in rows.fields]
    return (
        not properties
        and len({name.lower() for name in names}) == len(names)
        and _is_plain_type(json.loads(rows.json()))
    )


def new_schema(rows: StructType) -> str:
    """Return the schema of a table that is made for these rows, in which each column may be NULL."""
    fields = [
        {"name": field["name"], "type": _type(field["type"]), "nullable": True, "metadata": field["metadata"]}
        for field in json.loads(rows.json())["fields"]
    ]
    return json.dumps({"type": "struct", "fields": fields})


def extents_of(action: Mapping[str, Any], rows: Predicate) -> dict[str, Extent]:
    """Return what the log says of the columns of a file that a predicate compares.

    Args:
        action: of the file, as deltalake flattens it.
        rows: whose columns are meant.
    """
    return {column: _extent(action, column) for column in columns_of(rows)}


def _extent(action: Mapping[str, Any], column: str) -> Extent:
    if (key := f"partition.{column}") in action:
        value = action[key]
        return Extent(value, value, value is None, value is not None)
    if "." in column:  # a column ``a.b`` and the field b of a column a have the same name here
        return Extent()
    lower, upper = action.get(f"min.{column}"), action.get(f"max.{column}")
    if isinstance(lower, float) or isinstance(upper, float):  # NaN is above all numbers, and in no statistics
        return Extent()
    lower, upper = (bound if is_exact_bound(bound) else None for bound in (lower, upper))
    if isinstance(upper, datetime) and upper.microsecond % 1000 == 0:
        upper += _WITHIN_MILLISECOND
    nulls, rows = action.get(f"null_count.{column}"), action.get("num_records")
    if nulls is None or rows is None:
        return Extent(lower, upper)
    return Extent(lower, upper, nulls > 0, nulls < rows)


def is_exact_bound(bound: Any) -> bool:
    """Return whether a bound is the value itself, or a text around it.

    It may not be for a decimal of so many digits that a writer which keeps it as a double, as delta-rs does, has changed it; and for a text of which deltalake
    has read escapes in the log, as older versions have written them, as other letters.
    """
    match bound:
        case Decimal():
            return len(bound.as_tuple().digits) <= sys.float_info.dig
        case str():
            # A text that was cut ends with the last letter, which stands for all that follow.
            text = bound.removesuffix(_LAST)
            return text.isascii() or max(text) < _MISREAD
    return True


def partition_text(value: Any) -> str | None:
    """Return the text that Delta's log has for the value of a partition column, in the form that all of its writers use; None: there is none."""
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
            there = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            text = there.isoformat(sep=" ", timespec="microseconds")
            return f"{text.replace(' ', 'T')}Z" if value.tzinfo else text
        case date():
            return value.isoformat()
    return None


def _takes_anything(field: Mapping[str, Any]) -> bool:
    return bool(field["nullable"]) and _means_its_type(field) and _holds_anything(field["type"])


def _holds_anything(kind: Any) -> bool:
    """Whether a type asks nothing of the values within it."""
    if isinstance(kind, str):
        return True
    match kind.get("type"):
        case "struct":
            return all(_takes_anything(field) for field in kind["fields"])
        case "array":
            return bool(kind["containsNull"]) and _holds_anything(kind["elementType"])
        case "map":
            return bool(kind["valueContainsNull"]) and all(
                _holds_anything(kind[part]) for part in ("keyType", "valueType")
            )
    return False


def _means_its_type(field: Mapping[str, Any]) -> bool:
    """Whether what is said beside a column's type does not change what it takes: as lengths and collations do."""
    return set(field.get("metadata") or ()) <= _FIELD_METADATA


def _is_plain_type(kind: Any) -> bool:
    """Whether Delta and Parquet have a type as it is."""
    if isinstance(kind, str):
        return kind in _PLAIN or kind.startswith("decimal(")
    match kind.get("type"):
        case "struct":
            return all(_means_its_type(field) and _is_plain_type(field["type"]) for field in kind["fields"])
        case "array":
            return _is_plain_type(kind["elementType"])
        case "map":
            return _is_plain_type(kind["keyType"]) and _is_plain_type(kind["valueType"])
    return False


_PLAIN = frozenset(
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


def _type(kind: Any) -> Any:
    """A type without what it says of NULL and without comments."""
    if isinstance(kind, str):
        return kind
    match kind.get("type"):
        case "struct":
            fields = [
                {"name": field["name"], "type": _type(field["type"]), "nullable": True, "metadata": {}}
                for field in kind["fields"]
            ]
            return {"type": "struct", "fields": fields}
        case "array":
            return {"type": "array", "elementType": _type(kind["elementType"]), "containsNull": True}
        case "map":
            key, value = _type(kind["keyType"]), _type(kind["valueType"])
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return kind
