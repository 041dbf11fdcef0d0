"""The planner of the window kind: which work units are due, in which order, and what is left alone (spec 03)."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from typing import NamedTuple

from partitions.instants import as_datetime, floor_minute, milliseconds
from partitions.plan import Plan, Skip, counted
from partitions.window.definition import WindowWatermark
from partitions.window.due import Cutoffs, Due, Reason, UnitDue, job_cutoff
from partitions.window.grid import Windows
from partitions.window.slices import WindowSlice, WorkUnit, words
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT, enough

_SKIPS = 200
"""Skips that a plan tells one by one; what is beyond is counted."""


@dataclass(frozen=True)
class Selection:
    """What somebody has asked for, instead of all that is due.

    Attributes:
        forced: whether it is read whatever the cutoffs say; else only what of it is due.
        ranges: half-open stretches of time, epoch milliseconds; each window that intersects one is meant. None: all windows.
        units: identities; None: all units.
    """

    forced: bool
    ranges: tuple[tuple[int, int], ...] | None = None
    units: frozenset[str] | None = None

    def windows(self, windows: Windows) -> list[int] | None:
        """The indexes that are meant, ascending; None: all."""
        if self.ranges is None:
            return None
        return sorted({index for start, end in self.ranges for index in windows.touching(start, end)})


class Part(NamedTuple):
    """What is due of one unit: neighbouring windows, with the unit's place in the order of units."""

    due: Due
    place: int


def plan(
    definition: WindowWatermark,
    state: WindowState,
    units: Sequence[str],
    now: datetime,
    *,
    dataflow: str,
    number: int,
    whole: bool = False,
    selection: Selection | None = None,
) -> Plan[WindowSlice]:
    """Say which work units a run takes on, cut into slices, and what it leaves alone.

    Args:
        definition: what the user declared.
        state: what is committed.
        units: identities, in the order that they were given.
        now: the clock of this run, aware.
        dataflow: its name.
        number: of the entry that holds ``state``; 0 without one.
        whole: whether the source can only be read by whole windows.
        selection: what is asked for; None: all that is due.

    Raises:
        PlanError: where there are fewer units than ``min_units``.
    """
    enough(units, definition.min_units, dataflow)
    state = state.rebased(definition.default_grid)
    making = _Planning(definition, state, tuple(units), now, whole, selection)
    slices = tuple(making.slices())
    return Plan(
        dataflow, "window", number, now, making.why(), slices, tuple(making.skips()), tuple(making.warnings())
    )


@dataclass
class _Planning:
    definition: WindowWatermark
    state: WindowState
    units: tuple[str, ...]
    now: datetime
    whole: bool
    selection: Selection | None

    def __post_init__(self) -> None:
        timed = self.definition.time_entry is not None
        self.windows = self.definition.windows(self.now) if timed else None
        self.cutoffs = Cutoffs(
            job_cutoff(self.state, self.definition.grace_ms),
            self.definition.grace_ms,
            self.definition.abstinent_ms,
        )
        self.parts = list(self._parts())
        self.left_out: list[WorkUnit] = []
        self._grids = [stretch.grid.text for stretch in self.windows.stretches] if self.windows else []

    def slices(self) -> Iterator[WindowSlice]:
        """The work units of this run, in planning order; those that failed have slices of their own, and who failed twice is alone."""
        limit = 1 if self.definition.pacing else self.definition.checkpoint.interval_windows
        works = self._capped()
        most = self.definition.max_slices
        name = self.definition.time_entry.name if self.definition.time_entry else "window"
        grid = self.definition.default_grid.text
        blank = WindowSlice((), self.definition.zone, grid, name, milliseconds(self.now))
        first: list[WorkUnit] = []
        again: list[WorkUnit] = []
        alone: list[WorkUnit] = []
        for one in works:
            (first, again, alone)[min(self._attempts(one), 2)].append(one)
            if len(first) >= most * limit:
                break
        cut = [*_portions(first, limit), *_portions(again, limit), *((one,) for one in alone)][:most]
        left = tuple((one.unit, one.start) for one in self.left_out)
        for index, portion in enumerate(cut):
            yield replace(blank, works=portion, left_out=() if index else left)

    def _attempts(self, one: WorkUnit) -> int:
        """How often it has failed."""
        failure = self.state.failed.get(one.unit, {}).get(one.start)
        return failure.attempts if failure else 0

    def why(self) -> str:
        """The plan in a sentence."""
        if not self.units:
            return "the secondary input gives no unit, so nothing is planned"
        counts: dict[Reason, int] = defaultdict(int)
        for part in self.parts:
            counts[part.due.reason] += part.due.after - part.due.first
        if not counts:
            return self._idle()
        total = sum(counts.values())
        told = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        size = (
            ""
            if self.windows is None
            else f" of {counted(len(self.windows), 'window')} x {counted(len(self.units), 'unit')}"
        )
        most = self.definition.parallelism
        left = f"; {total - most:,} left for later runs (parallelism {most})" if most and total > most else ""
        return f"{counted(total, 'work unit')}{size} due: {told}{left}"

    def _idle(self) -> str:
        if self.windows is not None and not len(self.windows):
            return "there is no window yet: from lies at or after to"
        chosen = " of what was asked for" if self.selection else ""
        return f"no work unit{chosen} is due"

    def skips(self) -> Iterator[Skip]:
        """What is left alone, each with its reason; the first of them one by one."""
        told = self._skips()
        yield from islice(told, _SKIPS)
        if rest := sum(1 for _ in told):
            yield Skip(f"{rest:,} more", "loaded, gone or left out like those above")

    def warnings(self) -> Iterator[str]:
        """What a user should know although the run goes on."""
        if self.definition.time_entry is None:
            if self.definition.window != "none":
                yield "window has no meaning: the definition has no datetime entry, so each run reads every unit as a whole"
            return
        gaps, overlaps = self.definition.uncovered(self.now)
        for what, ranges in (("leave a gap", gaps), ("overlap, and the earlier one counts", overlaps)):
            yield from (
                f"the sub-ranges of window {what}: {self._shown(start, end)}" for start, end in ranges
            )
        skipped = ((unit, one) for unit, ranges in self.state.skipped.items() for one in ranges)
        for unit, (start, end) in islice(skipped, _SKIPS):
            yield f"a gap that abstinence has left unread: {self._shown(start, end)}{_of(unit)}"

    def _parts(self) -> Iterator[Part]:
        chosen = self.selection.windows(self.windows) if self.selection and self.windows is not None else None
        look = UnitDue(self.state, self.windows, self.cutoffs) if self.windows is not None else None
        for place, unit in enumerate(self.units):
            if self.selection and self.selection.units is not None and unit not in self.selection.units:
                continue
            found = look.of(unit) if look else self._timeless(unit)
            if self.selection and self.selection.forced:
                found = [Due(0, len(self.windows) if self.windows is not None else 1, "forced", served=True)]
            yield from (Part(due, place) for due in (found if chosen is None else _within(found, chosen)))

    def _timeless(self, unit: str) -> list[Due]:
        """Without time nothing says that a unit is complete: each run reads it."""
        failed = self.state.failed.get(unit, {}).get(None)
        return [Due(0, 1, "failed" if failed and failed.attempts else "new")]

    def _capped(self) -> Iterator[WorkUnit]:
        """What the cap lets pass, in planning order; among what is due, what was never loaded goes first, then the lowest high."""
        most = self.definition.parallelism
        if most is None or sum(part.due.after - part.due.first for part in self.parts) <= most:
            return self._works(self.parts)
        fresh = list(islice(self._works([part for part in self.parts if not part.due.served]), most))
        served = list(self._works([part for part in self.parts if part.due.served]))
        oldest = heapq.nsmallest(
            most - len(fresh), enumerate(served), key=lambda one: (self._high(one[1]), one[0])
        )
        taken = {one.key for one in fresh} | {one.key for _, one in oldest}
        kept = sorted(fresh + [one for _, one in oldest], key=self._order)
        # What was never loaded is due by that alone; the rest could cease to be when the job's cutoff moves on.
        self.left_out = [one for one in served if one.key not in taken]
        return iter(kept)

    def _order(self, one: WorkUnit) -> tuple[int, int]:
        return one.start or 0, self._places[one.unit]

    @property
    def _places(self) -> dict[str, int]:
        return {unit: place for place, unit in enumerate(self.units)}

    def _high(self, one: WorkUnit) -> int:
        return (self.state.high(one.unit, one.start) if one.start is not None else None) or 0

    def _works(self, parts: Collection[Part]) -> Iterator[WorkUnit]:
        """Each work unit, windows ascending outside, units in given order inside."""
        begins: dict[int, list[Part]] = defaultdict(list)
        for part in parts:
            begins[part.due.first].append(part)
        active: list[Part] = []
        index = min(begins, default=0)
        while begins or active:
            if index in begins:
                active = sorted([*active, *begins.pop(index)], key=lambda part: part.place)
            for due, place in active:
                yield self._work(index, self.units[place], due)
            index += 1
            active = [part for part in active if part.due.after > index]
            if not active and begins:
                index = min(begins)

    def _work(self, index: int, unit: str, due: Due) -> WorkUnit:
        if self.windows is None:
            return WorkUnit(None, None, unit, None, due.reason)
        start, end = self.windows.starts[index], self.windows.ends[index]
        lower = start
        if due.served and due.reason != "forced" and not self.whole:
            lower = min(self.cutoffs.lower(start, end if due.high is None else due.high), end)
        return WorkUnit(start, end, unit, lower, due.reason, index in self.windows.open, self._grid(index))

    def _grid(self, index: int) -> str:
        return (
            self._grids[0]
            if len(self._grids) == 1
            else self._grids[self.windows.stretch(index)]
            if self.windows
            else "none"
        )

    def _skips(self) -> Iterator[Skip]:
        """Windows to come, units that are gone, what is left for later, and what is loaded."""
        if self.windows is not None:
            to = self.definition.to_at(self.now)
            if to > milliseconds(self.now):
                what = f"[{self._at(floor_minute(self.now))}, {self._at(to)})"
                yield Skip(what, "future: windows are planned when their time has come")
        gone = set(self.state.units) - set(self.units) - {NO_UNIT}
        yield from (
            Skip(unit, "gone: the units no longer hold it; what was loaded of it stays known")
            for unit in sorted(gone)
        )
        left = f"left for a later run by parallelism: {self.definition.parallelism}"
        yield from (Skip(one.label(self.definition.zone), left) for one in self.left_out)
        if self.windows is not None:
            yield from self._loaded(self.windows)

    def _loaded(self, windows: Windows) -> Iterator[Skip]:
        """Ranges of neighbouring windows that are loaded and not due."""
        look, by_place = UnitDue(self.state, windows, self.cutoffs), defaultdict(list)
        for due, place in self.parts:
            by_place[place].append(due)
        job = self.cutoffs.job
        since = (
            f", and end at or before the job's cutoff {self._at(job)}"
            if job is not None and self.cutoffs.grace
            else ""
        )
        for place, unit in enumerate(self.units):
            for part in look.known(unit):
                for first, after in _left(part.first, part.after, by_place[place]):
                    shown = self._shown(windows.starts[first], windows.ends[after - 1])
                    yield Skip(f"{shown}{_of(unit)}", f"{counted(after - first, 'window')} loaded{since}")

    def _at(self, instant: int) -> str:
        return as_datetime(instant, self.definition.zone).isoformat()

    def _shown(self, start: int, end: int) -> str:
        return f"[{self._at(start)}, {self._at(end)})"


def _of(unit: str) -> str:
    return "" if unit == NO_UNIT else f" of {words(unit)}"


def _left(first: int, after: int, dues: Iterable[Due]) -> Iterator[tuple[int, int]]:
    """What is left of a range of windows without those that are due, which are ascending."""
    for due in dues:
        if due.after <= first or due.first >= after:
            continue
        if first < due.first:
            yield first, due.first
        first = due.after
    if first < after:
        yield first, after


def _within(found: Iterable[Due], chosen: Sequence[int]) -> Iterator[Due]:
    """The parts that lie in chosen windows, ascending."""
    for due in found:
        inside = chosen[bisect_left(chosen, due.first) : bisect_left(chosen, due.after)]
        for _, same in groupby(enumerate(inside), lambda one: one[1] - one[0]):
            run = [index for _, index in same]
            yield due._replace(first=run[0], after=run[-1] + 1)


def _portions(works: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Slices of whole windows where one fits, so that a read is a rectangle."""
    portion: list[WorkUnit] = []
    for _, same in groupby(works, lambda one: one.start):
        row = list(same)
        if portion and len(portion) + len(row) > limit:
            yield tuple(portion)
            portion = []
        portion += row
        while len(portion) > limit:
            yield tuple(portion[:limit])
            portion = portion[limit:]
    if portion:
        yield tuple(portion)
