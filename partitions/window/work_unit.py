"""A work unit, one window of one unit: planned, read, replaced and shown (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import tzinfo
from itertools import groupby
from typing import Any, NamedTuple

from partitions.instants import as_datetime
from partitions.spelling import first_few
from partitions.window.extent import Extent
from partitions.window.reasons import Reason
from partitions.window.units import unit_of
from partitions.window.work_outcomes import TimeBound


class WorkUnit(NamedTuple):
    """One window of one unit.

    Attributes:
        start: the window's start, epoch milliseconds; None without a time dimension.
        end: the window's end, exclusive.
        unit: the unit's identity.
        lower: where the read starts; it ends with the window.
        reason: why it is read.
        open: whether the window is cut short by now.
        grid: the text of the grid that cuts the window.
        group_start: the start of the first window in the work unit's group, epoch milliseconds. The work
        units of a group must share a commit, since they share old windows. None outside groups.
    """

    start: TimeBound
    end: TimeBound
    unit: str
    lower: TimeBound
    reason: Reason
    open: bool = False
    grid: str = "none"
    group_start: TimeBound = None

    @property
    def key(self) -> tuple[TimeBound, str]:
        """Return the key of its state: the window's start and the unit."""
        return self.start, self.unit

    def describe(self, zone: tzinfo) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md)."""
        return {
            "window": _range(self.start, self.end, zone),
            "unit": unit_of(self.unit),
            "read": _range(self.lower, self.end, zone),
            "reason": self.reason,
        }

    def label(self, zone: tzinfo) -> str:
        """Return one line for people."""
        return describe_works((self,), zone)


def describe_works(works: Collection[WorkUnit], zone: tzinfo) -> str:
    """Return work units as a line for people; adjacent windows of a unit become one range."""
    by_unit: dict[str, list[list[TimeBound]]] = {}
    for work in sorted(works, key=lambda work: work.start or 0):
        ranges = by_unit.setdefault(work.unit, [])
        if ranges and work.start is not None and ranges[-1][1] == work.start:
            ranges[-1][1] = work.end
        else:
            ranges.append([work.start, work.end])
    descriptions = [
        " ".join(filter(None, (_span(start, end, zone), describe_unit(unit)))) or "everything"
        for unit, ranges in by_unit.items()
        for start, end in ranges
    ]
    return first_few(descriptions, 5) or "nothing"


def describe_unit(unit: str) -> str:
    """Return a unit for people, such as ``airport LGA``; "" if the definition has no units."""
    return ", ".join(f"{name} {value}" for name, value in unit_of(unit).items())


class OldWindow(NamedTuple):
    """A window as an earlier definition cut it; its rows are deleted.

    Attributes:
        unit: the unit's identity.
        start: the window's start, epoch milliseconds.
        group_start: the ``group_start`` of the work units that read its range again.
    """

    unit: str
    start: int
    group_start: TimeBound


class FailedUnit(NamedTuple):
    """A work unit that could not be read, and the reason."""

    work: WorkUnit
    error: str


def commit_key(work: WorkUnit) -> tuple[TimeBound, str, bool]:
    """Return a key that is equal for all work units that must share a commit."""
    return (work.start, work.unit, False) if work.group_start is None else (work.group_start, work.unit, True)


def extents(works: Collection[WorkUnit]) -> tuple[Extent, ...]:
    """Return the rows of work units as extents; adjacent windows of the same units are joined.

    The order is the planning order: windows outside, units inside.
    """
    rows: list[tuple[TimeBound, TimeBound, tuple[str, ...]]] = []
    for (lower, end), same in groupby(works, lambda work: (work.lower, work.end)):
        units = tuple(dict.fromkeys(work.unit for work in same))
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
