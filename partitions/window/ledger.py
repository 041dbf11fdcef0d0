"""The ledger: what is covered of each unit, what is missing and why, what was loaded by two grids, how far it is complete (spec 03).

Every committed window of every unit is an interval. They are kept as runs, so a unit that is complete costs one, however many windows it
has; one pass over its sorted intervals answers everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from partitions.instants import as_datetime
from partitions.intervals import Interval, difference, overlaps, union
from partitions.window.definition import WindowWatermark
from partitions.window.grid import Windows
from partitions.window.state import Failure, WindowState
from partitions.window.units import NO_UNIT, unit_of

NEVER = "never loaded"
GROWS = "not loaded yet: the window goes on"
ABSTINENT = "never read: it lies in an abstinent period"


class Gap(NamedTuple):
    """``[start, end)`` that is not covered, epoch milliseconds, and why."""

    start: int
    end: int
    why: str


@dataclass(frozen=True)
class UnitLedger:
    """What is known of one unit.

    Attributes:
        unit: its identity.
        gone: whether the units no longer hold it; nothing of it is missing then.
        covered: ascending, apart from each other.
        gaps: ascending.
        overlaps: what windows of two grids have covered.
        complete_up_to: the end of what is covered without a gap from the first window on; None where there is no window yet.
    """

    unit: str
    gone: bool
    covered: Sequence[Interval]
    gaps: Sequence[Gap]
    overlaps: Sequence[Interval]
    complete_up_to: int | None

    def as_json(self, zone: tzinfo) -> dict[str, Any]:
        """The unit in the JSON form of ``strandline ledger``."""
        return {
            "unit": unit_of(self.unit),
            "gone": self.gone,
            "complete_up_to": _iso(self.complete_up_to, zone),
            "covered": [_range(start, end, zone) for start, end in self.covered],
            "gaps": [{**_range(start, end, zone), "why": why} for start, end, why in self.gaps],
            "overlaps": [_range(start, end, zone) for start, end in self.overlaps],
        }


@dataclass(frozen=True)
class Ledger:
    """The ledger of one dataflow.

    Attributes:
        zone: of texts.
        units: in the order that they were given, then those that are gone.
    """

    dataflow: str
    now: datetime
    zone: tzinfo
    units: Sequence[UnitLedger]

    @property
    def complete_up_to(self) -> int | None:
        """The lowest of all units that are there; None where one has nothing."""
        ends = [one.complete_up_to for one in self.units if not one.gone]
        return None if None in ends else min((end for end in ends if end is not None), default=None)

    @property
    def gaps(self) -> int:
        """How many, over all units."""
        return sum(len(one.gaps) for one in self.units)

    def as_json(self) -> dict[str, Any]:
        """The JSON form of ``strandline ledger``."""
        return {
            "dataflow": self.dataflow,
            "now": self.now.isoformat(),
            "complete_up_to": _iso(self.complete_up_to, self.zone),
            "units": [one.as_json(self.zone) for one in self.units],
        }


def ledger(
    definition: WindowWatermark, state: WindowState, units: Sequence[str], now: datetime, *, dataflow: str
) -> Ledger:
    """Compare what is loaded with the windows that there are.

    Args:
        definition: what the user declared; without a datetime entry there is nothing to be missing.
        state: what is committed.
        units: identities of all units that are there.
        now: the clock, aware.
        dataflow: its name.
    """
    windows = definition.windows(now) if definition.time_entry else Windows.of(())
    wanted = union(windows)
    gone = [unit for unit in state.units if unit not in set(units) and unit != NO_UNIT]
    listed = [_unit(state, windows, wanted, unit) for unit in units]
    return Ledger(dataflow, now, definition.zone, [*listed, *(_gone(state, unit) for unit in gone)])


def missing(state: WindowState, wanted: Sequence[Interval], unit: str) -> list[Interval]:
    """What of some intervals, ascending and apart, is not loaded of a unit."""
    return difference(wanted, _covered(state, unit))


def _unit(state: WindowState, windows: Windows, wanted: Sequence[Interval], unit: str) -> UnitLedger:
    covered = _covered(state, unit)
    gaps = list(_gaps(state, windows, difference(wanted, covered), unit))
    first = wanted[0][0] if wanted else None
    complete = gaps[0].start if gaps else (wanted[-1][1] if wanted else None)
    runs = [(run[0], run[1]) for run in state.units.get(unit, ())]
    return UnitLedger(unit, False, covered, gaps, overlaps(runs), None if complete == first else complete)


def _gone(state: WindowState, unit: str) -> UnitLedger:
    covered = _covered(state, unit)
    runs = [(run[0], run[1]) for run in state.units[unit]]
    return UnitLedger(unit, True, covered, (), overlaps(runs), covered[-1][1] if covered else None)


def _covered(state: WindowState, unit: str) -> list[Interval]:
    """All that was read."""
    runs = union((run[0], run[1]) for run in state.units.get(unit, ()))
    skipped = state.skipped.get(unit)
    return difference(runs, union(sorted((start, end) for start, end in skipped))) if skipped else runs


def _gaps(state: WindowState, windows: Windows, missing: Sequence[Interval], unit: str) -> Iterator[Gap]:
    """Each gap, cut where the reason changes."""
    failed = state.failed.get(unit, {})
    skipped = union(sorted((start, end) for start, end in state.skipped.get(unit, ())))
    grown = {windows.starts[index] for index in windows.open}
    for start, end in missing:
        unread = difference([(start, end)], difference([(start, end)], skipped))
        pieces = [Gap(*one, ABSTINENT) for one in unread]
        for lower, upper in difference([(start, end)], skipped):
            pieces += _by_window(windows, failed, grown, lower, upper)
        yield from sorted(pieces)


def _by_window(
    windows: Windows, failed: Mapping[int | None, Failure], grown: set[int], lower: int, upper: int
) -> Iterator[Gap]:
    """A gap that nobody has skipped, cut at windows that failed or that go on."""
    at = lower
    for index in windows.touching(lower, upper) if failed or grown else ():
        window = windows[index]
        why = _why(failed.get(window.start), part=window.start < lower, grows=window.start in grown)
        if why is None:
            continue
        if at < window.start:
            yield Gap(at, window.start, NEVER)
        at = min(window.end, upper)
        yield Gap(max(window.start, lower), at, why)
    if at < upper:
        yield Gap(at, upper, NEVER)


def _why(failure: Failure | None, *, part: bool, grows: bool) -> str | None:
    """Why a window is missing, where there is more to say than that nobody has loaded it."""
    if failure is not None and failure.attempts:
        times = "once" if failure.attempts == 1 else f"{failure.attempts} times"
        return f"failed {times}: {failure.error or 'without saying why'}"
    return GROWS if part and grows else None


def _range(start: int, end: int, zone: tzinfo) -> dict[str, str | None]:
    return {"start": _iso(start, zone), "end": _iso(end, zone)}


def _iso(instant: int | None, zone: tzinfo) -> str | None:
    return None if instant is None else as_datetime(instant, zone).isoformat()
