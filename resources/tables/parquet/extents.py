"""The values in a file according to its list: texts of bounds as values of the columns' types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from partitions.file_statistics import ColumnStatistics
from resources.tables.parquet.commit_list import ListedFile

_INTEGER_TYPES = ("byte", "short", "integer", "long")


def extents_of(file: ListedFile, types: Mapping[str, Any]) -> dict[str, ColumnStatistics]:
    """Return the statistics of each column of a file, as the list has them.

    Args:
        file: file of the table.
        types: type of each column in Spark's JSON.
    """
    statistics = _parse_statistics(file.statistics)
    return {name: _extent(file, statistics, name, data_type) for name, data_type in types.items()}


def partition_value(text: str | None, data_type: Any) -> Any:
    """Return the value that a text stands for in a partition column.

    Raises:
        ValueError: the text is no value of the type.
    """
    if text is None:
        return None
    if data_type in ("float", "double"):
        return float(text)
    return _value(text, data_type)


def highest_value(file: ListedFile, column: str, data_type: Any) -> Any:
    """Return the highest value of a column from the list, which may be a little high; None if unknown."""
    return _extent(file, _parse_statistics(file.statistics), column, data_type).upper


def _parse_statistics(statistics: str) -> dict[str, Any]:
    statistics_json: dict[str, Any] = json.loads(statistics or "{}", parse_float=Decimal)
    return statistics_json


def _extent(file: ListedFile, statistics: Mapping[str, Any], name: str, data_type: Any) -> ColumnStatistics:
    if name in file.partition:
        if data_type in ("float", "double"):  # -0.0 and 0.0 are one value with two texts
            return ColumnStatistics()
        try:
            value = partition_value(file.partition[name], data_type)
        except ValueError:
            return ColumnStatistics()
        return ColumnStatistics(value, value, value is None, value is not None)
    lower, upper = (
        _bound(statistics.get(side, {}).get(name), data_type) for side in ("minValues", "maxValues")
    )
    nulls = statistics.get("nullCount", {}).get(name)
    if not isinstance(nulls, int):
        return ColumnStatistics(lower, upper)
    return ColumnStatistics(lower, upper, nulls > 0, nulls < file.rows)


def _bound(value: Any, data_type: Any) -> Any:
    """Return a bound; None for floating types.

    NaN sorts above all numbers and is in no statistics.
    """
    if value is None or isinstance(value, dict | bool) or data_type in ("float", "double"):
        return None
    try:
        return _value(str(value), data_type)
    except ValueError:
        return None


def _value(text: str, data_type: Any) -> Any:
    match data_type:
        case "date":
            return date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(text)
        case "boolean":
            return text == "true"
        case "string":
            return text
    if data_type in _INTEGER_TYPES:
        return int(text)
    if isinstance(data_type, str) and data_type.startswith("decimal"):
        return Decimal(text)
    raise ValueError(f"no value of type {data_type}")
