"""Ranges of time that one run requests from an API one after another.

See docs/reference/apis.md, Windows.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from partitions.errors import ConfigurationError

Unit = Literal["hour", "day", "month", "year"]


def split_range(
    start: datetime, end: datetime, amount: int, unit: Unit
) -> Iterator[tuple[datetime, datetime]]:
    """Return consecutive ranges from a start to an end; none if the end is not above the start.

    The last range may be shorter, and ranges are computed lazily. Each begins at the previous end, without
    regard to a calendar: a month from the 31st ends on the 28th, and so do all after it.

    Raises:
        ConfigurationError: an unknown unit, or an amount below 1.
    """
    if unit not in get_args(Unit):
        raise ConfigurationError(
            f"watermark_param_range.unit: expected {', '.join(get_args(Unit))}, found {unit!r}"
        )
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
        raise ConfigurationError(
            f"watermark_param_range.amount: expected a whole number of at least 1, found {amount!r}"
        )
    return _iterate_ranges(start, end, amount, unit)


def _iterate_ranges(
    start: datetime, end: datetime, amount: int, unit: Unit
) -> Iterator[tuple[datetime, datetime]]:
    while _comparison_key(start) < _comparison_key(end):
        next_start = min(_next_start(start, amount, unit), end, key=_comparison_key)
        yield start, next_start
        start = next_start


def _comparison_key(moment: datetime) -> datetime:
    """Return a time that compares correctly.

    Two times of one zone compare by their clocks, even in an hour that occurs twice; UTC avoids that.
    """
    return moment if moment.tzinfo is None else moment.astimezone(UTC)


def _next_start(start: datetime, amount: int, unit: Unit) -> datetime:
    try:
        match unit:
            case "hour":
                return _add_elapsed(start, timedelta(hours=amount))
            case "day":
                return start + timedelta(days=amount)
        months = start.year * 12 + start.month - 1 + amount * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return start.replace(year=year, month=month + 1, day=min(start.day, last))
    except (OverflowError, ValueError):  # past the year 9999: no further range
        return datetime.max.replace(tzinfo=start.tzinfo)


def _add_elapsed(start: datetime, hours: timedelta) -> datetime:
    """Add elapsed hours to a time; a zone's clock may show another difference if summer time changes."""
    if start.tzinfo is None:
        return start + hours
    return (start.astimezone(UTC) + hours).astimezone(start.tzinfo)
