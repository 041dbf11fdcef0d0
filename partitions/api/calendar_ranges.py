"""Ranges that one run asks an API for one after another (docs/reference/apis.md, Windows)."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from partitions.errors import ConfigurationError

Unit = Literal["hour", "day", "month", "year"]


def ranges(start: datetime, end: datetime, amount: int, unit: Unit) -> Iterator[tuple[datetime, datetime]]:
    """Return the ranges from a start to an end, the last one short; none if the end is not above the start. Each is made when it is asked for.

    Each step begins at the previous end, so that the ranges follow the start and no calendar: a month from the 31st ends on the
    28th, and so do all after it.

    Raises:
        ConfigurationError: for an unknown unit, or an amount below 1.
    """
    if unit not in get_args(Unit):
        raise ConfigurationError(
            f"watermark_param_range.unit: expected {', '.join(get_args(Unit))}, found {unit!r}"
        )
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise ConfigurationError(
            f"watermark_param_range.amount: expected a whole number of at least 1, found {amount!r}"
        )
    return _ranges(start, end, amount, unit)


def _ranges(start: datetime, end: datetime, amount: int, unit: Unit) -> Iterator[tuple[datetime, datetime]]:
    while _instant(start) < _instant(end):
        following = min(_step(start, amount, unit), end, key=_instant)
        yield start, following
        start = following


def _instant(moment: datetime) -> datetime:
    """What a moment is compared by: two of one zone compare as clocks show them, also where an hour comes twice."""
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


def _step(start: datetime, amount: int, unit: Unit) -> datetime:
    try:
        match unit:
            case "hour":
                return _elapsed(start, timedelta(hours=amount))
            case "day":
                return start + timedelta(days=amount)
        months = start.year * 12 + start.month - 1 + amount * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return start.replace(year=year, month=month + 1, day=min(start.day, last))
    except (OverflowError, ValueError):  # beyond the year 9999 there is no further range
        return datetime.max.replace(tzinfo=start.tzinfo)


def _elapsed(start: datetime, hours: timedelta) -> datetime:
    """So many hours later; of a zone with summer time as they pass, not as its clock shows them."""
    if start.tzinfo is None:
        return start + hours
    return (start.astimezone(UTC) + hours).astimezone(start.tzinfo)
