"""Grids: how windows follow each other, on the calendar of a zone (docs/guide-windows.md)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import timezone, tzinfo
from functools import cached_property, lru_cache
from typing import Literal, get_args

from partitions.instants import DAY, HOUR, add_days, add_months, zone_of

Grain = Literal["none", "hourly", "daily", "weekly", "monthly", "yearly"]
GRAINS: tuple[Grain, ...] = get_args(Grain)

_NEVER = 1 << 62


@dataclass(frozen=True)
class Grid:
    """How windows follow each other: a grain, on the calendar of a zone.

    Attributes:
        zone: an IANA name or an offset; hours and ``none`` are the same in all zones.
    """

    grain: Grain
    zone: str = "UTC"

    @classmethod
    def parse(cls, text: str) -> Grid:
        """Read :attr:`text` back.

        Raises:
            ValueError: for another text, and for an unknown zone.
        """
        return _parsed(text)

    @cached_property
    def text(self) -> str:
        """``daily Europe/Berlin``, ``hourly``."""
        return self.grain if self.grain in ("none", "hourly") else f"{self.grain} {self.zone}"

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
            return _step(self.grain, start, zone_of(self.zone))
        except (OverflowError, ValueError):
            return _NEVER


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Grid:
    grain, _, zone = text.partition(" ")
    if grain not in GRAINS:
        raise ValueError(f"expected one of {', '.join(GRAINS)}, found {grain!r}")
    zone_of(zone or "UTC")
    return Grid(grain, zone or "UTC")


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


def _step(grain: Grain, start: int, zone: tzinfo) -> int:
    match grain:
        case "none":
            return _NEVER
        case "hourly":
            return start + HOUR
        case "daily":
            return add_days(start, 1, zone)
        case "weekly":
            return add_days(start, 7, zone)
        case "monthly":
            return add_months(start, 1, zone)
        case "yearly":
            return add_months(start, 12, zone)
