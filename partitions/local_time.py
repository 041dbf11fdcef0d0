"""Convert between local times and instants where clocks change.

See docs/reference/windows.md, Local times. A repeated hour has two passes, and each of its local times
names two instants. A row with only the local time counts as one of the second pass, in each source and
engine: it is read when both passes are over.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

from partitions.instants import as_datetime, milliseconds
from partitions.unit_values import ValueType

HORIZON = 2050
"""Zones are examined up to this year: laws change sooner, and a new zone database is examined again."""

FIRST_YEAR = 1850
"""Zones are examined from this year on: before it clocks showed solar time."""

_STEP = timedelta(days=3)
"""Shorter than any time between two changes of a zone: Recife put its clocks forward for less than a week in October 2000."""

_SECOND = timedelta(seconds=1)


class OffsetChange(NamedTuple):
    """A moment at which a zone's clocks go forward or back.

    Attributes:
        at: the first instant with the new offset, in UTC.
        before: the old offset.
        after: the new offset.
    """

    at: datetime
    before: timedelta
    after: timedelta


class RepeatedTime(NamedTuple):
    """The instants whose local time occurs twice: both passes, half-open, in UTC."""

    start: datetime
    end: datetime


def local(ms: int, zone: tzinfo) -> datetime:
    """Return the local time at an instant, without its zone; it never goes back.

    During the first pass of a repeated hour it is the hour's start. So the hour belongs to the window that
    holds the second pass, is read when both are over, and ranges that touch as instants touch as local
    times.

    Args:
        ms: epoch milliseconds.
        zone: zone of the local time.
    """
    moment = as_datetime(ms, zone)
    stretch = None if moment.fold else repeated_time(moment)
    return _wall(stretch.start if stretch else moment, zone)


def local_day(ms: int, zone: tzinfo) -> date:
    """Return the local day at an instant.

    During the first pass of a repeated hour it is the day of the hour's start.
    """
    return local(ms, zone).date()


def latest_local(ms: int, zone: tzinfo) -> datetime:
    """Return the highest local time that clocks have shown up to an instant."""
    moment = as_datetime(ms, zone)
    stretch = repeated_time(moment) if moment.fold else None
    return _wall(stretch.end if stretch else moment, zone)


def enclosing_instants(
    lower: int | None, upper: int | None, value_type: ValueType | None, zone: tzinfo
) -> tuple[int | None, int | None]:
    """Return the instants that enclose all rows whose column value lies between two ends.

    All times are epoch milliseconds.

    Args:
        lower: start of the read, inclusive; None: none.
        upper: end of the read, exclusive; None: none.
        value_type: type of the column's values: a day starts at its midnight, a repeated hour with its
        first pass.
        zone: zone of local times and days.
    """
    if value_type not in ("local", "day"):
        return lower, upper

    def value(ms: int) -> datetime:
        return local(ms, zone) if value_type == "local" else datetime.combine(local_day(ms, zone), time.min)

    return (
        None if lower is None else milliseconds(earliest_instant(value(lower), zone)),
        None if upper is None else milliseconds(latest_instant(value(upper), zone)),
    )


def earliest_instant(wall: datetime, zone: tzinfo) -> datetime:
    """Return the first instant that a local time can mean, in UTC.

    A local time that clocks skip means the change of the clock.
    """
    first, second = _readings(wall, zone)
    if first <= second:
        return first
    before = _offset(wall.replace(tzinfo=zone), 0)
    return _first(second, first, lambda at: (at.astimezone(zone).utcoffset() or timedelta()) != before)


def latest_instant(wall: datetime, zone: tzinfo) -> datetime:
    """Return the last instant that a local time can mean, in UTC.

    A local time that clocks skip counts by the offset before the change.
    """
    return max(_readings(wall, zone))


def repeated_time(moment: datetime) -> RepeatedTime | None:
    """Return both passes of the repeated time that holds an aware moment; None if it holds none."""
    zone = moment.tzinfo
    if zone is None or isinstance(zone, timezone):
        return None
    twice = _offset(moment, 0) - _offset(moment, 1)
    if twice <= timedelta(0):
        return None
    first = moment.astimezone(UTC) - (twice if moment.fold else timedelta(0))
    change = _first(first, first + twice, lambda at: bool(at.astimezone(zone).fold))
    return RepeatedTime(change - twice, change + twice)


def repeated_times(zone: tzinfo) -> tuple[RepeatedTime, ...]:
    """Return all repeated times of a zone, from the first year to the horizon."""
    return tuple(
        RepeatedTime(change.at - (change.before - change.after), change.at + (change.before - change.after))
        for change in offset_changes(zone)
        if change.before > change.after
    )


@lru_cache(maxsize=600)
def offset_changes(zone: tzinfo) -> tuple[OffsetChange, ...]:
    """Return all clock changes of a zone, from the first year to the horizon."""
    if isinstance(zone, timezone):
        return ()
    changes: list[OffsetChange] = []
    at = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
    before = at.astimezone(zone).utcoffset() or timedelta()
    while at.year < HORIZON:
        following = at + _STEP
        after = following.astimezone(zone).utcoffset() or timedelta()
        if after != before:
            changes.append(OffsetChange(_change(zone, at, following, before), before, after))
        at, before = following, after
    return tuple(changes)


def _change(zone: tzinfo, low: datetime, high: datetime, before: timedelta) -> datetime:
    return _first(low, high, lambda at: (at.astimezone(zone).utcoffset() or timedelta()) != before)


def _first(low: datetime, high: datetime, is_after: Callable[[datetime], bool]) -> datetime:
    """Return the first whole second after the change between two instants."""
    low, high = low.replace(microsecond=0), high.replace(microsecond=0)
    while high - low > _SECOND:
        middle = low + (high - low) // 2 // _SECOND * _SECOND
        low, high = (low, middle) if is_after(middle) else (middle, high)
    return high


def _readings(wall: datetime, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the instants by the offsets before and after a clock change; equal where there is none."""
    if zone is UTC:
        return wall.replace(tzinfo=UTC), wall.replace(tzinfo=UTC)
    aware = wall.replace(tzinfo=zone)
    return aware.replace(fold=0).astimezone(UTC), aware.replace(fold=1).astimezone(UTC)


def _wall(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _offset(moment: datetime, fold: int) -> timedelta:
    return moment.replace(fold=fold).utcoffset() or timedelta(0)
