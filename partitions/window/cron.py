"""Windows as a cron expression, if one gives exactly the same windows.

Cron ticks at wall times. It gives the same windows if all start at the same wall time (hourly windows: at
the same minute), on a day that every month has, and if no change of the zone's offset skips or repeats that
wall time. Windows that cron cannot express exactly get no expression (docs/explanation/adr/0009-cron-only-where-it-is-exact.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone
from functools import lru_cache
from typing import Literal

from partitions.errors import ConfigurationError
from partitions.instants import Instant, as_datetime, milliseconds, zone_of
from partitions.local_time import offset_changes
from partitions.window.calendar_grid import Grain
from partitions.window.definition import NOW, WindowWatermark

_FIRST_YEAR = 1970
"""Dagster counts ticks from the Unix epoch."""

_PROBE = datetime(2026, 1, 15, 12, tzinfo=UTC)
"""Any noon will do: the distance of a relative ``to`` from now is the same at each."""

_STEPS = {"hourly": timedelta(hours=1), "daily": timedelta(days=1), "weekly": timedelta(days=7)}


@dataclass(frozen=True)
class CronWindows:
    """Windows in the form of Dagster's ``TimeWindowPartitionsDefinition``.

    Attributes:
        schedule: five fields; each tick starts a window.
        zone: the zone of the fields' wall times.
        start: the first window's start, wall time.
        end: the last window's end, wall time, rounded up to a whole window; None if there is no last one.
        end_offset: the number of windows after the last one that has ended: 1 for the current window,
        negative if ``to`` lies before now.
        key_format: the format of a window's start in its key.
    """

    schedule: str
    zone: str
    start: datetime
    end: datetime | None
    end_offset: int
    key_format: str

    @classmethod
    def of(cls, watermark: WindowWatermark) -> CronWindows | None:
        """Return the exact expression of a definition's windows; None if there is none."""
        grain, zone = watermark.window, _zone(watermark)
        if not isinstance(grain, str) or grain == "none" or watermark.time_entry is None or zone is None:
            return None
        first_instant = Instant.parse(watermark.time_entry.range.from_, watermark.zone, now_allowed=False)
        if first_instant.floor is not None:
            return None
        start = _wall(first_instant.at(None), zone)
        end_offset = _end_offset(watermark, grain, start)
        if end_offset is None or not _has_cron_ticks(grain, start, zone):
            return None
        return cls(
            _schedule(grain, start),
            zone,
            start,
            _end(watermark, grain, zone, start),
            end_offset,
            _key_format(grain, start),
        )

    def key(self, start: int) -> str:
        """Return the key of the window with this start, epoch milliseconds."""
        return as_datetime(start, zone_of(self.zone)).strftime(self.key_format)

    def start_of(self, key: str) -> int:
        """Return the start of the window with a key, epoch milliseconds.

        Raises:
            ConfigurationError: if the key is no time in this format, or clocks skip that time. A time
            between two ticks passes, such as any day if windows are weekly.
        """
        try:
            wall = datetime.strptime(key, self.key_format)  # noqa: DTZ007 - the zone is added below
        except ValueError:
            wall = None
        instant = None if wall is None else milliseconds(wall.replace(tzinfo=zone_of(self.zone)))
        if instant is None or self.key(instant) != key:
            example = self.start.strftime(self.key_format)
            raise ConfigurationError(
                f"expected the start of a window, such as {example}, found the key {key!r}"
            )
        return instant


def _zone(watermark: WindowWatermark) -> str | None:
    """Return the zone of the ticks; None if it has no name, since Dagster knows zones by name only.

    Hourly windows are counted in UTC whatever the zone.
    """
    if watermark.window == "hourly" or watermark.zone == UTC:
        return "UTC"
    return None if isinstance(watermark.zone, timezone) else watermark.timezone


@lru_cache(maxsize=600)
def _has_cron_ticks(grain: Grain, start: datetime, zone: str) -> bool:
    """Return whether all windows start at one wall time that cron can express."""
    if start.second or start.microsecond or start.year < _FIRST_YEAR:
        return False
    if grain in ("monthly", "yearly") and start.day > 28:
        return False
    return not any(_lies_within(start, *gap) for gap in _utc_offset_gaps(zone))


def _lies_within(start: datetime, first: datetime, after: datetime) -> bool:
    """Return whether the start's time of day ever falls into [first, after), at or after the start.

    The start and the range are wall times.
    """
    reached = datetime.combine(first, start.time())
    return start < after and (first <= reached < after or reached + timedelta(days=1) < after)


@lru_cache(maxsize=600)
def _utc_offset_gaps(zone: str) -> tuple[tuple[datetime, datetime], ...]:
    """Return the stretches of wall time that offset changes skip or repeat; the end is exclusive."""
    shifts = []
    for change in offset_changes(zone_of(zone)):
        at, offsets = change.at.replace(tzinfo=None), (change.before, change.after)
        shifts.append((at + min(offsets), at + max(offsets)))
    return tuple(shifts)


def _end_offset(watermark: WindowWatermark, grain: Grain, start: datetime) -> int | None:
    """Return the number of windows after the last that has ended; None if it depends on the time of day."""
    text = watermark.time_range.to if watermark.time_entry else NOW
    to = Instant.parse(text, watermark.zone)
    if text == NOW or to.floor is None:
        return int(watermark.partial)
    floor: Literal["day", "hour"] = "hour" if grain == "hourly" else "day"
    # Only a `to` that is floored to the same unit and in the same zone as the windows lies a fixed number of them before now, all day.
    is_plain_floor = "." not in text and to.floor == floor and (floor == "day" or watermark.zone == UTC)
    if not is_plain_floor or grain not in ("hourly", "daily") or start.time().replace(hour=0) != time():
        return None
    if floor == "day" and start.hour:
        return None
    local_probe = _PROBE.astimezone(watermark.zone).replace(tzinfo=None)
    floored = local_probe.replace(minute=0, hour=local_probe.hour if floor == "hour" else 0)
    return -((floored - _wall(to.at(_PROBE), watermark.timezone)) // _STEPS[grain])


def _end(watermark: WindowWatermark, grain: Grain, zone: str, start: datetime) -> datetime | None:
    """Return the end of the last window up to a constant ``to``; None if ``to`` moves.

    With ``partial``, a last window that ``to`` cuts short counts as whole.
    """
    to = Instant.parse(watermark.time_range.to if watermark.time_entry else NOW, watermark.zone)
    if to.floor is not None:
        return None
    wall = _wall(to.at(None), zone)
    whole = _count_whole_windows(grain, start, wall)
    end = _add_windows(grain, start, whole)
    return _add_windows(grain, start, whole + 1) if watermark.partial and end < wall else end


def _count_whole_windows(grain: Grain, start: datetime, to: datetime) -> int:
    """Return the number of whole windows up to a wall time."""
    if grain in _STEPS:
        return (to - start) // _STEPS[grain]
    months = (to.year - start.year) * 12 + to.month - start.month
    months -= _add_windows("monthly", start, months) > to
    return months // (12 if grain == "yearly" else 1)


def _add_windows(grain: Grain, start: datetime, count: int) -> datetime:
    if grain in _STEPS:
        return start + count * _STEPS[grain]
    year, month = divmod(start.year * 12 + start.month - 1 + count * (12 if grain == "yearly" else 1), 12)
    return start.replace(year=year, month=month + 1)


def _schedule(grain: Grain, start: datetime) -> str:
    at = f"{start.minute} {start.hour}"
    match grain:
        case "hourly":
            return f"{start.minute} * * * *"
        case "weekly":
            return f"{at} * * {start.isoweekday() % 7}"
        case "monthly":
            return f"{at} {start.day} * *"
        case "yearly":
            return f"{at} {start.day} {start.month} *"
        case _:
            return f"{at} * * *"


def _key_format(grain: Grain, start: datetime) -> str:
    if grain == "hourly":
        return "%Y-%m-%dT%H:%MZ"
    return "%Y-%m-%d" if start.time() == time() else "%Y-%m-%dT%H:%M"


def _wall(instant: int, zone: str) -> datetime:
    return as_datetime(instant, zone_of(zone)).replace(tzinfo=None)
