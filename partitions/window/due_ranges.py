"""The windows of a unit that are due, and why (docs/reference/windows.md).

Windows are ranges of indexes here. So a complete unit costs the same however many windows it has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from partitions.intervals import subtract, union
from partitions.window.grace import Cutoffs
from partitions.window.loaded_windows import LoadedRange, LoadedWindows
from partitions.window.reasons import Reason
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure

if TYPE_CHECKING:
    from partitions.window.awaited_windows import AwaitedWindows

MarkedRange = tuple[int, int, Reason]
"""Windows ``[first, after)`` that are due regardless of the cutoffs."""


class DueRange(NamedTuple):
    """Adjacent windows of one unit that are due for the same reason.

    Attributes:
        first: the first window's index.
        after: the index after the last window.
        reason: why they are due.
        high: their high, if it differs from their end; None for fully loaded windows and for those without
        a high.
        served: whether they have a high.
        failure: the failure of the last try, if it failed; such a window is a range of its own.
    """

    first: int
    after: int
    reason: Reason
    high: int | None = None
    served: bool = False
    failure: Failure | None = None

    @property
    def is_alone(self) -> bool:
        """Return whether it has failed so often that it gets its own slice."""
        return self.failure is not None and self.failure.attempts > 1


@dataclass(frozen=True)
class DueFinder:
    """Finds the due ranges of units.

    Attributes:
        state: the committed state; its default grid is the definition's.
        windows: all windows of the plan.
        cutoffs: the plan's cutoffs.
        awaited: the windows that wait for the upstream; None if no window waits.
    """

    state: WindowState
    windows: Windows
    cutoffs: Cutoffs
    awaited: AwaitedWindows | None = None

    @cached_property
    def _windows(self) -> LoadedWindows:
        return LoadedWindows(self.state, self.windows)

    def loaded_ranges(self, unit: str) -> list[LoadedRange]:
        """Return the windows of a unit that have a high, ascending."""
        return self._windows.of_unit(unit)

    def of(self, unit: str) -> list[DueRange]:
        """Return all due ranges of a unit, ascending."""
        failed = self._failures_by_index(unit)
        tried = sorted(failed)
        dues = self._due_from(unit, self.loaded_ranges(unit), 0, tried, self._marks(unit, tried))
        dues = [due._replace(failure=failed.get(due.first)) for due in dues] if failed else dues
        return self._without_held_back(unit, dues)

    def _without_held_back(self, unit: str, dues: list[DueRange]) -> list[DueRange]:
        """Return the parts of due ranges that neither wait for the upstream nor lack rows for good there."""
        held_back = self.awaited.held_back(unit) if self.awaited else ()
        if not held_back:
            return dues
        return [
            due._replace(first=first, after=after)
            for due in dues
            for first, after in subtract([(due.first, due.after)], held_back)
        ]

    def due_and_count(self, until: int, max_new: int, unit: str) -> tuple[list[DueRange], int]:
        """Return the due ranges of a unit, and the number of further new windows.

        A plan visits every interval of every unit, and most of them only here. So new windows beyond what
        the plan can load are only counted.

        Args:
            until: new windows from this index on are counted.
            max_new: new windows beyond this number are counted.
            unit: the unit's identity.
        """
        state = self.state
        if any(
            unit in part
            for part in (state.failed, state.over_cap, state.reread_whole, state.old, state.early)
        ) or (self.awaited and (self.awaited.held_back(unit) or self.awaited.changed(unit))):
            return self.of(unit), 0
        intervals: Sequence[WindowInterval] = self.state.units.get(unit, ())
        again = self._first_rereadable(unit)
        firsts, afters = self._windows.edges
        dues, more, reached = list[DueRange](), 0, 0
        for interval in intervals:
            first, after = firsts.get(interval[0], -1), afters.get(interval[1], -1)
            if first < reached or after < first or len(interval) > 2:
                # The last interval often ends with an open window. If others differ from the grid, all must be compared.
                loaded: list[LoadedRange] = [*self._windows.of(interval)] if interval is intervals[-1] else []
                loaded.sort(key=lambda loaded_range: loaded_range[:2])
                if not loaded or loaded[0][0] < reached:
                    return self.of(unit), 0
                return dues + self._due_from(unit, loaded, reached), more
            if reached < first:
                if reached < until and max_new > 0:
                    dues.append(DueRange(reached, first, "new"))
                    max_new -= first - reached
                else:
                    more += first - reached
            if after > again:
                dues += self._due_loaded(unit, first, after, ())
            reached = after
        return dues + self._new_or_failed(reached, len(self.windows), ()), more

    def _first_rereadable(self, unit: str) -> int:
        """Return an index below which no fully loaded window can be due by the cutoffs."""
        return min([self._first_in_grace, *self._open_indexes(unit)])

    def _due_from(
        self,
        unit: str,
        loaded: Iterable[LoadedRange],
        reached: int = 0,
        tried: Sequence[int] = (),
        marks: Sequence[MarkedRange] = (),
    ) -> list[DueRange]:
        """Return the due ranges from an index on, where some windows are loaded."""
        dues, again = list[DueRange](), self._first_rereadable(unit)
        for first, after, high in loaded:
            if reached < first:
                dues += (
                    self._new_or_failed(reached, first, tried)
                    if tried
                    else (DueRange(reached, first, "new"),)
                )
            if high is not None:
                dues += self._due_partly_loaded(unit, first, high, marks)
            elif marks or after > again:
                dues += self._due_loaded(unit, first, after, marks)
            reached = after
        return dues + self._new_or_failed(reached, len(self.windows), tried)

    def forced(self, unit: str) -> list[DueRange]:
        """Return all windows as forced ranges, each read from its start."""
        dues, reached = [], 0
        for first, after, high in self.loaded_ranges(unit):
            dues += self._new_or_failed(reached, first, ())
            dues.append(DueRange(first, after, "forced", high, served=True))
            reached = after
        dues += self._new_or_failed(reached, len(self.windows), ())
        return self._without_held_back(unit, [due._replace(reason="forced") for due in dues])

    @cached_property
    def _first_in_grace(self) -> int:
        """Return the index of the first loaded window that grace reads again.

        It ends after the job's cutoff, if grace exceeds abstinence.
        """
        if self.cutoffs.job is None or self.cutoffs.grace <= self.cutoffs.abstinent:
            return len(self.windows)
        return bisect_right(self.windows.ends, self.cutoffs.job)

    def _new_or_failed(self, first: int, after: int, tried: Sequence[int]) -> list[DueRange]:
        """Return the ranges of windows without a high; windows that failed are separate ranges."""
        dues, reached = list[DueRange](), first
        for index in tried[bisect_left(tried, first) : bisect_left(tried, after)]:
            if reached < index:
                dues.append(DueRange(reached, index, "new"))
            dues.append(DueRange(index, index + 1, "failed"))
            reached = index + 1
        if reached < after:
            dues.append(DueRange(reached, after, "new"))
        return dues

    def _due_loaded(
        self, unit: str, first: int, after: int, marks: Sequence[MarkedRange]
    ) -> Iterator[DueRange]:
        """Yield the fully loaded windows that are marked, or that grace reads again."""
        tail: list[MarkedRange] = [(max(first, self._first_in_grace), after, "grace")]
        grown: list[MarkedRange] = [
            (index, index + 1, "grace")
            for index in self._open_indexes(unit)
            if self.cutoffs.read_again(self.windows.ends[index], self.windows.ends[index], grows=True)
        ]
        # The mark before the first one may still overlap.
        inside = marks[max(bisect_left(marks, (first,)) - 1, 0) : bisect_left(marks, (after,))]
        for start, end, reason in (
            overlay_marks(overlay_marks(tail, grown), inside) if inside or grown else tail
        ):
            if max(start, first) < min(end, after):
                yield DueRange(max(start, first), min(end, after), reason, served=True)

    def _due_partly_loaded(
        self, unit: str, index: int, high: int, marks: Sequence[MarkedRange]
    ) -> Iterator[DueRange]:
        """Yield one window whose high differs from its end, if it is due."""
        reason: Reason | None = next((mark[2] for mark in marks if mark[0] <= index < mark[1]), None)
        end, grows = self.windows.ends[index], index in self._open_indexes(unit)
        if reason is None and not self.cutoffs.read_again(end, high, grows=grows):
            return
        if reason is None or reason == "grace":
            reason = "new" if high < end else "grace"
        yield DueRange(index, index + 1, reason, high, served=True)

    def _open_indexes(self, unit: str) -> list[int]:
        if unit not in self.state.open:
            return []
        index = self.windows.index
        return [index[start] for start in self.state.open[unit] if start in index]

    def _failures_by_index(self, unit: str) -> dict[int, Failure]:
        failed = self.state.failed.get(unit)
        if not failed:
            return {}
        index = self.windows.index
        return {index[start]: failure for start, failure in failed.items() if start in index}

    def _marks(self, unit: str, failed: Sequence[int]) -> list[MarkedRange]:
        """Return the windows of a unit that were left out, that failed, or that must be read whole.

        If two marks overlap, the latter of that list counts. Failed windows are ranges of their own.
        """
        over_cap: list[MarkedRange] = [
            (*range_, "grace") for range_ in self._windows.matching_windows(self.state.over_cap.get(unit, ()))
        ]
        again = [
            *self._windows.matching_windows(self.state.reread_whole.get(unit, ())),
            *self._early_windows_over(self.state.early.get(unit, ())),
        ]
        whole: list[MarkedRange] = [(*range_, "forced") for range_ in union(sorted(again))]
        changed = self.awaited.changed(unit) if self.awaited else ()
        if self.awaited:
            reason, resting = self.awaited.reason, self._resting(unit) if changed else []
            whole = overlay_marks([(*range_, reason) for range_ in subtract(changed, resting)], whole)
        failed_marks: list[MarkedRange] = [(index, index + 1, "failed") for index in failed]
        if not (over_cap or whole or failed_marks):
            return []
        whole_failures: list[MarkedRange] = [
            (*mark[:2], reason)
            for mark in failed_marks
            for start, end, reason in whole
            if start <= mark[0] < end
        ]
        return overlay_marks(overlay_marks(overlay_marks(over_cap, failed_marks), whole), whole_failures)

    def _resting(self, unit: str) -> list[tuple[int, int]]:
        """Return the windows of a unit that grow, and that abstinence keeps from being read."""
        ends, starts = self.windows.ends, self.windows.starts
        highs = {index: self.state.high(unit, starts[index]) for index in self._open_indexes(unit)}
        return sorted(
            (index, index + 1)
            for index, high in highs.items()
            if high is not None and self.cutoffs.rests(ends[index], high)
        )

    def _early_windows_over(self, intervals: Iterable[WindowInterval]) -> Iterator[tuple[int, int]]:
        """Yield the windows of early intervals that are over now.

        Their present end is not before the end up to which they were loaded.
        """
        for first, after, high in (part for interval in intervals for part in self._windows.of(interval)):
            if high is None or high <= self.windows.ends[first]:
                yield first, after


def overlay_marks(below: Sequence[MarkedRange], above: Sequence[MarkedRange]) -> list[MarkedRange]:
    """Overlay marks, both ascending; where they overlap, ``above`` counts."""
    overlaid = list(above)
    for first, after, reason in below:
        reached = first
        for start, end, _ in above:
            if start < after and reached < end:
                if reached < start:
                    overlaid.append((reached, start, reason))
                reached = max(reached, end)
        if reached < after:
            overlaid.append((reached, after, reason))
    return sorted(overlaid)
