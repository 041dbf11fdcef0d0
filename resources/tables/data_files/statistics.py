"""Bounds of columns as footers tell them, in the form of Delta's log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

from resources.tables.data_files.footers import is_of_another_calendar

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql.types import DataType, StructField


_INDEXED = 32
"""Columns that statistics are kept of, as Delta does by default; those of a struct count each."""


_PREFIX = 32
"""Characters of a text in the statistics."""


_LAST = "\U0010ffff"


def statistics_of(footer: FileMetaData, columns: Sequence[StructField]) -> str:
    """Return the JSON text of Delta's log: rows, and bounds and NULLs of each column that the footer tells of.

    Args:
        footer: of the file, which may have other columns, in any order.
        columns: of the table, without those that folders stand for.
    """
    leaves = islice(_leaves([(field.name, field.dataType) for field in columns]), _INDEXED)
    numbers = _numbers(footer)
    bounded = not is_of_another_calendar(footer)
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, repeated in leaves:
        number = numbers.get(".".join(path))
        if repeated or number is None:  # a list or a map: what the footer counts are its elements
            continue
        groups = _groups(footer, number)
        if any(group is None or not group.has_null_count for group in groups):
            continue
        _put(nulls, path, str(sum(group.null_count for group in groups)))
        bounds = _bounds(groups) if bounded and _tells_all(footer, number) else None
        if bounds is not None:
            _put(lower, path, bounds[0])
            _put(upper, path, bounds[1])
    parts = {"minValues": lower, "maxValues": upper, "nullCount": nulls}
    return _object({"numRecords": str(footer.num_rows), **parts})


def known_bounds(footer: FileMetaData, path: Sequence[str]) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value of a column, as a file's footer tells them; None if it does not.

    Args:
        footer: of the file.
        path: the names of the column and of the structs around it, from the outside in.
    """
    number = _numbers(footer).get(".".join(path))
    return None if number is None else _lowest_and_highest(_groups(footer, number))


def _numbers(footer: FileMetaData) -> dict[str, int]:
    """The place of each column in a file, by its path; none of two that are called alike, as the column ``a.b`` and the field b of a."""
    paths = [footer.schema.column(number).path for number in range(len(footer.schema))]
    uses = Counter(paths)
    return {path: number for number, path in enumerate(paths) if uses[path] == 1}


def _groups(footer: FileMetaData, number: int) -> list[Any]:
    return [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]


def _tells_all(footer: FileMetaData, number: int) -> bool:
    """Whether a file's bounds of a column are those of all values: writers other than Java's leave NaN out."""
    floating = footer.schema.column(number).physical_type in ("FLOAT", "DOUBLE")
    return not floating or str(footer.created_by).startswith("parquet-mr")


def _leaves(
    columns: Sequence[tuple[str, DataType]], path: tuple[str, ...] = (), *, repeated: bool = False
) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The columns of the file in their order, each with its path, and whether it lies in a list or map."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    for name, kind in columns:
        here = (*path, name)
        match kind:
            case StructType():
                inner = [(each.name, each.dataType) for each in kind.fields]
                yield from _leaves(inner, here, repeated=repeated)
            case ArrayType():
                yield from _leaves([("element", kind.elementType)], here, repeated=True)
            case MapType():
                inner = [("key", kind.keyType), ("value", kind.valueType)]
                yield from _leaves(inner, here, repeated=True)
            case _:
                yield here, repeated


def _bounds(groups: Sequence[Any]) -> tuple[str, str] | None:
    """The lowest and the highest value as JSON texts; None if the footer does not tell, or statistics cannot hold them."""
    bounds = _lowest_and_highest(groups)
    if bounds is None:
        return None
    lowest, highest = _json(bounds[0], upwards=False), _json(bounds[1], upwards=True)
    return None if lowest is None or highest is None else (lowest, highest)


def _lowest_and_highest(groups: Sequence[Any]) -> tuple[Any, Any] | None:
    if any(group is None for group in groups):
        return None
    some = [group for group in groups if group.num_values]
    if not some or not all(group.has_min_max for group in some):
        return None
    try:
        return min(group.min for group in some), max(group.max for group in some)
    except (ValueError, OverflowError, TypeError):  # a time before year 1 or after 9999, say
        return None


def _json(value: Any, *, upwards: bool) -> str | None:
    """A bound as JSON; one of a long text is rounded away from the values."""
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
            return _text(value, upwards=upwards)
    return None


def _text(value: str, *, upwards: bool) -> str | None:
    if len(value) <= _PREFIX or not upwards:
        return _quoted(value[:_PREFIX])
    # Nothing is above the last character: if it is cut off, no bound of this length is known.
    return None if value[_PREFIX] == _LAST else _quoted(value[:_PREFIX] + _LAST)


def _quoted(text: str) -> str:
    """JSON of a text, in its own letters: deltalake reads the two escapes of some, such as U+20BB7, as another one, and rows are not found by it."""
    return json.dumps(text, ensure_ascii=False)


def utc_text(value: datetime) -> str:
    """An instant; one without a zone is in UTC."""
    there = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return f"{there.isoformat(timespec='microseconds')}Z"


def _put(nested: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    for name in path[:-1]:
        nested = nested.setdefault(name, {})
    nested[path[-1]] = value


def _object(values: Mapping[str, Any]) -> str:
    """JSON of texts that are JSON themselves: a decimal keeps all of its digits."""
    parts = (
        f"{_quoted(name)}:{value if isinstance(value, str) else _object(value)}"
        for name, value in values.items()
    )
    return f"{{{','.join(parts)}}}"
