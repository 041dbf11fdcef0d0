"""What the list of a Parquet table says of the values in a file: the texts that it keeps, as values of the columns' types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from partitions.file_statistics import Extent
from resources.tables.parquet.commit_list import ListedFile

_WHOLE = ("byte", "short", "integer", "long")


def extents_of(file: ListedFile, types: Mapping[str, Any]) -> dict[str, Extent]:
    """Return what is known of each column.

    Args:
        file: of the table.
        types: as Spark's JSON has them, by column.
    """
    statistics = _parsed(file.statistics)
    return {name: _extent(file, statistics, name, kind) for name, kind in types.items()}


def partition_value(text: str | None, kind: Any) -> Any:
    """Return the value of a partition column.

    Raises:
        ValueError: the text is none of the type's.
    """
    if text is None:
        return None
    if kind in ("float", "double"):
        return float(text)
    return _value(text, kind)


def highest(file: ListedFile, column: str, kind: Any) -> Any:
    """Return the highest value of a column as the list has it, which may be a little high; None if it is not known."""
    return _extent(file, _parsed(file.statistics), column, kind).upper


def _parsed(statistics: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(statistics or "{}", parse_float=Decimal)
    return made


def _extent(file: ListedFile, statistics: Mapping[str, Any], name: str, kind: Any) -> Extent:
    if name in file.partition:
        if kind in ("float", "double"):  # -0.0 and 0.0 are one value with two texts
            return Extent()
        try:
            value = partition_value(file.partition[name], kind)
        except ValueError:
            return Extent()
        return Extent(value, value, value is None, value is not None)
    lower, upper = (_bound(statistics.get(side, {}).get(name), kind) for side in ("minValues", "maxValues"))
    nulls = statistics.get("nullCount", {}).get(name)
    if not isinstance(nulls, int):
        return Extent(lower, upper)
    return Extent(lower, upper, nulls > 0, nulls < file.rows)


def _bound(value: Any, kind: Any) -> Any:
    """A bound; NaN is above all numbers and in no statistics, so those of floats are not used."""
    if value is None or isinstance(value, dict | bool) or kind in ("float", "double"):
        return None
    try:
        return _value(str(value), kind)
    except ValueError:
        return None


def _value(text: str, kind: Any) -> Any:
    match kind:
        case "date":
            return date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(text)
        case "boolean":
            return text == "true"
        case "string":
            return text
    if kind in _WHOLE:
        return int(text)
    if isinstance(kind, str) and kind.startswith("decimal"):
        return Decimal(text)
    raise ValueError(f"no value of type {kind}")
