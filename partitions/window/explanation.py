"""The explanation of a plan: its reasons, skips and warnings (docs/reference/windows.md)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from partitions.instants import as_datetime, floor_minute, milliseconds
from partitions.intervals import intersect, subtract
from partitions.plan import Skip, pluralize
from partitions.window.awaited_words import AwaitedWords
from partitions.window.due_ranges import DueFinder, DueRange
from partitions.window.early import still_to_come
from partitions.window.units import NO_UNIT
from partitions.window.work_unit import describe_unit
from partitions.window.workload import Workload

_SHOWN = 200
"""The most skips and warnings of a kind that a plan lists."""


@dataclass(frozen=True)
class Explanation:
    """Describes a workload in words."""

    workload: Workload

    @property
    def _awaited(self) -> AwaitedWords | None:
        return AwaitedWords(self.workload.awaited) if self.workload.awaited is not None else None

    @property
    def waiting_for_upstream(self) -> int:
        """Return the number of work units whose part of the upstream is incomplete."""
        return self._awaited.count(self.workload.requested_units) if self._awaited else 0

    def why(self) -> str:
        """Return the plan in a sentence, with the first work unit that waits for the upstream."""
        waits = self._awaited.in_words(self.workload.requested_units) if self._awaited else ""
        return "; ".join(filter(None, (self._why(), waits)))

    def _why(self) -> str:
        if not self.workload.units:
            return "the secondary input lists no unit, so nothing is planned"
        counts = self.workload.selector.counts.copy()
        for group in self.workload.due_groups:
            counts[self.workload.reason(group)] += group.size - len(group.tied_windows.rest)
            counts["rest"] += len(group.tied_windows.rest)
        counts = +counts
        if not counts:
            return self._why_idle()
        total = sum(counts.values())
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.items())
        size = (
            ""
            if self.workload.windows is None
            else f" of {pluralize(len(self.workload.windows), 'window')} x {pluralize(len(self.workload.units), 'unit')}"
        )
        remaining = (
            total
            - len(self.workload.selector.selected)
            - sum(group.size for group in self.workload.taken_groups)
        )
        waits = f"; {remaining:,} left for later runs ({self._cap})" if remaining else ""
        return f"{pluralize(total, 'work unit')}{size} due: {reasons}{waits}"

    @property
    def _cap(self) -> str:
        parallelism = self.workload.definition.parallelism
        if parallelism is not None and len(self.workload.selector.selected) == parallelism:
            return f"parallelism {parallelism}"
        return f"max_slices {self.workload.budget.slices} of {pluralize(self.workload.budget.limit, 'work unit')}"

    def _why_idle(self) -> str:
        if self.workload.windows is not None and not len(self.workload.windows):
            time_range = self.workload.definition.time_range
            has_started = time_range.start(self.workload.now) < min(
                time_range.end(self.workload.now), milliseconds(self.workload.now)
            )
            why = "the first one has not ended" if has_started else "`from` lies at or after `to`"
            return f"there is no window yet: {why}"
        requested_ranges = self.workload.part.ranges if self.workload.forced and self.workload.part else None
        windows = self.workload.windows
        if requested_ranges and windows and not any(windows.touching(*range_) for range_ in requested_ranges):
            span = self._span(windows.starts[0], windows.ends[-1])
            return f"no window intersects the requested range: the windows cover {span}"
        return f"no {'requested ' if self.workload.part else ''}work unit is due"

    def skips(self) -> Iterator[Skip]:
        """Yield the skips with their reasons: the first of them, then a note that there are more."""
        all_skips = self._skips()
        yield from islice(all_skips, _SHOWN)
        if next(all_skips, None) is not None:
            yield Skip("more", f"only the first {_SHOWN} are listed; the others have similar reasons")

    def _skips(self) -> Iterator[Skip]:
        """Yield waiting and future windows, removed units, work for later runs, and loaded windows."""
        if self._awaited is not None:
            yield from self._awaited.skips(self.workload.requested_units)
        if self.workload.windows is not None:
            to = self.workload.definition.time_range.end(self.workload.now)
            if to > milliseconds(self.workload.now):
                span = f"[{self._at(floor_minute(self.workload.now))}, {self._at(to)})"
                yield Skip(span, "future: later runs plan these windows")
        removed_units = set(self.workload.state.units) - set(self.workload.units) - {NO_UNIT}
        yield from (
            Skip(describe_unit(unit), "no longer a unit; the state keeps its loaded windows")
            for unit in sorted(removed_units)
        )
        yield from self._deferred_skips()
        if self.workload.unit_due is not None:
            yield from self._loaded_skips(self.workload.unit_due)

    def _deferred_skips(self) -> Iterator[Skip]:
        """Yield due work that the plan leaves out: groups, waiting groups, and work units beyond the cap."""
        for group in self.workload.due_groups:
            if group not in self.workload.taken_groups:
                yield Skip(
                    self._label(
                        group.tied_windows.first,
                        group.tied_windows.after,
                        self.workload.units[group.unit_index],
                    ),
                    "left for a later run: these windows share old windows, so one commit must read them all",
                )
        for unit_index, tied_windows, missing in self.workload.groups.waiting:
            missing_spans = ", ".join(self._span(*part) for part in missing)
            yield Skip(
                self._label(tied_windows.first, tied_windows.after, self.workload.units[unit_index]),
                f"waits for windows that cover {missing_spans}: the rows of the old windows stay until then",
            )
        for first, after, (_, unit_index) in self.workload.selector.over_cap:
            label = self._label(first, after, self.workload.units[unit_index])
            yield Skip(label, f"left for a later run ({self._cap})")

    def _loaded_skips(self, unit_due: DueFinder) -> Iterator[Skip]:
        """Yield ranges of adjacent windows that are loaded and not due."""
        job = self.workload.cutoffs.job
        since = (
            f", and end at or before the job's cutoff {self._at(job)}"
            if job is not None and self.workload.cutoffs.grace
            else ""
        )
        for unit in self.workload.units:
            dues = self.workload.due(unit)
            for loaded in unit_due.loaded_ranges(unit):
                parts = list(_parts_not_due(loaded[0], loaded[1], dues))
                expired = self.workload.awaited.expired(unit) if self.workload.awaited is not None else []
                for first, after in subtract(parts, expired):
                    loaded_windows = f"{pluralize(after - first, 'window')} loaded{since}"
                    yield Skip(self._label(first, after, unit), loaded_windows, is_loaded=True)
                for first, after, _ in intersect(((*part, None) for part in parts), expired):
                    why = f"{pluralize(after - first, 'window')} loaded, and kept: the retention upstream has deleted rows"
                    yield Skip(self._label(first, after, unit), why, is_loaded=True)

    def warnings(self) -> Iterator[str]:
        """Yield warnings that do not stop the run."""
        if self.workload.definition.time_entry is None:
            if self.workload.definition.window != "none":
                yield (
                    "window has no effect: without a datetime entry each run reads every unit as a whole. "
                    "Remove it, or add a datetime entry to watermark.definition"
                )
            return
        yield from self._early_warnings()
        yield from self._old_window_warnings()
        gaps, overlaps = self.workload.definition.time_range.gaps_and_overlaps(self.workload.now)
        for problem, ranges in (("leave a gap", gaps), ("overlap, and the earlier one counts", overlaps)):
            yield from (
                f"the sub-ranges of window {problem}: {self._span(start, end)}" for start, end in ranges
            )
        skipped = (
            (unit, range_) for unit, ranges in self.workload.state.skipped.items() for range_ in ranges
        )
        for unit, (start, end) in islice(skipped, _SHOWN):
            yield f"abstinence left a gap that no run has read: {self._span(start, end)}{_of_unit(unit)}"

    def _early_warnings(self) -> Iterator[str]:
        """Yield a warning for each stretch that was loaded before its end."""
        units = still_to_come(self.workload.state, self.workload.now)
        for (start, end), unit_names in islice(units.items(), _SHOWN):
            owner = _of_unit(unit_names[0]) if len(unit_names) == 1 else f" of {len(unit_names):,} units"
            yield (
                f"{self._span(start, end)}{owner} was loaded before its end, because a clock ran ahead or "
                "--now was used. Each of its windows is read again once it is over. To read them as they "
                "grow, restore the earlier state (state rewind)"
            )

    def _old_window_warnings(self) -> Iterator[str]:
        """Yield warnings about old windows in the table, and what happens to them."""
        count = sum(
            len(tied_windows.old)
            for unit in self.workload.units
            for tied_windows in self.workload.groups.tied_windows(unit)
        )
        if count:
            yield (
                f"the table still holds {pluralize(count, 'window')} of a unit as an earlier definition "
                f"cut {'it' if count == 1 else 'them'}. A commit that reads a part of such a window again "
                "deletes all its rows and reads its whole time range"
            )
        for unit_index, tied_windows, missing in self.workload.groups.waiting[:_SHOWN]:
            missing_spans = ", ".join(self._span(*part) for part in missing)
            yield (
                f"{self._label(tied_windows.first, tied_windows.after, self.workload.units[unit_index])} waits "
                f"for windows that cover {missing_spans}: old windows loaded this range, and no window "
                "covers it now. If none ever will, restore `from` or `to`, or reload the table (state "
                "reset --replace)"
            )

    def _label(self, first: int, after: int, unit: str) -> str:
        if self.workload.windows is None:
            return describe_unit(unit)
        return f"{self._span(self.workload.windows.starts[first], self.workload.windows.ends[after - 1])}{_of_unit(unit)}"

    def _at(self, instant: int) -> str:
        return as_datetime(instant, self.workload.definition.zone).isoformat()

    def _span(self, start: int, end: int) -> str:
        return f"[{self._at(start)}, {self._at(end)})"


def _of_unit(unit: str) -> str:
    return "" if unit == NO_UNIT else f" of {describe_unit(unit)}"


def _parts_not_due(first: int, after: int, dues: Sequence[DueRange]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range of windows that no due range holds; due ranges are ascending."""
    reached = first
    for due in dues[bisect_right(dues, first, key=lambda due: due.after) :]:
        if due.first >= after:
            break
        if reached < due.first:
            yield reached, due.first
        reached = due.after
    if reached < after:
        yield reached, after
