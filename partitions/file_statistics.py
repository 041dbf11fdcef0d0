"""What statistics of a data file say about a predicate: all of its rows match, none does, or the rows themselves must tell.

Statistics may be wider than the values, never narrower. What is not known is never taken for something.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate, are_comparable


class Match(Enum):
    """How many of a file's rows match a predicate."""

    ALL = "all"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Extent:
    """The values of a column in one file.

    Attributes:
        lower: not above any value; None: not known, or there is no value.
        upper: not below any value; None: not known, or there is no value.
        has_nulls: whether a row has none; None: not known.
        has_values: whether a row has one; None: not known.
    """

    lower: Any = None
    upper: Any = None
    has_nulls: bool | None = None
    has_values: bool | None = None


def match_of(predicate: Predicate, extents: Mapping[str, Extent]) -> Match:
    """Return how many rows of a file match.

    Args:
        predicate: over columns of the file's table.
        extents: by column; nothing is known of one that is missing.
    """
    match predicate:
        case Among():
            return _among(predicate, extents.get(predicate.column, Extent()))
        case Between():
            return _between(predicate, extents.get(predicate.column, Extent()))
        case HasValue(column):
            return _with_nulls(extents.get(column, Extent()), Match.NONE, Match.ALL)
    parts = [match_of(part, extents) for part in predicate.parts]
    decides, otherwise = (Match.ALL, Match.NONE) if isinstance(predicate, AnyOf) else (Match.NONE, Match.ALL)
    if decides in parts:
        return decides
    return otherwise if all(part is otherwise for part in parts) else Match.UNKNOWN


def _among(among: Among, extent: Extent) -> Match:
    null = Match.ALL if among.has_null else Match.NONE
    return _with_nulls(extent, null, _match_values(among.ordered, extent))


def _match_values(values: Sequence[Any] | None, extent: Extent) -> Match:
    """Of the rows that have a value; the values ascend, and are None if they have no order."""
    if values is None:
        return Match.UNKNOWN
    if not values:
        return Match.NONE
    lower, upper = extent.lower, extent.upper
    if not are_comparable(lower, upper, values[0]):
        return Match.UNKNOWN
    # A table has many files, and a replay names many: not each value is looked at for each file.
    first = 0 if lower is None else bisect_left(values, lower)
    if first == len(values) or (upper is not None and upper < values[first]):
        return Match.NONE
    return Match.ALL if lower is not None and lower == upper else Match.UNKNOWN


def _between(between: Between, extent: Extent) -> Match:
    return _with_nulls(extent, Match.NONE, _match_range(between, extent))


def _match_range(between: Between, extent: Extent) -> Match:
    """Of the rows that have a value."""
    if not are_comparable(extent.lower, extent.upper, between.lower, between.upper):
        return Match.UNKNOWN
    if _is_below(extent.upper, between.lower, inclusive=not between.lower_inclusive) or _is_below(
        between.upper, extent.lower, inclusive=not between.upper_inclusive
    ):
        return Match.NONE
    above = between.lower is None or _is_below(between.lower, extent.lower, inclusive=between.lower_inclusive)
    below = between.upper is None or _is_below(extent.upper, between.upper, inclusive=between.upper_inclusive)
    return Match.ALL if above and below else Match.UNKNOWN


def _is_below(value: Any, other: Any, *, inclusive: bool) -> bool:
    """Whether both are known, and the first is below the second, or equals it."""
    if value is None or other is None:
        return False
    return bool(value < other or (inclusive and value == other))


def _with_nulls(extent: Extent, null: Match, values: Match) -> Match:
    """Combine what rows without a value do with what those with one do."""
    if extent.has_values is False:
        return null
    if extent.has_nulls is False or null is values:
        return values
    return Match.UNKNOWN
