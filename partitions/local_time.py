"""Instants as the local time of a zone, in an order that never turns back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo

from partitions.instants import as_datetime

_MILLISECOND = timedelta(milliseconds=1)


def local(ms: int, zone: tzinfo) -> datetime:
    """The local time at an instant, without its zone.

    When clocks are put back, an hour has two passes, and a row that says only the local time may be of either. Throughout
    the first pass this is the hour's start, so the hour belongs to the window that holds the second pass: it is read when both
    are over, and ranges that touch as instants touch as local times.

    Args:
        ms: epoch milliseconds.
        zone: of the local time.
    """
    moment = as_datetime(ms, zone)
    repeated = _offset(moment, 0) - _offset(moment, 1)
    if moment.fold or repeated <= timedelta(0):
        return moment.replace(tzinfo=None)
    first, last = moment.astimezone(UTC), moment.astimezone(UTC) + repeated
    while last - first > _MILLISECOND:  # where the clock is put back lies between them
        middle = first + (last - first) / 2
        first, last = (first, middle) if middle.astimezone(zone).fold else (middle, last)
    start = last.astimezone(zone).replace(tzinfo=None)
    return start.replace(microsecond=start.microsecond // 1000 * 1000)


def local_day(ms: int, zone: tzinfo) -> date:
    """The local day that holds an instant."""
    return local(ms, zone).date()


def _offset(moment: datetime, fold: int) -> timedelta:
    return moment.replace(fold=fold).utcoffset() or timedelta(0)
