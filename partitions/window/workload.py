"""The workload of a plan: all that is due, and what of it one run takes on (docs/reference/windows.md).

Belongs here: what is due, as counts and ranges. How it becomes slices is ``packing``'s, what is said of it ``explanation``'s.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from partitions.instants import floor_minute, milliseconds
from partitions.intervals import consecutive
from partitions.request import Part
from partitions.window.bound_work_units import Group, Groups, packed, taken
from partitions.window.definition import WindowWatermark
from partitions.window.due_ranges import DueRange, Reason, UnitDue
from partitions.window.early import loaded_early
from partitions.window.fair_share import Neighbours, PlanBudget, UnitSelector
from partitions.window.grace import Cutoffs, job_cutoff
from partitions.window.state import WindowState
from partitions.window.windows import Windows
from partitions.window.work_outcomes import DeferredUnits


@dataclass
class Workload:
    """What is due on top of a state, and what of it is taken.

    Attributes:
        definition: what the user declared.
        state: what is committed, and what is known since to have been loaded before its time.
        units: identities, in the order that they were given.
        now: the clock of this run, aware.
        ranged: whether the source can be asked for any stretch of time, not only for windows.
        forced: whether what is asked for is read whatever the cutoffs say.
        part: what is asked for; None: all that is due.
        since: what is loaded beyond this instant was loaded by a clock that ran ahead; None: no clock is known to have.
    """

    definition: WindowWatermark
    state: WindowState
    units: tuple[str, ...]
    now: datetime
    ranged: bool
    forced: bool
    part: Part | None
    since: int | None

    def __post_init__(self) -> None:
        self._look_up()
        self._share_out()

    def _look_up(self) -> None:
        """Find what decides about windows and units."""
        definition, timed = self.definition, self.definition.time_entry is not None
        self.early = tuple(loaded_early(self.state, self.since)) if timed else ()
        self.state = self.state.after((), early=self.early) if self.early else self.state
        self.windows = definition.windows(self.now) if timed else None
        job = job_cutoff(self.state, definition.grace_ms, floor_minute(self.now))
        self.cutoffs = Cutoffs(job, definition.grace_ms, definition.abstinent_ms)
        self.unit_due = UnitDue(self.state, self.windows, self.cutoffs) if self.windows is not None else None
        windows = self.windows if self.windows is not None else Windows.of(())
        self.groups = Groups(self.state, windows, self.units, self.ranged)
        self.due_groups = self._due_groups()

    def _share_out(self) -> None:
        """Take groups first, then work units that stand for themselves; groups that failed take what is left."""
        definition = self.definition
        limit = 1 if definition.pacing else definition.checkpoint.interval_windows
        whole = PlanBudget(definition.max_slices, limit, definition.parallelism)
        healthy = [group for group in self.due_groups if group.failure is None]
        self.taken_groups = taken(healthy, whole.most, at_least_one=True)
        used = sum(group.size for group in self.taken_groups)
        self.budget = whole.less(len(list(packed(self.taken_groups, limit))), used)
        ends = self.windows.ends if self.windows is not None else ()
        self.selector = UnitSelector(self.budget, ends, milliseconds(self.now), turn=not self.state.retried)
        self._choose()
        self._try_groups(whole.most - used)

    def _due_groups(self) -> list[Group]:
        if self.windows is None or not self.state.stale:
            return []
        return self.groups.due(self.part.units if self.part else None, self._chosen)

    def _choose(self) -> None:
        for place, unit in enumerate(self.units):
            if self.unit_due is not None and self.part is None:
                dues, more = self.unit_due.before(self.selector.until, self.selector.most, unit)
                self.selector.more(more)
            else:
                dues = self.due(unit)
            for due in self.groups.others(unit, dues):
                self.selector.offer(Neighbours(due, place))

    def _try_groups(self, most: int) -> None:
        """Groups that failed take what others leave; if these leave nothing, one of them has a turn in every other run."""
        failed = [group for group in self.due_groups if group.failure is not None]
        idle = not self.taken_groups and not self.selector.taken
        left = most - len(self.selector.taken)
        self.taken_groups += taken(failed, left, at_least_one=idle or not self.state.retried)

    def reason(self, group: Group) -> Reason:
        """Return why a group runs."""
        if self.forced:
            return "forced"
        return "new" if group.failure is None else "failed"

    def due(self, unit: str) -> list[DueRange]:
        """Return what is due of a unit, or of that what was asked for."""
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

    def _timeless(self, unit: str) -> DueRange:
        """Without time nothing says that a unit is complete: each run reads it. Who was left out longest goes first."""
        failed = self.state.failed.get(unit, {}).get(None)
        if failed and failed.attempts:
            return DueRange(0, 1, "failed", milliseconds(self.now), unit in self.state.units, failed)
        since = failed.at if failed else None
        return DueRange(
            0, 1, "new", milliseconds(self.now) if since is None else since, unit in self.state.units
        )

    def deferred(self) -> Iterator[DeferredUnits]:
        """Yield what must be remembered: the cap on work units leaves it out, and nothing but this says that it is due."""
        for first, after, (due, place) in self.selector.left:
            unit, forced = self.units[place], due.reason == "forced"
            if self.windows is None:
                yield DeferredUnits(unit, None, None, "none", forced)
            else:
                start, end = self.windows.starts[first], self.windows.ends[after - 1]
                yield DeferredUnits(unit, start, end, self.windows.grid(first).text, forced)


def _within(dues: Iterable[DueRange], chosen: Sequence[int]) -> Iterator[DueRange]:
    """The parts that lie in chosen windows, ascending."""
    for due in dues:
        inside = chosen[bisect_left(chosen, due.first) : bisect_left(chosen, due.after)]
        for first, after in consecutive(inside):
            yield due._replace(first=first, after=after)
