"""The workload of a plan: the due work, and the part that one run takes on.

Counts and ranges of due work are here. ``packing`` cuts them into slices; ``explanation`` describes them.

See docs/reference/windows.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from partitions.instants import floor_minute, milliseconds
from partitions.intervals import consecutive
from partitions.request import WorkUnitSelection
from partitions.window.awaited_windows import AwaitedWindows
from partitions.window.definition import WindowWatermark
from partitions.window.due_ranges import DueFinder, DueRange
from partitions.window.early import loaded_early
from partitions.window.fair_share import PlanBudget, UnitDueRange, UnitSelector
from partitions.window.grace import Cutoffs, job_cutoff
from partitions.window.reasons import Reason
from partitions.window.state import WindowState
from partitions.window.upstream import UpstreamTables
from partitions.window.windows import Windows
from partitions.window.work_outcomes import WindowSpan
from partitions.window.work_unit_groups import WorkUnitGroup, WorkUnitGroups, pack_groups, select_groups


@dataclass
class Workload:
    """The due work on top of a state, and the selection of a run.

    Attributes:
        definition: the declared watermark.
        state: the committed state, with the windows that turn out to have been loaded before their end.
        units: the units' identities, in their order.
        now: the clock of this run, aware.
        reads_any_stretch: whether the source can read a time range that is no window. If not, tied windows
            wait until windows cover their rest.
        forced: whether the request ignores the cutoffs.
        part: the requested part; None: all due work.
        early_since: a clock that ran ahead has loaded all windows beyond this instant, in epoch
            milliseconds; None: no clock ran ahead.
        upstream: what the table that is read holds; None if the windows do not wait for it.
    """

    definition: WindowWatermark
    state: WindowState
    units: tuple[str, ...]
    now: datetime
    reads_any_stretch: bool
    forced: bool
    part: WorkUnitSelection | None
    early_since: int | None
    upstream: UpstreamTables | None = None

    def __post_init__(self) -> None:
        self._prepare()
        self._select()

    def _prepare(self) -> None:
        """Compute windows, cutoffs and groups."""
        definition, timed = self.definition, self.definition.time_entry is not None
        self.early = tuple(loaded_early(self.state, self.early_since)) if timed else ()
        self.state = self.state.after((), early=self.early) if self.early else self.state
        self.windows = definition.windows(self.now) if timed else None
        job = job_cutoff(self.state, definition.grace_ms, floor_minute(self.now))
        self.cutoffs = Cutoffs(job, definition.grace_ms, definition.abstinent_ms)
        self.awaited = (
            AwaitedWindows.of(
                self.upstream, definition, self.state, self.windows, self.now, self._requested_indexes
            )
            if self.upstream is not None and self.windows is not None
            else None
        )
        self.unit_due = (
            DueFinder(self.state, self.windows, self.cutoffs, self.awaited)
            if self.windows is not None
            else None
        )
        windows = self.windows if self.windows is not None else Windows.of(())
        self.groups = WorkUnitGroups(self.state, windows, self.units, self.reads_any_stretch)
        self.due_groups = self._due_groups()

    def _select(self) -> None:
        """Select groups first, then independent work units; groups that failed get the remaining slots."""
        definition = self.definition
        limit = 1 if definition.pacing else definition.checkpoint.interval_windows
        budget = PlanBudget(definition.max_slices, limit, definition.parallelism)
        healthy = [group for group in self.due_groups if group.failure is None]
        self.taken_groups = select_groups(healthy, budget.max_work_units, at_least_one=True)
        used = sum(group.size for group in self.taken_groups)
        self.budget = budget.remaining(len(list(pack_groups(self.taken_groups, limit))), used)
        ends = self.windows.ends if self.windows is not None else ()
        self.selector = UnitSelector(self.budget, ends, milliseconds(self.now), turn=not self.state.retried)
        self._offer_due_ranges()
        self._select_failed_groups(budget.max_work_units - used)

    def _due_groups(self) -> list[WorkUnitGroup]:
        if self.windows is None or not self.state.old:
            return []
        groups = self.groups.due(self.part.units if self.part else None, self._requested_indexes)
        return [group for group in groups if not self._waits(group)]

    def _waits(self, group: WorkUnitGroup) -> bool:
        """Return whether a window of a group waits for the upstream."""
        waiting = self.awaited.waiting(self.units[group.unit_index]) if self.awaited else ()
        first, after, *_ = group.tied_windows
        return any(lower < after and first < upper for lower, upper in waiting)

    def _offer_due_ranges(self) -> None:
        for unit_index, unit in enumerate(self.units):
            if self.unit_due is not None and self.part is None:
                dues, more = self.unit_due.due_and_count(
                    self.selector.until, self.selector.max_work_units, unit
                )
                self.selector.count_new(more)
            else:
                dues = self.due(unit)
            for due in self.groups.ungrouped(unit, dues):
                self.selector.offer(UnitDueRange(due, unit_index))

    def _select_failed_groups(self, slots: int) -> None:
        """Select groups that failed for the remaining slots.

        If no slot remains, one such group is selected in every other run.
        """
        failed = [group for group in self.due_groups if group.failure is not None]
        idle = not self.taken_groups and not self.selector.selected
        remaining = slots - len(self.selector.selected)
        self.taken_groups += select_groups(failed, remaining, at_least_one=idle or not self.state.retried)

    def reason(self, group: WorkUnitGroup) -> Reason:
        """Return why a group runs."""
        if self.forced:
            return "forced"
        return "new" if group.failure is None else "failed"

    @property
    def requested_units(self) -> Sequence[str]:
        """Return the units of the request."""
        part = self.part
        return (
            self.units
            if part is None or part.units is None
            else [unit for unit in self.units if unit in part.units]
        )

    def due(self, unit: str) -> list[DueRange]:
        """Return the due ranges of a unit, or the requested ones among them."""
        part = self.part
        if part is None:
            return self.unit_due.of(unit) if self.unit_due else [self._due_without_windows(unit)]
        if part.units is not None and unit not in part.units:
            return []
        if self.unit_due is None:
            due = self._due_without_windows(unit)
            return [due._replace(reason="forced") if self.forced else due]
        dues = self.unit_due.forced(unit) if self.forced else self.unit_due.of(unit)
        return dues if self._requested_indexes is None else list(_within(dues, self._requested_indexes))

    @cached_property
    def _requested_indexes(self) -> list[int] | None:
        """Return the indexes of the requested windows, ascending; None: all."""
        if self.part is None or self.part.ranges is None or self.windows is None:
            return None
        return sorted(
            {index for start, end in self.part.ranges for index in self.windows.touching(start, end)}
        )

    def _due_without_windows(self, unit: str) -> DueRange:
        """Return the due range of a unit without windows: every run reads it, the longest waiting first."""
        failed = self.state.failed.get(unit, {}).get(None)
        if failed and failed.attempts:
            return DueRange(0, 1, "failed", milliseconds(self.now), unit in self.state.units, failed)
        since = failed.at if failed else None
        return DueRange(
            0, 1, "new", milliseconds(self.now) if since is None else since, unit in self.state.units
        )

    def deferred(self) -> Iterator[WindowSpan]:
        """Yield due work beyond the cap that the next plan would not find again."""
        for first, after, (due, unit_index) in self.selector.over_cap:
            unit, forced = self.units[unit_index], due.reason == "forced"
            if due.reason in ("upstream", "changed"):
                continue  # the state keeps what has changed upstream
            if self.windows is None:
                yield WindowSpan(unit, None, None, "none", forced)
            else:
                start, end = self.windows.starts[first], self.windows.ends[after - 1]
                yield WindowSpan(unit, start, end, self.windows.grid(first).text, forced)


def _within(dues: Iterable[DueRange], chosen: Sequence[int]) -> Iterator[DueRange]:
    """Yield the parts of due ranges in chosen windows, ascending."""
    for due in dues:
        inside = chosen[bisect_left(chosen, due.first) : bisect_left(chosen, due.after)]
        for first, after in consecutive(inside):
            yield due._replace(first=first, after=after)
