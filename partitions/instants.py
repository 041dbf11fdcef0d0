"""Parse instants as users write them, and step on a zone's calendar (docs/reference/windows.md).

Instants are epoch milliseconds below the text: a zone only matters where a text is read and where a
calendar is stepped on. A local time that does not exist counts by the offset before the change (02:30
becomes 03:30). One that exists twice means the earlier one; after a step, the one with the offset that the
step started from.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from partitions.errors import ConfigurationError

DAY = 86_400_000
HOUR = 3_600_000
MINUTE = 60_000

_OFFSET = r"Z|[+-]\d{2}:?\d{2}"
_ZONE = rf"(?P<zone>{_OFFSET}|[A-Za-z][A-Za-z0-9_+\-/]*)?"
# 24:00:00 is refused, since only some versions of Python take it for the next day.
_CONSTANT = re.compile(
    rf"(?P<date>\d{{4}}-\d{{2}}-\d{{2}})(?:[ T](?P<time>(?!24)\d{{2}}:\d{{2}}:\d{{2}})(?:\.(?P<fraction>\d{{1,6}}))?)?{_ZONE}",
    re.ASCII,
)
_BEFORE_NOW = re.compile(
    rf"P(?P<days>\d{{1,6}})D(?:T(?P<hours>\d{{1,2}})H(?:(?P<minutes>\d{{1,2}})M)?)?(?:\.{_ZONE})?",
    re.ASCII,
)
_NO_ZONE = re.compile(r"localtime$|posixrules$|right/|posix/")
_WANTED = (
    "a date such as 2020-01-31, a time such as 2020-01-31T10:00:00 (seconds are required) with or without a zone,"
    " or a duration before now such as P7D, P0DT6H or P0DT0H30M"
)

Floor = Literal["day", "hour", "minute"]


@dataclass(frozen=True)
class Instant:
    """An instant as a user wrote it: constant, or a duration before now.

    Attributes:
        text: as the user wrote it.
        floor: unit that now is floored to; None for a constant.
        at: returns epoch milliseconds for an aware now; a constant ignores it.
    """

    text: str
    floor: Floor | None
    at: Callable[[datetime | None], int]

    @classmethod
    def parse(cls, text: str, zone: tzinfo, *, now_allowed: bool = True) -> Instant:
        """Parse a text.

        Args:
            text: any form of docs/reference/windows.md.
            zone: zone of texts without one.
            now_allowed: whether ``-`` may stand for now, floored to the minute.

        Raises:
            ConfigurationError: for any other text, a date that does not exist, and an unknown zone.
        """
        if text == "-" and now_allowed:
            return cls(text, "minute", lambda now: _before(now, zone, "minute", 0, 0))
        if match := _CONSTANT.fullmatch(text):
            constant = _constant(match, zone)
            return cls(text, None, lambda now: constant)
        if match := _BEFORE_NOW.fullmatch(text):
            return cls._duration(match, zone)
        allowed = _WANTED + (", or - for now" if now_allowed else "; - (now) is allowed only in `to`")
        raise ConfigurationError(f"expected {allowed}, found {text!r}")

    @classmethod
    def _duration(cls, match: re.Match[str], zone: tzinfo) -> Instant:
        days, hours, minutes = (int(match[name] or 0) for name in ("days", "hours", "minutes"))
        if hours > 23 or minutes > 59:
            raise ConfigurationError(f"expected hours up to 23 and minutes up to 59, found {match[0]!r}")
        own = zone_of(match["zone"]) if match["zone"] else zone
        floor: Floor = "minute" if match["minutes"] else "hour" if match["hours"] else "day"
        elapsed = hours * HOUR + minutes * MINUTE

        def at(now: datetime | None) -> int:
            try:
                return _before(now, own, floor, days, elapsed)
            except OverflowError as error:
                raise ConfigurationError(
                    f"expected a duration that ends after the year 1, found {match[0]!r}"
                ) from error

        return cls(match[0], floor, at)


@lru_cache(maxsize=1000)
def zone_of(text: str) -> tzinfo:
    """Return a zone of the IANA database, ``Z``, or an offset such as +05:30 or -0800.

    Raises:
        ConfigurationError: the zone is unknown, or names a file that differs by machine (``localtime``) or
        counts leap seconds (``right/``).
    """
    if text in ("Z", "UTC"):
        return UTC
    if re.fullmatch(_OFFSET, text):
        hours, minutes = int(text[1:3]), int(text[-2:])
        if hours < 24 and minutes < 60:
            ahead = timedelta(hours=hours, minutes=minutes)
            return timezone(-ahead if text[0] == "-" else ahead)
    error: Exception | None = None
    if not _NO_ZONE.match(text):
        try:
            return ZoneInfo(text)
        except (KeyError, ValueError, OSError) as unknown:
            error = unknown
    raise ConfigurationError(
        f"expected a time zone such as UTC, Europe/Berlin or +05:30, found {text!r}"
    ) from error


def milliseconds(instant: datetime) -> int:
    """Return the epoch milliseconds of an aware datetime, rounded down."""
    elapsed = instant - _EPOCH
    return (elapsed.days * 86_400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000


def as_datetime(instant: int, zone: tzinfo = UTC) -> datetime:
    """Return an aware datetime for epoch milliseconds."""
    return (_EPOCH + timedelta(milliseconds=instant)).astimezone(zone)


def time_text(time: datetime | str) -> str:
    """Return an aware time, or its ISO text, for people: ``2026-01-28 06:00:03 UTC``."""
    aware = datetime.fromisoformat(time) if isinstance(time, str) else time
    return f"{aware.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def floor_minute(now: datetime) -> int:
    """Return the epoch milliseconds of the minute that holds an aware now."""
    return milliseconds(now) // MINUTE * MINUTE


def add_days(instant: int, days: int, zone: tzinfo, wall: datetime | None = None) -> int:
    """Return the instant some days later at the same local time.

    Args:
        instant: epoch milliseconds.
        days: may be negative.
        zone: zone of the calendar.
        wall: the local time that the instant stands for, if clocks skip it; None: the time that they show.
    """
    if zone is UTC:
        return instant + days * DAY
    local = as_datetime(instant, zone)
    start = local.replace(tzinfo=None) if wall is None else wall
    return _instant(start + timedelta(days=days), zone, local.utcoffset())


def add_months(instant: int, months: int, zone: tzinfo, wall: datetime | None = None) -> int:
    """Return the instant some months later at the same local time.

    A day that the month lacks becomes its last. Arguments as for :func:`add_days`.
    """
    local = as_datetime(instant, zone)
    start = local.replace(tzinfo=None) if wall is None else wall
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    day = min(start.day, calendar.monthrange(year, month + 1)[1])
    return _instant(start.replace(year=year, month=month + 1, day=day), zone, local.utcoffset())


def local_time_means(wall: datetime, instant: int, zone: tzinfo) -> bool:
    """Return whether a local time, even one that clocks skip, means an instant in epoch milliseconds."""
    try:
        return _instant(wall, zone, as_datetime(instant, zone).utcoffset()) == instant
    except OverflowError:
        return False


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(naive: datetime, zone: tzinfo, preferred: timedelta | None = None) -> int:
    first = naive.replace(tzinfo=zone, fold=0)
    second = first.replace(fold=1)
    twice = (first.utcoffset() or timedelta()) > (second.utcoffset() or timedelta())
    chosen = second if twice and second.utcoffset() == preferred else first
    return milliseconds(chosen.astimezone(UTC))


def _constant(match: re.Match[str], zone: tzinfo) -> int:
    fraction = (match["fraction"] or "").ljust(3, "0")[:3]
    own = zone_of(match["zone"]) if match["zone"] else zone
    try:
        naive = datetime.fromisoformat(f"{match['date']}T{match['time'] or '00:00:00'}.{fraction}")
        return _instant(naive, own)
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(
            f"expected a date and time that exist, found {match[0]!r}: {error}"
        ) from error


def _before(now: datetime | None, zone: tzinfo, floor: Floor, days: int, elapsed: int) -> int:
    """Floor now, go back days on the local calendar, then ``elapsed`` milliseconds."""
    if now is None:
        raise ConfigurationError("expected the clock of the run for an instant before now, found none")
    local = now.astimezone(zone).replace(second=0, microsecond=0)
    if floor != "minute":
        local = local.replace(minute=0)
    if floor == "day":
        return _instant(local.replace(tzinfo=None, hour=0) - timedelta(days=days), zone) - elapsed
    floored = milliseconds(local.astimezone(UTC))
    return (add_days(floored, -days, zone) if days else floored) - elapsed
