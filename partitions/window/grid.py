"""Windows: half-open, cut from ``from`` and ``to`` only, so that every run cuts the same (docs/guide-windows.md)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timezone, tzinfo
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, get_args

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
    """The windows of a grid from one start on: as many as anybody has asked for, since all units share them."""

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


class Window(NamedTuple):
    """``[start, end)`` in epoch milliseconds."""

    start: int
    end: int


@dataclass(frozen=True)
class Stretch:
    """A range that is cut by one grid.

    Attributes:
        fixed_end: whether the end never moves; a window that any other end cuts short is *open*: it grows.
    """

    grid: Grid
    start: int
    end: int
    fixed_end: bool = False


@dataclass(frozen=True)
class Windows:
    """All windows of a definition at one instant, ascending.

    Attributes:
        stretches: apart from each other, ascending; the first and the last window of each are ``bounds``.
        starts: of all windows.
        ends: of all windows, as they are planned.
        bounds: of each stretch: the index of its first window, and that after its last.
        cut: the indexes of windows that are shorter than their grid's, with the end that the grid gives them.
        open: those of them that grow.
    """

    stretches: tuple[Stretch, ...]
    starts: Sequence[int]
    ends: Sequence[int]
    bounds: tuple[tuple[int, int], ...]
    cut: dict[int, int] = field(default_factory=dict)
    open: frozenset[int] = frozenset()

    @classmethod
    def of(cls, stretches: Iterable[Stretch], *, partial: bool = True) -> Windows:
        """Cut stretches.

        Args:
            stretches: apart from each other, ascending; an empty or inverted one has no window.
            partial: whether the short last window of a stretch stays.
        """
        kept = tuple(stretch for stretch in stretches if stretch.start < stretch.end)
        starts: list[int] = []
        ends: list[int] = []
        bounds: list[tuple[int, int]] = []
        cut: dict[int, int] = {}
        growing: list[int] = []
        for stretch in kept:
            first = len(starts)
            for start, end in _cut(stretch):
                if end > stretch.end:
                    if not partial and stretch.grid.grain != "none":
                        break
                    cut[len(starts)] = end
                    if not stretch.fixed_end:
                        growing.append(len(starts))
                starts.append(start)
                ends.append(min(end, stretch.end))
            bounds.append((first, len(starts)))
        return cls(kept, starts, ends, tuple(bounds), cut, frozenset(growing))

    def __len__(self) -> int:
        """How many."""
        return len(self.starts)

    def __iter__(self) -> Iterator[Window]:
        """Each."""
        return map(Window, self.starts, self.ends)

    def __getitem__(self, index: int) -> Window:
        """One."""
        return Window(self.starts[index], self.ends[index])

    @cached_property
    def index(self) -> dict[int, int]:
        """The index of a window by its start."""
        return {start: index for index, start in enumerate(self.starts)}

    def stretch(self, index: int) -> int:
        """The index of the stretch that holds a window."""
        return next(number for number, (_, after) in enumerate(self.bounds) if index < after)

    def touching(self, start: int, end: int) -> range:
        """The indexes of the windows that intersect ``[start, end)``."""
        if start >= end or not self.starts:
            return range(0)
        first = bisect_left(self.starts, start + 1) - 1
        if first < 0 or self.ends[first] <= start:
            first += 1
        return range(first, max(first, bisect_left(self.starts, end)))


def _cut(stretch: Stretch) -> Iterator[tuple[int, int]]:
    start, size = stretch.start, stretch.grid.size
    if size:
        starts = range(start, stretch.end, size)
        yield from zip(starts, (at + size for at in starts), strict=True)
        return
    while start < stretch.end:
        end = stretch.grid.end(start)
        yield start, end
        start = end
