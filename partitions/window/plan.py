"""The planner of the window kind: which work units are due, in which order, and what is left alone (docs/guide-windows.md)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby, islice

from partitions.instants import HOUR, as_datetime, floor_minute, milliseconds
from partitions.intervals import Interval, consecutive, union
from partitions.plan import Plan, Skip, counted
from partitions.request import DUE, Forced, LateOnly, Part, Request
from partitions.window.definition import WindowWatermark
from partitions.window.due import Cutoffs, Due, Reason, UnitDue, job_cutoff
from partitions.window.grid import Windows
from partitions.window.groups import Group, Groups, packed, taken
from partitions.window.slices import Old, WindowSlice, WorkUnit, words
from partitions.window.state import DeferredUnits, WindowState
from partitions.window.unit_selector import Budget, Neighbours, UnitSelector
from partitions.window.units import NO_UNIT, enough

AHEAD = HOUR
"""How far a high may lie above now: the clocks of several machines differ."""

_SKIPS = 200
"""Skips that a plan tells one by one; what is beyond is counted."""


def plan(
    definition: WindowWatermark,
    state: WindowState,
    units: Sequence[str],
    now: datetime,
    *,
    dataflow: str,
    number: int,
    whole: bool = False,
    ranged: bool = True,
    request: Request = DUE,
    since: int | None = None,
) -> Plan[WindowSlice]:
    """Say which work units a run takes on, cut into slices, and what it leaves alone.

    Args:
        definition: what the user declared.
        state: what is committed.
        units: identities, in the order that they were given.
        now: the clock of this run, aware.
        dataflow: its name.
        number: of the entry that holds ``state``; 0 without one.
        whole: whether a window is always read as a whole.
        ranged: whether the source can be asked for any stretch of time, not only for windows.
        request: what the run is asked for.
        since: what is loaded beyond this instant was loaded by a clock that ran ahead; None: no clock did, as far as anybody knows.

    Raises:
        PlanError: if there are fewer units than ``min_units``.
    """
    if isinstance(request, LateOnly):
        why = "only late files are asked for, and windows have none"
        return Plan(dataflow, "window", number, now, why)
    enough(units, definition.min_units, dataflow)
    state = state.rebased(definition.default_grid)
    forced = isinstance(request, Forced)
    making = _Planning(definition, state, tuple(units), now, whole, ranged, forced, request.of, since)
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
    ranged: bool
    forced: bool
    part: Part | None
    since: int | None

    def __post_init__(self) -> None:
        timed = self.definition.time_entry is not None
        self.early = tuple(self._loaded_early()) if timed else ()
        self.state = self.state.after((), early=self.early) if self.early else self.state
        self.windows = self.definition.windows(self.now) if timed else None
        self.cutoffs = Cutoffs(
            job_cutoff(self.state, self.definition.grace_ms, floor_minute(self.now)),
            self.definition.grace_ms,
            self.definition.abstinent_ms,
        )
        self.unit_due = UnitDue(self.state, self.windows, self.cutoffs) if self.windows is not None else None
        limit = 1 if self.definition.pacing else self.definition.checkpoint.interval_windows
        whole = Budget(self.definition.max_slices, limit, self.definition.parallelism)
        windows = self.windows if self.windows is not None else Windows.of(())
        self.groups = Groups(self.state, windows, self.units, self.ranged)
        self._every_group = self._due_groups()
        healthy = [group for group in self._every_group if group.failure is None]
        self.taken_groups = taken(healthy, whole.most, at_least_one=True)
        used = sum(group.size for group in self.taken_groups)
        self.budget = whole.less(len(list(packed(self.taken_groups, limit))), used)
        ends = self.windows.ends if self.windows is not None else ()
        self.selector = UnitSelector(self.budget, ends, milliseconds(self.now), turn=not self.state.retried)
        self._choose()
        self._try_groups(whole.most - used)
        self._grids = [stretch.grid.text for stretch in self.windows.stretches] if self.windows else []

    def slices(self) -> Iterator[WindowSlice]:
        """The work units of this run, in planning order; those that failed have slices of their own, and who failed twice is alone."""
        name = self.definition.time_entry.name if self.definition.time_entry else "window"
        grid = self.definition.default_grid.text
        blank = WindowSlice((), self.definition.zone, grid, name, milliseconds(self.now))
        # A commit in which anything makes room deletes the rows of all its work units, so these are read as a whole there.
        kinds: dict[tuple[bool, bool], list[WorkUnit]] = {
            (a, b): [] for a in (False, True) for b in (False, True)
        }
        alone: list[WorkUnit] = []
        for index, place, due in self.selector.taken:
            work = self._work(index, self.units[place], due)
            replaces = work.bound is not None or work.reason == "forced"
            (alone if due.alone else kinds[replaces, due.failure is not None]).append(work)
        portions = [part for works in kinds.values() for part in _portions(works, self.budget.limit)]
        if len(portions) + len(alone) > self.budget.slices:
            pairs = ([*kinds[replaces, False], *kinds[replaces, True]] for replaces in (False, True))
            portions = [part for works in pairs for part in _dense(works, self.budget.limit)]
        left = tuple(self._deferred())
        grouped = (
            tuple(work for group in portion for work in self._group(group))
            for portion in packed(self.taken_groups, self.budget.limit)
        )
        for number, portion in enumerate([*portions, *((work,) for work in alone), *grouped]):
            yield replace(
                blank,
                works=portion,
                deferred=() if number else left,
                early=() if number else self.early,
                old=tuple(self._old(portion)),
            )

    def why(self) -> str:
        """The plan in a sentence."""
        if not self.units:
            return "the secondary input gives no unit, so nothing is planned"
        counts = self.selector.counts.copy()
        for group in self._every_group:
            counts[self._reason(group)] += group.size - len(group.bound.rest)
            counts["rest"] += len(group.bound.rest)
        counts = +counts
        if not counts:
            return self._idle()
        total = sum(counts.values())
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        size = (
            ""
            if self.windows is None
            else f" of {counted(len(self.windows), 'window')} x {counted(len(self.units), 'unit')}"
        )
        left = total - len(self.selector.taken) - sum(group.size for group in self.taken_groups)
        waits = f"; {left:,} left for later runs ({self._cap})" if left else ""
        return f"{counted(total, 'work unit')}{size} due: {reasons}{waits}"

    @property
    def _cap(self) -> str:
        most = self.definition.parallelism
        if most is not None and len(self.selector.taken) == most:
            return f"parallelism {most}"
        return f"max_slices {self.budget.slices} of {counted(self.budget.limit, 'work unit')}"

    def _idle(self) -> str:
        if self.windows is not None and not len(self.windows):
            return "there is no window yet: from lies at or after to"
        asked_for = self.part.ranges if self.forced and self.part else None
        if asked_for and self.windows and not any(self.windows.touching(*range_) for range_ in asked_for):
            there = self._shown(self.windows.starts[0], self.windows.ends[-1])
            return f"no window intersects what was asked for: there are the windows of {there}"
        chosen = " of what was asked for" if self.part else ""
        return f"no work unit{chosen} is due"

    def skips(self) -> Iterator[Skip]:
        """What is left alone, each with its reason; the first of them one by one."""
        all_skips = self._skips()
        yield from islice(all_skips, _SKIPS)
        if next(all_skips, None) is not None:
            yield Skip(
                "more", f"only the first {_SKIPS} are listed; the others are left alone for such reasons"
            )

    def warnings(self) -> Iterator[str]:
        """What a user should know although the run goes on."""
        if self.definition.time_entry is None:
            if self.definition.window != "none":
                yield "window has no meaning: the definition has no datetime entry, so each run reads every unit as a whole"
            return
        yield from self._ahead()
        yield from self._old_windows()
        gaps, overlaps = self.definition.uncovered(self.now)
        for what, ranges in (("leave a gap", gaps), ("overlap, and the earlier one counts", overlaps)):
            yield from (
                f"the sub-ranges of window {what}: {self._shown(start, end)}" for start, end in ranges
            )
        skipped = ((unit, range_) for unit, ranges in self.state.skipped.items() for range_ in ranges)
        for unit, (start, end) in islice(skipped, _SKIPS):
            yield f"a gap that abstinence has left unread: {self._shown(start, end)}{_of(unit)}"

    def _due_groups(self) -> list[Group]:
        if self.windows is None or not self.state.stale:
            return []
        return self.groups.due(self.part.units if self.part else None, self._chosen)

    def _try_groups(self, most: int) -> None:
        """Groups that failed take what others leave; where these leave nothing, one of them has a turn in every other run."""
        failed = [group for group in self._every_group if group.failure is not None]
        idle = not self.taken_groups and not self.selector.taken
        left = most - len(self.selector.taken)
        self.taken_groups += taken(failed, left, at_least_one=idle or not self.state.retried)

    def _reason(self, group: Group) -> Reason:
        if self.forced:
            return "forced"
        return "new" if group.failure is None else "failed"

    def _group(self, group: Group) -> Iterator[WorkUnit]:
        """Its work units, each read as a whole, and as far as it was read before."""
        unit, bound, reason = self.units[group.place], group.bound, self._reason(group)
        if self.windows is None:
            return
        name = self.windows.starts[bound.first]
        for index in range(bound.first, bound.after):
            start, end = self.windows[index]
            end = max(end, self.state.high(unit, start) or end)
            is_open = index in self.windows.open
            yield WorkUnit(start, end, unit, start, reason, is_open, self._grid(index), name)
        for start, end in bound.rest:
            yield WorkUnit(start, end, unit, start, "rest", bound=name)

    def _old(self, works: Iterable[WorkUnit]) -> Iterator[Old]:
        """The old windows that these work units replace."""
        bound = dict.fromkeys((work.unit, work.bound) for work in works if work.bound is not None)
        for unit, name in bound:
            holding = (
                self.groups.of(unit, self.windows.index[name or 0]) if self.windows is not None else None
            )
            for start, _ in holding.old if holding else ():
                yield Old(unit, start, name)

    def _loaded_early(self) -> Iterator[DeferredUnits]:
        """What is not known yet to have been loaded before its time."""
        if self.since is not None:
            for unit, intervals in self.state.loaded_after(self.since).items():
                for interval in intervals:
                    yield DeferredUnits(unit, interval[0], interval[1], self.state.grid_of(interval).text)

    def _ahead(self) -> Iterator[str]:
        """What was loaded before its time, with what becomes of it."""
        now = floor_minute(self.now)
        units: dict[Interval, list[str]] = {}
        early, above = self.state.early, self.state.loaded_after(now + AHEAD)
        for unit in dict.fromkeys([*early, *above]):
            intervals = (*early.get(unit, ()), *above.get(unit, ()))
            for stretch in union(
                sorted((interval[0], interval[1]) for interval in intervals if interval[1] > now)
            ):
                units.setdefault(stretch, []).append(unit)
        for (start, end), some in islice(units.items(), _SKIPS):
            of = _of(some[0]) if len(some) == 1 else f" of {len(some):,} units"
            yield (
                f"{self._shown(start, end)}{of} was loaded before its time, by a clock that ran ahead, or --now: each window of it is read again"
                " once it is over. To read them as they grow, go back to the state before (state rewind)"
            )

    def _old_windows(self) -> Iterator[str]:
        """What is in the table as it was cut before, and what becomes of it."""
        count = sum(len(each.old) for unit in self.units for each in self.groups.bounds(unit))
        if count:
            yield (
                f"{counted(count, 'window')} of a unit {'is' if count == 1 else 'are'} in the table as they were cut before: the commit that"
                " reads over one again deletes all of its rows, and reads all that it held"
            )
        for place, bound, wanted in self.groups.waiting[:_SKIPS]:
            lacks = ", ".join(self._shown(*part) for part in wanted)
            yield (
                f"{self._label(bound.first, bound.after, self.units[place])} waits for windows that hold {lacks}, which windows as they were cut"
                " before have loaded, and no window holds now. Where none ever will, put `from` or `to` back, or load the table again"
                " (state reset --replace)"
            )

    def _choose(self) -> None:
        for place, unit in enumerate(self.units):
            if self.unit_due is not None and self.part is None:
                dues, more = self.unit_due.before(self.selector.until, self.selector.most, unit)
                self.selector.more(more)
            else:
                dues = self._due(unit)
            for due in self.groups.others(unit, dues):
                self.selector.offer(Neighbours(due, place))

    def _due(self, unit: str) -> list[Due]:
        """What is due of a unit, or of that what was asked for."""
        part = self.part
        if part is None:
            return self.unit_due.of(unit) if self.unit_due else [self._timeless(unit)]
        if part.units is not None and unit not in part.units:
            return []
        if self.unit_due is None:
            due = self._timeless(unit)
            return [due._replace(reason="forced") if self.forced else due]
        dues = self.unit_due.forced(unit) if self.forced else self.unit_due.of(unit)
        return dues if self._chosen is None else list(_within(dues, self._chosen))

    @cached_property
    def _chosen(self) -> list[int] | None:
        """The indexes of the windows that the part holds, ascending; None: all."""
        if self.part is None or self.part.ranges is None or self.windows is None:
            return None
        return sorted(
            {index for start, end in self.part.ranges for index in self.windows.touching(start, end)}
        )

    def _timeless(self, unit: str) -> Due:
        """Without time nothing says that a unit is complete: each run reads it. Who was left out longest goes first."""
        failed = self.state.failed.get(unit, {}).get(None)
        if failed and failed.attempts:
            return Due(0, 1, "failed", milliseconds(self.now), unit in self.state.units, failed)
        since = failed.at if failed else None
        return Due(0, 1, "new", milliseconds(self.now) if since is None else since, unit in self.state.units)

    def _work(self, index: int, unit: str, due: Due) -> WorkUnit:
        if self.windows is None:
            return WorkUnit(None, None, unit, None, due.reason)
        start, end = self.windows.starts[index], self.windows.ends[index]
        lower, bound = start, self.groups.of(unit, index)
        if due.served and due.reason != "forced" and not self.whole and bound is None:
            lower = min(self.cutoffs.lower(start, end if due.high is None else due.high), end)
        return WorkUnit(
            start, end, unit, lower, due.reason, index in self.windows.open, self._grid(index),
            start if bound else None,
        )  # fmt: skip

    def _grid(self, index: int) -> str:
        if self.windows is None:
            return "none"
        return self._grids[0] if len(self._grids) == 1 else self._grids[self.windows.stretch(index)]

    def _deferred(self) -> Iterator[DeferredUnits]:
        """What must be remembered: the cap leaves it out, and nothing but this says that it is due."""
        for first, after, (due, place) in self.selector.left:
            unit, forced = self.units[place], due.reason == "forced"
            if self.windows is None:
                yield DeferredUnits(unit, None, None, "none", forced)
            else:
                start, end = self.windows.starts[first], self.windows.ends[after - 1]
                yield DeferredUnits(unit, start, end, self._grid(first), forced)

    def _skips(self) -> Iterator[Skip]:
        """Windows to come, units that are gone, what is left for later, and what is loaded."""
        if self.windows is not None:
            to = self.definition.to_at(self.now)
            if to > milliseconds(self.now):
                what = f"[{self._at(floor_minute(self.now))}, {self._at(to)})"
                yield Skip(what, "future: windows are planned when their time has come")
        gone = set(self.state.units) - set(self.units) - {NO_UNIT}
        yield from (
            Skip(words(unit), "gone: the units no longer hold it; what was loaded of it stays known")
            for unit in sorted(gone)
        )
        for group in self._every_group:
            if group not in self.taken_groups:
                what = self._label(group.bound.first, group.bound.after, self.units[group.place])
                yield Skip(
                    what,
                    "left for a later run: read in one commit, since they share windows as they were cut before",
                )
        for place, bound, wanted in self.groups.waiting:
            what = self._label(bound.first, bound.after, self.units[place])
            lacks = ", ".join(self._shown(*part) for part in wanted)
            yield Skip(
                what,
                f"waits for windows that hold {lacks}: the rows of windows as they were cut before stay until then",
            )
        for first, after, (_, place) in self.selector.left:
            yield Skip(self._label(first, after, self.units[place]), f"left for a later run by {self._cap}")
        if self.unit_due is not None:
            yield from self._loaded(self.unit_due)

    def _loaded(self, unit_due: UnitDue) -> Iterator[Skip]:
        """Ranges of neighbouring windows that are loaded and not due."""
        job = self.cutoffs.job
        since = (
            f", and end at or before the job's cutoff {self._at(job)}"
            if job is not None and self.cutoffs.grace
            else ""
        )
        for unit in self.units:
            dues = self._due(unit)
            for known in unit_due.known(unit):
                for first, after in _left(known[0], known[1], dues):
                    yield Skip(
                        self._label(first, after, unit), f"{counted(after - first, 'window')} loaded{since}"
                    )

    def _label(self, first: int, after: int, unit: str) -> str:
        if self.windows is None:
            return words(unit)
        return f"{self._shown(self.windows.starts[first], self.windows.ends[after - 1])}{_of(unit)}"

    def _at(self, instant: int) -> str:
        return as_datetime(instant, self.definition.zone).isoformat()

    def _shown(self, start: int, end: int) -> str:
        return f"[{self._at(start)}, {self._at(end)})"


def _of(unit: str) -> str:
    return "" if unit == NO_UNIT else f" of {words(unit)}"


def _left(first: int, after: int, dues: Sequence[Due]) -> Iterator[tuple[int, int]]:
    """What is left of a range of windows without those that are due, which are ascending."""
    reached = first
    for due in dues[bisect_right(dues, first, key=lambda due: due.after) :]:
        if due.first >= after:
            break
        if reached < due.first:
            yield reached, due.first
        reached = due.after
    if reached < after:
        yield reached, after


def _within(dues: Iterable[Due], chosen: Sequence[int]) -> Iterator[Due]:
    """The parts that lie in chosen windows, ascending."""
    for due in dues:
        inside = chosen[bisect_left(chosen, due.first) : bisect_left(chosen, due.after)]
        for first, after in consecutive(inside):
            yield due._replace(first=first, after=after)


def _portions(works: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """Slices of whole windows where one fits, so that a read is a rectangle."""
    portion: list[WorkUnit] = []
    for _, same in groupby(works, lambda work: work.start):
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


def _dense(works: Sequence[WorkUnit], limit: int) -> Iterator[tuple[WorkUnit, ...]]:
    """As few slices as can be."""
    return (tuple(works[first : first + limit]) for first in range(0, len(works), limit))
