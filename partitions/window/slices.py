"""Slices of the window kind: some work units, one read, one commit (docs/guide-windows.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import accumulate, groupby
from typing import Any, Literal, NamedTuple

from partitions.instants import as_datetime
from partitions.sentinels import Watermark
from partitions.window.due import Reason
from partitions.window.extent import Extent
from partitions.window.grid import Grid
from partitions.window.state import DeferredUnits, LoadedUnit, TimeBound, WindowState
from partitions.window.units import unit_of


class WorkUnit(NamedTuple):
    """One window of one unit.

    Attributes:
        start: of the window, epoch milliseconds; None without a time dimension.
        end: of the window, exclusive.
        unit: its identity.
        lower: what is read starts here; it ends with the window.
        reason: why it runs.
        open: whether now has cut the window short.
        grid: text of how the window was cut.
        bound: tells the work units of a unit that must be read in one commit, since they share old windows; None for all others.
    """

    start: TimeBound
    end: TimeBound
    unit: str
    lower: TimeBound
    reason: Reason
    open: bool = False
    grid: str = "none"
    bound: TimeBound = None

    @property
    def key(self) -> tuple[TimeBound, str]:
        """What its state is kept by: the window's start and the unit."""
        return self.start, self.unit

    def describe(self, zone: tzinfo) -> dict[str, Any]:
        """The public JSON form (docs/cli.md)."""
        return {
            "window": _range(self.start, self.end, zone),
            "unit": unit_of(self.unit),
            "read": _range(self.lower, self.end, zone),
            "reason": self.reason,
        }

    def label(self, zone: tzinfo) -> str:
        """The work unit in a line, for people."""
        return told((self,), zone)


def told(works: Collection[WorkUnit], zone: tzinfo) -> str:
    """Work units for people: windows of one unit that follow each other are one range."""
    by_unit: dict[str, list[list[TimeBound]]] = {}
    for one in sorted(works, key=lambda one: one.start or 0):
        ranges = by_unit.setdefault(one.unit, [])
        if ranges and one.start is not None and ranges[-1][1] == one.start:
            ranges[-1][1] = one.end
        else:
            ranges.append([one.start, one.end])
    shown = [
        " ".join(filter(None, (_span(start, end, zone), words(unit)))) or "everything"
        for unit, ranges in by_unit.items()
        for start, end in ranges
    ]
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return ", ".join(shown[:5]) + more or "nothing"


def words(unit: str) -> str:
    """A unit for people: ``airport LGA``; nothing for the one unit of a definition without units."""
    return ", ".join(f"{name} {value}" for name, value in unit_of(unit).items())


class Old(NamedTuple):
    """A window as it was cut before, whose rows make room.

    Attributes:
        unit: its identity.
        start: of the window, epoch milliseconds.
        bound: of the work units that read again what it held.
    """

    unit: str
    start: int
    bound: TimeBound


class FailedUnit(NamedTuple):
    """A work unit that could not be read, and why."""

    work: WorkUnit
    error: str


@dataclass(frozen=True)
class WindowSlice:
    """Work units that share one read, one delete and one commit.

    Attributes:
        works: in planning order: windows ascending, units as given.
        zone: of texts for people.
        grid: text of how most windows of the definition are cut.
        name: of the time dimension.
        at: the clock of the plan, epoch milliseconds.
        failed: what was found unreadable; the entry says so, and asks for it again.
        deferred: what was due and is not in the plan, since it holds no more.
        early: what is known now to have been loaded before its time.
        old: windows as they were cut before, whose rows are deleted in the same commit.
        makes_room: whether rows that are in the table already are deleted, whatever the target's load says.
        why: what brought it here.
    """

    works: tuple[WorkUnit, ...]
    zone: tzinfo
    grid: str = "none"
    name: str = "window"
    at: int | None = None
    failed: tuple[FailedUnit, ...] = ()
    deferred: tuple[DeferredUnits, ...] = ()
    early: tuple[DeferredUnits, ...] = ()
    old: tuple[Old, ...] = ()
    makes_room: bool = False
    why: Literal["run"] = "run"

    @property
    def lower(self) -> Watermark | None:
        """The earliest instant that is read."""
        return self._bound(min((one.lower for one in self._all if one.lower is not None), default=None))

    @property
    def upper(self) -> Watermark:
        """The latest, exclusive."""
        return self._bound(max((one.end for one in self._all if one.end is not None), default=None)) or {}

    @property
    def since(self) -> None:
        """No window is below a cold start."""
        return

    @property
    def replaces(self) -> bool:
        """Whether rows make room: somebody asked to write windows anew that are loaded, or they are cut otherwise now."""
        return self.makes_room or bool(self.old) or any(one.reason == "forced" for one in self.works)

    def advance(self, before: Watermark) -> Watermark:
        """The state after it."""
        done = [
            LoadedUnit(one.start, one.end, one.lower, one.unit, one.open, Grid.parse(one.grid))
            for one in self.works
            if one.reason != "rest"
        ]
        failed = [
            (one.work.unit, one.work.start, one.error) for one in self.failed if one.work.reason != "rest"
        ]
        rest = [(one.unit, one.start or 0, one.end or 0) for one in self.works if one.reason == "rest"]
        return (
            WindowState.of(before)
            .rebased(Grid.parse(self.grid))
            .after(
                done,
                failed,
                [*self.deferred, *self._asked()],
                at=self.at,
                early=self.early,
                replaced=[one[:2] for one in self.old],
                rest=rest,
            )
            .watermark()
        )

    def _asked(self) -> Iterator[DeferredUnits]:
        """What somebody has asked to read anew and could not be: the next try is to read it from its start on, too."""
        for one, _ in self.failed:
            if one.reason == "forced":
                yield DeferredUnits(one.unit, one.start, one.end, one.grid, whole=True)

    def describe(self) -> list[dict[str, Any]]:
        """Each work unit in the plan's JSON form."""
        return [one.describe(self.zone) for one in self.works]

    def halve(self) -> tuple[WindowSlice, ...]:
        """Two slices of half the work units each, or only itself."""
        sizes = list(accumulate(len(list(same)) for _, same in groupby(self.works, together)))
        half = [size for size in sizes if 0 < size < len(self.works)]
        if not half:
            return (self,)
        cut = min(half, key=lambda size: abs(size - len(self.works) // 2))
        first = replace(self, works=self.works[:cut])
        second = replace(self, works=self.works[cut:], failed=(), deferred=(), early=())
        return first._with_its_old(), second._with_its_old()

    def without(self, failed: Sequence[FailedUnit]) -> WindowSlice:
        """The slice that passes over work units, and says why; what must be read with one of them is passed over, too."""
        gone = {one.work.key for one in failed}
        bound = {together(one.work): one for one in failed if one.work.bound is not None}
        more = [
            FailedUnit(one, f"is read in one commit with {first.work.label(self.zone)}: {first.error}")
            for one in self.works
            if one.key not in gone and (first := bound.get(together(one)))
        ]
        gone |= {one.work.key for one in more}
        works = tuple(one for one in self.works if one.key not in gone)
        return replace(self, works=works, failed=(*self.failed, *failed, *more))._with_its_old()

    def _with_its_old(self) -> WindowSlice:
        """Only the old windows that its work units read again."""
        there = {(one.unit, one.bound) for one in self.works if one.bound is not None}
        return replace(self, old=tuple(one for one in self.old if (one.unit, one.bound) in there))

    def extents(self) -> tuple[Extent, ...]:
        """What is read, as few stretches as it takes."""
        return extents(self.works)

    @property
    def _all(self) -> Iterable[WorkUnit]:
        return (*self.works, *(one.work for one in self.failed))

    def _bound(self, instant: int | None) -> Watermark | None:
        return None if instant is None else {self.name: as_datetime(instant, self.zone)}


def together(one: WorkUnit) -> tuple[TimeBound, str, bool]:
    """The same for all that must be read in one commit."""
    return (one.start, one.unit, False) if one.bound is None else (one.bound, one.unit, True)


def extents(works: Collection[WorkUnit]) -> tuple[Extent, ...]:
    """Join neighbouring windows of the same units: in planning order, windows outside."""
    rows: list[tuple[TimeBound, TimeBound, tuple[str, ...]]] = []
    for (lower, end), same in groupby(works, lambda one: (one.lower, one.end)):
        units = tuple(dict.fromkeys(one.unit for one in same))
        if rows and rows[-1][1] is not None and rows[-1][1] == lower and rows[-1][2] == units:
            rows[-1] = (rows[-1][0], end, units)
        else:
            rows.append((lower, end, units))
    return tuple(Extent(lower, end, tuple(map(unit_of, units))) for lower, end, units in rows)


def _span(start: TimeBound, end: TimeBound, zone: tzinfo) -> str:
    if start is None or end is None:
        return ""
    return f"[{as_datetime(start, zone).isoformat()}, {as_datetime(end, zone).isoformat()})"


def _range(start: TimeBound, end: TimeBound, zone: tzinfo) -> dict[str, str | None]:
    return {
        "start": None if start is None else as_datetime(start, zone).isoformat(),
        "end": None if end is None else as_datetime(end, zone).isoformat(),
    }
