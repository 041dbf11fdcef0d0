"""Decide from a data file's statistics how many of its rows match a predicate: all, none, or unknown.

Statistics may be wider than the values, never narrower. Missing statistics decide nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate, SqlCondition, are_comparable


class FileMatch(Enum):
    """How many rows of a file match a predicate."""

    ALL = "all"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ColumnStatistics:
    """The statistics of a column in one file.

    Attributes:
        lower: not above any value; None: unknown, or there is no value.
        upper: not below any value; None: unknown, or there is no value.
        has_nulls: whether some row is NULL; None: unknown.
        has_values: whether some row has a value; None: unknown.
    """

    lower: Any = None
    upper: Any = None
    has_nulls: bool | None = None
    has_values: bool | None = None


def match_statistics(predicate: Predicate, extents: Mapping[str, ColumnStatistics]) -> FileMatch:
    """Return how many rows of a file match a predicate.

    Args:
        predicate: over columns of the file's table.
        extents: statistics by column; a missing column has none.
    """
    match predicate:
        case Among():
            return _among(predicate, extents.get(predicate.column, ColumnStatistics()))
        case Between():
            return _between(predicate, extents.get(predicate.column, ColumnStatistics()))
        case HasValue(column):
            return _with_nulls(extents.get(column, ColumnStatistics()), FileMatch.NONE, FileMatch.ALL)
        case SqlCondition():
            return FileMatch.UNKNOWN
    parts = [match_statistics(part, extents) for part in predicate.parts]
    decides, otherwise = (
        (FileMatch.ALL, FileMatch.NONE) if isinstance(predicate, AnyOf) else (FileMatch.NONE, FileMatch.ALL)
    )
    if decides in parts:
        return decides
    return otherwise if all(part is otherwise for part in parts) else FileMatch.UNKNOWN


def _among(among: Among, extent: ColumnStatistics) -> FileMatch:
    null = FileMatch.ALL if among.has_null else FileMatch.NONE
    return _with_nulls(extent, null, _match_values(among.ordered, extent))


def _match_values(values: Sequence[Any] | None, extent: ColumnStatistics) -> FileMatch:
    """Match the rows that have a value; ``values`` ascend, or are None if they have no order."""
    if values is None:
        return FileMatch.UNKNOWN
    if not values:
        return FileMatch.NONE
    lower, upper = extent.lower, extent.upper
    if not are_comparable(lower, upper, values[0]):
        return FileMatch.UNKNOWN
    # A table has many files, and a replay names many: not each value is looked at for each file.
    first = 0 if lower is None else bisect_left(values, lower)
    if first == len(values) or (upper is not None and upper < values[first]):
        return FileMatch.NONE
    return FileMatch.ALL if lower is not None and lower == upper else FileMatch.UNKNOWN


def _between(between: Between, extent: ColumnStatistics) -> FileMatch:
    return _with_nulls(extent, FileMatch.NONE, _match_range(between, extent))


def _match_range(between: Between, extent: ColumnStatistics) -> FileMatch:
    """Match the rows that have a value."""
    if not are_comparable(extent.lower, extent.upper, between.lower, between.upper):
        return FileMatch.UNKNOWN
    if _is_below(extent.upper, between.lower, inclusive=not between.lower_inclusive) or _is_below(
        between.upper, extent.lower, inclusive=not between.upper_inclusive
    ):
        return FileMatch.NONE
    is_above = between.lower is None or _is_below(
        between.lower, extent.lower, inclusive=between.lower_inclusive
    )
    is_below = between.upper is None or _is_below(
        extent.upper, between.upper, inclusive=between.upper_inclusive
    )
    return FileMatch.ALL if is_above and is_below else FileMatch.UNKNOWN


def _is_below(value: Any, bound: Any, *, inclusive: bool) -> bool:
    """Return whether both are known and the value is below the bound, or equal if ``inclusive``."""
    if value is None or bound is None:
        return False
    return bool(value < bound or (inclusive and value == bound))


def _with_nulls(extent: ColumnStatistics, null: FileMatch, values: FileMatch) -> FileMatch:
    """Combine the match of NULL rows with the match of rows that have a value."""
    if extent.has_values is False:
        return null
    if extent.has_nulls is False or null is values:
        return values
    return FileMatch.UNKNOWN
