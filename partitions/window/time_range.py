"""The range of the time dimension and its windows at an instant (docs/reference/windows.md).

The windows have one grain, or several over sub-ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from partitions.errors import ConfigurationError
from partitions.instants import DAY, Floor, Instant, floor_minute, zone_of
from partitions.local_time import offset_changes
from partitions.window.calendar_grid import Grain, Grid
from partitions.window.windows import Stretch, Windows

Composite = dict[Grain, tuple[str, str]]
"""Grains and their sub-ranges, from and to."""

MAX_WINDOWS = 1_000_000
"""More windows than any dataflow needs; a definition with more is a mistake, such as hours since the year 1."""

_RECENT = 2020
"""Bounds that count from now lie after this year."""

_SHORTEST = {"hourly": DAY / 24, "daily": DAY * 0.9}


@dataclass(frozen=True)
class TimeRange:
    """The start and end of the time dimension, and how it is cut.

    Attributes:
        from_: the text of an instant.
        to: the text of an instant; it may be ``-``.
        window: the grain, or several over sub-ranges.
        timezone: the zone of texts without one, of day floors and of calendar steps.
        partial: whether the short last window is kept.
    """

    from_: str
    to: str
    window: Grain | Composite
    timezone: str
    partial: bool

    @property
    def zone(self) -> tzinfo:
        """Return the zone."""
        return zone_of(self.timezone)

    @property
    def _composite(self) -> Composite:
        return self.window if isinstance(self.window, dict) else {}

    def start(self, now: datetime | None) -> int:
        """Return the start of the first window, epoch milliseconds."""
        return self._at(self.from_, now)

    def end(self, now: datetime | None) -> int:
        """Return the end of the last window, epoch milliseconds; it may lie in the future."""
        return self._at(self.to, now)

    @property
    def to_floor(self) -> Floor | None:
        """Return the unit that ``to`` is floored to; None if it is constant."""
        return Instant.parse(self.to, self.zone).floor

    def grid(self, grain: Grain) -> Grid:
        """Return the grid of a grain: it follows the local time of the first start, if that is constant."""
        texts = [self.from_, *(self._composite[grain][:1] if grain in self._composite else ())]
        if any(map(self._counts_from_now, texts)):
            return Grid(grain, self.timezone)
        return Grid.starting_at(grain, self.timezone, max(self._at(text, None) for text in texts))

    @property
    def start_counts_from_now(self) -> bool:
        """Return whether ``from`` counts from now."""
        return self._counts_from_now(self.from_)

    def windows(self, now: datetime | None, *, clipped: bool = True) -> Windows:
        """Return all windows at an instant.

        Args:
            now: the clock, aware; None if no text needs it.
            clipped: whether windows end at now, floored to the minute.
        """
        start, end = self.start(now), self.end(now)
        limit = floor_minute(now) if clipped and now is not None else None
        end = end if limit is None else min(end, limit)
        stretches = self._stretches(start, end, now)
        if sum(map(_count, stretches)) > MAX_WINDOWS:
            raise ConfigurationError(
                f"definition.range: expected at most {MAX_WINDOWS:,} windows, found more from {self.from_!r} on"
            )
        return Windows.of(stretches, partial=self.partial)

    def stretches(self, now: datetime | None) -> list[Stretch]:
        """Return the stretches of all grains at an instant, including those in the future."""
        return self._stretches(self.start(now), self.end(now), now)

    def moving_bounds(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the key and text of each bound that counts from now and cuts other windows every day."""
        first_bound = self.from_
        if not all(self._is_stable(first_bound, grain) for grain in self._composite or (self.window,)):
            yield ("definition",), first_bound
        for grain, (lower, upper) in self._composite.items():
            if not self._is_stable(lower, grain):
                yield ("window", grain), lower
            other_starts = [begin for name, (begin, _) in self._composite.items() if name != grain]
            if self._counts_from_now(upper) and not all(
                self._begins_before(begin, lower) for begin in other_starts
            ):
                yield ("window", grain), upper

    def _counts_from_now(self, text: str) -> bool:
        return Instant.parse(text, self.zone).floor is not None

    def _begins_before(self, begin: str, another: str) -> bool:
        """Return whether a range begins before another at any time."""
        fixed = not self._counts_from_now(begin) and not self._counts_from_now(another)
        return fixed and self._at(begin, None) < self._at(another, None)

    def _is_stable(self, text: str, grain: object) -> bool:
        """Return whether windows that are cut from this bound start at the same instants a day later."""
        floor, zone = Instant.parse(text, self.zone).floor, text.partition(".")[2]
        if floor is None:
            return True
        if grain == "hourly":
            return floor != "minute" and not _shifts_hours(zone_of(zone) if zone else self.zone)
        return grain == "daily" and floor == "day" and zone in ("", self.timezone)

    def _stretches(self, start: int, end: int, now: datetime | None) -> list[Stretch]:
        if isinstance(self.window, str):
            return [Stretch(self.grid(self.window), start, end)]
        stretches: list[Stretch] = []
        reached = start
        ranges = [
            (self._at(lower, now), self._at(upper, now), Instant.parse(upper, self.zone).floor is None, grain)
            for grain, (lower, upper) in self.window.items()
        ]
        for lower, upper, fixed, grain in sorted(ranges):
            first, reached = max(lower, reached), max(reached, upper)
            stretches.append(Stretch(self.grid(grain), first, min(upper, end), fixed and upper < end))
        return [stretch for stretch in stretches if stretch.start < stretch.end]

    def gaps_and_overlaps(self, now: datetime | None) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the gaps and the overlaps between the sub-ranges of a composite, inside its range."""
        start, end = self.start(now), self.end(now)
        ranges = sorted((self._at(a, now), self._at(b, now)) for a, b in self._composite.values())
        gaps, overlaps, reached = [], [], start
        for lower, upper in ranges:
            if lower > reached:
                gaps.append((reached, min(lower, end)))
            elif lower < min(reached, upper) and reached > start:
                overlaps.append((max(lower, start), min(reached, upper)))
            reached = max(reached, upper)
        if ranges and reached < end:
            gaps.append((reached, end))
        return [gap for gap in gaps if gap[0] < gap[1]], [lap for lap in overlaps if lap[0] < lap[1]]

    def _at(self, text: str, now: datetime | None) -> int:
        return Instant.parse(text, self.zone).at(now)


def _shifts_hours(zone: tzinfo) -> bool:
    """Return whether a zone's clocks still change by a part of an hour, which moves its full hours."""
    return any(
        (change.after - change.before) % timedelta(hours=1) and change.at.year > _RECENT
        for change in offset_changes(zone)
    )


def _count(stretch: Stretch) -> float:
    """Return an upper estimate of the number of windows in a stretch."""
    return (stretch.end - stretch.start) / _SHORTEST.get(stretch.grid.grain, DAY * 7)
