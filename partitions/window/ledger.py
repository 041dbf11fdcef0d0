"""The ledger: coverage, gaps, overlaps and completeness of each unit (docs/reference/windows.md).

The loaded windows of a unit are intervals. So a complete unit costs one interval, however many windows it
has, and one pass over the sorted intervals answers everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from partitions.instants import as_datetime, milliseconds
from partitions.intervals import Interval, intersect, overlaps, overlay, subtract, union
from partitions.ledger_bounds import LedgerBounds
from partitions.window.definition import WindowWatermark
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT, unit_of
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure

_EARLIEST, _LATEST = -(2**62), 2**62

NEVER = "never loaded"
GROWS = "not loaded yet: the window is still growing"
LEFT_OUT = "left out by max_slices or parallelism: it waits for a later run"
EARLY = "loaded before its end, because a clock ran ahead: read again once it is over"
OLD = "loaded by windows that an earlier definition cut: waits to be read again"
ABSTINENT = "never read: skipped by abstinence"
UNKNOWN = "an unknown version"


class Gap(NamedTuple):
    """``[start, end)`` that is not covered, epoch milliseconds, with the reason."""

    start: int
    end: int
    why: str


@dataclass(frozen=True)
class UnitLedger:
    """The ledger of one unit.

    Attributes:
        unit: the unit's identity.
        is_removed: whether it is no longer a unit; then nothing of it is missing.
        covered: the loaded stretches, ascending, without overlaps; also those that are out of date.
        gaps: the gaps, ascending.
        overlaps: stretches that windows of two grids have covered.
        failed_rereads: covered windows whose last read again failed, ascending; their earlier rows stay.
        outdated: covered windows whose upstream has changed since, ascending; a run loads them again.
        read_at: the covered stretches with the position of the table's log at which they were read, in words,
        ascending; empty if the commits of that table do not matter.
        complete_up_to: the end of the coverage without a gap from the first window on; None if there is no
        window yet.
    """

    unit: str
    is_removed: bool
    covered: Sequence[Interval]
    gaps: Sequence[Gap]
    overlaps: Sequence[Interval]
    complete_up_to: int | None
    failed_rereads: Sequence[Gap] = ()
    outdated: Sequence[Gap] = ()
    read_at: Sequence[Gap] = ()

    @property
    def current(self) -> list[Interval]:
        """The covered stretches that are up to date: what a dataflow below may read."""
        return subtract(self.covered, union((start, end) for start, end, _ in self.outdated))

    def why_lacking(self, start: int, end: int) -> str:
        """Return the reason of the first gap or outdated window within ``[start, end)``; "" without one."""
        part = [(start, end)]
        if (gaps := intersect(self.gaps, part)) or not intersect(self.outdated, part):
            return gaps[0][2] if gaps else ""
        is_failed = bool(intersect(self.failed_rereads, part))
        return "failed to be loaded again" if is_failed else self.outdated[0].why

    def as_json(self, zone: tzinfo) -> dict[str, Any]:
        """Return the unit in the JSON form of ``strandline ledger``."""
        return {
            "unit": unit_of(self.unit),
            "gone": self.is_removed,
            "complete_up_to": _iso(self.complete_up_to, zone),
            "covered": [_range(start, end, zone) for start, end in self.covered],
            "gaps": [{**_range(start, end, zone), "why": why} for start, end, why in self.gaps],
            "overlaps": [_range(start, end, zone) for start, end in self.overlaps],
            "failed_rereads": [
                {**_range(start, end, zone), "why": why} for start, end, why in self.failed_rereads
            ],
            "outdated": [{**_range(start, end, zone), "why": why} for start, end, why in self.outdated],
            "read_at": [{**_range(start, end, zone), "version": at} for start, end, at in self.read_at],
        }


@dataclass(frozen=True)
class Ledger:
    """The ledger of one dataflow.

    Attributes:
        zone: the zone of texts.
        units: the current units in their order, then removed ones.
    """

    dataflow: str
    now: datetime
    zone: tzinfo
    units: Sequence[UnitLedger]

    def within(self, bounds: LedgerBounds) -> Ledger:
        """Return the ledger with the parts of its stretches within two instants; completeness stays."""
        if bounds.start is None and bounds.end is None:
            return self
        lowest, highest = (
            milliseconds(bound) if bound is not None else default
            for bound, default in ((bounds.start, _EARLIEST), (bounds.end, _LATEST))
        )
        part = [(lowest, highest)]
        return replace(self, units=[_unit_within(unit, part) for unit in self.units])

    @property
    def complete_up_to(self) -> int | None:
        """Return the lowest ``complete_up_to`` of the current units; None if one has none."""
        ends = [unit.complete_up_to for unit in self.units if not unit.is_removed]
        return None if None in ends else min((end for end in ends if end is not None), default=None)

    @property
    def missing(self) -> list[tuple[UnitLedger, Gap]]:
        """Return the gaps of all units, without windows that are still growing."""
        return [(unit, gap) for unit in self.units for gap in unit.gaps if gap.why != GROWS]

    @property
    def outdated(self) -> list[tuple[UnitLedger, Gap]]:
        """Return the loaded stretches of all units that are out of date."""
        return [(unit, stretch) for unit in self.units for stretch in unit.outdated]

    @property
    def gaps(self) -> int:
        """Return the number of gaps of all units."""
        return sum(len(unit.gaps) for unit in self.units)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of ``strandline ledger``."""
        return {
            "dataflow": self.dataflow,
            "now": self.now.isoformat(),
            "complete_up_to": _iso(self.complete_up_to, self.zone),
            "units": [unit.as_json(self.zone) for unit in self.units],
        }


def _unit_within(unit: UnitLedger, part: Sequence[Interval]) -> UnitLedger:
    covered, overlapped = (
        [(start, end) for start, end, _ in intersect(((*stretch, None) for stretch in stretches), part)]
        for stretches in (unit.covered, unit.overlaps)
    )
    gaps, rereads, outdated, read_at = (
        [Gap(*gap) for gap in intersect(stretches, part)]
        for stretches in (unit.gaps, unit.failed_rereads, unit.outdated, unit.read_at)
    )
    return replace(
        unit,
        covered=covered,
        gaps=gaps,
        overlaps=overlapped,
        failed_rereads=rereads,
        outdated=outdated,
        read_at=read_at,
    )


def ledger(
    definition: WindowWatermark,
    state: WindowState,
    units: Sequence[str],
    now: datetime,
    *,
    dataflow: str,
    not_ready: Callable[[str], Sequence[Gap]] = lambda unit: (),
    outdated: Callable[[str], Sequence[Gap]] = lambda unit: (),
) -> Ledger:
    """Compare the loaded windows with those of the definition.

    Args:
        definition: the declared watermark; without a datetime entry nothing can be missing.
        state: the committed state.
        units: the identities of all current units.
        now: the clock, aware.
        dataflow: the dataflow's name.
        not_ready: returns the windows of a unit that do not count as loaded because of the upstream, with
            the reasons, ascending and disjoint.
        outdated: returns the loaded windows of a unit whose upstream has changed, likewise.
    """
    windows = definition.windows(now) if definition.time_entry else Windows.of(())
    current_units = set(units)
    removed_units = [unit for unit in state.units if unit not in current_units and unit != NO_UNIT]
    position = state.position if definition.refreshes else None
    read_at = position.words if position else ""
    builder = _LedgerBuilder(state, windows, union(windows), milliseconds(now), not_ready, outdated, read_at)
    unit_ledgers = [builder.current_unit(unit) for unit in units]
    return Ledger(
        dataflow,
        now,
        definition.zone,
        [*unit_ledgers, *(builder.removed_unit(unit) for unit in removed_units)],
    )


@dataclass(frozen=True)
class _LedgerBuilder:
    """Builds the ledgers of units.

    Attributes:
        expected: the stretches that the windows cover.
        now: epoch milliseconds.
        not_ready: returns the windows of a unit that do not count as loaded because of the upstream.
        outdated: returns the loaded windows of a unit whose upstream has changed.
        read_at: the position of the table's log at which windows were read that have not changed since, in
        words; "" if the commits of that table do not matter.
    """

    state: WindowState
    windows: Windows
    expected: Sequence[Interval]
    now: int
    not_ready: Callable[[str], Sequence[Gap]]
    outdated: Callable[[str], Sequence[Gap]]
    read_at: str = ""

    def current_unit(self, unit: str) -> UnitLedger:
        """Return the ledger of a current unit."""
        covered, expected = self._covered(unit), self.expected
        gaps = self._gaps(unit, subtract(expected, covered))
        complete = gaps[0].start if gaps else (expected[-1][1] if expected else None)
        first = expected[0][0] if expected else None
        return UnitLedger(
            unit,
            False,
            covered,
            gaps,
            overlaps(self._intervals(unit)),
            None if complete == first else complete,
            self._failed_rereads(unit),
            [Gap(*stretch) for stretch in intersect(self.outdated(unit), covered)],
            self._read_at(unit, covered),
        )

    def removed_unit(self, unit: str) -> UnitLedger:
        """Return the ledger of a removed unit."""
        covered = self._covered(unit)
        return UnitLedger(
            unit, True, covered, (), overlaps(self._intervals(unit)), covered[-1][1] if covered else None
        )

    def _read_at(self, unit: str, covered: Sequence[Interval]) -> list[Gap]:
        if not self.read_at:
            return []
        changed = [
            (part[0], part[1], part[2] if len(part) > 2 else UNKNOWN)
            for part in self.state.changed.get(unit, ())
        ]
        read_at = overlay([(start, end, self.read_at) for start, end in covered], changed)
        return join_gaps(intersect(read_at, covered))

    def _intervals(self, unit: str) -> list[Interval]:
        """Return the loaded stretches of a unit up to now.

        A clock running ahead may have loaded beyond now; that does not count yet.
        """
        intervals = self.state.units.get(unit, ())
        return [(interval[0], min(interval[1], self.now)) for interval in intervals if interval[0] < self.now]

    def _covered(self, unit: str) -> list[Interval]:
        """Return the stretches of a unit that were read."""
        intervals, unread = (
            union(self._intervals(unit)),
            union(sorted([*self._skipped(unit), *self._early(unit), *self._not_ready_spans(unit)])),
        )
        return subtract(intervals, unread) if unread else intervals

    def _not_ready_spans(self, unit: str) -> list[Interval]:
        return [(start, end) for start, end, _ in self.not_ready(unit)]

    def _early(self, unit: str) -> list[Interval]:
        return union(sorted((interval[0], interval[1]) for interval in self.state.early.get(unit, ())))

    def _skipped(self, unit: str) -> list[Interval]:
        return union(sorted((start, end) for start, end in self.state.skipped.get(unit, ())))

    def _gaps(self, unit: str, uncovered: Sequence[Interval]) -> list[Gap]:
        """Return the gaps, split where the reason changes; where reasons overlap, the last layer counts."""
        marks: list[tuple[int, int, str]] = [
            (*self.windows[index], GROWS) for index in sorted(self.windows.open)
        ]
        deferred = [*self.state.over_cap.get(unit, ()), *self.state.reread_whole.get(unit, ())]
        for layer in (
            [
                (*interval, OLD)
                for interval in union(
                    sorted((interval[0], interval[1]) for interval in self.state.old.get(unit, ()))
                )
            ],
            [(*interval, EARLY) for interval in self._early(unit)],
            [(*interval, ABSTINENT) for interval in self._skipped(unit)],
            [(start, end, why) for start, end, why in self.not_ready(unit)],
            [
                (*interval, LEFT_OUT)
                for interval in union(sorted((interval[0], interval[1]) for interval in deferred))
            ],
            self._failed(unit),
        ):
            marks = overlay(marks, layer)
        never = [(start, end, NEVER) for start, end in uncovered]
        return join_gaps(overlay(never, intersect(marks, uncovered)))

    def _failed(self, unit: str) -> list[tuple[int, int, str]]:
        index = self.windows.index
        return sorted(
            (*self.windows[index[start]], describe_failure(failure))
            for start, failure in self.state.failed.get(unit, {}).items()
            if start in index and failure.attempts
        )

    def _failed_rereads(self, unit: str) -> list[Gap]:
        index = self.windows.index
        return sorted(
            Gap(*self.windows[index[start]], describe_failed_reread(failure))
            for start, failure in self.state.failed_rereads(unit).items()
            if start in index
        )


def describe_failure(failure: Failure) -> str:
    """Return how often a work unit failed, and why the last time."""
    times = "once" if failure.attempts == 1 else f"{failure.attempts} times"
    return f"failed {times}: {failure.error or 'no reason given'}"


def describe_failed_reread(failure: Failure) -> str:
    """Return that a loaded work unit keeps its rows, and why its last read failed."""
    return f"loaded, and keeps its earlier rows; reading it again {describe_failure(failure)}"


def join_gaps(gaps: Iterable[tuple[int, int, str]]) -> list[Gap]:
    """Join adjacent gaps with the same reason."""
    joined: list[Gap] = []
    for start, end, why in gaps:
        if joined and joined[-1].end == start and joined[-1].why == why:
            joined[-1] = Gap(joined[-1].start, end, why)
        else:
            joined.append(Gap(start, end, why))
    return joined


def _range(start: int, end: int, zone: tzinfo) -> dict[str, str | None]:
    return {"start": _iso(start, zone), "end": _iso(end, zone)}


def _iso(instant: int | None, zone: tzinfo) -> str | None:
    return None if instant is None else as_datetime(instant, zone).isoformat()
