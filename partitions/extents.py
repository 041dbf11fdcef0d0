"""What statistics of a data file say about a predicate: all of its rows match, none does, or the rows themselves must tell.

Statistics may be wider than the values, never narrower. What is not known is never taken for something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from partitions.predicate import Among, AnyOf, Between, HasValue, Predicate


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
    values = [value for value in among.values if value is not None]
    null = Match.ALL if None in among.values else Match.NONE
    return _with_nulls(extent, null, _match_values(values, extent))


def _match_values(values: list[Any], extent: Extent) -> Match:
    """Of the rows that have a value."""
    if not values:
        return Match.NONE
    lower, upper = extent.lower, extent.upper
    if not _are_comparable(lower, upper, *values):
        return Match.UNKNOWN
    if lower is not None and upper is not None and lower == upper:
        return Match.ALL if lower in values else Match.NONE
    outside = all(
        (lower is not None and value < lower) or (upper is not None and upper < value) for value in values
    )
    return Match.NONE if outside else Match.UNKNOWN


def _between(between: Between, extent: Extent) -> Match:
    return _with_nulls(extent, Match.NONE, _match_range(between, extent))


def _match_range(between: Between, extent: Extent) -> Match:
    """Of the rows that have a value."""
    if not _are_comparable(extent.lower, extent.upper, between.lower, between.upper):
        return Match.UNKNOWN
    if _is_below(extent.upper, between.lower, inclusive=not between.lower_inclusive) or _is_below(
        between.upper, extent.lower, inclusive=not between.upper_inclusive
    ):
        return Match.NONE
    above = between.lower is None or _is_below(between.lower, extent.lower, inclusive=between.lower_inclusive)
    below = between.upper is None or _is_below(extent.upper, between.upper, inclusive=between.upper_inclusive)
    return Match.ALL if above and below else Match.UNKNOWN


def _are_comparable(*values: Any) -> bool:
    """Whether values are of one kind: an engine converts others before it compares, so that ``1`` and ``'1'`` may be equal."""
    return len({_kind(value) for value in values if value is not None}) <= 1


def _kind(value: Any) -> Any:
    match value:
        case bool():
            return bool
        case int() | Decimal():
            return Decimal
        case datetime():
            return datetime, value.tzinfo is not None
    return type(value)


def _is_below(one: Any, other: Any, *, inclusive: bool) -> bool:
    """Whether both are known, and the first is below the second, or equals it."""
    if one is None or other is None:
        return False
    return bool(one < other or (inclusive and one == other))


def _with_nulls(extent: Extent, null: Match, values: Match) -> Match:
    """Combine what rows without a value do with what those with one do."""
    if extent.has_values is False:
        return null
    if extent.has_nulls is False or null is values:
        return values
    return Match.UNKNOWN
