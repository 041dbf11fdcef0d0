"""The bounds of a replay as values of a column of the table, or as times of arrival.

See docs/reference/replay.md, Files by a column or by arrival.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from partitions.errors import ConfigurationError
from partitions.predicate import Between
from partitions.replay.bounds import typed_bounds

_NUMBERS = ("long", "integer", "short", "byte", "double", "float", "decimal")


def range_of_column(column: str, data_type: Any, start: str, end: str) -> Between:
    """Return the rows of a column from start, inclusive, to end, exclusive.

    Beside a ``timestamp`` a text without a zone is in UTC. Texts are compared by their bytes.

    Args:
        column: the column.
        data_type: its type in Spark's JSON.
        start: the lower bound as text.
        end: the upper bound as text.

    Raises:
        ConfigurationError: a bound does not fit the type, no range has such a type, or start does not lie below
            end.
    """
    if data_type == "string":
        if start >= end:
            raise ConfigurationError(f"expected a start below the end, found start {start} and end {end}")
        return Between(column, start, end)
    lower, upper = typed_bounds(start, end, with_time=data_type in ("timestamp", "timestamp_ntz"))
    match data_type:
        case "timestamp":
            bounds = [_in_utc(bound) for bound in (lower, upper)]
            fits = all(isinstance(bound, datetime) for bound in bounds)
        case "timestamp_ntz":
            bounds = [lower, upper]
            fits = all(isinstance(bound, datetime) and bound.tzinfo is None for bound in bounds)
        case "date":
            bounds = [lower, upper]
            fits = all(isinstance(bound, date) and not isinstance(bound, datetime) for bound in bounds)
        case _:
            bounds = [lower, upper]
            fits = str(data_type).startswith(_NUMBERS) and all(isinstance(bound, int) for bound in bounds)
    if not fits:
        raise ConfigurationError(
            f"expected bounds of the type of column {column}, {_type_in_words(data_type)}, found start {start} and end {end}"
        )
    return Between(column, *bounds)


def arrival_range(start: str, end: str) -> tuple[datetime, datetime]:
    """Return two instants, of which a text without a zone is in UTC.

    Raises:
        ConfigurationError: they are no dates or times, or start does not lie below end.
    """
    lower, upper = (_in_utc(bound) for bound in typed_bounds(start, end, with_time=True))
    if not isinstance(lower, datetime) or not isinstance(upper, datetime):
        raise ConfigurationError(f"expected dates or times of arrival, found start {start} and end {end}")
    return lower, upper


def _in_utc(bound: Any) -> Any:
    if not isinstance(bound, datetime):
        return bound
    return (bound if bound.tzinfo else bound.replace(tzinfo=UTC)).astimezone(UTC)


def _type_in_words(data_type: Any) -> str:
    return data_type if isinstance(data_type, str) else "which has parts"
