"""Column bounds from Parquet footers, in the form of Delta's log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from resources.tables.data_files.footers import has_legacy_calendar

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql.types import DataType, StructField


_MAX_COLUMNS = 32
"""Number of columns with statistics, Delta's default; each field of a struct counts."""


_PREFIX_LENGTH = 32
"""Longest text in statistics, in characters."""


_HIGHEST_CHARACTER = "\U0010ffff"


def delta_statistics(footer: FileMetaData, columns: Sequence[StructField]) -> str:
    """Return the statistics of a file as Delta's log has them: a JSON text with rows, bounds and NULLs.

    Args:
        footer: footer of the file, which may have other columns, in any order.
        columns: columns of the table, without partition columns.
    """
    leaves = islice(_leaf_columns([(field.name, field.dataType) for field in columns]), _MAX_COLUMNS)
    numbers = _column_numbers(footer)
    has_bounds = not has_legacy_calendar(footer)
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, is_repeated in leaves:
        number = numbers.get(".".join(path))
        if is_repeated or number is None:  # in a list or map the footer counts elements
            continue
        groups = _group_statistics(footer, number)
        if any(group is None or not group.has_null_count for group in groups):
            continue
        _set_nested(nulls, path, str(sum(group.null_count for group in groups)))
        bounds = _json_bounds(groups) if has_bounds and _covers_all_values(footer, number) else None
        if bounds is not None:
            _set_nested(lower, path, bounds[0])
            _set_nested(upper, path, bounds[1])
    parts = {"minValues": lower, "maxValues": upper, "nullCount": nulls}
    return _json_object({"numRecords": str(footer.num_rows), **parts})


def column_bounds(footer: FileMetaData, path: Sequence[str]) -> tuple[Any, Any] | None:
    """Return the lowest and highest value of a column from a file's footer; None if it has no bounds.

    Args:
        footer: footer of the file.
        path: names of the column and of the structs around it, outermost first.
    """
    number = _column_numbers(footer).get(".".join(path))
    return None if number is None else _group_bounds(_group_statistics(footer, number))


def _column_numbers(footer: FileMetaData) -> dict[str, int]:
    """Return the position of each column in a file, by its dotted path.

    A path that two columns share, such as the column ``a.b`` and the field b of a, is left out.
    """
    paths = [footer.schema.column(number).path for number in range(len(footer.schema))]
    uses = Counter(paths)
    return {path: number for number, path in enumerate(paths) if uses[path] == 1}


def _group_statistics(footer: FileMetaData, number: int) -> list[Any]:
    return [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]


def _covers_all_values(footer: FileMetaData, number: int) -> bool:
    """Return whether a file's bounds of a column cover all values: only Java's writers include NaN."""
    floating = footer.schema.column(number).physical_type in ("FLOAT", "DOUBLE")
    return not floating or str(footer.created_by).startswith("parquet-mr")


def _leaf_columns(
    columns: Sequence[tuple[str, DataType]], path: tuple[str, ...] = (), *, is_repeated: bool = False
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield each leaf column's path in file order, and whether the column lies in a list or map."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    for name, data_type in columns:
        leaf_path = (*path, name)
        match data_type:
            case StructType():
                inner = [(inner_field.name, inner_field.dataType) for inner_field in data_type.fields]
                yield from _leaf_columns(inner, leaf_path, is_repeated=is_repeated)
            case ArrayType():
                yield from _leaf_columns([("element", data_type.elementType)], leaf_path, is_repeated=True)
            case MapType():
                inner = [("key", data_type.keyType), ("value", data_type.valueType)]
                yield from _leaf_columns(inner, leaf_path, is_repeated=True)
            case _:
                yield leaf_path, is_repeated


def _json_bounds(groups: Sequence[Any]) -> tuple[str, str] | None:
    """Return the lowest and highest value as JSON texts.

    None if the footer has none, or if statistics cannot hold them.
    """
    bounds = _group_bounds(groups)
    if bounds is None:
        return None
    lowest, highest = _json_bound(bounds[0], upwards=False), _json_bound(bounds[1], upwards=True)
    return None if lowest is None or highest is None else (lowest, highest)


def _group_bounds(groups: Sequence[Any]) -> tuple[Any, Any] | None:
    if any(group is None for group in groups):
        return None
    filled_groups = [group for group in groups if group.num_values]
    if not filled_groups or not all(group.has_min_max for group in filled_groups):
        return None
    try:
        return min(group.min for group in filled_groups), max(group.max for group in filled_groups)
    except (ValueError, OverflowError, TypeError):  # a time before year 1 or after 9999, say
        return None


def _json_bound(value: Any, *, upwards: bool) -> str | None:
    """Return a bound as JSON, a long text's rounded away from the values; None if JSON cannot hold it."""
    match value:
        case bool() | bytes():
            return None
        case int():
            return str(value)
        case float():
            return json.dumps(value) if value - value == 0 else None  # neither infinite nor NaN
        case Decimal():
            return f"{value:f}"
        case datetime():
            return json.dumps(utc_text(value) if value.tzinfo else value.isoformat(timespec="microseconds"))
        case date():
            return json.dumps(value.isoformat())
        case str():
            return _json_text_bound(value, upwards=upwards)
    return None


def _json_text_bound(value: str, *, upwards: bool) -> str | None:
    if len(value) <= _PREFIX_LENGTH or not upwards:
        return _json_string(value[:_PREFIX_LENGTH])
    # Nothing sorts above the highest character, so a text that goes on with it has no upper bound of this length.
    return (
        None
        if value[_PREFIX_LENGTH] == _HIGHEST_CHARACTER
        else _json_string(value[:_PREFIX_LENGTH] + _HIGHEST_CHARACTER)
    )


def _json_string(text: str) -> str:
    """Return a text as a JSON string without escapes for letters.

    deltalake decodes surrogate pairs of some letters, such as U+20BB7, wrongly, and would not find their
    rows.
    """
    return json.dumps(text, ensure_ascii=False)


def utc_text(value: datetime) -> str:
    """Return an instant as ISO text ending in Z; a value without a zone is in UTC."""
    utc_value = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return f"{utc_value.isoformat(timespec='microseconds')}Z"


def _set_nested(values: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _json_object(values: Mapping[str, Any]) -> str:
    """Return a JSON object whose values are JSON texts already, so that a decimal keeps all of its digits."""
    parts = (
        f"{_json_string(name)}:{value if isinstance(value, str) else _json_object(value)}"
        for name, value in values.items()
    )
    return f"{{{','.join(parts)}}}"
