"""A scale of time: round cells and round marks, in the zone of a definition."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from partitions.instants import DAY, HOUR, as_datetime, milliseconds
from partitions.intervals import Interval
from platform_assets.factory.kinds.image import Mark

_MINUTE = 60_000
_CELLS = (
    _MINUTE, 5 * _MINUTE, 15 * _MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
    DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 56 * DAY, 112 * DAY, 364 * DAY,
)  # fmt: skip
"""The round widths of a cell."""

_MOST_CELLS, _MOST_TICKS = 72, 5


def cells_of_time(first: int, last: int, zone: tzinfo, *, most: int = _MOST_CELLS) -> list[Interval]:
    """Return at most 72 equal stretches of time with round bounds that cover ``[first, last)``.

    Args:
        first: epoch milliseconds.
        last: epoch milliseconds, above ``first``.
        zone: days begin at its midnight.
        most: the most stretches.
    """
    for width in _CELLS:
        begin = _floor(first, width, zone)
        if (count := -(-(last - begin) // width)) <= most:
            return list(pairwise(begin + number * width for number in range(count + 1)))
    width = -(-(last - first) // most)
    return list(pairwise(first + number * width for number in range(most + 1)))


def ticks_of_time(cells: list[Interval], zone: tzinfo) -> list[Mark]:
    """Return the marks of a scale below cells of equal width: at most five round times."""
    first, last, width = cells[0][0], cells[-1][1], cells[0][1] - cells[0][0]
    start, end = as_datetime(first, zone), as_datetime(last, zone)
    for marks, form in _marks(start, end, zone):
        if 1 < len(marks) <= _MOST_TICKS:
            texts = [_text(at, form, is_first=not number) for number, at in enumerate(marks)]
            places = [(milliseconds(at) - first) / width for at in marks]
            return list(map(Mark, places, texts))
    return [Mark(at, f"{moment:%Y-%m-%d %H:%M}") for at, moment in ((0.0, start), (float(len(cells)), end))]


def _marks(start: datetime, end: datetime, zone: tzinfo) -> Iterator[tuple[list[datetime], str]]:
    """Yield ever fewer round times within ``[start, end]``, and their format."""
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    span = end - start
    for minutes in (5, 15, 30, 60, 180, 360, 720):
        step = timedelta(minutes=minutes)
        if span / step <= 2 * _MOST_TICKS:
            moments = [midnight + number * step for number in range(int((end - midnight) / step) + 1)]
            yield [at for at in moments if start <= at <= end], "%b %-d %H:%M"
    for days in (1, 2, 7, 14):
        if span / timedelta(days=days) <= 2 * _MOST_TICKS:
            number_of_days = (end - midnight).days + 1
            moments = [_day(midnight, number, zone) for number in range(0, number_of_days + 1, days)]
            yield [at for at in moments if start <= at <= end], "%b %-d"
    for months in (1, 2, 3, 6, 12, 24, 60, 120):
        yield list(_months(start, end, months)), "%b" if months < 12 else "%Y"


def _months(start: datetime, end: datetime, step: int) -> Iterator[datetime]:
    """Yield the firsts of every n-th month within a span."""
    for year in range(start.year, end.year + 1):
        for month in range(1, 13):
            if ((year * 12 + month - 1) % step) == 0:
                at = start.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)
                if start <= at <= end:
                    yield at


def _day(midnight: datetime, days: int, zone: tzinfo) -> datetime:
    """Return the midnight of a later day, whatever the clocks do between."""
    return (midnight.replace(tzinfo=None) + timedelta(days=days)).replace(tzinfo=zone)


def _floor(instant: int, width: int, zone: tzinfo) -> int:
    """Return the round time at or before an instant: a multiple of the width since midnight, or midnight."""
    at = as_datetime(instant, zone)
    midnight = milliseconds(at.replace(hour=0, minute=0, second=0, microsecond=0))
    return midnight if width >= DAY else midnight + (instant - midnight) // width * width


def _text(at: datetime, form: str, *, is_first: bool) -> str:
    """Return what a mark says: the year only at its start, the time of day only beside midnight."""
    if form == "%b":
        return f"{at:%Y}" if at.month == 1 else f"{at:%b %Y}" if is_first else f"{at:%b}"
    return at.strftime(form).removesuffix(" 00:00")
