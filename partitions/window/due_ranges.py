"""Which windows of a unit are due, and why (docs/reference/windows.md).

Windows are spoken of as ranges of indexes, so that the work of a unit that is complete costs the same however many windows it
has, and the whole plan as much as there is to tell apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from partitions.intervals import union
from partitions.window.grace import Cutoffs
from partitions.window.known_windows import Known, KnownWindows
from partitions.window.state import WindowState
from partitions.window.window_intervals import WindowInterval
from partitions.window.windows import Windows
from partitions.window.work_outcomes import Failure

Reason = Literal["new", "grace", "failed", "forced", "rest"]
"""Why a work unit runs; ``rest`` is what an old window held, no window holds now, and is deleted with the old one."""

Mark = tuple[int, int, Reason]
"""Windows ``[first, after)`` that are due whatever the cutoffs say."""


class DueRange(NamedTuple):
    """Neighbouring windows of one unit that are due for the same reason.

    Attributes:
        first: index of the first.
        after: index after the last.
        reason: why.
        high: their own high, if it is not their end; None for whole windows, and for those that have none.
        served: whether they have a usable high.
        failure: of the last attempt, if that failed; such a window stands by itself.
    """

    first: int
    after: int
    reason: Reason
    high: int | None = None
    served: bool = False
    failure: Failure | None = None

    @property
    def alone(self) -> bool:
        """Whether it has failed so often that it shares no slice with others any more."""
        return self.failure is not None and self.failure.attempts > 1


@dataclass(frozen=True)
class UnitDue:
    """Looks up what is due of one unit after another.

    Attributes:
        state: what is committed; its own grid is the definition's.
        windows: all of the plan.
        cutoffs: of the plan.
    """

    state: WindowState
    windows: Windows
    cutoffs: Cutoffs

    @cached_property
    def _windows(self) -> KnownWindows:
        return KnownWindows(self.state, self.windows)

    def known(self, unit: str) -> list[Known]:
        """Return the windows of a unit that have a high, ascending."""
        return self._windows.known(unit)

    def of(self, unit: str) -> list[DueRange]:
        """All that is due of a unit, ascending."""
        failed = self._failed(unit)
        tried = sorted(failed)
        dues = self._dues(unit, self.known(unit), 0, tried, self._marks(unit, tried))
        return [due._replace(failure=failed.get(due.first)) for due in dues] if failed else dues

    def before(self, until: int, most: int, unit: str) -> tuple[list[DueRange], int]:
        """All that is due of a unit, but that of windows which were never loaded some are only counted.

        A plan looks at every interval of every unit, and at most of them only here.

        Args:
            until: those from this index on are counted.
            most: and so are all behind so many.
            unit: its identity.
        """
        state = self.state
        if any(unit in part for part in (state.failed, state.left, state.whole, state.stale, state.early)):
            return self.of(unit), 0
        intervals: Sequence[WindowInterval] = self.state.units.get(unit, ())
        again = self._again(unit)
        firsts, afters = self._windows.edges
        dues, more, reached = list[DueRange](), 0, 0
        for interval in intervals:
            first, after = firsts.get(interval[0], -1), afters.get(interval[1], -1)
            if first < reached or after < first or len(interval) > 2:
                # The last interval may well end with an open window; if others lie otherwise, all have to be compared.
                known: list[Known] = [*self._windows.of(interval)] if interval is intervals[-1] else []
                known.sort(key=lambda each: each[:2])
                if not known or known[0][0] < reached:
                    return self.of(unit), 0
                return dues + self._dues(unit, known, reached), more
            if reached < first:
                if reached < until and most > 0:
                    dues.append(DueRange(reached, first, "new"))
                    most -= first - reached
                else:
                    more += first - reached
            if after > again:
                dues += self._whole(unit, first, after, ())
            reached = after
        return dues + self._never(reached, len(self.windows), ()), more

    def _again(self, unit: str) -> int:
        """No window below this index that is loaded up to its end can be due by the cutoffs."""
        return min([self._tail, *self._open(unit)])

    def _dues(
        self,
        unit: str,
        known: Iterable[Known],
        reached: int = 0,
        tried: Sequence[int] = (),
        marks: Sequence[Mark] = (),
    ) -> list[DueRange]:
        """What is due from an index on, of windows of which some are known."""
        dues, again = list[DueRange](), self._again(unit)
        for first, after, high in known:
            if reached < first:
                dues += self._never(reached, first, tried) if tried else (DueRange(reached, first, "new"),)
            if high is not None:
                dues += self._part(unit, first, high, marks)
            elif marks or after > again:
                dues += self._whole(unit, first, after, marks)
            reached = after
        return dues + self._never(reached, len(self.windows), tried)

    def forced(self, unit: str) -> list[DueRange]:
        """All windows, each to be read from its start on."""
        dues, reached = [], 0
        for first, after, high in self.known(unit):
            dues += self._never(reached, first, ())
            dues.append(DueRange(first, after, "forced", high, served=True))
            reached = after
        dues += self._never(reached, len(self.windows), ())
        return [due._replace(reason="forced") for due in dues]

    @cached_property
    def _tail(self) -> int:
        """The first window that is read again although it is loaded: it ends after the job's cutoff, and grace exceeds abstinence."""
        if self.cutoffs.job is None or self.cutoffs.grace <= self.cutoffs.abstinent:
            return len(self.windows)
        return bisect_right(self.windows.ends, self.cutoffs.job)

    def _never(self, first: int, after: int, tried: Sequence[int]) -> list[DueRange]:
        """Of windows that have no usable high: what was tried is told from what was not."""
        dues, reached = list[DueRange](), first
        for index in tried[bisect_left(tried, first) : bisect_left(tried, after)]:
            if reached < index:
                dues.append(DueRange(reached, index, "new"))
            dues.append(DueRange(index, index + 1, "failed"))
            reached = index + 1
        if reached < after:
            dues.append(DueRange(reached, after, "new"))
        return dues

    def _whole(self, unit: str, first: int, after: int, marks: Sequence[Mark]) -> Iterator[DueRange]:
        """Of windows that are loaded up to their ends: those with a mark, and those that are read again."""
        tail: list[Mark] = [(max(first, self._tail), after, "grace")]
        grown: list[Mark] = [
            (index, index + 1, "grace")
            for index in self._open(unit)
            if self.cutoffs.read_again(self.windows.ends[index], self.windows.ends[index], grows=True)
        ]
        # A mark is (first, after, reason), so the one before may reach in.
        inside = marks[max(bisect_left(marks, (first,)) - 1, 0) : bisect_left(marks, (after,))]
        for start, end, reason in over(over(tail, grown), inside) if inside or grown else tail:
            if max(start, first) < min(end, after):
                yield DueRange(max(start, first), min(end, after), reason, served=True)

    def _part(self, unit: str, index: int, high: int, marks: Sequence[Mark]) -> Iterator[DueRange]:
        """Of one window that is not loaded up to its end, or loaded further."""
        reason: Reason | None = next((mark[2] for mark in marks if mark[0] <= index < mark[1]), None)
        end, grows = self.windows.ends[index], index in self._open(unit)
        if reason is None and not self.cutoffs.read_again(end, high, grows=grows):
            return
        if reason is None or reason == "grace":
            reason = "new" if high < end else "grace"
        yield DueRange(index, index + 1, reason, high, served=True)

    def _open(self, unit: str) -> list[int]:
        if unit not in self.state.open:
            return []
        index = self.windows.index
        return [index[start] for start in self.state.open[unit] if start in index]

    def _failed(self, unit: str) -> dict[int, Failure]:
        failed = self.state.failed.get(unit)
        if not failed:
            return {}
        index = self.windows.index
        return {index[start]: failure for start, failure in failed.items() if start in index}

    def _marks(self, unit: str, failed: Sequence[int]) -> list[Mark]:
        """What was left out, what failed, and what was asked for; of two the latter counts. Each failure stands apart."""
        left: list[Mark] = [
            (*range_, "grace") for range_ in self._windows.marked(self.state.left.get(unit, ()))
        ]
        again = [
            *self._windows.marked(self.state.whole.get(unit, ())),
            *self._come(self.state.early.get(unit, ())),
        ]
        whole: list[Mark] = [(*range_, "forced") for range_ in union(sorted(again))]
        tried: list[Mark] = [(index, index + 1, "failed") for index in failed]
        if not (left or whole or tried):
            return []
        asked: list[Mark] = [
            (*mark[:2], "forced") for mark in tried if any(start <= mark[0] < end for start, end, _ in whole)
        ]
        return over(over(over(left, tried), whole), asked)

    def _come(self, intervals: Iterable[WindowInterval]) -> Iterator[tuple[int, int]]:
        """The windows of these intervals whose time has come: now, they end no earlier than they were loaded up to."""
        for first, after, high in (part for interval in intervals for part in self._windows.of(interval)):
            if high is None or high <= self.windows.ends[first]:
                yield first, after


def over(below: Sequence[Mark], above: Sequence[Mark]) -> list[Mark]:
    """Marks under others: both ascending; if they overlap, those above count."""
    made = list(above)
    for first, after, reason in below:
        reached = first
        for start, end, _ in above:
            if start < after and reached < end:
                if reached < start:
                    made.append((reached, start, reason))
                reached = max(reached, end)
        if reached < after:
            made.append((reached, after, reason))
    return sorted(made)
