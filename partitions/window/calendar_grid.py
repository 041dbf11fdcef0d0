"""Grids: how windows follow each other on the calendar of a zone (docs/reference/windows.md).

All windows start at the local time of the first one. If clocks skip that time, such as midnight, the
window starts at the change; later windows start at the usual time again.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone, tzinfo
from functools import cached_property, lru_cache
from typing import Literal, get_args

from partitions.instants import DAY, HOUR, add_days, add_months, as_datetime, local_time_means, zone_of
from partitions.local_time import offset_changes

Grain = Literal["none", "hourly", "daily", "weekly", "monthly", "yearly"]
GRAINS: tuple[Grain, ...] = get_args(Grain)

_NEVER = 1 << 62


@dataclass(frozen=True)
class Grid:
    """A grain on the calendar of a zone.

    Attributes:
        zone: an IANA name or an offset; hours and ``none`` are the same in all zones.
        at: the local time of starts, if it is not midnight and clocks of the zone may skip it. None:
        starts keep their local time, and midnight where clocks skip midnight.
    """

    grain: Grain
    zone: str = "UTC"
    at: time | None = None

    @classmethod
    def starting_at(cls, grain: Grain, zone: str, start: int) -> Grid:
        """Return the grid whose first window starts at an instant, epoch milliseconds.

        A day without midnight begins at its first moment.
        """
        if grain in ("none", "hourly"):
            return cls(grain, zone)
        calendar, wall = zone_of(zone), as_datetime(start, zone_of(zone)).replace(tzinfo=None)
        is_midnight = local_time_means(datetime.combine(wall, time.min), start, calendar)
        return cls(grain, zone, None if is_midnight or not _may_skip(calendar, wall.time()) else wall.time())

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Parse :attr:`text`.

        Raises:
            ValueError: for another text, and for an unknown zone.
        """
        return _parsed(text)

    @cached_property
    def text(self) -> str:
        """Return the stored text: ``daily Europe/Berlin``, ``daily America/New_York 02:30:00``, ``hourly``."""
        if self.grain in ("none", "hourly"):
            return self.grain
        return f"{self.grain} {self.zone}" + (f" {self.at.isoformat()}" if self.at else "")

    @cached_property
    def size(self) -> int | None:
        """Return the length of all windows in milliseconds; None if their lengths differ."""
        if self.grain == "hourly":
            return HOUR
        fixed = isinstance(zone_of(self.zone), timezone)
        return {"daily": DAY, "weekly": 7 * DAY}.get(self.grain) if fixed else None

    def end(self, start: int) -> int:
        """Return the end of the window with this start; each step starts from the previous end.

        A window of ``none``, or one that ends beyond the year 9999, never ends.
        """
        try:
            return self._step(start, zone_of(self.zone))
        except (OverflowError, ValueError):
            return _NEVER

    def _step(self, start: int, zone: tzinfo) -> int:
        match self.grain:
            case "none":
                return _NEVER
            case "hourly":
                return start + HOUR
            case "daily" | "weekly":
                days = 1 if self.grain == "daily" else 7
                return (
                    start + days * DAY if self.size else add_days(start, days, zone, self._wall(start, zone))
                )
            case "monthly" | "yearly":
                months = 1 if self.grain == "monthly" else 12
                return add_months(start, months, zone, self._wall(start, zone))

    def _wall(self, start: int, zone: tzinfo) -> datetime:
        """Return the local time that a start stands for, even if clocks skip it.

        Where clocks go from 00:00 to 01:00, the same instant is both.
        """
        wall = as_datetime(start, zone).replace(tzinfo=None)
        own = datetime.combine(wall, self.at or time.min)
        if wall == own or local_time_means(own, start, zone):
            return own
        if self.at and local_time_means(own - timedelta(days=1), start, zone):
            return own - timedelta(days=1)
        return wall


def _may_skip(zone: tzinfo, at: time) -> bool:
    """Return whether a zone's clocks ever skip a local time, or show it first after a change."""
    for change in offset_changes(zone):
        first, last = (change.at.replace(tzinfo=None) + offset for offset in (change.before, change.after))
        if any(first <= datetime.combine(day, at) <= last for day in (first, last)):
            return True
    return False


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Grid:
    grain, _, rest = text.partition(" ")
    zone, _, at = rest.partition(" ")
    if grain not in GRAINS:
        raise ValueError(f"expected one of {', '.join(GRAINS)}, found {grain!r}")
    zone_of(zone or "UTC")
    return Grid(grain, zone or "UTC", time.fromisoformat(at) if at else None)


class Steps:
    """The windows of a grid from one start on, computed as far as needed and shared by all units."""

    def __init__(self, grid: Grid, start: int) -> None:
        """Start with the first window."""
        self._grid = grid
        self._size = grid.size
        self._starts = [start]

    def next(self, at: int) -> int:
        """Return the end of the window that holds an instant, which must not lie before the first start."""
        if self._size:
            return at + self._size - (at - self._starts[0]) % self._size
        while self._starts[-1] <= at:
            self._starts.append(self._grid.end(self._starts[-1]))
        return self._starts[bisect_right(self._starts, at)]

    def start(self, at: int) -> int:
        """Return the start of the window that holds an instant, which must not lie before the first start."""
        if self._size:
            return at - (at - self._starts[0]) % self._size
        self.next(at)
        return self._starts[bisect_right(self._starts, at) - 1]

    def is_start(self, at: int) -> bool:
        """Return whether a window starts at an instant."""
        return self.start(at) == at


@lru_cache(maxsize=1024)
def steps(grid: Grid, start: int) -> Steps:
    """Return the windows of a grid from a start on."""
    return Steps(grid, start)
