"""Grids: how windows follow each other, on the calendar of a zone (docs/reference/windows.md).

Each window starts at the local time at which the first one does. Where clocks skip that time, such as midnight, the window starts at the change,
and those after it at that time again.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone, tzinfo
from functools import cached_property, lru_cache
from typing import Literal, get_args

from partitions.instants import DAY, HOUR, add_days, add_months, as_datetime, is_reading, zone_of
from partitions.local_time import offset_changes

Grain = Literal["none", "hourly", "daily", "weekly", "monthly", "yearly"]
GRAINS: tuple[Grain, ...] = get_args(Grain)

_NEVER = 1 << 62


@dataclass(frozen=True)
class Grid:
    """How windows follow each other: a grain, on the calendar of a zone.

    Attributes:
        zone: an IANA name or an offset; hours and ``none`` are the same in all zones.
        at: the local time of starts, if clocks of the zone may skip it and it is not midnight; None: that of any start, and midnight where clocks
            skip midnight.
    """

    grain: Grain
    zone: str = "UTC"
    at: time | None = None

    @classmethod
    def beginning(cls, grain: Grain, zone: str, start: int) -> Grid:
        """Return the grid of windows the first of which starts at an instant, epoch milliseconds. A day without midnight begins at its first moment."""
        if grain in ("none", "hourly"):
            return cls(grain, zone)
        calendar, wall = zone_of(zone), as_datetime(start, zone_of(zone)).replace(tzinfo=None)
        is_midnight = is_reading(datetime.combine(wall, time.min), start, calendar)
        return cls(grain, zone, None if is_midnight or not _may_skip(calendar, wall.time()) else wall.time())

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Read :attr:`text` back.

        Raises:
            ValueError: for another text, and for an unknown zone.
        """
        return _parsed(text)

    @cached_property
    def text(self) -> str:
        """``daily Europe/Berlin``, ``daily America/New_York 02:30:00``, ``hourly``."""
        if self.grain in ("none", "hourly"):
            return self.grain
        return f"{self.grain} {self.zone}" + (f" {self.at.isoformat()}" if self.at else "")

    @cached_property
    def size(self) -> int | None:
        """The length of all windows; None if they differ."""
        if self.grain == "hourly":
            return HOUR
        fixed = isinstance(zone_of(self.zone), timezone)
        return {"daily": DAY, "weekly": 7 * DAY}.get(self.grain) if fixed else None

    def end(self, start: int) -> int:
        """The end of the window that starts at an instant: each step starts from the previous end.

        Of ``none`` it never comes, nor if it lies beyond the year 9999.
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
        """The local time that a start stands for, which clocks may skip: the change of a clock is both 00:00, which it skips, and 01:00."""
        wall = as_datetime(start, zone).replace(tzinfo=None)
        own = datetime.combine(wall, self.at or time.min)
        if wall == own or is_reading(own, start, zone):
            return own
        if self.at and is_reading(own - timedelta(days=1), start, zone):
            return own - timedelta(days=1)
        return wall


def _may_skip(zone: tzinfo, at: time) -> bool:
    """Whether the clocks of a zone skip a local time of some day, or show it first after a change."""
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
    """The windows of a grid from one start on: as many as were asked for, since all units share them."""

    def __init__(self, grid: Grid, start: int) -> None:
        """Begin with the first."""
        self._grid = grid
        self._size = grid.size
        self._starts = [start]

    def next(self, at: int) -> int:
        """The end of the window that holds an instant, which is not before the first start."""
        if self._size:
            return at + self._size - (at - self._starts[0]) % self._size
        while self._starts[-1] <= at:
            self._starts.append(self._grid.end(self._starts[-1]))
        return self._starts[bisect_right(self._starts, at)]

    def start(self, at: int) -> int:
        """The start of the window that holds an instant, which is not before the first start."""
        if self._size:
            return at - (at - self._starts[0]) % self._size
        self.next(at)
        return self._starts[bisect_right(self._starts, at) - 1]

    def on(self, at: int) -> bool:
        """Whether a window starts there."""
        return self.start(at) == at


@lru_cache(maxsize=1024)
def steps(grid: Grid, start: int) -> Steps:
    """The windows of a grid from a start on."""
    return Steps(grid, start)
